from __future__ import annotations

import asyncio
import os
import socket
import time
from pathlib import Path
from typing import Any

import asyncssh
import pytest

from hudsim.capability import Capability
from hudsim.coding.client import SSHClient
from hudsim.coding.keys import new_client_key
from hudsim.coding.limits import Limits
from hudsim.errors import ConnectError, LinkLost, SandboxError, UsageError
from tests.asyncrun import on_loop
from tests.coding.shells import shell


@on_loop
async def test_a_command_gives_its_code_and_both_streams(tmp_path: Path) -> None:
    async with shell(tmp_path) as host, await host.client() as client:
        done = await client.run("echo out; echo err >&2; exit 3")
    assert (done.code, done.stdout, done.stderr, done.truncated) == (3, b"out\n", b"err\n", False)


@on_loop
async def test_a_command_of_words_is_not_read_by_the_shell(tmp_path: Path) -> None:
    async with shell(tmp_path) as host, await host.client() as client:
        done = await client.run(["printf", "%s|", "a b", "$HOME", "it's", "é"])
    assert done.stdout == "a b|$HOME|it's|é|".encode()


@on_loop
async def test_a_command_has_the_folder_the_variables_and_the_input_it_is_given(tmp_path: Path) -> None:
    async with shell(tmp_path) as host, await host.client() as client:
        given = await client.run("pwd; echo $A $OF_THE_ROOM; cat", cwd="/tmp", env={"A": "it's"}, input=b"\x00\xff")
        nowhere = await client.run("echo here", cwd="/nowhere")
    assert given.stdout == b"/tmp\nit's yes\n\x00\xff"
    assert nowhere.code != 0
    assert nowhere.stdout == b""


@on_loop
async def test_a_signal_that_ends_a_command_is_its_code(tmp_path: Path) -> None:
    async with shell(tmp_path) as host, await host.client() as client:
        assert (await client.run("kill -9 $$")).code == -9
        assert (await client.run("kill -TERM $$")).code == -15


@on_loop
async def test_a_command_whose_time_is_up_is_killed_with_its_children(tmp_path: Path) -> None:
    async with shell(tmp_path) as host, await host.client() as client:
        began_s = time.monotonic()
        done = await client.run("echo begun; sleep 1000; echo never", timeout_s=0.5)
        assert (done.code, done.timed_out, done.stdout) == (-9, True, b"begun\n")
        assert time.monotonic() - began_s < 10
        await _until_gone(client, "sleep 1000")


@on_loop
async def test_a_command_that_nobody_waits_for_any_more_ends(tmp_path: Path) -> None:
    async with shell(tmp_path) as host, await host.client() as client:
        running = asyncio.create_task(client.run("sleep 1001"))
        while not (await client.run("pgrep -f 'sleep 100[1]'")).stdout:  # noqa: ASYNC110 - it is to start
            await asyncio.sleep(0.02)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        await _until_gone(client, "sleep 100[1]")


@on_loop
async def test_output_beyond_the_limit_is_counted_and_dropped(tmp_path: Path) -> None:
    async with shell(tmp_path) as host, await host.client() as client:
        done = await client.run("head -c 3000000 /dev/zero; head -c 7 /dev/zero >&2", output_bytes=1000)
    assert (len(done.stdout), done.stdout_bytes, done.stderr_bytes, done.truncated) == (1000, 3_000_000, 7, True)


@on_loop
async def test_large_input_reaches_a_command_and_may_be_left_unread(tmp_path: Path) -> None:
    data = os.urandom(5 << 20)
    async with shell(tmp_path) as host, await host.client() as client:
        assert (await client.run("cat", input=data)).stdout == data
        assert (await client.run("true", input=data)).code == 0


@pytest.mark.parametrize("command", ["", "  ", "a\0b", "\udcff", []])
@on_loop
async def test_a_command_that_cannot_be_sent_is_refused(tmp_path: Path, command: Any) -> None:
    async with shell(tmp_path) as host, await host.client() as client:
        with pytest.raises(UsageError):
            await client.run(command)


