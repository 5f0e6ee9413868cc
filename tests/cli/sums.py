"""An environment and agents as a user has them: files in a folder."""

from __future__ import annotations

from pathlib import Path

ENV = '''
from pathlib import Path
from hudsim import Environment, Taskset
from hudsim.graders import EvaluationResult, SubScore, numeric_match

env = Environment("sums", settings={"offset": 0})

@env.template(id="add")
async def add(a: int, b: int = 1):
    """Add two numbers."""
    if Path("broken").exists() and a == 2:
        raise RuntimeError("the [well] is dry")
    answer = yield f"What is {a} + {b}?"
    parts = [SubScore(name="right", value=numeric_match(answer, a + b + env.settings["offset"]), weight=0.5),
             SubScore(name="short", value=float(answer is not None and len(str(answer)) < 3), weight=0.5)]
    yield EvaluationResult(reward=sum(p.value * p.weight for p in parts), subscores=parts)

@add.reference
def right(a, b=1):
    return str(a + b + env.settings["offset"])

def named(a, b):
    task = add(a=a, b=b)
    task.slug = f"{a}+{b}"
    return task

tasks = Taskset("sums", [named(1, 2), named(2, 3), named(3, 4)])
'''

AGENTS = '''
import asyncio
import logging
from pathlib import Path

class Counting:
    """Answers the same to everything, after a while, and says in a file which runs it had."""
    def __init__(self, answer: str = "3", seconds: float = 0.0):
        self.answer, self.seconds = answer, seconds

    async def __call__(self, run):
        await asyncio.sleep(self.seconds)
        if self.seconds == 0.7:
            logging.warning("%s is [slow]", run.slug)
        with Path("had.txt").open("a") as file:
            file.write(f"{run.id}\\n")
        run.trace.content = self.answer

async def raises(run):
    raise RuntimeError("no [idea] at all")

async def complains(run):
    raise RuntimeError(f"no idea about {run.id}")

async def by_index(run):
    run.trace.content = "3" if run.index % 2 else "nothing"

async def stubborn(run):
    Path("had.txt").touch()
    while True:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            pass
'''


def write_sums(folder: Path) -> Path:
    """Put them there as env.py and agents.py."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "env.py").write_text(ENV)
    (folder / "agents.py").write_text(AGENTS)
    return folder
