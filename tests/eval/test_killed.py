"""SIGKILL in the middle of an evaluation: what was finished stays, nothing stays running, the rest is run, once."""

from __future__ import annotations

import json
import logging
import os
import random
import re
import shlex
import signal
import time
from collections import Counter
from pathlib import Path

import pytest

from tests.eval.killing import AT_ONCE, GROUP, KINDS, RUNS, Driver, Evaluation, Row, evaluation, until

GONE_S = 2.0

log = logging.getLogger(__name__)


@pytest.mark.parametrize("victim", KINDS)
def test_after_a_kill_what_was_finished_is_kept_and_exactly_the_rest_is_run(tmp_path: Path, victim: str) -> None:
    trial(tmp_path, random.Random(victim), victim)


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("seed", range(10))
def test_the_same_after_each_of_fifty_kills(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    for n in range(5):
        (folder := tmp_path / str(n)).mkdir()
        trial(folder, chance, chance.choice(KINDS))


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_job_that_is_killed_again_each_time_it_goes_on_comes_to_its_end(tmp_path: Path) -> None:
    chance = random.Random(0)
    with evaluation(tmp_path, slots=4) as job:
        driver = job.start()
        until(job.jobs)  # killed as soon as there is one, before it has a plan or soon after
        for _ in range(8):
            kept, graded = left_by_a_killed(job, driver)
            driver = job.start(job.resumed(*job.jobs()))
            some_way_through(job, driver, min(len(kept) + chance.randint(1, 10), RUNS - 1))
            assert {run for run, _ in job.graded()[len(graded) :]}.isdisjoint(kept)
        kept, graded = left_by_a_killed(job, driver)
        assert job.start(job.resumed("last")).ended()[0] == 0
        ran_the_rest(job, kept, graded)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupted_it_says_how_to_go_on_and_leaves_no_process(tmp_path: Path, number: signal.Signals) -> None:
    with evaluation(tmp_path) as job:
        driver = job.start()
        some_way_through(job, driver, 5)
        driver.popen.send_signal(number)
        code, out, err = driver.ended()
        assert (code, out) == (130, "")
        until(lambda: not job.processes(), limit_s=GONE_S)
        words, command = (line for line in err.splitlines() if "what ended is kept" in line or "--resume" in line)
        said = re.search(rf"(\d+) of {RUNS} runs count", words)
        assert said is not None
        assert int(said[1]) <= len(valid(job.rows())) <= int(said[1]) + AT_ONCE  # those that were just being kept
        go_on(job, shlex.split(command)[1:])


def test_of_two_that_resume_a_job_at_once_one_is_refused_by_name(tmp_path: Path) -> None:
    with evaluation(tmp_path, ticks=60) as job:
        driver = job.start()
        some_way_through(job, driver, 3)
        kept, graded = left_by_a_killed(job, driver)
        both = [job.start(job.resumed("last")) for _ in range(2)]
        said = {driver.popen.pid: driver.ended() for driver in both}
        winner, refused = sorted(said, key=lambda pid: said[pid][0])
        assert [said[winner][0], said[refused][0]] == [0, 1]
        assert f"is being worked on by process {winner}" in said[refused][2]
        ran_the_rest(job, kept, graded)


def trial(folder: Path, chance: random.Random, victim: str) -> None:
    """Kill a ``victim`` of a new job at some moment, look at what is left, and go on with the job to its end."""
    with evaluation(folder, slots=chance.choice([1, 2, 4])) as job:
        driver = job.start()
        limit_s = max(GONE_S, some_way_through(job, driver, 1))  # one that only starts looks up when it has started
        some_way_through(job, driver, chance.randint(1, 40))
        time.sleep(chance.uniform(0, 0.05))
        before, gone_s = killed(job, driver if victim == "driver" else victim, chance, limit_s)
        code, out, err = driver.ended()
        kept, graded = job.rows(), [run for run, _ in job.graded()]
        at = f"{victim} killed at {len(before)} rows of {job.slots} slots"
        log.info("%s, gone in %.3f s; %d of %d valid", at, gone_s, len(valid(kept)), len(kept))
        assert valid(before).items() <= kept.items()
        if victim == "driver":
            assert (code, out) == (-signal.SIGKILL, "")
            assert valid(kept) == kept
            assert len(set(graded) - set(kept)) <= AT_ONCE  # graded and not kept yet, so that they are played again
        else:
            went_on(job, code, out, err)
        assert {Counter(graded)[run] for run in valid(kept)} == {1}
        go_on(job, job.resumed(*job.jobs()))


def some_way_through(job: Evaluation, driver: Driver, runs: int) -> float:
    """Wait until so many runs are kept; how many seconds that took."""

    def far_enough() -> bool:
        if len(job.rows()) >= runs:
            return True
        assert driver.popen.poll() is None, driver.ended()
        return False

    return until(far_enough)


def killed(
    job: Evaluation, victim: Driver | str, chance: random.Random, limit_s: float
) -> tuple[dict[str, Row], float]:
    """Kill a driver, or one of a kind: the rows just before, and how many seconds all that hung on it was there yet."""
    if isinstance(victim, Driver):
        pid = victim.popen.pid
    else:
        until(lambda: job.processes(victim))
        pid = chance.choice(job.processes(victim)).pid
    doomed = {process.pid for process in job.processes() if pid in (process.pid, process.parent)}
    before = job.rows()
    os.kill(pid, signal.SIGKILL)

    def gone() -> bool:
        return not any(isinstance(victim, Driver) or process.pid in doomed for process in job.processes())

    return before, until(gone, limit_s=limit_s)


def went_on(job: Evaluation, code: int, out: str, err: str) -> None:
    """The driver came to its end, has lost what was in the hands of the one that died, and says so."""
    verdicts = Counter(row.run["verdict"] for row in job.rows().values())
    lost = verdicts["infra_error"]
    assert verdicts == Counter(passed=RUNS - lost, infra_error=lost)
    assert lost <= job.slots
    assert code == (1 if lost else 0)
    assert (f"{RUNS - lost} of {RUNS} runs count" in err) == bool(lost)
    assert json.loads(out)["verdicts"] == {kind: times for kind, times in verdicts.items() if times}


def left_by_a_killed(job: Evaluation, driver: Driver) -> tuple[dict[str, Row], list[tuple[str, str]]]:
    """Kill the driver: the rows and what had been graded, once all its processes are gone."""
    driver.popen.kill()
    driver.ended()
    until(lambda: not job.processes())
    assert valid(job.rows()) == job.rows()
    return job.rows(), job.graded()


def go_on(job: Evaluation, command: list[str]) -> None:
    """Go on with the job: it ends well, and has run the rest."""
    kept, graded = job.rows(), job.graded()
    code, out, err = job.start(command).ended()
    assert code == 0, err
    until(lambda: not job.processes(), limit_s=GONE_S)
    ran_the_rest(job, kept, graded)
    said = json.loads(out)
    assert said["verdicts"] == {"passed": RUNS}
    assert [run["run"] for run in said["runs"]] == list(job.rows())


def ran_the_rest(job: Evaluation, kept: dict[str, Row], graded: list[tuple[str, str]]) -> None:
    """Of a job that had ``kept`` and ``graded`` so much, exactly the rest was run, once; nothing else changed."""
    (name,), rows, more = job.jobs(), job.rows(), job.graded()[len(graded) :]
    assert job.graded()[: len(graded)] == graded
    assert sorted(run for run, _ in more) == sorted(rows.keys() - valid(kept).keys())
    assert valid(kept).items() <= rows.items()
    assert list(rows) == [f"{name}-{n}" for n in range(RUNS)]
    assert {run: row.nonce for run, row in rows.items()} == dict(job.graded())  # of each run the last
    for n, row in enumerate(rows.values()):
        run, before = row.run, kept.get(row.run["id"])
        assert (run["task"]["slug"], run["index"]) == (f"card-{n // GROUP}", n % GROUP)
        assert (run["verdict"], run["reward"]) == ("passed", 1.0)
        assert len(run["attempts"]) == (before is not None and not before.valid)


def valid(rows: dict[str, Row]) -> dict[str, Row]:
    """Those with a verdict that counts."""
    return {run: row for run, row in rows.items() if row.valid}