@on_loop
async def test_a_process_can_be_talked_with(tmp_path: Path) -> None:
    async with shell(tmp_path) as host, await host.client() as client:
        process = await client.create_process("cat; exit 3")
        process.stdin.write(b"hello\xff\n")
        assert await process.stdout.readline() == b"hello\xff\n"
        process.stdin.write_eof()
        assert (await process.wait()).exit_status == 3


@on_loop
async def test_a_process_with_a_terminal_has_its_size_and_gets_its_changes(tmp_path: Path) -> None:
    async with shell(tmp_path) as host, await host.client() as client:
        process = await client.create_process(
            "trap 'stty size; exit' WINCH; stty size; while :; do sleep 0.01; done", pty=(33, 101)
        )
        assert await process.stdout.readline() == b"33 101\r\n"
        process.change_terminal_size(60, 20)
        assert await process.stdout.readline() == b"20 60\r\n"
        await process.wait()


@on_loop
async def test_files_are_written_and_read_byte_by_byte(tmp_path: Path) -> None:
    data = bytes(range(256)) * 5000
    async with shell(tmp_path) as host, await host.client() as client:
        await client.write("deep/er/x.bin", data, mode=0o750)
        assert await client.read("deep/er/x.bin") == data
        assert await client.read("/workspace/deep/er/x.bin") == data
        await client.write("deep/er/x.bin", b"short")
        assert await client.read("deep/er/x.bin") == b"short"
        await client.write("empty", b"")
        assert await client.read("empty") == b""
    found = host.root / "deep/er/x.bin"
    assert found.stat().st_mode & 0o777 == 0o750
    assert found.stat().st_uid == host.root.stat().st_uid


@on_loop
async def test_a_folder_is_listed_with_kinds_and_odd_names(tmp_path: Path) -> None:
    async with shell(tmp_path) as host, await host.client() as client:
        await client.run("mkdir d; echo hello > f; ln -s nowhere l; mkfifo p; touch $'odd\\xff\\nname'; chmod 640 f")
        entries = {entry.name: entry for entry in await client.list()}
        assert {name: entry.kind for name, entry in entries.items()} == {
            "d": "folder",
            "f": "file",
            "l": "link",
            "p": "other",
            "odd\udcff\nname": "file",
        }
        assert (entries["f"].size, entries["f"].mode) == (6, 0o640)
        await client.write("odd\udcff\nname", b"it")
        assert await client.read("odd\udcff\nname") == b"it"


@on_loop
async def test_a_folder_of_many_files_is_listed_whole(tmp_path: Path) -> None:
    async with shell(tmp_path) as host, await host.client() as client:
        await client.run("mkdir many; cd many; seq 1000 | xargs touch")
        assert len(await client.list("many")) == 1000


@pytest.mark.parametrize("path", ["none", "none/x", "", "a\0b", "folder", "fifo", "/dev/zero", "loop", "x" * 5000])
@on_loop
async def test_what_cannot_be_read_is_refused_in_words(tmp_path: Path, path: str) -> None:
    async with shell(tmp_path) as host, await host.client() as client:
        await client.run("mkdir folder; mkfifo fifo; ln -s loop loop")
        with pytest.raises(UsageError):
            await client.read(path)
        assert (await client.run("echo on")).stdout == b"on\n"


@on_loop
async def test_a_file_of_the_kernels_that_says_it_is_empty_is_read(tmp_path: Path) -> None:
    async with shell(tmp_path) as host, await host.client() as client:
        assert b"Name:" in await client.read("/proc/self/status")


@on_loop
async def test_each_command_of_a_run_is_in_its_trace(tmp_path: Path) -> None:
    class Live:
        def __init__(self) -> None:
            self.bindings: dict[str, dict[str, Any]] = {}
            self.notes: list[tuple[str, str | None, dict[str, Any] | None]] = []

        async def reach(self, name: str) -> Capability:
            assert name == "ssh"
            return host.capability

        def note(self, source: str, *, content: str | None = None, data: dict[str, Any] | None = None) -> None:
            self.notes.append((source, content, data))

    async with shell(tmp_path) as host:
        run = Live()
        run.bindings["shell"] = dict(host.binding)
        async with await SSHClient.of(run) as client:
            await client.run("echo hi; exit 2")
    [(source, content, data)] = run.notes
    assert (source, content) == ("tool", "echo hi; exit 2")
    assert data is not None
    assert {**data, "seconds": 0} == {"command": "echo hi; exit 2", "code": 2, "stdout": "hi\n", "seconds": 0}


