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
from hudsim.coding import sandbox as sandboxes
from hudsim.coding.cgroups import Controllers
from hudsim.coding.output import Output
from hudsim.errors import SandboxBroken, SandboxError, UsageError, WorkspaceError
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
        sandbox = await it.sandbox()
        with pytest.raises(WorkspaceError, match="/no/such: No such file"):
            await sandbox.run(["/no/such"])
        with pytest.raises(WorkspaceError, match="/nowhere: No such file"):
            await sandbox.run(["true"], cwd="/nowhere")
        with pytest.raises(SandboxError, match="/no/such: No such file"):  # where no agent works, it is nobody's loss
            await it.run(["/no/such"])
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
        with pytest.raises(SandboxBroken, match="gone"):
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


STOPPER = """
import os, signal, time
if os.fork():
    os._exit(0)
os.setsid()
while os.getppid() != 1:  # or it stops who was told to start it
    time.sleep(0.001)
open("stopping", "w").close()
end = time.time() + 60
while time.time() < end:
    try:
        os.kill(-1, signal.SIGSTOP)
    except ProcessLookupError:
        pass
"""


@on_loop
async def test_what_stops_all_that_starts_holds_up_no_time_limit_and_not_the_end() -> None:
    async with box() as it:
        assert it.root is not None
        await it.run(["python", "-I", "-S", "-c", STOPPER])
        while not (it.root / "stopping").exists():  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        for _ in range(8):
            done = await it.run("true", timeout_s=0.3)
            assert done.timed_out or done.code == 0
        await it.end_all()
        assert (await it.run("echo on; cat /proc/[0-9]*/cmdline | tr '\\0' ' '")).text.startswith("on\n")
        assert "SIGSTOP" not in (await it.run("cat /proc/[0-9]*/cmdline")).text


@on_loop
async def test_a_launcher_that_does_not_answer_is_ended_with_all_it_started(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandboxes, "_KILLED_S", 0.3)
    async with box() as it:
        sandbox = await it.sandbox()
        for end in (it.end_all, lambda: it.run("sleep 69", timeout_s=0.3)):
            await it.run("echo kept > file")
            held = sandbox.pid
            assert held is not None
            os.kill(held, signal.SIGSTOP)
            done = await end()
            assert done is None or (done.code, done.timed_out) == (-9, True)
            with pytest.raises(ProcessLookupError):
                os.kill(held, 0)
            assert (await it.run("cat file")).stdout == b"kept\n"


@pytest.mark.skipif(Controllers.found().version is None, reason="counted by control groups")
@on_loop
async def test_a_launcher_that_was_killed_for_memory_is_told_from_a_sandbox_that_cannot_be_made() -> None:
    async with box(memory_bytes=64 << 20) as it:
        await it.run("true")
        assert it.evidence() == []
        with pytest.raises(SandboxBroken, match="gone"):  # the launcher is the largest of the two
            await it.run("echo 0 > /proc/self/oom_score_adj; exec dd if=/dev/zero of=/dev/shm/full bs=4k")
        assert [line.partition(":")[0] for line in it.evidence()] == ["memory"]
        assert (await it.run("echo on")).stdout == b"on\n"


@pytest.mark.skipif(Controllers.found().version is None, reason="counted by control groups")
@on_loop
async def test_a_command_for_which_all_places_are_taken_is_told_from_one_that_is_not_there() -> None:
    filler = """
import os, time
if os.fork():
    os._exit(0)
while True:
    try:
        if os.fork() == 0:
            time.sleep(60)
            os._exit(0)
    except OSError:
        open("full", "w").close()
"""
    async with box(processes=8) as it:
        assert it.root is not None
        await it.run(["python", "-I", "-S", "-c", filler])
        while not (it.root / "full").exists():  # noqa: ASYNC110
            await asyncio.sleep(0.01)

        async def until_none_is_left() -> None:
            while True:
                await it.run(["true"])

        with pytest.raises(SandboxBroken, match="starts nothing more"):
            await until_none_is_left()
        assert [line.partition(":")[0] for line in it.evidence()] == ["processes"]
        await it.end_all()
        assert (await it.run("echo on")).stdout == b"on\n"


@on_loop
async def test_a_sandbox_that_does_not_come_up_again_was_up_once(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object, **__: object) -> list[str]:
        return ["false"]

    async with box() as it, box() as other:
        sandbox = await it.sandbox()
        assert sandbox.pid is not None
        os.kill(sandbox.pid, signal.SIGKILL)
        await it.end_all()
        monkeypatch.setattr(type(it.plan), "command", fails)
        with pytest.raises(SandboxBroken, match="did not come up"):
            await it.run("true")
        with pytest.raises(SandboxError, match="did not come up") as caught:
            await other.run("true")
        assert type(caught.value) is SandboxError


@on_loop
async def test_a_command_too_large_to_be_sent_is_refused_and_nothing_else_notices() -> None:
    async with box() as it:
        other = asyncio.create_task(it.run("read x; echo $x", stdin=b"on\n"))
        with pytest.raises(UsageError, match=r"of 17,\d\d\d,\d\d\d bytes, expected 16,777,216 at most"):
            await it.run(["true"], env={"MUCH": "x" * 17_000_000})
        pid = (await it.sandbox()).pid
        assert (await other).stdout == b"on\n"
        assert (await it.sandbox()).pid == pid
        with pytest.raises(SandboxError, match="Argument list too long"):
            await it.run(["true"], env={"MUCH": "x" * 1_000_000})


@on_loop
async def test_who_goes_on_printing_does_not_hold_up_who_takes_what_there_is(monkeypatch: pytest.MonkeyPatch) -> None:
    with Output(1000) as output:
        writer = os.dup(output.writer)
        output.listen()
        read, pieces = os.read, 0

        def refilled(fd: int, size: int) -> bytes:
            nonlocal pieces
            piece = read(fd, size)
            pieces += 1
            assert pieces < 1000, "it would never end"
            if piece:
                os.write(writer, piece)
            return piece

        os.write(writer, bytes(1 << 16))
        monkeypatch.setattr(os, "read", refilled)
        await output.drained(0.0)
        monkeypatch.undo()
        os.close(writer)
        assert output.count >= 1 << 16
