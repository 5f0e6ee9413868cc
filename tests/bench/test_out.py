"""``--out``: a folder that cannot be had is told before anything is measured, a full disk once all is printed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hudsim.bench.shared.options import options
from hudsim.errors import UsageError
from tests.cli.command import hudsim, inside

MEASURE = ("batching", "harness", "inference", "jitter", "latency", "sandbox", "scale")

needs_full = pytest.mark.skipif(not Path("/dev/full").exists(), reason="has no /dev/full")


@pytest.mark.parametrize("bench", MEASURE)
def test_a_folder_that_cannot_be_made_is_one_line_before_anything_is_measured(tmp_path: Path, bench: str) -> None:
    (tmp_path / "file").write_text("")
    done = inside("bench", bench, "--quick", "--out", "file/x", cwd=tmp_path)
    expected = f"got file/x, expected a folder where {bench}.json can be written (Not a directory)"
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"hudsim: --out: {expected}\n")


def test_a_document_that_cannot_be_written_is_told_though_its_folder_can(tmp_path: Path) -> None:
    (tmp_path / "jitter.json").mkdir()
    with pytest.raises(UsageError, match=r"jitter\.json can be written \(Is a directory\)"):
        options("jitter", "").parse_args(["--out", str(tmp_path)])


def test_trying_makes_the_folder_and_nothing_in_it_and_leaves_what_is_there(tmp_path: Path) -> None:
    folder = tmp_path / "a" / "b"
    for there in ([], ["jitter.json"]):
        assert options("jitter", "").parse_args(["--out", str(folder)]).out == folder
        assert [file.name for file in folder.iterdir()] == there
        (folder / "jitter.json").write_text("kept")
    assert (folder / "jitter.json").read_text() == "kept"


def test_words_that_are_wrong_make_no_folder(tmp_path: Path) -> None:
    done = inside("bench", "jitter", "--out", "new", "--rates", "0", cwd=tmp_path)
    assert done.returncode == 2
    assert not list(tmp_path.iterdir())


@needs_full
@pytest.mark.parametrize("more", [(), ("--json",)])
def test_a_disk_that_is_full_in_the_end_is_told_and_what_was_measured_is_printed(
    tmp_path: Path, more: tuple[str, ...]
) -> None:
    (tmp_path / "jitter.json").symlink_to("/dev/full")
    done = hudsim("bench", "jitter", "--quick", "--load", "idle", "--out", ".", *more, cwd=tmp_path)
    assert done.returncode == 1
    last = "hudsim: jitter.json could not be written whole (No space left on device); what was measured is printed"
    assert done.stderr.splitlines()[-1] == last
    assert "Traceback" not in done.stderr
    if more:
        assert json.loads(done.stdout)["bench"] == "jitter"
    else:
        assert "lateness of ticks" in done.stdout
