"""What must not be seen or reached from inside."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

import hudsim
from hudsim.coding import Bind, Box, Limits, Workspace, bubblewrap
from hudsim.coding.card import probe
from hudsim.environment.load import load_environment
from hudsim.errors import SandboxError, UsageError
from tests.asyncrun import on_loop


@pytest.fixture
def secret(monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("A_SECRET_OF_THE_HOST", "hunter2")
    return "hunter2"


@on_loop
async def test_everything_on_the_card_was_tried_and_holds() -> None:
    card = await probe()
    assert card.isolation == "bubblewrap"
    assert not card.broken
    wanted = {"files", "network", "processes hidden", "capabilities", "keyrings"}
    assert wanted | {"limit memory", "limit processes", "limit terminals"} <= {
        row.what for row in card.rows if row.holds
    }


def test_neither_variables_nor_processes_nor_home_of_the_host_are_seen(secret: str) -> None:
    @on_loop
    async def look() -> None:
        async with Box(limits=Limits(), guest_path="/workspace") as box:
            done = await box.run(
                "env; cat /proc/*/environ; cat /proc/*/cmdline; ls /home /root /tmp /var /run; id", timeout_s=20
            )
            assert secret not in done.text
            assert "pytest" not in done.text
            assert f"uid={os.geteuid()}(root)" not in done.text
            hidden = [
                Path.home() / ".bashrc",
                Path(__file__),
                Path("/etc/shadow"),
                box.folder,
                Path("/var/run/docker.sock"),
            ]
            for path in hidden:
                assert (await box.run(["test", "-e", str(path)])).code == 1, path

    look()


@on_loop
async def test_only_the_workspace_and_sized_memory_can_be_written() -> None:
    async with Box(limits=Limits(tmp_bytes=1 << 20), guest_path="/workspace") as box:
        for folder in ("/", "/usr", "/usr/bin", "/etc", "/dev", "/run", "/run/hudsim", "/proc", sys.base_prefix):
            assert (await box.run(["touch", f"{folder}/x"])).code != 0, folder
        for folder in ("/tmp", "/var/tmp", "/dev/shm"):
            done = await box.run(f"touch {folder}/x && head -c 3000000 /dev/zero > {folder}/y")
            assert b"No space left" in done.stderr
        assert (await box.run("touch /workspace/x")).code == 0


@on_loop
async def test_there_is_no_right_and_no_way_to_get_one() -> None:
    async with Box(limits=Limits(), guest_path="/workspace") as box:
        done = await box.run(
            "grep -E 'Cap|NoNewPrivs' /proc/self/status; unshare -U true; mount -t tmpfs x /tmp; su -c true"
        )
        values = dict(line.split(":\t") for line in done.text.splitlines())
        assert {int(value, 16) for key, value in values.items() if key.startswith("Cap")} == {0}
        assert values["NoNewPrivs"] == "1"
        assert (await box.run("unshare -U true")).code != 0


@on_loop
async def test_without_a_network_nothing_of_the_host_is_reached() -> None:
    with contextlib.ExitStack() as stack:
        tcp = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        port6 = 1
        with contextlib.suppress(OSError):  # where there is no IPv6
            tcp6 = stack.enter_context(socket.create_server(("::1", 0), family=socket.AF_INET6))
            port6 = tcp6.getsockname()[1]
        abstract = stack.enter_context(socket.socket(socket.AF_UNIX))
        name = f"hudsim-test-{os.getpid()}"
        abstract.bind(f"\0{name}")
        abstract.listen()
        script = f"""
