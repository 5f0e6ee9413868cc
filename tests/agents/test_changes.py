from __future__ import annotations

from typing import Any

import pytest

from hudsim.agents import Oracle
from tests.agents.environments import asking, run_alone, shelled
from tests.asyncrun import on_loop

PATCH = """\
--- a/notes.txt
+++ b/notes.txt
@@ -1,3 +1,3 @@
 one
-two
+zwei
 three
"""


@pytest.mark.parametrize(
    ("reference", "right"),
    [
        ({"files": {"notes.txt": "vier é\n"}}, "vier é\n"),
        ({"patch": PATCH}, "one\nzwei\nthree\n"),
        ({"commands": ["sed -i 2d notes.txt", "echo more >> notes.txt"]}, "one\nthree\nmore\n"),
        ({"patch": PATCH, "files": {"b/c.txt": "new\n"}, "commands": ["cat b/c.txt >> notes.txt"]},
         "one\nzwei\nthree\nnew\n"),
    ],
)  # fmt: skip
@on_loop
async def test_an_oracle_makes_a_references_changes_in_the_workspace(reference: Any, right: str) -> None:
    run = await run_alone(shelled(reference, right), Oracle())
    assert (run.end, run.verdict, run.error) == ("done", "passed", None)


@on_loop
async def test_what_it_does_is_in_the_trace_and_the_answer_may_be_given_too() -> None:
    run = await run_alone(shelled({"files": {"notes.txt": "x"}, "commands": ["true"], "answer": "done"}, "x"), Oracle())
    assert (run.reward, run.trace.content) == (1.0, "done")
    tools = [step.content for step in run.trace.steps if step.source == "tool"]
    assert tools == ["write notes.txt", "true"]


@pytest.mark.parametrize(
    ("reference", "said"),
    [
        ({"commands": ["echo broken >&2; exit 3", "touch never"]}, "ended with 3: broken"),
        ({"patch": PATCH.replace("two", "deux")}, "notes.txt: patch does not apply"),
        ({"files": {"notes.txt/below": "x"}}, "notes.txt/below"),
    ],
)
@on_loop
async def test_what_cannot_be_done_ends_the_agent_with_words(reference: Any, said: str) -> None:
    run = await run_alone(shelled(reference, "one\ntwo\nthree\n"), Oracle())
    assert (run.end, run.reward) == ("error", 1.0)
    assert said in str(run.error)


@pytest.mark.parametrize(
    ("reference", "said"),
    [
        ({"patch": 3}, "the reference of ask: patch: got 3, expected a unified diff"),
        ({"files": ["a"]}, 'files: got ["a"], expected an object of paths and texts'),
        ({"files": {"a": 1}}, 'files: got {"a": 1}, expected an object of paths and texts'),
        ({"commands": "ls"}, 'commands: got "ls", expected a list of lines for the shell'),
        ({"commands": ["ls"]}, "no capability 'ssh'"),
    ],
)
@on_loop
async def test_what_is_no_change_or_has_no_workspace_is_said(reference: Any, said: str) -> None:
    run = await run_alone(asking(reference), Oracle())
    assert run.end == "error"
    assert said in str(run.error)
