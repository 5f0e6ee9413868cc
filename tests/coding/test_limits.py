"""What one sandbox uses up, its neighbour does not miss; and what it ran into is known."""

from __future__ import annotations

import asyncio
import mmap
import os
from pathlib import Path

import pytest

from hudsim.coding import Box, Limits
from hudsim.coding.cgroups import Controllers
from hudsim.coding.held import Held
from hudsim.coding.watchdog import _shares
from hudsim.errors import SandboxError, UsageError
from tests.asyncrun import on_loop, within

MIB = 1 << 20
LIMITS = Limits(
    memory_bytes=200 * MIB,
    processes=40,
    workspace_bytes=100 * MIB,
    workspace_files=300,
    tmp_bytes=20 * MIB,
    open_files=128,
    file_bytes=60 * MIB,
    cpu_s=2,
)
FORK_BOMB = ["python", "-c", "import os\nwhile True:\n  try: os.fork()\n  except OSError: pass"]
EATER = ["python", "-c", "b = []\nwhile True: b.append(bytearray(b'x') * (10 << 20))"]
FILLER = "i=0; while true; do head -c 40000000 /dev/zero > f$i; i=$((i+1)); done"
MANY = ["python", "-c", "import itertools\nfor i in itertools.count(): open(f'f{i}', 'w').close()"]

# Each takes more and more in a way that no folder shows, and says so if it comes to its end.
NAMELESS = """
import ctypes, os, threading, time
libc = ctypes.CDLL(None)
def deleted(n):
    fd = os.open(f"f{n}", os.O_CREAT | os.O_RDWR)
    os.unlink(f"f{n}")
    os.write(fd, bytes(4 << 20))
    return fd
def take(make, keep=lambda fd: fd):
    kept = [keep(make(n)) for n in range(40)]
    time.sleep(40)
"""
DELETED = {
    "open": "take(deleted)",
    "nobody may look": "libc.prctl(4, 0, 0, 0, 0); take(deleted)",
    "a thread's own": "threading.Thread(target=lambda: (libc.unshare(0x400), take(deleted))).start()",
    "mapped": "take(deleted, lambda fd: (libc.mmap(0, 4096, 1, 1, fd, 0), os.close(fd)))",
}
MEMORY = {
    "memfd": "take(lambda n: [os.write(fd := os.memfd_create('m'), bytes(4 << 20)), fd])",
    "many files": "take(lambda n: [os.close(os.open(f'/tmp/{n}-{i}', os.O_CREAT)) for i in range(5000)])",
    "first thread ended": "[os.fork() for _ in range(2)];"
    "threading.Thread(target=take, args=[lambda n: b'x' * ((n < 10) * 4 << 20)]).start(); libc.pthread_exit(None)",
}
TERMINALS = "take(lambda n: [os.open('/dev/ptmx', os.O_RDWR | os.O_NOCTTY) for _ in range(5)])"


async def is_ended(limits: Limits, greed: str) -> list[str]:
    """The evidence once greed has been killed."""
    async with Box(limits=limits, guest_path="/workspace") as box:
        done = await box.run(["python", "-c", f"{NAMELESS}\n{greed}"], timeout_s=20)
        assert (done.code, done.timed_out, done.stderr) == (-9, False, b""), done
        return [words.partition(":")[0] for words in box.evidence()]


@pytest.mark.parametrize("how", DELETED)
@on_loop
async def test_a_deleted_file_counts_as_long_as_it_is_held(how: str) -> None:
    if how == "mapped" and os.geteuid() != 0:
        pytest.skip("an ordinary user is not told what is mapped")
    assert await is_ended(Limits(workspace_bytes=20 * MIB), DELETED[how]) == ["workspace"]


@pytest.mark.parametrize("how", MEMORY)
def test_without_control_groups_memory_counts_that_no_process_shows(how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Controllers, "found", classmethod(lambda cls: cls(None, {})))

    @on_loop
    async def look() -> None:
        assert await is_ended(Limits(memory_bytes=80 * MIB, tmp_bytes=64 * MIB), MEMORY[how]) == ["memory"]

    look()