import socket
for family, kind, address in [
    (socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", {tcp.getsockname()[1]})),
    (socket.AF_INET6, socket.SOCK_STREAM, ("::1", {port6})),
    (socket.AF_INET, socket.SOCK_DGRAM, ("192.0.2.1", 9)),
    (socket.AF_INET6, socket.SOCK_DGRAM, ("2001:db8::1", 9)),
    (socket.AF_UNIX, socket.SOCK_STREAM, "\\0{name}"),
]:
    try:
        with socket.socket(family, kind) as sock:
            sock.connect(address)
            print("reached", address)
    except OSError:
        pass
"""
        async with Box(limits=Limits(), guest_path="/workspace") as box:
            assert (await box.run(["python", "-c", script])).stdout == b""
        async with Box(limits=Limits(), guest_path="/workspace", network="host") as box:
            done = await box.run(["python", "-c", script])
            assert f"('127.0.0.1', {tcp.getsockname()[1]})" in done.text


# A host with keys: in its session, and its user's; what the sandbox finds of them, by each way that there is.
_KEYS = """
import asyncio, ctypes, json, sys
from hudsim.coding import Box, Limits
sys.path.insert(0, "hudsim/coding/inside")
from refused import calls
libc = ctypes.CDLL(None, use_errno=True)
add_key, keyctl = calls()["add_key"], calls()["keyctl"]
if libc.syscall(keyctl, 1, None) < 0:  # a session of its own
    sys.exit(77)
rings = [libc.syscall(keyctl, 0, ring, 1) for ring in (-3, -4, -5)]
keys = [libc.syscall(add_key, b"user", b"hudsim-test", b"hunter2", 7, ring) for ring in rings]
LOOK = f'''
import ctypes
libc = ctypes.CDLL(None)
text = ctypes.create_string_buffer(64)
print([where for where in (-3, -4, -5, *{rings}) if libc.syscall({keyctl}, 10, where, b"user", b"hudsim-test", 0) >= 0])
print([key for key in {keys} if libc.syscall({keyctl}, 11, key, text, 64) >= 0])
print([ring for ring in {rings} if libc.syscall({keyctl}, 8, ring, -3) >= 0])
print([ring for ring in (-3, *{rings}) if libc.syscall({add_key}, b"user", b"planted", b"x", 1, ring) >= 0])
'''
async def main():
    async with Box(limits=Limits(), guest_path="/workspace") as box:
        done = await box.run(["python", "-c", LOOK])
    planted = [ring for ring in rings if libc.syscall(keyctl, 10, ring, b"user", b"planted", 0) >= 0]
    print(json.dumps([min(keys) > 0, done.text.split("\\n"), done.stderr.decode(), planted]))
asyncio.run(main())
for key, ring in zip(keys, rings):
    libc.syscall(keyctl, 9, key, ring)
"""


def test_no_key_of_the_host_is_found_and_none_is_left_with_it() -> None:
    command = [sys.executable, "-c", _KEYS]
    done = subprocess.run(
        command, cwd=Path(__file__).parents[2], capture_output=True, text=True, check=False, timeout=50
    )
    if done.returncode == 77:
        pytest.skip("this host has no keyrings, or lets nobody use them")
    assert json.loads(done.stdout or "null") == [True, ["[]"] * 4 + [""], "", []], done.stderr


@pytest.mark.parametrize("file", ["cmdline", "keys", "key-users", "swaps"])
def test_what_tells_of_the_host_is_empty(file: str) -> None:
    path = Path("/proc", file)
    if not path.exists():
        pytest.skip(f"this kernel has no {path}")

    @on_loop
    async def look() -> None:
        async with Box(limits=Limits(), guest_path="/workspace") as box:
            done = await box.run(["cat", str(path)])
            assert (done.code, done.stdout, done.stderr) == (0, b"", b"")

    look()


@on_loop
async def test_terminals_take_no_injected_input() -> None:
    inject = (
        "import fcntl, termios, sys\n"
        "fd = (open(sys.argv[1]) if len(sys.argv) > 1 else sys.stdin).fileno()\n"
        "fcntl.ioctl(fd, termios.TIOCSTI, b'x')"
    )
    async with Box(limits=Limits(), guest_path="/workspace") as box:
        for target in ([], ["/dev/tty"], ["/proc/1/fd/0"], ["/dev/console"]):
            done = await box.run(["python", "-c", inject, *target])
            assert done.code != 0, target
        sandbox = await box.sandbox()
        victim = await sandbox.spawn(["/bin/sh", "-c", "read line; echo got:$line"], terminal=(24, 80))
        assert victim.terminal is not None
        done = await box.run(["python", "-c", inject, "/dev/pts/0"])
        assert done.code != 0  # not its own terminal
        intruder = await sandbox.spawn(["python", "-c", inject, "/dev/pts/0"], terminal=(24, 80))
        assert intruder.terminal is not None
        assert (await intruder.wait()).code != 0  # nor from one that has a terminal
        os.close(intruder.terminal)
        assert not victim.ended
        victim.signal(9)
        await victim.wait()
        os.close(victim.terminal)


@on_loop
async def test_hudsim_itself_is_hidden_where_a_bind_would_show_it(tmp_path: Path) -> None:
    package = Path(hudsim.__file__).resolve().parent  # noqa: ASYNC240
    async with Box([Bind(package.parent, "/seen")], limits=Limits(), guest_path="/workspace") as box:
        done = await box.run(f"ls /seen/{package.name} | wc -l; ls /seen | wc -l")
        hidden, others = map(int, done.text.split())
        assert hidden == 0
        assert others > 1


_TASKS = """
from hudsim import Environment
env = Environment("shop")
@env.template()
async def mend():
    yield "mend it"
    yield 1.0
"""


@pytest.mark.parametrize(
    ("file", "hidden", "seen"),
    [
        ("app/shop.py", "app/hidden/test_till.py", "other.txt"),
        ("app/depot/tasks/one.py", "app/depot/hidden/test_till.py", "other.txt"),
        ("app/stall/tasks/one.py", "app/hidden/test_till.py", "other.txt"),
        ("site-packages/kiosk/tasks/one.py", "site-packages/kiosk/hidden/test_till.py", "site-packages/numpy.py"),
        ("site-packages/spare/shop/one.py", "site-packages/spare/hidden/test_till.py", "site-packages/numpy.py"),
        ("site-packages/booth.py", "site-packages/booth.py", "site-packages/numpy.py"),
    ],
    ids=["file", "package", "beside a package", "installed", "installed without __init__", "installed file"],
)
def test_a_task_and_its_hidden_tests_are_hidden_where_a_bind_would_show_them(
    file: str, hidden: str, seen: str, tmp_path: Path
) -> None:
    for path in (file, hidden, seen):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text("secret")
    for folder in [*tmp_path.glob("app/*/tasks"), *tmp_path.glob("site-packages/*/tasks")]:
        (folder / "__init__.py").touch()
        (folder.parent / "__init__.py").touch()
    (tmp_path / file).write_text(_TASKS)
    load_environment(tmp_path / file)
    command = [
        "cat",
        *dict.fromkeys(f"/seen/{path}" for path in (seen, file, hidden)),
        f"/all/{tmp_path.name}/{hidden}",
    ]

    @on_loop
    async def see(binds: list[Bind], text: str) -> None:
        async with Box(binds, limits=Limits(), guest_path="/workspace") as box:
            assert (await box.run(command)).text == text

    tmp_path.chmod(0o755)
    see([Bind(tmp_path, "/seen")], "secret")
    by_itself = Bind(tmp_path / hidden, f"/seen/{hidden}")
    see([Bind(tmp_path, "/seen"), by_itself], "secret" + by_itself.source.read_text())
    tmp_path.chmod(0o700)
    see([Bind(tmp_path.parent, "/all"), Bind(tmp_path / seen, f"/seen/{seen}")], "secret")


@on_loop
async def test_without_bubblewrap_nothing_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    def none() -> Path:
        raise SandboxError("no bubblewrap is installed")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bubblewrap, "find_bubblewrap", none)
        async with Box(limits=Limits(), guest_path="/workspace") as box:
            with pytest.raises(SandboxError, match="no bubblewrap"):
                await box.run("true")


@on_loop
async def test_a_bubblewrap_that_fails_is_an_error_with_its_own_words(tmp_path: Path) -> None:
    async with Box([Bind(tmp_path, "/proc/nothing/here")], limits=Limits(), guest_path="/workspace") as box:
        with pytest.raises(SandboxError, match=r"bwrap|did not come up"):
            await box.run("true")


@on_loop
async def test_no_isolation_must_be_asked_for_and_says_so() -> None:
    ws = Workspace(isolation="none")
    await ws.start()
    try:
        (ws.root / "file").write_text("x")
        done = await ws.run("cat file; pwd; setsid sleep 66 & echo $!")
        assert done.text.splitlines()[:2] == [f"x{ws.root}", done.text.splitlines()[1]]
        params = ws.capability("shell").params["isolation"]
        assert params["isolation"] == "none"
        assert all(row["holds"] is False for row in params["rows"] if row["what"] != "limit workspace")
        pid = int(done.text.splitlines()[-1])
        os.kill(pid, 0)
    finally:
        await ws.stop()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_isolation_cannot_be_required_and_declined() -> None:
    with pytest.raises(UsageError, match="require_isolation"):
        Workspace(isolation="none", require_isolation=True)
