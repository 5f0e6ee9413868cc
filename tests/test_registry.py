from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from hudsim import registry
from hudsim.agents import Answer, Noop, Oracle
from hudsim.errors import UnknownName, UsageError
from hudsim.registry.agent_choice import oracle
from hudsim.registry.arguments import Arguments
from hudsim.robot.agent import RobotAgent
from hudsim.robot.bridge import RobotBridge
from hudsim.robot.chunks import RealTimeChunking, RecedingHorizon, TemporalEnsemble
from tests.agents.environments import asking, run_alone
from tests.asyncrun import on_loop

MINE = """
from hudsim import Adapter, Model, RobotAgent, RobotBridge
from hudsim.robot.chunks import OpenLoop

class Base(RobotBridge):
    def __init__(self, *, size: int = 1, cameras: bool = False) -> None: ...
    def reset(self, seed: int = 0, level: str = "low") -> str: ...
    def step(self, action) -> None: ...
    def get_observation(self): ...

class World(Base):
    def __init__(self, *, colour: str = "red", **options) -> None: ...

def factory(width: int = 1) -> World: ...
def secretive(width: int = 1): ...
def generous(**options) -> Base: ...

class Still(Model):
    def __init__(self, chunk: int = 1) -> None:
        if chunk < 1:
            raise ValueError(f"chunk {chunk}")
    def infer(self, batch): ...

def agent() -> RobotAgent:
    return RobotAgent(Still())

def decided() -> RobotAgent:
    return RobotAgent(Still(), chunks=OpenLoop(2))

class Between(Adapter): ...

def between() -> Adapter:
    return Between(privileged=True)

class Needy(Still):
    needs_privileged = True

def number() -> int:
    return 3

three = 3

async def alone(run) -> None: ...
async def lonely() -> None: ...

class Talker:
    def __init__(self, text: str = "hello", times: int = 1) -> None:
        if times < 1:
            raise ValueError(f"{times} times")
        self.text = text
    async def __call__(self, run) -> None: ...

talker = Talker("already")
still = Still()

def talking(text: str) -> Talker:
    return Talker(text)

def blocking(run) -> None: ...
"""


@pytest.fixture
def mine(tmp_path: Path) -> str:
    file = tmp_path / f"{tmp_path.name}.py"  # a module name of its own
    file.write_text(MINE)
    return str(file)


@pytest.mark.parametrize("entry", [*registry.worlds().values(), *registry.policies().values()], ids=lambda e: e.name)
def test_every_name_stands_for_something_that_takes_its_arguments(entry: registry.Entry) -> None:
    takes = Arguments.of(entry.load())
    assert {*entry.args, *entry.defaults} <= takes.names.keys()
    assert entry.about


