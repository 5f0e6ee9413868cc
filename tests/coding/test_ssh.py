"""The SSH server, asked by OpenSSH's own client where that says more than ours."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import socket
import tracemalloc
from pathlib import Path
from typing import Any

import asyncssh
import pytest

from hudsim.coding.keys import new_client_key
from hudsim.coding.limits import Limits
from hudsim.coding.ssh import SshServer
from hudsim.coding.sshsession import _Variables
from hudsim.errors import LinkLost, SandboxError
from tests.asyncrun import on_loop
from tests.coding.shells import Shell, shell
from tests.coding.test_sandbox import STOPPER


@on_loop
async def test_a_command_has_its_streams_and_its_exit_code(tmp_path: Path) -> None:
    async with shell(tmp_path) as host:
        assert await host.openssh("'echo out; echo err >&2; exit 3'") == (3, b"out\n", b"err\n")


@on_loop
async def test_it_runs_as_the_workspaces_user_in_its_folder(tmp_path: Path) -> None:
    async with shell(tmp_path) as host:
        _, out, _ = await host.openssh("'pwd; id -u; echo $OF_THE_ROOM; touch made'")
        found = host.root / "made"
        assert out.decode().split() == ["/workspace", str(found.stat().st_uid), "yes"]


@on_loop
async def test_who_shows_no_key_does_not_keep_others_out(tmp_path: Path) -> None:
    async with shell(tmp_path) as host:
        with contextlib.ExitStack() as stack:
            where = ("127.0.0.1", host.server.port)
            held = [stack.enter_context(socket.create_connection(where)) for _ in range(100)]
            async with await host.client() as client:
                assert (await client.run("echo in")).text == "in\n"
            assert len(host.server._doors) < 50
            held[0].settimeout(20)
            while await asyncio.to_thread(held[0].recv, 4096):
                pass  # its greeting, then the end


@on_loop
async def test_of_too_many_connections_that_do_nothing_the_oldest_go(tmp_path: Path) -> None:
    async with shell(tmp_path) as host, await host.client() as busy:
        running = asyncio.ensure_future(busy.run("until [ -e go ]; do sleep 0.05; done; echo on"))
        async with contextlib.AsyncExitStack() as stack:
            clients = [await stack.enter_async_context(await host.client()) for _ in range(36)]
            assert (await clients[-1].run("echo in")).text == "in\n"
            with pytest.raises(LinkLost):
                await clients[0].run("echo in")
            assert len(host.server._doors) <= 34
            (host.root / "go").touch()
        assert (await running).text == "on\n"


@on_loop
async def test_all_bytes_pass_both_ways(tmp_path: Path) -> None:
    data = bytes(range(256)) * 4096 + "é".encode() + b"\xff"
    async with shell(tmp_path) as host:
        assert await host.openssh("cat", stdin=data) == (0, data, b"")


@on_loop
async def test_a_character_in_two_writes_stays_whole(tmp_path: Path) -> None:
    async with shell(tmp_path) as host:
        assert (await host.openssh(r"'printf \\303; sleep 0.05; printf \\251'"))[1] == "é".encode()


@on_loop
async def test_input_that_a_command_leaves_unread_holds_nothing_up(tmp_path: Path) -> None:
    async with shell(tmp_path) as host:
        assert (await host.openssh("'exec true'", stdin=bytes(20 << 20)))[0] == 0
        assert await host.openssh("'exec <&-; echo on'", stdin=bytes(5 << 20)) == (0, b"on\n", b"")


@on_loop
async def test_the_end_of_the_input_is_seen(tmp_path: Path) -> None:
    async with shell(tmp_path) as host:
        assert await host.openssh("'wc -c'", stdin=b"12345") == (0, b"5\n", b"")


@on_loop
async def test_output_after_the_end_of_the_input_still_comes(tmp_path: Path) -> None:
    async with shell(tmp_path) as host:
        assert await host.openssh("'cat; sleep 0.2; echo after'", stdin=b"x") == (0, b"xafter\n", b"")


@on_loop
async def test_a_command_returns_when_it_ends_though_a_child_holds_its_output(tmp_path: Path) -> None:
    async with shell(tmp_path) as host:
        for rest in ("(sleep 1005 &) ; echo done", "setsid sleep 1005 & echo done", "nohup sleep 1005 & echo done"):
            code, out, _ = await host.openssh(f"'{rest}'")
            assert (code, out) == (0, b"done\n")


@on_loop
async def test_a_command_returns_when_it_ends_though_a_child_goes_on_printing(tmp_path: Path) -> None:
    async with shell(tmp_path) as host:
        code, out, _ = await host.openssh("'yes & exit 5'")
        assert code == 5
        assert not out.strip(b"y\n")


@on_loop
async def test_what_a_command_left_running_is_there_for_the_next(tmp_path: Path) -> None:
    async with shell(tmp_path) as host, await host.client() as client:
        await client.run("(while :; do echo tick > tock; sleep 0.01; done) > /dev/null 2>&1 &")
        while (await client.run("cat tock")).stdout != b"tick\n":
            pass


@on_loop
async def test_the_streams_can_be_opened_by_name(tmp_path: Path) -> None:
    async with shell(tmp_path) as host:
        rest = "'echo a > /dev/stdout; echo b > /dev/stderr; cat /dev/stdin'"
        assert await host.openssh(rest, stdin=b"c") == (0, b"a\nc", b"b\n")


@on_loop
async def test_a_shell_reads_its_commands_from_the_input(tmp_path: Path) -> None:
    async with shell(tmp_path) as host:
        assert (await host.openssh("", stdin=b"cd /tmp\npwd\nexit 6\n"))[:2] == (6, b"/tmp\n")


@on_loop
async def test_a_terminal_is_a_real_one(tmp_path: Path) -> None:
    async with shell(tmp_path) as host:
        code, out, _ = await host.openssh("'tty; stty size; test -t 0 && echo $TERM; exit 4'", options="-tt")
        name, size, _ = out.decode().split("\r\n", 2)
        assert (code, name.startswith("/dev/pts/"), size) == (4, True, "24 80")


@on_loop
async def test_a_terminal_turns_a_control_character_into_a_signal(tmp_path: Path) -> None:
    async with shell(tmp_path) as host, await host.client() as client:
        process = await client.create_process(
            "trap 'echo caught; exit 7' INT; echo on; while :; do sleep 0.01; done", pty=(24, 80)
        )
        assert await process.stdout.readline() == b"on\r\n"
        process.stdin.write(b"\x03")
        done = await process.wait()
        assert done.exit_status == 7


@on_loop
async def test_a_terminals_end_of_input_is_seen(tmp_path: Path) -> None:
    async with shell(tmp_path) as host:
        code, out, _ = await host.openssh("'stty -echo; cat; echo after'", options="-tt", stdin=b"")
        assert code == 0
        assert out.endswith(b"after\r\n")


@on_loop
async def test_a_signal_reaches_the_command_and_its_group(tmp_path: Path) -> None:
    async with shell(tmp_path) as host, await host.client() as client:
        process = await client.create_process("trap 'exit 9' TERM; echo on; sleep 1006 & wait")
        assert await process.stdout.readline() == b"on\n"
        process.terminate()
        assert (await process.wait()).exit_status == 9


@on_loop
async def test_a_commands_own_signal_is_told(tmp_path: Path) -> None:
    async with shell(tmp_path) as host, await host.client() as client:
        process = await client.create_process("kill -USR1 $$")
        assert ((await process.wait()).exit_signal or ("",))[0] == "USR1"


@on_loop
async def test_only_harmless_variables_of_a_client_are_taken_over(tmp_path: Path) -> None:
    async with shell(tmp_path) as host, await host.client() as client:
        wanted = {"LC_ALL": "C", "TZ": "UTC", "SECRET": "x", "LD_PRELOAD": "x", "PATH": "/nowhere"}
        process = await client._connection.create_process("env", env=wanted, encoding=None)
        env = dict(line.split("=", 1) for line in (await process.stdout.read()).decode().splitlines())
    assert (env["LC_ALL"], env["TZ"], env["PATH"]) == ("C", "UTC", "/usr/bin:/bin")
    assert not {"SECRET", "LD_PRELOAD"} & set(env)


@pytest.mark.parametrize(
    "options",
    [
        "-W 127.0.0.1:{port}",
        "-R 0:127.0.0.1:{port} -o ExitOnForwardFailure=yes",
        "-s",
        "-o PreferredAuthentications=password",
    ],
)
@on_loop
async def test_nothing_but_shells_and_files_is_to_be_had(tmp_path: Path, options: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as secret:
        async with shell(tmp_path) as host:
            rest = "other-subsystem" if options == "-s" else "" if "-W" in options else "'echo in'"
            options = options.format(port=secret.getsockname()[1]) + " -o BatchMode=yes"
            code, out, _ = await host.openssh(rest, options=options)
        assert code == 255
        assert out == b""


@on_loop
async def test_neither_agent_nor_display_is_forwarded(tmp_path: Path) -> None:
    async with shell(tmp_path) as host:
        _, out, _ = await host.openssh("'env'", options="-A -X")
        assert b"SSH_AUTH_SOCK" not in out
        assert b"DISPLAY" not in out


@on_loop
async def test_the_key_says_which_workspace_it_is(tmp_path: Path) -> None:
    async with shell(tmp_path) as one, shell(tmp_path) as other:
        assert one.server is other.server
        (one.root / "name").write_text("one")
        (other.root / "name").write_text("other")
        assert (await one.openssh("cat name"))[1] == b"one"
        assert (await other.openssh("cat name"))[1] == b"other"


@on_loop
async def test_a_connection_that_has_shown_one_key_cannot_go_on_with_another(tmp_path: Path) -> None:
    async with shell(tmp_path) as one, shell(tmp_path) as other:
        (one.root / "name").write_text("one")
        keys = [asyncssh.import_private_key(host.binding["client_key"]) for host in (one, other)]
        host, port = one.capability.endpoint
        async with asyncssh.connect(
            host, port, username="x", client_keys=keys, known_hosts=None, config=None, agent_path=None
        ) as conn:
            assert (await conn.run("cat name")).stdout == "one"


@on_loop
async def test_a_client_that_goes_away_ends_its_command_and_what_would_not_hear(tmp_path: Path) -> None:
    async with shell(tmp_path) as host, await host.client() as watching:
        client = await host.client()
        process = await client.create_process("trap '' HUP; echo on; while :; do sleep 0.01; done; echo 1007")
        assert await process.stdout.readline() == b"on\n"
        client._connection.abort()
        while (await watching.run(["pgrep", "-f", "echo 100[7]"])).stdout:  # noqa: ASYNC110
            await asyncio.sleep(0.05)


@on_loop
async def test_so_many_sessions_of_one_workspace_and_no_more(tmp_path: Path) -> None:
    async with shell(tmp_path) as host, await host.client() as client:
        held = [await client.create_process("cat") for _ in range(32)]
        with pytest.raises(SandboxError, match="refused"):
            await client.run("true")
        held.pop().stdin.write_eof()
        while True:
            try:
                assert (await client.run("echo again")).stdout == b"again\n"
                break
            except SandboxError:
                await asyncio.sleep(0.02)


@on_loop
async def test_a_client_that_does_not_read_holds_up_the_command_and_not_the_memory(tmp_path: Path) -> None:
    async with shell(tmp_path) as host:
        written, size = await _unread(host, window=2 << 20)
        assert written < 30 << 20
        assert size < 20 << 20


@on_loop
async def test_a_window_without_bounds_fills_no_memory_either(tmp_path: Path) -> None:
    async with shell(tmp_path) as host:
        written, size = await _unread(host, window=1 << 31)
        assert written < 30 << 20
        assert size < 20 << 20


@pytest.mark.slow
@on_loop
async def test_three_hundred_megabytes_pass_in_bounded_memory(tmp_path: Path) -> None:
    async with shell(tmp_path) as host:
        gc.collect()
        tracemalloc.start()
        try:
            _, out, _ = await host.openssh("'head -c 300000000 /dev/zero' | wc -c")
            assert out.strip() == b"300000000"
            _, out, _ = await host.openssh("'head -c 50000000 /dev/zero | tr \\\\0 x' | wc -lc")
            assert out.split() == [b"0", b"50000000"]
            assert tracemalloc.get_traced_memory()[1] < 32 << 20
        finally:
            tracemalloc.stop()


@on_loop
async def test_a_command_that_takes_longer_than_the_workspaces_limit_is_killed(tmp_path: Path) -> None:
    async with shell(tmp_path, limits=Limits(wall_s=1)) as host, await host.client() as client:
        process = await client.create_process("sleep 1008")
        assert ((await process.wait()).exit_signal or ("",))[0] == "KILL"


@on_loop
async def test_a_sandbox_that_cannot_be_made_is_said_on_stderr(tmp_path: Path) -> None:
    async with shell(tmp_path) as host:
        await host.room.box.stop()
        code, _, err = await host.openssh("true")
        assert code == 255
        assert err.startswith(b"hudsim: ")


@on_loop
async def test_a_shell_that_is_not_there_is_said_on_stderr(tmp_path: Path) -> None:
    async with shell(tmp_path) as host:
        host.room.shell = "/no/shell"
        code, _, err = await host.openssh("true")
        assert code == 255
        assert b"/no/shell" in err


@on_loop
async def test_the_last_user_closes_the_port() -> None:
    one = await SshServer.shared()
    port = one.port
    assert await SshServer.shared() is one
    await one.release()
    _, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.close()
    await writer.wait_closed()
    await one.release()
    with pytest.raises(ConnectionRefusedError):
        await asyncio.open_connection("127.0.0.1", port)
    again = await SshServer.shared()
    assert again.port
    await again.release()


@on_loop
async def test_a_key_that_is_forgotten_opens_nothing_and_cuts_off_who_is_in(tmp_path: Path) -> None:
    async with shell(tmp_path) as host:
        running = asyncio.create_task(host.openssh("'echo on; sleep 1009'"))
        async with await host.client() as client:
            while not (await client.run(["pgrep", "-f", "sleep 100[9]"])).stdout:  # noqa: ASYNC110
                await asyncio.sleep(0.02)
            await host.server.forget(host.public)
            code, _, _ = await running
            assert code == 255
        assert (await host.openssh("true", options="-o BatchMode=yes"))[0] == 255
        gone = await host.room.box.run(["pgrep", "-f", "sleep 100[9]"])
        while gone.stdout:
            gone = await host.room.box.run(["pgrep", "-f", "sleep 100[9]"])


@on_loop
async def test_no_descriptor_and_no_task_is_left(tmp_path: Path) -> None:
    async with shell(tmp_path) as host:
        await _used(host)
        before = _held()
        for _ in range(3):
            await _used(host)
        async with asyncio.timeout(10):  # fewer, if something that an earlier test left has gone since
            while not all(now <= then for now, then in zip(_held(), before, strict=True)):  # noqa: ASYNC110
                await asyncio.sleep(0.02)


def _held() -> tuple[int, int]:
    return len(list(Path("/proc/self/fd").iterdir())), len(asyncio.all_tasks())


async def _used(host: Shell) -> None:
    async with await host.client() as client:
        await client.run("echo; sleep 1010 &")
        await client.run("sleep 1010", timeout_s=0.05)
        await client.write("x", b"x")
        await client.create_process("cat", pty=(24, 80))


async def _unread(host: Shell, *, window: int) -> tuple[int, int]:
    """What a command could write, and this process kept of it, while its client's socket is not read."""
    address, port = host.capability.endpoint
    key = asyncssh.import_private_key(host.binding["client_key"])
    options: dict[str, Any] = {"known_hosts": None, "config": None, "agent_path": None, "client_keys": [key]}
    async with asyncssh.connect(address, port, username="agent", **options) as conn:
        gc.collect()
        tracemalloc.start()
        try:
            endless = "exec dd if=/dev/zero bs=64k count=3000 status=none"
            process = await conn.create_process(endless, window=window, encoding=None)
            transport: Any = conn._transport
            transport.pause_reading()
            count = before = -1
            async with await host.client() as client:
                while count < 1 or count != before:
                    before = count
                    await asyncio.sleep(0.3)
                    found = await client.run("grep -h wchar /proc/$(pgrep -x dd)/io")
                    count = int((found.stdout.split() or [b"", b"0"])[1])
            size = tracemalloc.get_traced_memory()[0]
            transport.resume_reading()
            process.kill()
        finally:
            tracemalloc.stop()
            conn.abort()
    return count, size