@on_loop
async def test_nobody_there_is_a_connect_error(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    async with shell(tmp_path) as host:
        with pytest.raises(ConnectError, match=f"shell at 127.0.0.1:{port}"):
            await SSHClient.connect(host.capability.moved("127.0.0.1", port), host.binding)


@on_loop
async def test_one_that_does_not_answer_is_a_connect_error(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        async with shell(tmp_path) as host:
            there = host.capability.moved("127.0.0.1", silent.getsockname()[1])
            with pytest.raises(ConnectError, match="did not answer within"):
                await SSHClient.connect(there, host.binding, timeout_s=0.3)


@on_loop
async def test_another_host_key_than_the_capabilitys_is_not_trusted(tmp_path: Path) -> None:
    async with shell(tmp_path) as host:
        params = {**host.capability.params, "host_pubkey": new_client_key().public}
        other = Capability("shell", "ssh/2", host.capability.url, params)
        with pytest.raises(ConnectError, match="another host key"):
            await SSHClient.connect(other, host.binding)


@on_loop
async def test_a_key_that_opens_nothing_is_not_admitted(tmp_path: Path) -> None:
    async with shell(tmp_path) as host:
        with pytest.raises(ConnectError, match="does not admit this key"):
            await SSHClient.connect(host.capability, {"client_key": new_client_key().private})


@on_loop
async def test_a_binding_without_a_key_and_a_capability_that_is_no_shell_are_refused(tmp_path: Path) -> None:
    async with shell(tmp_path) as host:
        with pytest.raises(UsageError, match="client_key missing"):
            await SSHClient.connect(host.capability)
        with pytest.raises(UsageError, match="cannot be read"):
            await SSHClient.connect(host.capability, {"client_key": "x"})
        with pytest.raises(UsageError, match="expected ssh/2"):
            await SSHClient.connect(Capability("web", "mcp", "http://127.0.0.1:1"), host.binding)


@on_loop
async def test_a_workspace_that_is_forgotten_ends_the_link(tmp_path: Path) -> None:
    async with shell(tmp_path) as host, await host.client() as client:
        await client.write("x", b"1")
        running = asyncio.create_task(client.run("sleep 1002"))
        await client.run("true")
        await host.server.forget(host.public)
        with pytest.raises(LinkLost):
            await running
        for call in (client.run("true"), client.read("x"), client.write("x", b""), client.list()):
            with pytest.raises(LinkLost):
                await call
        with pytest.raises(ConnectError):
            await host.client()


@on_loop
async def test_a_sandbox_that_is_gone_is_a_sandbox_error(tmp_path: Path) -> None:
    async with shell(tmp_path) as host, await host.client() as client:
        await client.write("x", b"1")
        running = asyncio.create_task(client.run("sleep 1003"))
        await client.run("true")
        await host.room.box.stop()
        with pytest.raises(SandboxError):
            await running
        for call in (client.run("true"), client.read("x"), client.list()):
            with pytest.raises(SandboxError):
                await call


@on_loop
async def test_the_workspaces_own_limit_ends_a_command(tmp_path: Path) -> None:
    async with shell(tmp_path, limits=Limits(wall_s=1)) as host, await host.client() as client:
        done = await client.run("sleep 1004")
    assert done.code == -9


@on_loop
async def test_the_private_key_is_not_printed(tmp_path: Path) -> None:
    assert "PRIVATE" not in repr(new_client_key())
    assert asyncssh.import_private_key(new_client_key().private).get_algorithm() == "ssh-ed25519"


async def _until_gone(client: SSHClient, pattern: str) -> None:
    while (await client.run(["pgrep", "-f", pattern])).stdout:  # noqa: ASYNC110 - the test's own time ends it
        await asyncio.sleep(0.02)
