"""A child process and its parent: order and answer, every way to die, and nothing left behind."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import pytest

from hudsim.errors import EpisodeError, HudsimError, SimFailed, UnknownName
from hudsim.loop.child import SPAWNED, Child
from tests.asyncrun import on_loop, within
from tests.cli.command import alive, children

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")

COMES_UP = """
import os, signal, sys, time
from hudsim.errors import SimFailed, UnknownName
from hudsim.loop.child import SPAWNED, Parent
parent = Parent.read()
"""
ANNOUNCES = "parent.announce({'pid': os.getpid()})\n"
UP = COMES_UP + ANNOUNCES
STUBBORN = COMES_UP + "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"


class Robot(Child):
    """A kind of child with words of its own."""

    def verdict(self, code: int) -> HudsimError:
        return EpisodeError(f"it left with {code}") if code == 5 else super().verdict(code)

    def late(self, timeout_s: float) -> HudsimError:
        return EpisodeError(f"it slept for {timeout_s:g} s")


def child(code: str, kind: type[Child] = Child) -> Child:
    return kind([sys.executable, "-c", code], name="toy", failed=SimFailed)


@asynccontextmanager
async def started(code: str, **order: Any) -> AsyncIterator[tuple[Child, dict[str, Any]]]:
    one = child(code)
    try:
        yield one, await one.start(order, timeout_s=20.0)
    finally:
        await one.stop()


async def until(true: Callable[[], bool], seconds: float = 5.0) -> None:
    async with asyncio.timeout(seconds):
        while not true():  # noqa: ASYNC110 - the kernel sets no event
            await asyncio.sleep(0.01)


def gone(pid: int | None) -> bool:
    assert pid is not None
    return not alive(pid)


def open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


@on_loop
async def test_it_gets_its_order_and_what_it_announces_comes_back() -> None:
    code = COMES_UP + "parent.announce({'got': parent.order['words'], 'pid': os.getpid(), 'shell': parent.is_shell})"
    async with started(code + "\ntime.sleep(60)", words=["ä\n", None, 1.5]) as (one, said):
        assert said == {"got": ["ä\n", None, 1.5], "pid": one.pid, "shell": False}
        assert one.failure is None
        assert os.getsid(said["pid"]) == said["pid"], "Ctrl-C is not for it"


@pytest.mark.parametrize("loop", [asyncio.new_event_loop, None])
def test_orders_and_answers_may_be_larger_than_a_pipe(loop: Callable[[], asyncio.AbstractEventLoop] | None) -> None:
    async def main() -> None:
        code = COMES_UP + "time.sleep(0.3)\nparent.announce({'got': parent.order['much'] * 3})\ntime.sleep(60)"
        async with started(code, much="x" * 300_000) as (_, said):
            assert said["got"] == "x" * 900_000

    within(25.0, main(), *([loop] if loop else []))


@on_loop
async def test_it_inherits_the_descriptors_given_and_no_marker_is_left_for_its_children() -> None:
    read_fd, write_fd = os.pipe()
    code = UP + "os.write(parent.order['fd'], repr(SPAWNED in os.environ).encode())\ntime.sleep(60)"
    one = child(code)
    try:
        await one.start({"fd": write_fd}, pass_fds=[write_fd], timeout_s=20.0)
        assert await asyncio.to_thread(os.read, read_fd, 10) == b"False"
    finally:
        await one.stop()
        os.close(read_fd)
        os.close(write_fd)
    assert SPAWNED not in os.environ


@on_loop
async def test_a_failure_that_it_announces_is_raised_as_what_it_was() -> None:
    code = COMES_UP + "parent.announce_failure(UnknownName('part', 'leg', ['arm']), otherwise=SimFailed)\nsys.exit(1)"
    with pytest.raises(UnknownName, match="no part 'leg'") as raised:
        async with started(code):
            pass
    assert raised.value.data["got"] == "leg"


@on_loop
async def test_any_other_failure_is_raised_as_what_the_child_says_it_is() -> None:
    with pytest.raises(SimFailed, match=r"^KeyError: 'elbow'$"):
        async with started(COMES_UP + "parent.announce_failure(KeyError('elbow'), otherwise=SimFailed)"):
            pass


@on_loop
@pytest.mark.parametrize(
    ("end", "how"),
    [
        ("sys.exit(3)", "with exit code 3"),
        ("os.kill(os.getpid(), signal.SIGSEGV)", "by SIGSEGV"),
        ("os.kill(os.getpid(), signal.SIGRTMIN + 3)", f"by signal {signal.SIGRTMIN + 3}"),
        ("raise LookupError('no arm')", "with exit code 1"),
        ("os.write(parent.order['announce_fd'], b'{\"half\": ')\nsys.exit(4)", "with exit code 4"),
    ],
)
async def test_one_that_dies_before_it_is_up_fails_with_how_and_its_last_words(
    end: str, how: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "hudsim.loop.child")
    says = "print(*range(2000), 'one', 'two', 'three', sep='\\n', file=sys.stderr, flush=True)\n"
    with pytest.raises(SimFailed) as raised:
        async with started(COMES_UP + says + end):
            pass
    assert "toy: two" in caplog.messages
    message = raised.value.message
    assert message.startswith(f"the toy process died {how}; its last words: ")
    assert message.endswith("LookupError: no arm" if "raise" in end else "one | two | three")


@on_loop
async def test_one_that_is_not_up_in_time_is_late_and_is_stopped() -> None:
    one = child("import sys, time\nprint('loading', file=sys.stderr, flush=True)\ntime.sleep(60)")
    with pytest.raises(SimFailed, match=r"did not come up within 3 s; its last words: loading$"):
        await one.start({}, timeout_s=3.0)
    await one.stop()
    assert gone(one.pid)


@on_loop
async def test_a_program_that_never_reads_a_large_order_holds_up_nobody() -> None:
    one = child("import time; time.sleep(60)")
    beats = 0

    async def beat() -> None:
        nonlocal beats
        while True:
            await asyncio.sleep(0.01)
            beats += 1

    beating = asyncio.create_task(beat())
    with pytest.raises(SimFailed, match="did not come up"):
        await one.start({"much": "x" * 1_000_000}, timeout_s=1.0)
    await one.stop()
    beating.cancel()
    assert beats > 10
    assert gone(one.pid)


@on_loop
async def test_a_program_that_there_is_not_is_a_typed_failure() -> None:
    one = Child(["/no/such/program"], name="toy", failed=SimFailed)
    with pytest.raises(SimFailed, match="the toy process cannot be started: /no/such/program: No such file"):
        await one.start({}, timeout_s=5.0)
    await one.stop()
    assert one.pid is None


@on_loop
async def test_a_kind_of_child_may_have_verdicts_of_its_own() -> None:
    for code, words in ((COMES_UP + "os._exit(5)", "it left with 5"), ("input(); input()", r"it slept for 0\.3 s")):
        one = child(code, Robot)
        with pytest.raises(EpisodeError, match=words):
            await one.start({}, timeout_s=20.0 if "_exit" in code else 0.3)
        await one.stop()


@on_loop
async def test_its_death_is_told_to_all_who_wait() -> None:
    async with started(UP + "time.sleep(60)") as (one, said):
        waiting = [asyncio.create_task(one.died()) for _ in range(3)]
        await asyncio.sleep(0.05)
        os.kill(said["pid"], signal.SIGKILL)
        async with asyncio.timeout(5.0):
            found = await asyncio.gather(*waiting)
        assert {error.message for error in found} == {"the toy process died by SIGKILL"}
        assert (await one.unlinked()) is one.failure


@on_loop
async def test_one_that_is_killed_from_here_has_died() -> None:
    async with started(UP + "time.sleep(60)") as (one, _):
        one.kill()
        async with asyncio.timeout(5.0):
            assert "SIGKILL" in (await one.died()).message
        assert one.failure is not None


@on_loop
async def test_one_that_was_stopped_did_not_fail() -> None:
    async with started(UP + "time.sleep(60)") as (one, said):
        await asyncio.gather(one.stop(), one.stop())
        assert gone(said["pid"])
        await one.stop()
        assert (one.failure, (await one.died()).message) == (None, "the toy process was stopped")


@on_loop
async def test_one_that_was_never_started_can_be_stopped() -> None:
    await child("").stop()


@on_loop
async def test_one_that_ignores_being_told_to_end_is_killed() -> None:
    async with started(STUBBORN + ANNOUNCES + "time.sleep(60)") as (one, said):
        async with asyncio.timeout(8.0):
            await one.stop()
        assert gone(said["pid"])


@on_loop
async def test_a_stop_that_is_cancelled_leaves_nothing_behind() -> None:
    async with started(STUBBORN + ANNOUNCES + "time.sleep(60)") as (one, said):
        stopping = asyncio.create_task(one.stop())
        await asyncio.sleep(0.05)
        stopping.cancel()
        await asyncio.wait({stopping})
        await until(lambda: gone(said["pid"]))


@on_loop
@pytest.mark.parametrize("after_s", [None, 0.0, 0.0005, 0.002, 0.005, 0.02, 0.2])
async def test_a_start_that_is_cancelled_at_any_moment_leaves_nothing_behind(after_s: float | None) -> None:
    before, files = set(children(os.getpid())), open_files()
    many = [child("import time; time.sleep(60)") for _ in range(4)]
    starting = [asyncio.create_task(one.start({"much": "x" * 100_000}, timeout_s=20.0)) for one in many]
    if after_s is not None:
        await asyncio.sleep(after_s)
    for task in starting:
        task.cancel()
    await asyncio.wait(starting)
    assert all(task.cancelled() for task in starting)
    await asyncio.gather(*(one.stop() for one in many))
    assert set(children(os.getpid())) <= before
    await until(lambda: open_files() <= files)


@on_loop
async def test_one_that_ends_just_as_it_is_stopped_is_gone_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """The signal that comes too late reaps it, before the watching thread could."""
    waitid = os.waitid

    def reaped_meanwhile(kind: int, pid: int, options: int) -> Any:
        waitid(kind, pid, options)
        if one.pid == pid:  # another's watching thread may still be at it
            assert one._popen is not None
            one._popen.poll()
        return waitid(kind, pid, options)

    monkeypatch.setattr(os, "waitid", reaped_meanwhile)
    one = child(UP + "os._exit(6)")
    await one.start({}, timeout_s=20.0)
    async with asyncio.timeout(5.0):
        assert "exit code 6" in (await one.died()).message
    await one.stop()


def test_one_outlives_the_thread_that_started_it() -> None:
    one = child(UP + "time.sleep(60)")
    thread = threading.Thread(target=lambda: asyncio.run(one.start({}, timeout_s=20.0)))
    thread.start()
    thread.join()
    time.sleep(0.3)
    assert one._popen is not None
    assert one._popen.stdin is not None
    assert not gone(one.pid)
    one.kill()
    one._popen.stdin.close()
    assert one._popen.wait(10) == -signal.SIGKILL


@on_loop
@pytest.mark.parametrize("how", ["dies", "is stopped"])
async def test_what_it_has_forked_goes_with_it(how: str) -> None:
    code = COMES_UP + "fork = os.fork()\nif fork: parent.announce({'fork': fork})\ntime.sleep(60)"
    async with started(code) as (one, said):
        assert alive(said["fork"])
        if how == "dies":
            one.kill()
            await one.died()
        else:
            await one.stop()
        await until(lambda: gone(said["fork"]))


@on_loop
async def test_a_child_hears_that_its_parent_lets_go_of_it(tmp_path: Path) -> None:
    hears = "parent.when_gone(lambda: (open(parent.order['file'], 'w').close(), os._exit(0)))\n"
    file = tmp_path / "heard"
    async with started(STUBBORN + hears + ANNOUNCES + "time.sleep(60)", file=str(file)) as (one, _):
        await one.stop()
        assert file.exists()


def test_started_by_hand_it_announces_to_stdout_and_is_never_let_go_of() -> None:
    code = (
        "import time\nfrom hudsim.errors import SimFailed\nfrom hudsim.loop.child import Parent\n"
        "parent = Parent.shell()\nparent.when_gone(lambda: parent.announce({'gone': True}))\n"
        "parent.announce({'up': parent.is_shell})\nparent.announce_failure(SimFailed('no'), otherwise=SimFailed)\n"
        "time.sleep(0.2)"
    )
    done = subprocess.run([sys.executable, "-c", code], stdin=subprocess.DEVNULL, capture_output=True, check=True)
    assert [json.loads(line) for line in done.stdout.splitlines()] == [
        {"up": True},
        {"error": {"name": "sim_failed", "message": "no", "data": {}}},
    ]


PARENT = """
import asyncio, sys
from hudsim.errors import SimFailed
from hudsim.loop.child import Child

