"""Commands in a sandbox: real bubblewrap, real processes."""

from __future__ import annotations

import asyncio
import errno
import os
import signal
import tempfile
import time
from pathlib import Path

import pytest

from hudsim.coding import Box, Limits
from hudsim.errors import SandboxError
from tests.asyncrun import on_loop


def box(**limits: int) -> Box:
    return Box(limits=Limits(**limits), guest_path="/workspace")


@on_loop
async def test_a_command_says_how_it_ended_and_what_it_printed() -> None:
    async with box() as it:
        done = await it.run("echo out; echo err >&2; exit 3")
        assert (done.code, done.stdout, done.stderr, done.truncated, done.timed_out) == (
            3,
            b"out\n",
            b"err\n",
            False,
            False,
        )
        done = await it.run("kill -TERM $$")
        assert done.code == -signal.SIGTERM


@on_loop
async def test_commands_share_files_and_processes_and_begin_in_the_workspace() -> None:
    async with box() as it:
        assert (await it.run("pwd; echo 1 > file; sleep 100 & echo $!")).text.startswith("/workspace\n")
        assert (await it.run("cat file; pgrep -c sleep || ls /proc | grep -c '^[0-9]'")).text.startswith("1\n")
        assert it.root is not None
        assert (it.root / "file").read_text() == "1\n"


@on_loop
async def test_python_is_python_whatever_the_host_calls_it() -> None:
    async with box() as it:
        done = await it.run("python -c 'print(6 * 7)'; python3 -c 'print(1)'")
        assert done.stdout == b"42\n1\n", done.stderr


@on_loop
async def test_stdin_arrives_whole_and_bytes_are_exact() -> None:
    data = bytes(range(256)) * 5000
    async with box() as it:
        assert (await it.run(["cat"], stdin=data)).stdout == data
        assert (await it.run(["cat"])).stdout == b""


@on_loop
async def test_output_beyond_the_limit_is_counted_not_kept() -> None:
    async with box(output_bytes=1000) as it:
        done = await it.run("head -c 300000000 /dev/zero; head -c 10 /dev/zero >&2")
        assert (len(done.stdout), done.stdout_bytes, done.stderr_bytes, done.truncated) == (1000, 300_000_000, 10, True)


@on_loop
async def test_a_command_returns_when_it_ends_though_a_child_holds_its_pipe() -> None:
    async with box() as it:
        began_s = time.monotonic()
        done = await it.run("(sleep 60; echo late) & echo early")
        assert done.stdout == b"early\n"
        assert time.monotonic() - began_s < 20


@on_loop
async def test_a_command_whose_time_is_up_is_killed_with_its_children() -> None:
    async with box() as it:
        done = await it.run("setsid sleep 61 & sleep 62", timeout_s=0.5)
        assert (done.code, done.timed_out) == (-9, True)
        left = await it.run("cat /proc/[0-9]*/cmdline | tr '\\0' ' '")
        assert "sleep 6" not in left.text


@on_loop
async def test_whoever_stops_waiting_kills_the_command() -> None:
    async with box() as it:
        waiting = asyncio.create_task(it.run("touch begun; sleep 63"))
        assert it.root is not None
        while not (it.root / "begun").exists():  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        waiting.cancel()
        await asyncio.wait({waiting})
        while "sleep 63" in (await it.run("cat /proc/[0-9]*/cmdline | tr '\\0' ' '")).text:
            pass


@on_loop
async def test_the_launcher_outlives_whatever_is_done_to_it_from_inside() -> None:
    async with box() as it:
        await it.run("kill -9 -1; kill -9 1; kill -STOP 1; echo x > /proc/1/mem")
        done = await it.run("cat /proc/1/environ /proc/1/maps; ls /proc/1/fd; echo alive")
        assert done.stdout == b"alive\n"