def test_a_key_is_new_each_time() -> None:
    assert new_client_key() != new_client_key()


@on_loop
async def test_a_command_whose_start_is_held_up_ends_with_its_time(tmp_path: Path) -> None:
    async with shell(tmp_path, limits=Limits(wall_s=1)) as host, await host.client() as client:
        (host.root / "stopper.py").write_text(STOPPER)
        await client.run("python3 -I -S stopper.py < /dev/null > /dev/null 2>&1", timeout_s=20)
        while not (host.root / "stopping").exists():  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        for _ in range(5):
            assert (await client.run("true")).code in (0, -9)
        await host.room.box.end_all()


@on_loop
async def test_an_environment_without_bounds_is_refused_and_not_kept(tmp_path: Path) -> None:
    async with shell(tmp_path) as host, await host.client() as client:
        pid = (await host.room.sandbox()).pid
        others = {f"OTHER_{n}": "x" * 30_000 for n in range(100)}
        done = await client._connection.run("echo $LC_1", env={"LC_1": "C", **others})
        assert done.stdout == "C\n"
        done = await client._connection.run("true", env={f"LC_{n}": "x" * 30_000 for n in range(700)})
        assert done.exit_status != 0
        assert "got 21,004,090 bytes of environment variables, expected 65,536 at most" in str(done.stderr)
        assert (await host.room.sandbox()).pid == pid
    variables = _Variables()
    for n in range(700):
        variables[b"LC_%d" % n] = bytes(30_000)
        variables[b"LC__%d" % n] = b"x" * 30_000
    assert len(variables) == 2
