"""What cannot be meant is refused before anything runs, is kept, or counts against an agent."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Callable
from pathlib import Path
from typing import Any

import pytest

from hudsim.agents import Noop
from hudsim.capability import Capability
from hudsim.environment import ControlClient, Environment, Task, load_environment
from hudsim.errors import UsageError
from hudsim.eval import Job, LocalRuntime, Run, Runtime, Shared, Store, SubprocessRuntime, Taskset, Trace
from hudsim.graders import combine_any
from hudsim.policies.hold import Hold
from tests.asyncrun import on_loop
from tests.eval.keeping import names


def world(name: str = "sums", reward: float = 1.0, version: str = "1") -> Environment:
    env = Environment(name, version=version)

    @env.template()
    async def add(a: int = 0) -> AsyncGenerator[Any, Any]:
        yield "?"
        yield reward

    return env


def some(env: Environment | None = None) -> Taskset:
    return Taskset("some", [(env or world()).templates["add"]()])


async def agent(run: Run) -> None:
    run.trace.content = "1"


class Player:
    async def __call__(self, run: Run) -> None:
        del run


def sync(run: Run) -> None:
    del run


async def two(run: Run, more: int) -> None:
    del run, more


async def coroutine(task: Task) -> None:
    del task


@pytest.mark.parametrize("wrong", ["noop", None, 5, Player, sync, two, Hold(), Noop])
@on_loop
async def test_what_is_no_agent_is_refused_and_no_job_is_kept(wrong: Any, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"^agent: got .*, expected an agent: a coroutine function of a run"):
        await some().run(wrong, runs=tmp_path)
    assert names(tmp_path) == []


@pytest.mark.parametrize(
    "wrong", ["local", "ws://host:1/?bearer=secret", 5, LocalRuntime, lambda: None, coroutine, object()]
)
@on_loop
async def test_what_is_no_runtime_is_refused_and_no_job_is_kept(wrong: Any, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"^runtime: got .*, expected LocalRuntime\(") as refused:
        await some().run(agent, runtime=wrong, runs=tmp_path)
    assert "secret" not in refused.value.message
    assert names(tmp_path) == []


OPTIONS: list[dict[str, Any]] = [
    *({"max_concurrent": wrong} for wrong in ("4", 1.5, True, float("nan"), 0)),
    *({"group": wrong} for wrong in ("4", 1.5, True, 0, "xxx")),
    {"job": "last"},
    {"job": 5},
    {"runs": 5},
    {"runs": b"x"},
    {"runs": "a\0b"},
    {"config": 5},
    {"config": {"a": object()}},
    {"config": {1: 2}},
    {"config": {"a": float("nan")}},
    {"config": "ab"},
    *({"timeout": wrong} for wrong in ("5", float("nan"), True, -1, object())),
    {"on_event": 5},
]


@pytest.mark.parametrize(
    "options",
    OPTIONS,
    ids=[f"{n}-{next(iter(options))}" for n, options in enumerate(OPTIONS)],
)
@on_loop
async def test_options_that_cannot_be_are_refused_and_no_job_is_kept(options: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"got |is no plain JSON"):
        await some().run(agent, **{"runs": tmp_path, **options})
    assert names(tmp_path) == []


MADE: dict[str, Callable[[], Any]] = {
    "an environment called 5": lambda: Environment(5),  # type: ignore[arg-type]
    "a version 5": lambda: Environment("x", version=5),  # type: ignore[arg-type]
    "settings 5": lambda: Environment("x", settings=5),  # type: ignore[arg-type]
    "settings that are no JSON": lambda: Environment("x", settings={"a": object()}),
    "capabilities 5": lambda: Environment("x", capabilities=5),  # type: ignore[arg-type]
    "a template of id 5": lambda: Environment("x").template(5),  # type: ignore[arg-type]
    "a template without parentheses": lambda: Environment("x").template(two),  # type: ignore[arg-type]
    "a template of 5": lambda: Environment("x").template()(5),  # type: ignore[arg-type]
    "a template that returns 5": lambda: Environment("x").template(returns=5)(world().templates["add"].func),
    "a description 5": lambda: Environment("x").template(description=5)(world().templates["add"].func),  # type: ignore[arg-type]
    "a reference 5": lambda: world().templates["add"].reference(5),  # type: ignore[arg-type]
    "a hook 5": lambda: Environment("x").initialize(5),  # type: ignore[arg-type]
    "a hook that is no coroutine": lambda: Environment("x").shutdown(lambda: None),  # type: ignore[arg-type,return-value]
    "a hook that wants something": lambda: Environment("x").initialize(agent),  # type: ignore[arg-type]
    "a robot 5": lambda: Environment("x").robot(5),  # type: ignore[arg-type]
    "a robot's name 5": lambda: Environment("x").robot(lambda settings: None, name=5),  # type: ignore[arg-type,return-value]
    "half an environment of Gymnasium": lambda: Environment("x").gym("a-v1", num_envs="2"),  # type: ignore[arg-type]
    "a capability of 5s": lambda: Capability(5, 5, 5, 5),  # type: ignore[arg-type]
    "a capability that no URL reaches": lambda: Capability("a?b c", "x/1", "x://h:1"),
    "a capability's port": lambda: Capability.ssh(url="ssh://h:70000", host_pubkey="k"),
    "template 5": lambda: world().find(5),  # type: ignore[arg-type]
    "capability 5": lambda: world().capability(5),  # type: ignore[arg-type]
    "a run's capability 5": lambda: Run(Task(env="a", id="b"), job_id="j", run_id="r").capability(5),  # type: ignore[arg-type]
    "a task without an id": lambda: Task(env="a"),  # type: ignore[call-arg]
    "a task of 5": lambda: Task(env=5, id="a"),  # type: ignore[arg-type]
    "a task's args": lambda: Task(env="a", id="b", args=5),  # type: ignore[arg-type]
    "a task's arg": lambda: Task(env="a", id="b", args={"x": object()}),
    "a task's other key": lambda: Task(env="a", id="b", zzz=1),  # type: ignore[call-arg]
    "a task's new slug": lambda: setattr(Task(env="a", id="b"), "slug", 5),
    "a taskset called 5": lambda: Taskset(5),  # type: ignore[arg-type]
    "a taskset of 5": lambda: Taskset("a", 5),  # type: ignore[arg-type]
    "a taskset of one task alone": lambda: Taskset("a", Task(env="a", id="b")),  # type: ignore[arg-type]
    "a taskset of a template": lambda: Taskset("a", [world().templates["add"]]),  # type: ignore[list-item]
    "a slug 5": lambda: some()[5],  # type: ignore[index]
    "slugs 5": lambda: some().filter(5),  # type: ignore[arg-type]
    "slugs that are one": lambda: some().filter("add"),
    "no slugs": lambda: some().exclude(None),  # type: ignore[arg-type]
    "a file 5": lambda: Taskset.from_file(5),  # type: ignore[arg-type]
    "a file of a very long name": lambda: Taskset.from_file("x" * 5000),
    "a file to write 5": lambda: some().to_file(5),  # type: ignore[arg-type]
    "a folder that cannot be written": lambda: some().to_file("/proc/nowhere/x.json"),
    "an environment in 5": lambda: load_environment(5),  # type: ignore[arg-type]
    "a server at 5": lambda: Runtime(5),  # type: ignore[arg-type]
    "a token 5": lambda: Runtime("ws://h:1", token=5),  # type: ignore[arg-type]
    "5 in this process": lambda: LocalRuntime(5),  # type: ignore[arg-type]
    "nothing in this process": lambda: LocalRuntime(None),  # type: ignore[arg-type]
    "several 5": lambda: LocalRuntime([5]),  # type: ignore[list-item]
    "a coroutine function of environments": lambda: LocalRuntime(coroutine),  # type: ignore[arg-type]
    "settings 5 for it": lambda: LocalRuntime(world(), settings=5),  # type: ignore[arg-type]
    "a time of text": lambda: LocalRuntime(world(), ready_timeout="a"),  # type: ignore[arg-type]
    "5 in a process": lambda: SubprocessRuntime(5),  # type: ignore[arg-type]
    "nothing shared": lambda: Shared(None, width=1),  # type: ignore[arg-type]
    "what is made for each task shared": lambda: Shared(LocalRuntime(lambda task: world()), width=1),
    "5 shared": lambda: Shared(5, width=1),  # type: ignore[arg-type]
    "a store in 5": lambda: Store(5),  # type: ignore[arg-type]
    "a step 5": lambda: Trace().record(5),  # type: ignore[arg-type]
    "subscores 5": lambda: combine_any(1.0, 5),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("make", MADE.values(), ids=MADE)
def test_what_cannot_be_made_is_refused_in_one_line(make: Callable[[], Any]) -> None:
    with pytest.raises(UsageError) as refused:
        make()
    assert len(refused.value.message.splitlines()) == 1
    assert "got " in refused.value.message or "no " in refused.value.message or "cannot" in refused.value.message


@on_loop
async def test_an_environment_that_cannot_be_dialled_is_refused() -> None:
    odd: list[Any] = [5, None, b"ws://127.0.0.1:9"]
    for wrong in odd:
        with pytest.raises(UsageError, match=r"^url: got .*, expected ws://host:port/"):
            await ControlClient.connect(wrong)


@on_loop
async def test_a_job_that_cannot_be_named_is_refused(tmp_path: Path) -> None:
    odd: list[Any] = [5, None, object()]
    for wrong in odd:
        for begin in (Job.start, Job.resume, Job.load):
            with pytest.raises(UsageError, match=r"^job: got .*, expected "):
                await begin(wrong, runs=tmp_path)
    assert names(tmp_path) == []


@on_loop
async def test_a_robot_s_function_that_makes_no_bridge_is_refused_at_the_start() -> None:
    env = Environment("x")
    env.robot(lambda settings: 5)  # type: ignore[arg-type,return-value]
    with pytest.raises(UsageError, match=r"^robot robot: got 5, expected a RobotEndpoint"):
        await env.start()


@on_loop
async def test_live_environments_of_one_name_are_not_taken_for_each_other() -> None:
    one, other = world(reward=1.0), world(reward=0.25)
    both = Taskset("both", [one.templates["add"](a=1), other.templates["add"](a=2)])
    with pytest.raises(UsageError, match="two environments are called sums"):
        await both.run(agent, runs=None)
    with pytest.raises(UsageError, match="two environments are called sums"):
        LocalRuntime([one, other])
    with pytest.raises(UsageError, match=r"task add was made by another environment called sums"):
        await some(other).run(agent, runtime=LocalRuntime(one), runs=None)


def test_environments_of_one_name_in_a_file_are_not_taken_for_each_other(tmp_path: Path) -> None:
    (tmp_path / "twins.py").write_text("from hudsim import Environment\na, b = Environment('x'), Environment('x')\n")
    for name in (None, "x"):
        with pytest.raises(UsageError, match="declares 2 environments called x"):
            load_environment(tmp_path / "twins.py", name=name)


@on_loop
async def test_a_function_makes_an_environment_for_every_run() -> None:
    made: list[int] = []

    def make(task: Task) -> Environment:
        made.append(task.args.get("a", 0))
        return world(reward=float(task.args.get("a", 0)))

    tasks = Taskset("several", [world().templates["add"](a=a) for a in (0, 1, 2)])
    job = await tasks.run(agent, runtime=LocalRuntime(make), group=2, runs=None)
    assert [run.reward for run in job.runs] == [0, 0, 1, 1, 2, 2], [run.error for run in job.runs]
    assert sorted(made) == [0, 0, 1, 1, 2, 2]


@on_loop
async def test_a_runtime_config_is_refused_with_the_tasks(tmp_path: Path) -> None:
    env = world()
    task = env.templates["add"]()
    task.runtime_config = {"gpu": 1}
    runtimes: list[Any] = [None, LocalRuntime(env), LocalRuntime(lambda task: env), Runtime("ws://127.0.0.1:9")]
    for runtime in [*runtimes, Shared(LocalRuntime(env), width=1)]:
        with pytest.raises(UsageError, match=r"task add: got runtime_config gpu, and \w+ takes none"):
            await Taskset("t", [task]).run(agent, runtime=runtime, runs=tmp_path)
    assert names(tmp_path) == []


@on_loop
async def test_a_relative_folder_stays_where_it_was_when_an_agent_goes_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "env.py").write_text(
        "from hudsim import Environment\nenv = Environment('here')\n@env.template()\nasync def work():\n"
        "    yield '?'\n    yield 1.0\n"
    )
    (tmp_path / "else").mkdir()
    runtimes: list[Any] = [LocalRuntime("env.py"), SubprocessRuntime("env.py")]

    async def away(run: Run) -> None:
        os.chdir(tmp_path / "else")

    for runtime in runtimes:
        monkeypatch.chdir(tmp_path)
        tasks = Taskset("t", [Task(env="here", id="work", slug=slug) for slug in "ab"])
        job = await tasks.run(away, runtime=runtime, max_concurrent=1, runs="runs")
        assert [run.reward for run in job.runs] == [1.0, 1.0], [run.error for run in job.runs]
    assert names(tmp_path / "else") == []
    async with Store(tmp_path / "runs") as store:
        assert [summary.ran for summary in await store.jobs()] == [2, 2]


@on_loop
async def test_a_job_is_not_gone_on_with_in_another_version_of_its_environment(tmp_path: Path) -> None:
    job = await some(world(version="1")).run(agent, runs=tmp_path)
    assert job.config["environments"] == {"sums": "1"}
    async with await Job.resume(job.id, runs=tmp_path) as resumed:
        with pytest.raises(UsageError, match=r"environments\.sums: got '2', the job has '1'"):
            await some(world(version="2")).run(agent, job=resumed)
        env = world(version="2")
        await some(env).run(agent, job=resumed, runtime=LocalRuntime(lambda task: env))  # which nobody knows beforehand


@pytest.mark.parametrize("reward", [1e308, -1e308, 10**400, 1.1e9])
@on_loop
async def test_a_reward_that_no_mean_could_take_is_the_template_s_error(reward: float, tmp_path: Path) -> None:
    job = await some(world(reward=reward)).run(agent, group=2, runs=tmp_path)
    assert [str(run.verdict) for run in job.runs] == ["grader_error"] * 2
    assert "expected a" in str(job.runs[0].error)
    job.to_json()
