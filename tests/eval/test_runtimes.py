"""Where environments run: here, in processes of their own, shared, or served by somebody else."""

from __future__ import annotations

import asyncio
import os
import signal
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from hudsim.environment import Environment, EnvironmentServer, Task
from hudsim.errors import BearerError, EnvironmentFailed, UsageError
from hudsim.eval import Job, LocalRuntime, Run, Runtime, Shared, SubprocessRuntime, Taskset, Verdict
from hudsim.policies.hold import Hold
from hudsim.robot.agent import RobotAgent
from tests.asyncrun import on_loop
from tests.cli.command import alive, children
from tests.eval.card_env import tasks

SOURCE = Path(__file__).with_name("card_env.py")


def player() -> RobotAgent:
    return RobotAgent(Hold())


def pids(job: Job) -> Counter[int]:
    """Which processes graded how many runs."""
    return Counter(run.grade.info["pid"] for run in job.runs if run.grade is not None)


def all_passed(job: Job, runs: int) -> None:
    assert [run.verdict for run in job.runs] == [Verdict.passed] * runs, [run.error for run in job.runs]


@on_loop
async def test_an_environment_is_kept_from_run_to_run_and_gone_afterwards() -> None:
    before = set(children(os.getpid()))
    worlds: set[int] = set()
    job = await tasks.run(
        player(),
        runtime=LocalRuntime(SOURCE),
        group=2,
        max_concurrent=1,
        runs=None,
        on_event=lambda event, run: worlds.update(set(children(os.getpid())) - before),
    )
    all_passed(job, 8)
    assert len(worlds) == 1
    assert not any(alive(pid) for pid in worlds)


@on_loop
async def test_a_file_is_run_again_for_runs_that_its_worlds_have_no_slots_for() -> None:
    before = set(children(os.getpid()))
    most = 0

    def count(event: str, run: Run) -> None:
        nonlocal most
        most = max(most, len(set(children(os.getpid())) - before))

    all_passed(
        await tasks.run(player(), runtime=LocalRuntime(SOURCE), max_concurrent=2, group=2, runs=None, on_event=count), 8
    )
    assert most == 2


@on_loop
async def test_a_world_with_slots_serves_as_many_runs_at_once() -> None:
    runtime = SubprocessRuntime(SOURCE, settings={"num_envs": 4})
    job = await tasks.run(player(), runtime=runtime, group=2, max_concurrent=4, runs=None)
    all_passed(job, 8)
    assert len(pids(job)) == 1


@on_loop
async def test_shared_runs_wait_for_room_on_one_placement() -> None:
    shared = Shared(SubprocessRuntime(SOURCE, settings={"num_envs": 2}), width=2)
    job = await tasks.run(player(), runtime=shared, group=2, max_concurrent=8, runs=None)
    all_passed(job, 8)
    assert len(pids(job)) == 1


@on_loop
async def test_a_shared_placement_stays_for_several_calls() -> None:
    async with Shared(SubprocessRuntime(SOURCE), width=1) as shared:
        first = await tasks.run(player(), runtime=shared, runs=None)
        second = await tasks.run(player(), runtime=shared, runs=None)
    assert len(pids(first) + pids(second)) == 1


@on_loop
async def test_an_environment_process_that_dies_costs_its_run_alone() -> None:
    killed: list[int] = []

    async def agent(run: Run) -> None:
        if not killed:
            (pid,) = (pid for pid in children(os.getpid()) if pid not in before)
            killed.append(pid)
            os.kill(pid, signal.SIGKILL)
        await player()(run)

    before = set(children(os.getpid()))
    job = await tasks.run(agent, runtime=SubprocessRuntime(SOURCE), max_concurrent=1, runs=None)
    assert Counter(run.verdict for run in job.runs) == {Verdict.passed: 3, Verdict.infra_error: 1}
    assert job.runs[0].reward is None
    assert job.reward == 1.0
    assert job.mean_over_all == 0.75
    assert not [pid for pid in children(os.getpid()) if pid not in before]


@on_loop
async def test_an_environment_process_that_is_told_to_stop_costs_the_runs_it_holds_alone() -> None:
    before = set(children(os.getpid()))
    told: list[int] = []

    async def agent(run: Run) -> None:
        if not told:
            (pid,) = (pid for pid in children(os.getpid()) if pid not in before)
            told.append(pid)
            os.kill(pid, signal.SIGTERM)
        await player()(run)

    job = await tasks.run(agent, runtime=SubprocessRuntime(SOURCE), group=3, max_concurrent=1, runs=None)
    verdicts = Counter(run.verdict for run in job.runs)
    assert set(verdicts) <= {Verdict.passed, Verdict.infra_error}, [run.error for run in job.runs]
    assert verdicts[Verdict.passed] >= 11


@on_loop
async def test_a_shared_placement_that_dies_is_replaced_and_the_record_says_that_it_died() -> None:
    before = set(children(os.getpid()))
    killed: list[int] = []

    async def agent(run: Run) -> None:
        if not killed:
            (pid,) = (pid for pid in children(os.getpid()) if pid not in before)
            killed.append(pid)
            os.kill(pid, signal.SIGKILL)
        await player()(run)

    job = await tasks.run(agent, runtime=Shared(SubprocessRuntime(SOURCE), width=1), max_concurrent=1, runs=None)
    assert [run.verdict for run in job.runs] == [Verdict.infra_error] + [Verdict.passed] * 3
    assert "the environment process" in str(job.runs[0].error)
    assert "died" in str(job.runs[0].error)


