"""my-project: changes to a repository, graded by hidden tests."""

import shutil
from pathlib import Path

from hudsim import Environment, Taskset
from hudsim.graders import PytestGrader

HERE = Path(__file__).parent
REPOSITORY = HERE / "repository"
TASKS = HERE / "tasks"

env = Environment("my-project")
ws = env.workspace(network=False)  # every run has its own


@env.template(id="change")
async def change(name: str):
    """The first yield is the prompt, and the agent works then; the second is the grade."""
    shutil.copytree(REPOSITORY, ws.root, dirs_exist_ok=True)
    yield (TASKS / name / "prompt.md").read_text()
    yield await PytestGrader.evaluate(workspace=ws, tests=TASKS / name / "hidden", modules=("words",))


@change.reference
def solution(name: str):
    """What the agent `oracle` writes into the workspace."""
    folder = TASKS / name / "solution"
    return {"files": {str(file.relative_to(folder)): file.read_text() for file in folder.rglob("*.py")}}


def named(name: str):
    """A task, called as its folder."""
    task = change(name=name)
    task.slug = name
    return task


tasks = Taskset("my-project", [named(folder.name) for folder in sorted(TASKS.iterdir()) if folder.is_dir()])