@on_loop
async def test_end_all_leaves_an_empty_sandbox_that_goes_on() -> None:
    async with box() as it:
        await it.run("for i in 1 2 3; do setsid sleep 64 & done; (setsid sh -c 'while :; do :; done' &)")
        await it.end_all()
        done = await it.run("cat /proc/[0-9]*/cmdline | tr '\\0' ' '")
        assert "sleep 64" not in done.text
        assert "while" not in done.text.replace("cat", "")


@on_loop
async def test_what_is_not_there_is_said_by_name() -> None:
    async with box() as it:
        with pytest.raises(SandboxError, match="/no/such: No such file"):
            await it.run(["/no/such"])
        with pytest.raises(SandboxError, match="/nowhere: No such file"):
            await it.run(["true"], cwd="/nowhere")
        assert (await it.run("true")).code == 0


@on_loop
async def test_a_terminal_has_its_size_and_is_given_another() -> None:
    async with box() as it:
        sandbox = await it.sandbox()
        process = await sandbox.spawn(["/bin/sh", "-c", "stty size; read x; stty size"], terminal=(30, 100))
        assert process.terminal is not None
        process.resize(40, 120)
        while os.get_terminal_size(process.terminal) != (120, 40):  # noqa: ASYNC110 - it has no event
            await asyncio.sleep(0.005)
        os.write(process.terminal, b"\n")
        await process.wait()
        said = os.read(process.terminal, 1000)
        os.close(process.terminal)
        assert said.endswith(b"40 120\r\n")


@on_loop
async def test_a_sandbox_that_was_killed_is_made_again() -> None:
    async with box() as it:
        sandbox = await it.sandbox()
        assert sandbox.pid is not None
        waiting = asyncio.create_task(it.run("sleep 65"))
        await it.run("echo kept > file")
        os.kill(sandbox.pid, signal.SIGKILL)
        with pytest.raises(SandboxError, match="gone"):
            await waiting
        assert (await it.run("cat file")).stdout == b"kept\n"


@on_loop
async def test_a_box_that_was_closed_says_so() -> None:
    it = box()
    await it.run("true")
    await it.stop()
    await it.stop()
    with pytest.raises(SandboxError, match="closed"):
        await it.run("true")
    assert not it.folder.exists()


@on_loop
async def test_many_commands_at_once_keep_their_outputs_apart() -> None:
    async with box() as it:
        done = await asyncio.gather(*(it.run(["/bin/echo", str(n)]) for n in range(60)))
        assert [int(one.text) for one in done] == list(range(60))


@on_loop
async def test_orders_that_arrive_together_are_all_obeyed() -> None:
    async with box() as it:
        sandbox = await it.sandbox()
        with tempfile.TemporaryFile() as null:
            for _ in range(100):
                one = await sandbox.spawn(["/bin/sleep", "67"], fds=[null.fileno()] * 3)
                one.signal()
                one.signal(9)
                two = await sandbox.spawn(["/bin/true"], fds=[null.fileno()] * 3)
                assert (await two.wait()).code == 0
                assert (await one.wait()).code in (-9, -15)


@on_loop
async def test_a_terminal_that_nobody_waits_for_any_more_is_closed() -> None:
    def terminals() -> int:
        return sum(path.is_symlink() and "ptmx" in str(path.readlink()) for path in Path("/proc/self/fd").iterdir())

    async with box() as it:
        sandbox = await it.sandbox()
        before = terminals()
        for _ in range(20):
            starting = asyncio.create_task(sandbox.spawn(["/bin/sleep", "68"], terminal=(24, 80)))
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            starting.cancel()
            await asyncio.wait({starting})
        await it.run("true")
        assert terminals() == before
        assert "sleep" not in (await it.run("cat /proc/[0-9]*/cmdline")).text


@on_loop
async def test_input_is_given_also_where_no_memory_file_may_be_made(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object) -> int:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))

    monkeypatch.setattr(os, "memfd_create", refused)
    async with box() as one:
        assert (await one.run(["cat"], stdin=b"given")).stdout == b"given"