@on_loop
async def test_a_world_that_dies_costs_its_run_alone() -> None:
    before = set(children(os.getpid()))
    killed: list[int] = []

    async def agent(run: Run) -> None:
        if not killed:
            (pid,) = (pid for pid in children(os.getpid()) if pid not in before)
            killed.append(pid)
            os.kill(pid, signal.SIGKILL)
        await player()(run)

    job = await tasks.run(agent, runtime=LocalRuntime(SOURCE), max_concurrent=1, runs=None)
    first = job.runs[0]
    assert (first.end, first.verdict, first.reward) == ("lost", Verdict.infra_error, None)
    assert "SIGKILL" in str(first.error)
    assert [run.verdict for run in job.runs[1:]] == [Verdict.passed] * 3


@on_loop
async def test_a_served_environment_is_attached_to_and_left_running() -> None:
    from hudsim.environment import load_environment

    server = EnvironmentServer(load_environment(SOURCE, fresh=True), bearer="secret")
    address = await server.start()
    try:
        job = await tasks.run(player(), runtime=Runtime(address.url), max_concurrent=4, runs=None)
        all_passed(job, 4)
        again = await tasks.run(player(), runtime=Runtime(f"ws://{address.netloc}", token="secret"), runs=None)
        all_passed(again, 4)
        with pytest.raises(BearerError, match="wrong bearer"):
            await tasks.run(player(), runtime=Runtime(f"ws://{address.netloc}", token="wrong"), runs=None)
    finally:
        await server.stop()


@on_loop
async def test_a_process_that_cannot_load_its_environment_says_why(tmp_path: Path) -> None:
    file = tmp_path / "env.py"
    file.write_text(
        "import os\nfrom hudsim import Environment\nenv = Environment('broken')\n"
        "@env.initialize\nasync def up():\n    raise OSError('no such daemon')\n"
    )
    async with SubprocessRuntime(file) as runtime:
        with pytest.raises(EnvironmentFailed, match="environment broken did not start: OSError: no such daemon"):
            async with runtime(Task(env="broken", id="x")):
                pass
    (tmp_path / "exits.py").write_text("import os\nos._exit(3)\n")
    async with SubprocessRuntime(tmp_path / "exits.py") as runtime:
        with pytest.raises(EnvironmentFailed, match="died with exit code 3"):
            async with runtime(Task(env="broken", id="x")):
                pass


@pytest.mark.parametrize("kind", [LocalRuntime, SubprocessRuntime])
@on_loop
async def test_an_environment_that_does_not_come_up_in_time_is_given_up(kind: Any, tmp_path: Path) -> None:
    file = tmp_path / "env.py"
    file.write_text(
        "import asyncio\nfrom hudsim import Environment\nenv = Environment('slow')\n"
        "@env.initialize\nasync def up():\n    await asyncio.sleep(60)\n"
    )
    with pytest.raises(EnvironmentFailed, match=r"did not come up within 0\.5 s"):
        async with kind(file, ready_timeout=0.5)(Task(env="slow", id="x")):
            pass


@on_loop
async def test_shutdown_hooks_run_in_a_process_that_is_told_to_stop(tmp_path: Path) -> None:
    file = tmp_path / "env.py"
    file.write_text(
        "from pathlib import Path\nfrom hudsim import Environment\nenv = Environment('tidy')\n"
        "@env.template()\nasync def work():\n    yield 'go'\n    yield 1.0\n"
        "@env.shutdown\nasync def down():\n    Path('down').touch()\n"
    )
    job = await Taskset("t", [Task(env="tidy", id="work")]).run(_idle, runtime=SubprocessRuntime(file), runs=None)
    all_passed(job, 1)
    assert (tmp_path / "down").exists()


async def _idle(run: Run) -> None:
    return


@on_loop
async def test_a_live_environment_can_be_served_from_its_file() -> None:
    job = await tasks.run(player(), runtime=SubprocessRuntime(next(iter(tasks)).home or Environment()), runs=None)
    all_passed(job, 4)
    assert os.getpid() not in pids(job)


@on_loop
async def test_what_a_runtime_cannot_take_is_refused() -> None:
    with pytest.raises(UsageError, match="no file"):
        SubprocessRuntime("nowhere.py")
    with pytest.raises(UsageError, match="whole number, at least 1"):
        Shared(LocalRuntime(SOURCE), width=0)
    with pytest.raises(UsageError, match="expected ws://"):
        Runtime("http://127.0.0.1")
    task = Task(env="cards", id="read", runtime_config={"image": "x"})
    with pytest.raises(UsageError, match="takes none"):
        async with LocalRuntime(SOURCE)(task):
            pass


@on_loop
async def test_a_batch_that_is_cancelled_leaves_no_process() -> None:
    before = set(children(os.getpid()))
    reached = asyncio.Event()

    async def agent(run: Run) -> None:
        reached.set()
        await asyncio.sleep(60)

    running = asyncio.create_task(tasks.run(agent, runtime=SubprocessRuntime(SOURCE), max_concurrent=2, runs=None))
    await reached.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert not [pid for pid in children(os.getpid()) if pid not in before]
