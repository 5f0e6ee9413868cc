"""The environment ``repo``: one template, and a task for each issue of the repository's history."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping
from pathlib import Path
from typing import Any

from hudsim.coding_envs.repo.history import Commit, history
from hudsim.coding_envs.repo.scratch import scratch
from hudsim.environment import Environment
from hudsim.errors import SandboxError
from hudsim.eval import Taskset
from hudsim.graders import PytestGrader, SubScore, combine

__all__ = ["env", "issue", "tasks"]

env = Environment("repo")
ws = env.workspace("repo", network=False)

_CLONE = """\
set -e
cat > /tmp/history
git clone --quiet --branch main /tmp/history .
git remote remove origin
git config user.name agent
git config user.email agent@example.org
printf '__pycache__/\\n.pytest_cache/\\n' >> .git/info/exclude
rm /tmp/history
"""
_PROMPT = """\
This is the git repository of tally, a small Python package. Somebody has opened an issue:

{issue}
Please change the package accordingly. What worked must go on to work: `python -m pytest` runs the tests there are.
"""


@env.template(id="issue")
async def issue(name: str) -> AsyncGenerator[Any, Any]:
    """Change a repository as an issue asks: worth the share of the issue's hidden tests, or of those before it."""
    commit = Commit.of(name)
    cloned = await ws.run(_CLONE, stdin=await asyncio.to_thread(commit.bundle))
    if cloned.code != 0:
        raise SandboxError(f"repo: cannot clone into the workspace: {cloned.stderr.decode(errors='replace').strip()}")
    assert commit.issue is not None
    yield _PROMPT.format(issue=commit.issue)
    yield await combine(await _grade(commit))


@issue.reference
def as_it_was_done(name: str) -> dict[str, Any]:
    """What the repository's authors did."""
    return {"patch": Commit.of(name).patch}


async def _grade(commit: Commit) -> SubScore:
    """The lesser of two shares: of the tests that came with the change, and of those that were there before.

    All of the former fail before the change, so that nothing is worth 0; none of the latter does, so that a change
    which breaks what worked is worth less.
    """
    with scratch() as folder:
        _write(folder / "asked", commit.tests)
        _write(folder / "kept", {path: text for path, text in commit.before.items() if path.startswith("tests/")})
        graded = await PytestGrader.grade(
            name=commit.name,
            workspace=ws,
            tests=folder,
            modules=("tally",),
            files=("tally/**/*.py",),
            process={"*_command*.py": "same", "*": "separate"},  # they hand files over, which do not cross
            score="share",
        )
    parts = [_part(graded, "asked"), _part(graded, "kept")]
    is_void = "verdict" in (graded.info or {})
    value = 0.0 if is_void else min(part.value for part in parts)
    return graded.model_copy(update={"value": value, "children": parts})


def _part(graded: SubScore, name: str) -> SubScore:
    leaves = [leaf for leaf in graded.children or [] if leaf.name.startswith(f"{name}/")]
    return SubScore(name=name, value=sum(leaf.value for leaf in leaves) / len(leaves), children=leaves)


def _write(folder: Path, files: Mapping[str, str]) -> None:
    folder.mkdir()
    for path, text in files.items():
        (folder / Path(path).name).write_text(text, encoding="utf-8")


def _tasks() -> Taskset:
    rows = []
    for commit in history():
        if commit.issue is not None:
            row = issue(commit.name)
            row.slug = commit.name.partition("_")[2].replace("_", "-")
            row.columns = {
                "lines": sum(line[0] in "+-" and line[:3] not in ("+++", "---") for line in commit.patch.splitlines())
            }
            rows.append(row)
    return Taskset("repo", rows)


tasks = _tasks()