def test_a_name_alone_imports_no_simulator() -> None:
    code = (
        "import sys\nfrom hudsim import registry\n"
        "print(registry.world('arm-lift').args, [m for m in ('mujoco', 'gymnasium', 'cv2') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=50)
    assert done.stdout == "{'task': 'lift'} []\n"


@pytest.mark.parametrize(
    ("name", "settings", "args", "task_args"),
    [
        ("arm-lift", {"width": 64, "difficulty": "hard"}, {"task": "lift", "width": 64}, {"difficulty": "hard"}),
        ("pendulum", {"spread": 0.1, "width": 64}, {"spread": 0.1, "width": 64}, {}),
        ("test-card", {"max_ticks": 9, "prompt": "look"}, {"max_ticks": 9}, {"prompt": "look"}),
        ("gym:FrozenLake-v1", {"is_slippery": False, "max_ticks": 9, "options": {}},
         {"env": "FrozenLake-v1", "max_ticks": 9, "make_args": {"is_slippery": False}}, {"options": {}}),
        ("gym:mine:make", {"make_args": {"a": 1}, "b": 2}, {"env": "mine:make", "make_args": {"a": 1, "b": 2}}, {}),
    ],
)  # fmt: skip
def test_settings_go_to_the_world_first_then_to_its_task(
    name: str, settings: Mapping[str, Any], args: Mapping[str, Any], task_args: Mapping[str, Any]
) -> None:
    spec = registry.world(name, settings)
    assert (spec.args, spec.task_args) == (args, task_args)


def test_settings_of_ones_own_world_are_read_off_its_signatures(mine: str) -> None:
    settings = {"colour": "blue", "size": 2, "level": "high"}
    spec = registry.world(f"{mine}:World", settings)
    assert (spec.args, spec.task_args) == ({"colour": "blue", "size": 2}, {"level": "high"})
    spec = registry.world(f"{mine}:factory", {"width": 2, "level": "high"})
    assert (spec.args, spec.task_args) == ({"width": 2}, {"level": "high"})
    assert registry.world(f"{mine}:generous", {"any": 1, "level": "x"}).args == {"any": 1}
    with pytest.raises(UnknownName, match=r"There are: width$"):
        registry.world(f"{mine}:secretive", {"level": "high"})
    with pytest.raises(UnknownName, match=r"did you mean 'colour'.*There are: cameras, colour, level, size$"):
        registry.world(f"{mine}:World", {"color": "blue"})


def test_what_a_name_fixes_is_no_setting() -> None:
    with pytest.raises(UnknownName, match="no arm-lift setting 'task'"):
        registry.world("arm-lift", {"task": "push"})
    with pytest.raises(UnknownName):
        registry.world("gym:CartPole-v1", {"env": "Ant-v5"})


def test_wishes_become_arguments_of_worlds_that_have_them(mine: str) -> None:
    spec = registry.world("arm-push", cameras=False, privileged=True, control_rate=25.0)
    assert spec.args == {"task": "push", "cameras": False, "privileged": True, "control_rate": 25.0}
    assert registry.world("gym:Ant-v5", cameras=True).args == {"env": "Ant-v5", "camera": True}
    assert registry.world("test-card", cameras=True).args == {"max_ticks": 500}  # it counts them
    assert registry.world("test-card", cameras=False).args == {"max_ticks": 500, "cameras": False}
    with pytest.raises(UsageError, match=r"a rate of its own, got 25 Hz.*there are: cameras, colour, size$"):
        registry.world(f"{mine}:World", control_rate=25.0)
    with pytest.raises(UsageError, match="privileged"):
        registry.world("gym:Ant-v5", privileged=True)
    with pytest.raises(UsageError, match="no say about cameras"):
        registry.world(f"{mine}:factory", cameras=False)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("arm-lft", r"did you mean 'arm-lift'\?.*gym:ID.*test-card"),
        ("gym:", "expected an environment"),
        ("mjcf:nowhere.xml", "there is no file nowhere.xml"),
        ("ws://127.0.0.1:1/robot/robot", "runs already"),
        ("http://127.0.0.1:1/?bearer=x", r"world http://127.0.0.1:1/: got the scheme http://, expected ws://"),
        ("envs/ball.py", r"as in envs/ball\.py:Class$"),
        ("gym:envs/ball.py", r"as in gym:envs/ball\.py:factory$"),
    ],
)
def test_a_world_that_is_not_there_is_refused(name: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        registry.world(name)
    with pytest.raises(UsageError, match=r"as in mine\.py:Class$"):
        registry.policy("mine.py")


def test_a_module_that_cannot_be_imported_is_said_not_shown(tmp_path: Path) -> None:
    (tmp_path / "broken_world.py").write_text("def (:\n")
    with pytest.raises(UsageError, match="SyntaxError"):
        registry.world(f"{tmp_path}/broken_world.py:World", {"a": 1})
    (tmp_path / "leaving_world.py").write_text("import sys\nsys.exit(3)\n")
    with pytest.raises(UsageError, match="SystemExit: 3"):
        registry.world(f"{tmp_path}/leaving_world.py:World", {"a": 1})
    with pytest.raises(UnknownName, match="did you mean 'ArmBridge'"):
        registry.world("hudsim.bridges.arm.bridge:ArmBrige", {"a": 1})


def test_installed_packages_add_names_but_take_none_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    info = tmp_path / "extra_worlds-1.2.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: extra-worlds\nVersion: 1.2\n")
    (info / "entry_points.txt").write_text(
        "[hudsim.worlds]\nmine = hudsim.bridges.testcard:TestCardVectorBridge\npendulum = nowhere:World\n"
        "[hudsim.policies]\nmine = hudsim.policies.hold:Hold\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    assert registry.worlds()["mine"].about == "from extra-worlds 1.2"
    assert registry.world("mine", {"width": 32}).args == {"width": 32}
    assert registry.worlds()["pendulum"].target.startswith("hudsim.")
    assert isinstance(registry.policy("mine").agent(), RobotAgent)


def test_a_policy_brings_its_chunk_strategy_and_one_asked_for_wins() -> None:
    mpc, hold = registry.policy("mpc"), registry.policy("hold")
    assert mpc.needs_privileged
    assert not hold.needs_privileged
    assert isinstance(mpc.agent().chunks, RealTimeChunking)
    assert isinstance(mpc.agent(chunks="ensemble").chunks, TemporalEnsemble)
    assert isinstance(hold.agent(length=4).chunks, RecedingHorizon)


def test_policies_of_ones_own_are_models_or_make_agents(mine: str) -> None:
    assert isinstance(registry.policy(f"{mine}:Still", {"chunk": 3}).agent(), RobotAgent)
    assert isinstance(registry.policy(f"{mine}:agent").agent(), RobotAgent)
    assert isinstance(registry.policy(f"{mine}:agent").agent(length=4), RobotAgent)
    with pytest.raises(UsageError, match="has chosen its chunk strategy, OpenLoop, itself"):
        registry.policy(f"{mine}:decided").agent(length=4)
    with pytest.raises(UsageError, match="is a int; expected a hudsim Model or RobotAgent"):
        registry.policy(f"{mine}:number").agent()
    with pytest.raises(UsageError, match="but of type int"):
        registry.policy(f"{mine}:three")
    with pytest.raises(UsageError, match="cannot be made: chunk 0"):
        registry.policy(f"{mine}:Still", {"chunk": 0}).agent()
    with pytest.raises(UnknownName, match="did you mean 'chunk'"):
        registry.policy(f"{mine}:Still", {"chunks": 0})
    with pytest.raises(UnknownName, match="no policy 'holt'; did you mean 'hold'"):
        registry.policy("holt")


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("openpi:", r"got '', expected ws://host:port/path"),
        ("openpi:localhost:8000", r"got 'localhost:8000', expected ws://host:port/path"),
        ("openpi:ws://h:1?bearer=secret", r"^policy openpi:ws://h:1: got a URL with \?…, which would be kept"),
        ("ws://h:1", r"policy ws://h:1: got the scheme ws://.*an openpi policy server is openpi:ws://HOST:PORT$"),
    ],
)
def test_a_policy_server_is_named_by_its_prefix_and_its_url(name: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        registry.policy(name).agent()
    if name.startswith("openpi:"):
        with pytest.raises(UsageError, match=said):
            registry.agent(name)


def test_a_policy_server_that_a_reference_names_is_not_dialled() -> None:
    with pytest.raises(UsageError, match="no module 'openpi:ws://127"):
        oracle()._player("openpi:ws://127.0.0.1:1", {})


def test_an_adapter_of_ones_own_stands_before_a_model_but_not_before_an_agent(mine: str) -> None:
    still, needy = registry.policy(f"{mine}:Still"), registry.policy(f"{mine}:Needy")
    adapter = still.agent(adapter=f"{mine}:Between").adapter
    assert (type(adapter).__name__, adapter.privileged) == ("Between", False)
    assert needy.agent(adapter=f"{mine}:Between").adapter.privileged
    assert still.agent(adapter=f"{mine}:between").adapter.privileged
    with pytest.raises(UsageError, match="is a whole agent, its adapter its own"):
        registry.policy(f"{mine}:agent").agent(adapter=f"{mine}:Between")
    with pytest.raises(UsageError, match="is a int; expected a hudsim Adapter"):
        still.agent(adapter=f"{mine}:number")
    with pytest.raises(UsageError, match=r"adapter mine\.py is a file.*mine\.py:Class$"):
        still.agent(adapter="mine.py")
    with pytest.raises(UnknownName, match="no adapter 'openpi'"):
        still.agent(adapter="openpi")


def test_every_policy_is_an_agent_and_so_are_those_without_a_model() -> None:
    assert set(registry.agents()) == {"noop", "oracle", *registry.policies()}
    assert registry.agent("noop") == Noop()
    assert isinstance(registry.agent("oracle"), Oracle)
    mpc, hold = registry.agent("mpc"), registry.agent("hold", {"chunk": 3})
    assert isinstance(mpc, RobotAgent)
    assert isinstance(mpc.chunks, RealTimeChunking)
    assert isinstance(hold, RobotAgent)


@pytest.mark.parametrize("text", ["3", "", "a:b", "http://x/?y"])
def test_an_answer_is_an_agent(text: str) -> None:
    assert registry.agent(f"answer:{text}") == Answer(text)


def test_an_agent_of_ones_own_is_one_or_makes_one(mine: str) -> None:
    def made(attribute: str, **settings: Any) -> Any:
        return registry.agent(f"{mine}:{attribute}", settings)

    assert made("alone").__name__ == "alone"
    assert made("talker").text == "already"
    assert made("Talker").text == "hello"
    assert made("Talker", text="bye", times=2).text == "bye"
    assert made("talking", text="bye").text == "bye"
    for attribute in ("Still", "still", "agent"):
        assert isinstance(made(attribute), RobotAgent)


@pytest.mark.parametrize(
    ("name", "settings", "said"),
    [
        ("mine:Talker", {"txet": "x"}, r"no mine:Talker setting 'txet'; did you mean 'text'\? There are: text, times"),
        ("mine:alone", {"text": "x"}, r"no mine:alone setting 'text'\. There are none"),
        ("mine:talker", {"text": "x"}, "There are none"),
        ("noop", {"text": "x"}, r"no noop setting 'text'"),
        ("answer:3", {"text": "x"}, r"no answer:3 setting 'text'"),
        ("hold", {"chunks": 2}, "did you mean 'chunk'"),
        ("mine:Talker", {"times": 0}, "agent mine:Talker cannot be made: 0 times"),
        ("mine:talking", {}, "agent mine:talking is a plain function: .*'text'"),
        ("mine:blocking", {}, "agent mine:blocking is a plain function: .*async def.*'run'"),
        ("mine:lonely", {}, "agent mine:lonely cannot be called with a run alone: too many positional"),
        ("mine:number", {}, "agent mine:number is a int; expected a coroutine function of a run"),
        ("mine:three", {}, "agent mine:three is a int; expected"),
        ("mine:World", {}, "agent mine:World is a World; expected"),
        ("mine:Tolker", {}, "did you mean 'Talker'"),
        ("orcale", {}, r"no agent 'orcale'; did you mean 'oracle'\?.*answer:TEXT.*scripted"),
        ("mine.py", {}, r"agent mine\.py is a file"),
        ("ws://somewhere", {}, "agent ws://somewhere: got the scheme ws://"),
    ],
)
def test_what_is_no_agent_is_refused_with_what_was_expected(
    mine: str, name: str, settings: Mapping[str, Any], said: str
) -> None:
    with pytest.raises(UsageError) as refused:
        registry.agent(name.replace("mine:", f"{mine}:"), settings)
    assert re.search(said, str(refused.value).replace(mine, "mine"))


@pytest.mark.parametrize(
    ("reference", "said"),
    [
        ({"policy": "hold"}, "this run has no robot"),
        ({"policy": "hudsim.policies.hold:Hold", "settings": {"chunk": 2}}, "this run has no robot"),
        ({"policy": "hold", "settings": {"chunks": 2}}, "no hold setting 'chunks'; did you mean 'chunk'"),
        ({"policy": "holt"}, "no policy 'holt'; did you mean 'hold'"),
        ({"policy": "oracle"}, "no policy 'oracle'"),
        ({"policy": "builtins:exit"}, "no policy 'builtins:exit'"),
        ({"policy": "hudsim.agents:Noop"}, "no policy 'hudsim.agents:Noop'"),
    ],
)
@on_loop
async def test_an_oracle_calls_nothing_that_is_no_policy(reference: Mapping[str, Any], said: str) -> None:
    run = await run_alone(asking(reference), registry.agent("oracle"))
    assert run.end == "error"
    assert said in str(run.error)


def test_a_class_without_a_constructor_of_its_own_takes_nothing() -> None:
    class Bare(RobotBridge):
        def step(self, action: Any) -> None: ...

    assert Arguments.of(Bare) == Arguments({}, open=False)
    assert Arguments.of_reset(Bare).open
