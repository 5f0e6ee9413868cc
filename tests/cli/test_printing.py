"""Whatever an agent, a task or a peer says can be printed, and commands no terminal."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hudsim.cli.output import printable
from hudsim.cli.words import plain
from tests.cli.command import hudsim
from tests.cli.sums import write_sums

AGENTS = r"""
async def rude(run):
    run.trace.content = "\x1b]0;title\x07\x1b[31mred\x1b[0m \x9b2J\x08 \u202egnp.exe \ud800"
    run.note("agent", content="\x1b]52;c;aGk=\x1b\\clip\ud800")
    raise ValueError("half \ud800 and \x1b[2J\x1b]8;;http://evil\x07link\x1b]8;;\x07\r\x00")
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_sums(tmp_path)
    (tmp_path / "rude.py").write_text(AGENTS)
    return tmp_path


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        ("\x1b[1;31mred\x1b[0m", "red"),
        ("\x1b]0;title\x07a\x1b]8;;http://b\x1b\\c", "ac"),
        ("\x1b]never ended", "]never ended"),
        ("a\x9b31mb\x85\x7f\x08\r\x00", "a31mb"),
        ("line\n\tindented", "line\n\tindented"),
        ("\u202eabc\u2066", "abc"),
        ("half \ud800 letter é 漢 ▁", "half ? letter é 漢 ▁"),
    ],
)
def test_what_a_terminal_would_obey_is_left_out(words: str, shown: str) -> None:
    assert printable(words) == shown
    assert plain(words) == shown


@pytest.mark.parametrize("encoding", ["utf-8", "ascii"])
def test_a_rude_agent_s_job_can_be_shown_for_ever(encoding: str, folder: Path) -> None:
    environment = {"PYTHONIOENCODING": encoding}
    told = []
    for words in (
        ("eval", "env.py", "rude.py:rude", "--task", "1+2"),
        ("eval", "env.py", "rude.py:rude", "--task", "1+2", "--json"),
        ("show", "last"),
        ("show", "last", "--json"),
        ("show", "last-0"),
        ("show", "last-0", "--json"),
        ("jobs",),
    ):
        done = hudsim(*words, cwd=folder, environment=environment)
        assert (done.returncode, "Traceback" in done.stderr) == (0, False), done.stderr
        if "--json" in words:
            json.loads(done.stdout)
        told.append(done.stdout + done.stderr)
    bad = {char for words in told for char in words if char < " " and char not in "\n\t"}
    bad |= {char for words in told for char in words if "\x7f" <= char <= "\x9f" or char == "\u202e"}
    assert bad == set()
    assert "red" in told[4]


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("deep.json", "[" * 100_000, "got no JSON"),
        ("deep.jsonl", "[" * 100_000, "deep.jsonl:1: got no JSON"),
        ("digits.json", "9" * 5000, "got no JSON"),
        ("base.py", "class B(BaseException):\n    pass\nraise B('boo')\n", "cannot be imported: B: boo"),
        (
            "mute.py",
            "class M(Exception):\n    def __str__(self):\n        raise OSError\nraise M\n",
            "cannot be imported",
        ),
        ("rc.jsonl", '{"env": "sums", "id": "add", "args": {"a": 1}, "runtime_config": {"gpu": 1}}', "takes none"),
        ("x" * 300, "", "x"),
    ],
)
def test_a_source_that_cannot_be_used_is_said_without_a_traceback(
    name: str, content: str, says: str, folder: Path
) -> None:
    if content:
        (folder / name).write_text(content)
    done = hudsim("eval", name, "noop", "--runs", "kept", cwd=folder)
    assert (done.returncode, done.stdout, "Traceback" in done.stderr) == (2, "", False), done.stderr
    assert says in done.stderr
    assert not (folder / "kept").exists()


@pytest.mark.parametrize("words", [",", "", " , ,"])
def test_no_task_at_all_is_no_choice(words: str, folder: Path) -> None:
    done = hudsim("eval", "env.py", "noop", "--task", words, cwd=folder)
    assert done.returncode == 2, done.stdout
    assert "--task: got" in done.stderr