async def main():
    one = Child([sys.executable, "-c", sys.argv[1]], name="toy", failed=SimFailed)
    said = await one.start({"code": sys.argv[2]}, timeout_s=20.0)
    print(one.pid, said.get("pid"), flush=True)
    await asyncio.sleep(60)

asyncio.run(main())
"""
MIDDLE = (
    COMES_UP
    + """
import asyncio
from hudsim.loop.child import Child

async def main():
    one = Child([sys.executable, "-c", parent.order["code"]], name="toy", failed=SimFailed)
    parent.announce(await one.start({}, timeout_s=20.0))
    await asyncio.sleep(60)

asyncio.run(main())
"""
)
HANGS = UP + "import ctypes\nctypes.PyDLL(None).sleep(60)"


@contextmanager
def parent_of(code: str, below: str) -> Iterator[list[int]]:
    """The ids of the processes below one that starts ``code`` as its child; that one is killed afterwards."""
    command = [sys.executable, "-c", PARENT, code, below]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        try:
            yield [int(pid) for pid in parent.stdout.readline().split()]
        finally:
            parent.kill()


@on_loop
@pytest.mark.parametrize(("code", "below"), [(HANGS, ""), (MIDDLE, HANGS)], ids=["child", "grandchild"])
async def test_a_parent_that_is_killed_takes_all_below_it_along_even_those_whose_gil_is_held(
    code: str, below: str
) -> None:
    with parent_of(code, below) as pids:
        assert len(pids) == 2
        assert all(map(alive, pids))
    await until(lambda: all(map(gone, pids)))
