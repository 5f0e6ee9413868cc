"""A workspace on its own."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import threading
from pathlib import Path
from typing import Any

import pytest

from hudsim.coding import Limits, Mount, SSHClient, Workspace
from hudsim.coding.place import ROOT_LOCK, changing, state_folder
from hudsim.coding.snapshot import Snapshot
from hudsim.coding.sweep import clean, live
from hudsim.coding.tree import own_tree
from hudsim.errors import EpisodeOver, LinkLost, SandboxError, UnknownName, UsageError, WorkspaceError
from tests.asyncrun import on_loop
from tests.coding.descriptors import few_descriptors


class Held:
    """Stands for a function that works in a thread: it is held up there until it is let go."""

    def __init__(self, call: Any) -> None:
        self._call = call
        self.reached, self.free = threading.Event(), threading.Event()

    def __call__(self, *args: Any, **options: Any) -> Any:
        self.reached.set()
        assert self.free.wait(20)
        return self._call(*args, **options)

    async def wait(self) -> None:
        assert await asyncio.to_thread(self.reached.wait, 20)


@on_loop
async def test_what_the_host_writes_is_the_agents() -> None:
    async with Workspace() as ws:
        (ws.root / "src").mkdir()
        (ws.root / "src" / "a.py").write_text("a = 1\n")
        done = await ws.run("echo 'b = 2' >> src/a.py && cat src/a.py && touch src/c.py && stat -c %U src/a.py")
        assert done.stdout == b"a = 1\nb = 2\nagent\n", done.stderr
        assert (ws.root / "src" / "c.py").exists()


@pytest.mark.parametrize("absolute", [False, True])
@on_loop
async def test_a_hard_link_does_not_hand_over_the_hosts_own_file(tmp_path: Path, absolute: bool) -> None:
    own = tmp_path / "own"
    own.write_text("the host's")
    before = own.stat()
    root = tmp_path / "root"
    root.mkdir()
    async with Workspace(root if absolute else "workspace") as ws:
        (ws.root / "a").hardlink_to(own)
        assert (await ws.run('echo "the agent\'s" > a; cat a; stat -c %U a')).stdout == b"the agent's\nagent\n"
    after = own.stat()
    assert own.read_text() == "the host's"
    assert (after.st_uid, after.st_mode, after.st_nlink) == (before.st_uid, before.st_mode, 1)


@on_loop
async def test_files_are_written_and_read_as_the_agent_would() -> None:
    async with Workspace() as ws:
        await ws.write("deep/er/x.sh", "echo hi\n", mode=0o755)
        assert (await ws.run("deep/er/x.sh")).stdout == b"hi\n"
        data = bytes(range(256)) * 1000
        await ws.write("bytes", data)
        assert await ws.read("bytes") == data
        await ws.run("ln -s /etc/shadow link; mkfifo fifo")
        for path in ("link", "fifo", "nothing", "deep"):
            with pytest.raises(WorkspaceError, match=f"cannot read {path}"):
                await ws.read(path)
        with pytest.raises(WorkspaceError, match="cannot write /usr/x"):
            await ws.write("/usr/x", b"")


@on_loop
async def test_an_ssh_client_finds_the_same_place() -> None:
    async with Workspace(env={"COLOUR": "red"}) as ws:
        (ws.root / "a").write_text("from the host")
        async with await SSHClient.connect(ws.capability("shell"), await ws.binding()) as client:
            done = await client.run("pwd; cat a; echo $COLOUR; echo 1 > b")
            assert done.stdout == b"/workspace\nfrom the hostred\n"
        assert (ws.root / "b").read_text() == "1\n"


@on_loop
async def test_when_it_stops_everything_in_it_is_gone() -> None:
    ws = Workspace()
    await ws.start()
    await ws.start()
    done = await ws.run("setsid sleep 70 & echo $!")
    root, folder, sandbox = ws.root, ws.room.box.folder, await ws.sandbox()
    pid = sandbox.pid
    assert pid is not None
    assert done.code == 0
    await ws.stop()
    await ws.stop()
    assert not root.exists()
    assert not folder.exists()
    assert not Path(f"/proc/{pid}").exists()  # noqa: ASYNC240
    with pytest.raises(SandboxError, match="not been started"):
        _ = ws.root


@on_loop
async def test_an_absolute_root_is_brought_back_between_episodes_and_given_back_at_the_end(tmp_path: Path) -> None:
    root = tmp_path / "repo"
    (root / "src").mkdir(parents=True)
    (root / "src" / "a.py").write_text("a = 1\n")
    (root / "link").symlink_to("src/a.py")
    before = (root / "src" / "a.py").stat()
    async with Workspace(root, guest_path="/repo") as ws:
        assert ws.slots == 1
        for _ in range(2):
            assert (
                await ws.run("cat src/a.py; ls; pwd; echo 2 > src/a.py; rm link; mkdir new; touch new/x")
            ).stdout == (b"a = 1\nlink\nsrc\n/repo\n")
            await ws.reset()
    after = (root / "src" / "a.py").stat()
    assert sorted(path.name for path in root.rglob("*")) == ["a.py", "link", "src"]
    assert (after.st_uid, after.st_mode, after.st_mtime_ns) == (before.st_uid, before.st_mode, before.st_mtime_ns)
    assert root.owner() == tmp_path.owner()  # noqa: ASYNC240


@on_loop
async def test_an_absolute_root_is_one_workspaces_at_a_time(tmp_path: Path) -> None:
    async with Workspace(tmp_path):
        with pytest.raises(UsageError, match=f"{tmp_path} is in use by another workspace"):
            await Workspace(tmp_path).start()
    async with Workspace(tmp_path) as ws:
        assert ws.root == tmp_path


@on_loop
async def test_episodes_of_a_relative_root_begin_empty() -> None:
    async with Workspace() as ws:
        episode = await ws.reset()
        await ws.run("touch left")
        first = ws.root
        record = await ws.result(episode.token)
        assert record == {"evidence": []}
        await ws.reset()
        assert ws.root != first
        assert list(ws.root.iterdir()) == []
        with pytest.raises(EpisodeOver):
            await ws.result("another")


@on_loop
async def test_a_snapshot_is_what_restore_brings_back() -> None:
    async with Workspace() as ws:
        (ws.root / "a").write_text("1")
        (ws.root / "b").write_text("same")
        snapshot = await ws.snapshot()
        await ws.run("echo 2 > a; mkdir d; touch d/e; sleep 71 & exit 0")
        assert await ws.restore(snapshot) == 1
        assert sorted(path.name for path in ws.root.iterdir()) == ["a", "b"]
        assert (ws.root / "a").read_text() == "1"
        assert "sleep" not in (await ws.run("cat /proc/[0-9]*/cmdline")).text.replace("\0", " ")


@pytest.mark.parametrize("taking", [True, False])
@on_loop
async def test_what_the_agent_starts_waits_while_its_files_are_copied_or_brought_back(
    monkeypatch: pytest.MonkeyPatch, taking: bool
) -> None:
    async with Workspace() as ws:
        (ws.root / "a").write_text("1")
        async with await SSHClient.connect(ws.capability("shell"), await ws.binding()) as client:
            snapshot = await ws.snapshot()
            await client.run("echo 2 > a")
            held = Held(Snapshot.take if taking else snapshot.restore)
            monkeypatch.setattr(Snapshot, "take" if taking else "restore", held if taking else lambda _: held())
            working = asyncio.ensure_future(ws.snapshot() if taking else ws.restore(snapshot))
            await held.wait()
            starting = asyncio.ensure_future(client.run("touch started; cat a"))
            writing = asyncio.ensure_future(client.write("written", b""))
            await asyncio.sleep(0.5)
            assert sorted(path.name for path in ws.root.iterdir()) == ["a"]
            held.free.set()
            assert (await starting).text == ("2\n" if taking else "1")
            await writing
            await working


@pytest.mark.parametrize("how", ["command", "terminal", "files"])
@on_loop
async def test_what_was_on_its_way_when_the_workspace_was_sealed_does_not_start(
    monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    async with Workspace() as ws:
        async with await SSHClient.connect(ws.capability("shell"), await ws.binding()) as client:
            await client.run("true")
            ws.room._changed = True  # as while the template's own command waits for the same: it may have written
            held = Held(own_tree)
            monkeypatch.setattr("hudsim.coding.room.own_tree", held)
            late = asyncio.ensure_future(
                client.write("late", b"")
                if how == "files"
                else client.run("touch late; sleep 74")
                if how == "command"
                else client.create_process("touch late; sleep 74", pty=(24, 80))
            )
            await held.wait()
            await ws.room.freeze()  # which hangs up on nobody
            held.free.set()
            with contextlib.suppress(SandboxError):
                process: Any = await late
                await process.wait()
        assert not (ws.root / "late").exists()
        assert "74" not in (await ws.run("cat /proc/[0-9]*/cmdline")).text


@on_loop
async def test_a_sealed_workspace_hangs_up_and_says_why_to_who_comes_back() -> None:
    async with Workspace() as ws:
        capability, binding = ws.capability("shell"), await ws.binding()
        async with await SSHClient.connect(capability, binding) as client:
            await client.run("setsid sleep 75 >/dev/null 2>&1 & exit 0")
            running = asyncio.ensure_future(client.run("sleep 76"))
            await ws.run("true")
            await ws.seal()
            await ws.seal()
            with pytest.raises(LinkLost):
                await running
            with pytest.raises(LinkLost):
                await client.run("touch late")
        async with await SSHClient.connect(capability, binding) as client:
            with pytest.raises(SandboxError, match="closed: its files are being graded"):
                await client.run("touch late")
        done = await ws.run("cat /proc/[0-9]*/cmdline; ls", keep_running=True)
        assert "sleep\x0075" in done.text
        assert "late" not in done.text


@on_loop
async def test_a_server_that_runs_in_a_shell_which_is_open_goes_on_when_the_workspace_is_sealed() -> None:
    async with Workspace() as ws, await SSHClient.connect(ws.capability("shell"), await ws.binding()) as client:
        shell = await client.create_process("bash", pty=(24, 80))
        shell.stdin.write(b"sleep 77 & echo $((40 + 2))\n")
        said = b""
        while b"42" not in said:
            said += await shell.stdout.read(100)
        await ws.seal()
        await asyncio.sleep(1.5)  # a hangup kills after a second
        done = await ws.run("cat /proc/[0-9]*/cmdline", keep_running=True)
        assert "sleep\x0077" in done.text


@on_loop
async def test_want_of_descriptors_is_said_and_nobodys_files_are_less_for_it() -> None:
    async with Workspace() as ws:
        await ws.binding()
        (ws.root / "a").write_text("1")
        await ws.run("true")
        with few_descriptors(0):
            for doing in (ws.run("true"), ws.freeze(), ws.changes()):
                with pytest.raises(SandboxError, match="Too many open files"):
                    await doing
        assert (await ws.freeze()).files == ["a"]


@on_loop
async def test_what_a_folders_mode_hides_counts_and_is_gone_with_the_run(tmp_path: Path) -> None:
    root = tmp_path / "root"
    (root / "d").mkdir(parents=True)
    (root / "d" / "own").write_text("own")
    write = "dd if=/dev/urandom of=d/big bs=1M count=64; sleep 20"
    async with Workspace(root, limits=Limits(workspace_bytes=16 << 20)) as ws:
        done = await ws.run(f"chmod 300 d; {write}", timeout_s=25)
        assert done.code == -9
        assert any("its files took more than" in line for line in ws.evidence()), ws.evidence()
        await ws.leave()
        assert (await ws.run("ls d; cat d/own")).text == "own\nown"
        await ws.run("rm d/own; touch d/new; chmod 000 d .")
    assert [path.name for path in (root / "d").iterdir()] == ["own"]


@on_loop
async def test_no_lock_is_left_in_the_state_folder(tmp_path: Path) -> None:
    def locks() -> set[Path]:
        return {path for path in state_folder().iterdir() if path.name.startswith(ROOT_LOCK)}

    with changing():  # so that no other process removes it before we have looked
        before = locks()
    async with Workspace(tmp_path / "root") as ws:
        new = locks() - before
        assert new
        await asyncio.to_thread(clean)
        assert new & locks()
        with pytest.raises(UsageError, match="in use"):
            await Workspace(tmp_path / "root").start()
        await ws.run("true")
    left = state_folder() / f"{ROOT_LOCK}of-a-dead-one"
    left.touch()
    await asyncio.to_thread(clean)
    assert not left.exists()


@on_loop
async def test_who_shows_no_token_does_not_keep_others_from_the_tracked_files() -> None:
    async with Workspace(track_files=True) as ws:
        bindings = await ws.bindings("shell")
        where = ws.tracking_capability().endpoint
        with contextlib.ExitStack() as stack:
            held = [stack.enter_context(socket.create_connection(where)) for _ in range(60)]
            reader, writer = await asyncio.open_connection(*where)
            writer.write(b'{"token": "%s"}\n{"method": "changes"}\n' % bindings["filetracking"]["token"].encode())
            assert b"changes" in await reader.readline()
            held[0].settimeout(5)  # not only when its time is over
            assert await asyncio.to_thread(held[0].recv, 1) == b""
            writer.close()


@on_loop
async def test_frozen_files_are_copies_made_when_nothing_ran_any_more() -> None:
    async with Workspace() as ws:
        await ws.run(
            "mkdir -p src/pkg; echo 1 > a.py; echo 2 > src/pkg/b.py; echo 3 > src/c.txt; ln -s /etc/passwd l.py;"
            "mkfifo f.py; chmod 600 a.py; (setsid sh -c 'while :; do echo x >> a.py; done' &)"
        )
        binding = await ws.binding()
        async with await SSHClient.connect(ws.capability("shell"), binding) as client:
            await client.run("true")
            frozen = await ws.freeze(["**/*.py"])
            with pytest.raises(LinkLost):
                await client.run("echo 4 > a.py")
        assert sorted(frozen.files) == ["a.py", "src/pkg/b.py"]
        assert sorted(path for path, _ in frozen.skipped) == ["f.py", "l.py"]
        size = (ws.root / "a.py").stat().st_size
        assert (frozen.folder / "a.py").stat().st_size == size
        assert (frozen.folder / "a.py").stat().st_mode & 0o777 == 0o644
        assert (await ws.run("cat a.py | wc -c")).text == f"{size}\n"
        assert ws.root not in frozen.folder.parents
        frozen.close()
        frozen.close()


@on_loop
async def test_freezing_has_an_end_whatever_there_is() -> None:
    async with Workspace() as ws:
        await ws.run("for i in $(seq 60); do echo $i > f$i; done; truncate -s 300M big", timeout_s=20)
        frozen = await ws.freeze(most_files=50, most_bytes=1000)
        assert len(frozen.files) == 50
        assert ("big", "more than 1,000 bytes") in frozen.skipped
        assert sum("more than 50 files" in why for _, why in frozen.skipped) == 10


@on_loop
async def test_a_grader_has_a_sandbox_of_its_own(tmp_path: Path) -> None:
    async with Workspace() as ws:
        (ws.root / "a").write_text("1")
        frozen = await ws.freeze()
        from hudsim.coding import Bind

        async with ws.new_sandbox([Bind(frozen.folder, "/solution")], guest_path="/work") as box:
            done = await box.run("cat /solution/a; touch /solution/x; touch x; pwd; ls /workspace")
            assert done.stdout == b"1/work\n"
            assert b"Read-only" in done.stderr
            if os.geteuid() == 0:
                assert box.uid != ws.room.box.uid
        assert not box.folder.exists()


@on_loop
async def test_mounts_are_seen_where_they_are_asked_for(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("set")
    tmp_path.chmod(0o755)  # noqa: ASYNC240
    mounts = [Mount("ro", str(tmp_path), "/data"), Mount("ro", "/not/there", "/nothing", optional=True)]
    async with Workspace(mounts=mounts, user="ann", guest_path="/home/ann") as ws:
        done = await ws.run("cat /data/data; touch /data/x || echo no; whoami; pwd; echo $HOME")
        assert done.stdout == b"setno\nann\n/home/ann\n/home/ann\n"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"allowed_hosts": ["pypi.org"]}, "allowed_hosts"),
        ({"ports": [80]}, "ports"),
        ({"network": "lan"}, "network: got 'lan'"),
        ({"isolation": "docker"}, "isolation: got 'docker'"),
        ({"peers": ()}, "peers= is not taken"),
        ({"shell_uid": 1000}, "shell_uid= is not taken"),
        ({"limits": {"wall_s": 1}}, "limits: got a dict"),
        ({"guest_path": "work"}, "guest_path"),
        ({"guest_path": "/usr/x"}, "guest_path"),
        ({"user": "a b"}, "user"),
        ({"mounts": ["/x"]}, "mounts: got a str"),
        ({"env": {"A=B": "c"}}, "env: got 'A=B'"),
    ],
)
def test_what_cannot_be_honoured_is_refused_by_name(options: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        Workspace(**options)


def test_a_misspelled_keyword_is_refused_with_the_nearest() -> None:
    with pytest.raises(UnknownName, match="did you mean 'network'"):
        Workspace(netwrok=False)


@on_loop
async def test_a_taken_port_is_said_and_leaves_nothing() -> None:
    import socket

    with socket.create_server(("127.0.0.1", 0)) as taken:
        ws = Workspace(port=taken.getsockname()[1])
        with pytest.raises(UsageError, match=r"cannot listen at 127\.0\.0\.1"):
            await ws.start()
    assert not [owned.rooms for owned in live() if owned.pid == os.getpid() and owned.rooms]


@on_loop
async def test_limits_are_the_workspaces_own() -> None:
    async with Workspace(limits=Limits(open_files=33)) as ws:
        assert (await ws.run("ulimit -n")).text == "33\n"
