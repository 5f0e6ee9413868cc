"""``hudsim eval --batch``: runs that share calls of one model."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.command import document, hudsim

_AGENT = '''
import time
from pathlib import Path

from hudsim import Adapter, RobotAgent
from hudsim.policies.scripted import Scripted


class Tallies(Adapter):
    tally = []

    def adapt_observation(self, data, prompt):
        self.tally.append(1)
        return super().adapt_observation(data, prompt)


class Notes(Scripted):
    """Its first call waits until all four ask."""

    def infer(self, batch):
        until = time.monotonic() + 20
        while len(Tallies.tally) < 4 and time.monotonic() < until:
            time.sleep(0.001)
        with Path("sizes.txt").open("a") as file:
            file.write(f"{len(batch['prompt'])}\\n")
        return super().infer(batch)


def agent():
    return RobotAgent(Notes(), Tallies(privileged=True))
'''


def test_runs_at_once_share_calls_of_the_model(tmp_path: Path) -> None:
    (tmp_path / "notes.py").write_text(_AGENT)
    words = ["--task", "reach-easy-0", "--group", "4", "--set", "cameras=false", "--set", "num_envs=4", "--batch", "4"]
    said = document("eval", "arm-reach", "notes.py:agent", *words, cwd=tmp_path)
    assert said["verdicts"] == {"passed": 4}
    sizes = [int(line) for line in (tmp_path / "sizes.txt").read_text().split()]
    assert max(sizes) >= 2, "while the first call waits, those who are not in it gather"


@pytest.mark.parametrize(
    ("agent", "words"),
    [
        ("oracle", "--batch: agent oracle is of type Oracle; expected a policy or a RobotAgent"),
        ("random", "RandomActions has a fork of its own"),
    ],
)
def test_an_agent_that_cannot_share_is_refused(tmp_path: Path, agent: str, words: str) -> None:
    done = hudsim("eval", "arm-reach", agent, "--batch", "2", cwd=tmp_path)
    assert done.returncode == 2
    assert words in done.stderr