def test_a_look_at_what_is_held_has_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever holds more than can be counted in a moment has more than is allowed."""
    me = os.getpid()
    assert Held.by([me], os.geteuid(), me).disk[0] < 1 << 50
    monkeypatch.setattr("hudsim.coding.held._MOST_LOOKED", 3)
    assert Held.by([me], os.geteuid(), me).disk[0] >= 1 << 50


def test_what_a_program_reads_of_files_is_not_its_memory(tmp_path: Path) -> None:
    file = tmp_path / "large"
    file.write_bytes(bytes(64 * MIB))
    before, _ = _shares(os.getpid())
    with file.open("rb") as opened, mmap.mmap(opened.fileno(), 0, prot=mmap.PROT_READ) as mapped:
        assert sum(mapped[:: mmap.PAGESIZE]) == 0
        assert _shares(os.getpid())[0] - before < 32 * MIB


@on_loop
async def test_terminals_are_counted() -> None:
    assert await is_ended(Limits(terminals=20), TERMINALS) == ["terminals"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("greed", "what"),
    [(FORK_BOMB, "processes"), (EATER, "memory"), (FILLER, "workspace"), (MANY, "workspace")],
    ids=["fork bomb", "memory", "disk", "inodes"],
)
def test_greed_is_known_and_the_neighbour_unaffected(greed: list[str] | str, what: str) -> None:
    async def main() -> None:
        async with (
            Box(limits=LIMITS, guest_path="/workspace") as good,
            Box(limits=LIMITS, guest_path="/workspace") as bad,
        ):
            work = asyncio.create_task(bad.run(greed, timeout_s=8 if what == "processes" else 30))
            while not work.done():
                done = await good.run(
                    ["python", "-c", "x = bytearray(20000000); open('f', 'w').write('ok'); print('ok')"]
                )
                assert (done.code, done.stdout) == (0, b"ok\n"), done
                await asyncio.sleep(0.1)
            assert (await work).code != 0
            if Controllers.found().version is not None or what == "workspace":
                assert any(words.startswith(what) for words in bad.evidence()), bad.evidence()
            assert good.evidence() == []
            if what == "workspace":
                await bad.run("rm -f f*")
            assert (await bad.run("echo on")).stdout == b"on\n"
        assert [words for words in bad.evidence() if words.startswith(what)] or Controllers.found().version is None

    within(50, main())


@on_loop
async def test_open_files_file_size_and_cpu_time_end_where_they_should() -> None:
    async with Box(limits=LIMITS, guest_path="/workspace") as box:
        done = await box.run(["python", "-c", "l = []\nwhile True: l.append(open('/dev/null'))"])
        assert b"Too many open files" in done.stderr
        await box.run("head -c 90000000 /dev/zero > big")
        assert box.root is not None
        assert (box.root / "big").stat().st_size == LIMITS.file_bytes
        done = await box.run(["python", "-c", "while True: pass"], timeout_s=20)
        assert done.code in (-24, -9)
        assert not done.timed_out


@on_loop
async def test_no_core_is_left_behind() -> None:
    async with Box(limits=LIMITS, guest_path="/workspace") as box:
        assert (await box.run("kill -SEGV $$")).code == -11
        assert (await box.run("ls -a | wc -l")).text == "2\n"


@on_loop
async def test_a_limit_that_nobody_met_is_no_evidence() -> None:
    async with Box(limits=Limits(), guest_path="/workspace") as box:
        await box.run("exit 1")
        assert box.evidence() == []


@pytest.mark.parametrize("wrong", [0, -1, 1.5, True, "1"])
def test_a_limit_that_is_no_whole_number_is_refused_by_name(wrong: object) -> None:
    with pytest.raises(UsageError, match="limit processes: got"):
        Limits(processes=wrong)  # type: ignore[arg-type]


@on_loop
async def test_the_wall_time_is_the_limit_where_none_is_given() -> None:
    async with Box(limits=Limits(wall_s=1), guest_path="/workspace") as box:
        done = await box.run("sleep 50")
        assert done.timed_out


@on_loop
async def test_a_sandbox_without_a_limit_has_none() -> None:
    limits = Limits(
        memory_bytes=None, processes=None, cpu_s=None, open_files=None, file_bytes=None, workspace_bytes=None
    )
    async with Box(limits=limits, guest_path="/workspace") as box:
        try:
            assert (await box.run("ulimit -t; ulimit -f")).text == "unlimited\nunlimited\n"
        except SandboxError as error:  # pragma: no cover
            raise AssertionError(error.message) from error
