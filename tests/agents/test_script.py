from __future__ import annotations

from pathlib import Path

import pytest

from hudsim import registry
from hudsim.agents import Script
from hudsim.errors import UnknownName, UsageError
from tests.agents.environments import run_alone, shelled
from tests.asyncrun import on_loop


@pytest.fixture
def file(tmp_path: Path) -> Path:
    script = tmp_path / "try.sh"
    script.write_text(
        "# look first\ncat notes.txt\n\nno-such-program\nsed -i \\\n  's/two/zwei/' notes.txt\ncat notes.txt\n"
    )
    return script


@on_loop
async def _run(file: Path) -> None:
    run = await run_alone(shelled(None, "one\nzwei\nthree\n"), Script(file))
    assert (run.end, run.reward, run.trace.content) == ("done", 1.0, "one\nzwei\nthree")
    codes = [step.data["code"] for step in run.trace.steps if step.source == "tool"]
    assert codes == [0, 127, 0, 0]


def test_its_lines_are_run_in_turn_and_the_last_ones_output_is_the_answer(file: Path) -> None:
    _run(file)


def test_it_is_an_agent_by_the_name_of_its_file(file: Path) -> None:
    agent = registry.agent(f"script:{file}")
    assert isinstance(agent, Script)
    assert agent.name == f"script:{file}"
    assert agent.commands == ["cat notes.txt", "no-such-program", "sed -i   's/two/zwei/' notes.txt", "cat notes.txt"]
    with pytest.raises(UnknownName, match=r"no script:.* setting 'text'"):
        registry.agent(f"script:{file}", {"text": 1})


def test_what_is_no_script_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"nowhere\.sh cannot be read: .*No such file"):
        registry.agent(f"script:{tmp_path}/nowhere.sh")
    (tmp_path / "empty.sh").write_text("# nothing\n\n")
    with pytest.raises(UsageError, match=r"empty\.sh: got no commands, expected at least one"):
        Script(tmp_path / "empty.sh")
