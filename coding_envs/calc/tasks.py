"""The environment ``calc``: one template, and the first sixteen of its variants."""

from __future__ import annotations

import shutil
from collections.abc import AsyncGenerator, Iterable
from typing import Any

from hudsim.coding_envs.calc.variant import HIDDEN, PROJECT, TRAINING, source, variant_of
from hudsim.environment import Environment
from hudsim.environment.task import Task
from hudsim.eval import Taskset
from hudsim.graders import PytestGrader

__all__ = ["env", "fix_calc", "fixes", "tasks"]

env = Environment("calc")
ws = env.workspace("calc", network=False)

_PROMPT = """\
{failing}

{report}

Please mend calc.py. It is one mistake in one of its functions; the tests are right, and there are others which it
must go on to pass.
"""


@env.template(id="fix_calc")
async def fix_calc(variant: int = 0) -> AsyncGenerator[Any, Any]:
    """Find the wrong expression in a module of forty functions; 1.0 only if every hidden test passes then."""
    broken = variant_of(variant)
    shutil.copytree(PROJECT, ws.root, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
    (ws.root / "calc.py").write_text(broken.text, encoding="utf-8")
    failing = f"{broken.failing} tests of calc.py fail. This is the first:"
    if broken.failing == 1:
        failing = "A test of calc.py fails:"
    yield _PROMPT.format(failing=failing, report=broken.report)
    yield await PytestGrader.evaluate(workspace=ws, tests=HIDDEN, modules=("calc",))


@fix_calc.reference
def mended(variant: int = 0) -> dict[str, Any]:
    """The module as it should be, whichever variant it was."""
    return {"files": {"calc.py": source()}}


def fixes(numbers: Iterable[int]) -> list[Task]:
    """A task for each number, with what is broken as its columns."""
    rows = []
    for number in numbers:
        row, broken = fix_calc(number), variant_of(number)
        row.slug = f"calc-{number:03}"
        row.columns = {"function": broken.mutant.function, "kind": broken.mutant.kind, "failing": broken.failing}
        rows.append(row)
    return rows


tasks = Taskset("calc", fixes(TRAINING[:16]))
