"""A wait is stayed awake for as long as that has paid."""

from __future__ import annotations

import itertools
import os
import select
import subprocess
import sys
import threading
import time

import pytest

from hudsim.loop import SimThread, Vigil


def waits(vigil: Vigil, *, answered: bool, count: int) -> list[bool]:
    """Which of ``count`` waits in a row it stayed awake for."""
    awake = []
    for _ in range(count):
        awake.append(vigil.pays())
        if awake[-1]:
            vigil.watch(lambda: answered)
    return awake


def test_it_stays_awake_while_answers_come() -> None:
    assert all(waits(Vigil(), answered=True, count=100))


def test_in_vain_it_tries_ever_more_seldom_but_never_gives_up() -> None:
    vigil = Vigil()
    tried = [at for at, awake in enumerate(waits(vigil, answered=False, count=400)) if awake]
    assert tried[:5] == [0, 2, 6, 14, 30]
    assert {later - sooner for sooner, later in itertools.pairwise(tried[4:])} == {16}
    vigil = Vigil()
    waits(vigil, answered=False, count=400)
    while not vigil.pays():
        pass
    assert vigil.watch(lambda: "there") == "there"
    assert all(waits(vigil, answered=True, count=10))


def test_what_is_there_is_given_at_once_and_what_is_not_after_a_moment() -> None:
    began = time.monotonic()
    assert Vigil().watch(lambda: [7]) == [7]
    assert Vigil().watch(list) == []
    assert Vigil().watch(list, most_s=0.0) == []
    assert time.monotonic() - began < 0.1


@pytest.mark.parametrize(("setting", "awake"), [("0", False), ("50", True)])
def test_the_environment_turns_it_off(setting: str, awake: bool) -> None:
    code = "from hudsim.loop import Vigil; print(Vigil().pays())"
    env = {**os.environ, "HUDSIM_AWAKE_US": setting}
    assert subprocess.check_output([sys.executable, "-c", code], env=env, text=True).strip() == str(awake)


@pytest.mark.parametrize("setting", ["soon", "-1", "nan", "1e9"])
def test_a_setting_that_is_no_time_is_refused(setting: str) -> None:
    env = {**os.environ, "HUDSIM_AWAKE_US": setting}
    code = "from hudsim.loop import Vigil; Vigil()"
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert f"HUDSIM_AWAKE_US: got {setting!r}, expected microseconds from 0 to 10000" in done.stderr


@pytest.mark.skipif(not hasattr(select, "epoll"), reason="no epoll here")
def test_a_sim_thread_that_nobody_asks_uses_no_time() -> None:
    sim = SimThread()
    sim.start()
    ready, ring = os.pipe()
    answered = threading.Event()

    def answer() -> None:
        os.read(ready, 1)
        answered.set()

    try:
        sim.watch(ready, answer)
        os.write(ring, b"x")
        assert answered.wait(5)
        began = time.process_time()
        time.sleep(0.3)
        assert time.process_time() - began < 0.03
    finally:
        sim.unwatch(ready)
        sim.stop()
        assert sim.join(5)
        os.close(ready)
        os.close(ring)
