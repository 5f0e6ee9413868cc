"""Trees that somebody hostile has made."""

from __future__ import annotations

import errno
import os
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hudsim.coding import snapshot as snapshots
from hudsim.coding import tree
from hudsim.coding.changes import Changes
from hudsim.coding.freeze import freeze_tree
from hudsim.coding.snapshot import Snapshot
from hudsim.coding.tree import measure, own_tree, remove_tree, walk_tree
from tests.coding.descriptors import few_descriptors


def deep(folder: Path, depth: int) -> None:
    fd = os.open(folder, os.O_RDONLY)
    for _ in range(depth):
        os.mkdir("d" * 200, dir_fd=fd)
        below = os.open("d" * 200, os.O_RDONLY, dir_fd=fd)
        os.close(fd)
        fd = below
    os.close(os.open("bottom", os.O_CREAT | os.O_WRONLY, dir_fd=fd))
    os.close(fd)


def test_a_file_that_has_become_a_socket_meanwhile_is_no_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    changes = Changes(tmp_path)
    at = os.open(tmp_path, os.O_RDONLY | os.O_DIRECTORY)
    with socket.socket(socket.AF_UNIX) as sock:
        sock.bind("was-a-file")
        assert changes._text(at, "was-a-file", 10) is None
    os.close(at)


def test_a_folder_that_can_be_looked_into_keeps_its_mode_meanwhile(tmp_path: Path) -> None:
    shut, open_ = tmp_path / "shut", tmp_path / "open"
    for folder in (shut, open_):
        folder.mkdir()
        (folder / "file").touch()
    shut.chmod(0o300)
    open_.chmod(0o555)
    seen = {path: open_.stat().st_mode & 0o777 for *_, path, _ in walk_tree(tmp_path)}
    assert set(seen) == {"shut", "shut/file", "open", "open/file"}
    assert set(seen.values()) == {0o555}
    assert shut.stat().st_mode & 0o777 == 0o300


def test_a_mode_that_was_changed_during_a_walk_stays(tmp_path: Path) -> None:
    folder = tmp_path / "shut"
    folder.mkdir()
    (folder / "file").touch()
    folder.chmod(0o300)
    for *_, path, _ in walk_tree(tmp_path):
        if path == "shut/file":
            folder.chmod(0o750)
    assert folder.stat().st_mode & 0o777 == 0o750


def test_a_tree_is_removed_however_deep_and_whatever_its_modes(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "kept").touch()
    deep(root, 1500)
    (root / "link").symlink_to(outside)
    os.mkfifo(root / "fifo")
    (root / "locked").mkdir(mode=0o700)
    (root / "locked" / "x").touch()
    (root / "locked").chmod(0)
    remove_tree(root)
    assert not root.exists()
    assert (outside / "kept").exists()
    remove_tree(root)


def test_a_tree_is_removed_whatever_its_folders_are_called(tmp_path: Path) -> None:
    root = tmp_path / "root"
    for n in range(3):
        (root / f".hudsim-deep-{n}" / "full").mkdir(parents=True)
    (root / ".hudsim-deep-3").touch()
    deep(root, 200)
    remove_tree(root)
    assert not root.exists()


def test_measuring_follows_nothing_and_has_an_end(tmp_path: Path) -> None:
    (tmp_path / "big").write_bytes(bytes(1 << 20))
    root = tmp_path / "root"
    root.mkdir()
    (root / "link").symlink_to(tmp_path)
    for n in range(50):
        (root / f"f{n}").write_bytes(b"x")
    size, count = measure(root)
    assert count == 51
    assert size < 1 << 20
    assert measure(root, most_files=10)[1] == 11


AS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")


@AS_ROOT
def test_owning_does_not_reach_through_links(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.touch()
    root = tmp_path / "root"
    root.mkdir()
    (root / "link").symlink_to(outside)
    (root / "file").touch()
    own_tree(root, 12345)
    assert outside.stat().st_uid == 0
    assert ((root / "file").stat().st_uid, (root / "link").lstat().st_uid) == (12345, 12345)


@pytest.mark.parametrize("uid", [None, pytest.param(12345, marks=AS_ROOT)])
def test_what_is_owned_has_no_other_name_outside(tmp_path: Path, uid: int | None) -> None:
    outside = tmp_path / "outside"
    outside.write_text("the host's")
    outside.chmod(0o755)
    os.utime(outside, (1, 2))
    root = tmp_path / "root"
    (root / "d").mkdir(parents=True)
    for name in ("a", "d/b"):
        (root / name).hardlink_to(outside)
    before = outside.stat()
    own_tree(root, uid)
    for name in ("a", "d/b"):
        about = (root / name).stat()
        assert (about.st_ino != before.st_ino, about.st_mode, about.st_mtime) == (True, before.st_mode, 2)
        assert about.st_uid == (os.geteuid() if uid is None else uid)
        assert (root / name).read_text() == "the host's"
        (root / name).write_text("the agent's")
    assert (outside.read_text(), outside.stat().st_uid, outside.stat().st_nlink) == ("the host's", before.st_uid, 1)
    assert sorted(path.name for path in root.rglob("*")) == ["a", "b", "d"]


def test_a_file_with_all_its_names_within_stays_one(tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    (tmp_path / "a").write_text("x")
    (tmp_path / "d" / "b").hardlink_to(tmp_path / "a")
    own_tree(tmp_path, None)
    assert (tmp_path / "a").stat().st_ino == (tmp_path / "d" / "b").stat().st_ino


MODES = (0, 0o100, 0o200, 0o300, 0o400, 0o600)


def shut(root: Path) -> dict[Path, int]:
    """A folder of each mode that keeps its owner from something, and in each a file that may not be read."""
    for mode in MODES:
        folder = root / f"{mode:03o}"
        (folder / "in").mkdir(parents=True)
        (folder / "in" / "x.py").write_text("x" * 10_000)
        (folder / "in" / "x.py").chmod(0)
        (folder / "in").chmod(mode)
        folder.chmod(mode)
    return {root / f"{mode:03o}": mode for mode in MODES}


def test_nothing_is_hidden_by_its_mode(tmp_path: Path) -> None:
    root = tmp_path / "root"
    folders = shut(root)
    size, count = measure(root)
    assert count == 3 * len(MODES)
    assert size >= len(MODES) * 10_000
    frozen = freeze_tree(root, tmp_path / "copy", ["**/*.py"], most_files=100, most_bytes=1 << 20)
    assert len(frozen.files) == len(MODES)
    assert frozen.size == len(MODES) * 10_000
    assert {path: path.stat().st_mode & 0o777 for path in folders} == folders
    found = {path: about.st_mode & 0o777 for _, _, path, about in walk_tree(root)}
    assert found == {
        f"{mode:03o}{rest}": own for mode in MODES for rest, own in (("", mode), ("/in", mode), ("/in/x.py", 0))
    }
    remove_tree(root)


def test_a_snapshot_brings_back_what_modes_hide(tmp_path: Path) -> None:
    root = tmp_path / "root"
    folders = shut(root)
    (root / "own").mkdir()
    (root / "own" / "a").write_text("1")
    snapshot = Snapshot.take(root, tmp_path / "store")
    assert snapshot.restore() == 0
    (root / "own" / "a").write_text("2")
    (root / "own" / "planted").touch()
    (root / "own").chmod(0)
    (root / "300").chmod(0o755)
    (root / "300" / "in").chmod(0o755)
    (root / "300" / "in" / "x.py").unlink()
    assert snapshot.restore() == 2
    assert {path: path.stat().st_mode & 0o777 for path in folders} == folders
    assert [(path.name, path.read_text()) for path in (root / "own").iterdir()] == [("a", "1")]
    found = {path: (about.st_size, about.st_mode & 0o777) for _, _, path, about in walk_tree(root)}
    assert found["300/in/x.py"] == (10_000, 0)
    remove_tree(root)


def test_what_cannot_be_looked_into_counts_as_endless_and_is_told_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "root"
    (root / "shut").mkdir(parents=True)
    (root / "a.py").touch()
    enter = tree._enter

    def refused(name: Path | str, at: int | None) -> Any:
        if name == "shut":
            raise PermissionError(errno.EACCES, "no")
        return enter(name, at)

    monkeypatch.setattr(tree, "_enter", refused)
    assert measure(root)[0] > 1 << 50
    frozen = freeze_tree(root, tmp_path / "copy", ["**/*.py"], most_files=100, most_bytes=1 << 20)
    assert (frozen.files, frozen.skipped) == (["a.py"], [("shut", "a folder that cannot be opened")])


def test_no_file_is_left_out_for_want_of_descriptors(tmp_path: Path) -> None:
    root = tmp_path / "root"
    (root / "src" / "pkg" / "deep").mkdir(parents=True)
    for name in ("a.py", "src/pkg/deep/m.py"):
        (root / name).write_text("x")
    all_of_it = measure(root)
    raised = 0
    for left in range(10):
        with few_descriptors(left):
            try:
                assert measure(root) == all_of_it
            except OSError as error:
                assert error.errno == errno.EMFILE  # noqa: PT017 - it may as well have enough
                raised += 1
            try:
                frozen = freeze_tree(root, tmp_path / f"{left}", ["**/*.py"], most_files=100, most_bytes=1 << 20)
            except OSError as error:
                assert error.errno == errno.EMFILE  # noqa: PT017
                raised += 1
            else:
                assert sorted(frozen.files) == ["a.py", "src/pkg/deep/m.py"]
    assert 0 < raised < 20


@pytest.fixture
def swapped(tmp_path: Path) -> tuple[Path, Path]:
    """A tree with the folder ``d``, and a folder outside of it, to which ``d`` comes to lead."""
    root, outside = tmp_path / "root", tmp_path / "outside"
    for folder, text in ((root / "d", "own"), (outside, "the host's")):
        folder.mkdir(parents=True)
        for n in range(3):
            (folder / f"f{n}").write_text(text)
    (root / "link").symlink_to(outside)
    return root, outside


def swap(root: Path) -> None:
    (root / "d").rename(root / "was d")
    (root / "link").rename(root / "d")


def test_a_folder_that_becomes_a_link_while_it_is_copied_leads_nowhere(
    tmp_path: Path, swapped: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    root, _ = swapped

    def walked(folder: Path, **options: Any) -> Iterator[Any]:
        for found in walk_tree(folder, **options):
            if found[2].startswith("d/") and (root / "link").is_symlink():
                swap(root)
            yield found

    monkeypatch.setattr(snapshots, "walk_tree", walked)
    Snapshot.take(root, tmp_path / "store")
    assert "the host's" not in {path.read_text() for path in (tmp_path / "store").rglob("*") if path.is_file()}


def test_a_folder_that_becomes_a_link_while_it_is_brought_back_leads_nowhere(
    tmp_path: Path, swapped: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    root, outside = swapped
    snapshot = Snapshot.take(root, tmp_path / "store")
    for n in range(3):
        (root / "d" / f"f{n}").write_text("changed")
    (root / "d" / "new").mkdir()
    before = {path: path.stat() for path in (outside, *outside.iterdir())}
    stat_of = os.stat

    def seen(path: Any, **options: Any) -> os.stat_result:
        found = stat_of(path, **options)
        if path in ("f0", "new") and (root / "link").is_symlink():
            swap(root)
        return found

    monkeypatch.setattr(os, "stat", seen)
    assert snapshot.restore() == 3
    monkeypatch.undo()
    assert {path: path.stat() for path in (outside, *outside.iterdir())} == before
    assert {path.read_text() for path in (root / "was d").iterdir()} == {"own"}


def test_files_are_copied_where_the_kernel_does_not_do_it_by_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def elsewhere(*_: object) -> int:
        raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))

    root = tmp_path / "root"
    root.mkdir()
    (root / "a.py").write_bytes(bytes(range(256)) * 10_000)
    monkeypatch.setattr(os, "copy_file_range", elsewhere)
    frozen = freeze_tree(root, tmp_path / "copy", ["**/*.py"], most_files=100, most_bytes=1 << 30)
    assert (frozen.folder / "a.py").read_bytes() == (root / "a.py").read_bytes()


def test_a_snapshot_brings_back_bytes_modes_links_and_times(tmp_path: Path) -> None:
    root = tmp_path / "root"
    (root / "d").mkdir(parents=True)
    (root / "d" / "a").write_bytes(b"1")
    (root / "d" / "a").chmod(0o640)
    (root / "same").write_bytes(b"s")
    (root / "l").symlink_to("d/a")
    (root / "was a file").write_bytes(b"f")
    before = {path: (path.lstat().st_mode, path.lstat().st_mtime_ns) for path in sorted(root.rglob("*"))}
    snapshot = Snapshot.take(root, tmp_path / "store")

    stamp = (root / "d" / "a").stat().st_mtime_ns
    (root / "d" / "a").write_bytes(b"2")
    os.utime(root / "d" / "a", ns=(stamp, stamp))  # same size, same time
    (root / "l").unlink()
    (root / "l").mkdir()
    (root / "was a file").unlink()
    (root / "was a file").mkdir()
    (root / "was a file" / "x").touch()
    (root / "new").write_bytes(b"n")
    assert snapshot.restore() == 2

    assert {path: (path.lstat().st_mode, path.lstat().st_mtime_ns) for path in sorted(root.rglob("*"))} == before
    assert (root / "d" / "a").read_bytes() == b"1"
    assert (root / "l").readlink() == Path("d/a")
    assert snapshot.restore() == 0
    snapshot.close()
    assert not (tmp_path / "store").exists()


def test_freezing_takes_what_the_patterns_say(tmp_path: Path) -> None:
    root = tmp_path / "root"
    for path in ("a.py", "b.txt", "src/c.py", "src/deep/d.py", "src/e.txt"):
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(path)

    def frozen(*patterns: str) -> list[str]:
        copy = freeze_tree(root, tmp_path / "copy", patterns, most_files=100, most_bytes=1 << 20)
        copy.close()
        return sorted(copy.files)

    assert frozen("**/*") == ["a.py", "b.txt", "src/c.py", "src/deep/d.py", "src/e.txt"]
    assert frozen("**/*.py") == ["a.py", "src/c.py", "src/deep/d.py"]
    assert frozen("*.py") == ["a.py"]
    assert frozen("src/*.py") == ["src/c.py"]
    assert frozen("src/**/*.py") == ["src/c.py", "src/deep/d.py"]
    assert frozen("b.txt", "src/**/*") == ["b.txt", "src/c.py", "src/deep/d.py", "src/e.txt"]


def test_freezing_leaves_out_what_tools_fill_unless_a_pattern_names_it(tmp_path: Path) -> None:
    root = tmp_path / "root"
    paths = (".git/HEAD", "a.py", "own/lib/x.py", "own/pyvenv.cfg", "src/__pycache__/a.pyc", "src/node_modules/m/i.js")
    for path in paths:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).touch()

    def frozen(*patterns: str, most_files: int = 100) -> tuple[list[str], list[str]]:
        copy = freeze_tree(root, tmp_path / "copy", patterns, most_files=most_files, most_bytes=1 << 20)
        copy.close()
        return sorted(copy.files), sorted(path for path, why in copy.skipped if "tools" in why)

    tools = [".git", "own", "src/__pycache__", "src/node_modules"]
    assert frozen("**/*", most_files=1) == (["a.py"], tools)
    assert frozen("**/*", "own/**") == (["a.py", "own/lib/x.py", "own/pyvenv.cfg"], [t for t in tools if t != "own"])
    assert frozen("**/node_modules/**", ".git/*")[0] == [".git/HEAD", "src/node_modules/m/i.js"]


def test_freezing_leaves_a_tree_that_has_no_end(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    deep(root, 200)
    (root / "a").touch()
    frozen = freeze_tree(root, tmp_path / "copy", ["**/*"], most_files=100, most_bytes=1 << 20)
    assert frozen.files == ["a"]
    assert any("folder within" in why for _, why in frozen.skipped)
    remove_tree(root)


def test_freezing_goes_on_whatever_must_be_left_out(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    for n in range(1200):
        (root / f"l{n:04}.py").symlink_to("nowhere")
        if n % 10 == 0:  # among them, in whatever order they are walked
            (root / f"f{n:04}.py").touch()
    frozen = freeze_tree(root, tmp_path / "copy", ["**/*.py"], most_files=1000, most_bytes=1 << 20)
    assert sorted(frozen.files) == [f"f{n:04}.py" for n in range(0, 1200, 10)]
    assert len(frozen.skipped) == 1001
    assert frozen.skipped[-1] == ("…", "more was left out")


def test_of_too_many_files_those_nearest_to_the_top_are_frozen(tmp_path: Path) -> None:
    root = tmp_path / "root"
    for folder in ("a", *(f"d{n}/e" for n in range(9)), "z"):  # in whatever order they are walked
        (root / folder).mkdir(parents=True)
        for n in range(2):
            (root / folder / f"{n}.py").write_text("#")
    (root / "calc.py").write_text("#")
    for most in ({"most_files": 5, "most_bytes": 100}, {"most_files": 100, "most_bytes": 5}):
        frozen = freeze_tree(root, tmp_path / "copy", ["**/*.py"], **most)
        assert sorted(frozen.files) == ["a/0.py", "a/1.py", "calc.py", "z/0.py", "z/1.py"]
        assert len(frozen.skipped) == 18
        frozen.close()


def test_what_is_frozen_on_a_full_disk_is_an_error_and_nothing_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    root = tmp_path / "root"
    root.mkdir()
    (root / "calc.py").write_text("#")
    monkeypatch.setattr(os, "copy_file_range", full)
    with pytest.raises(OSError, match="No space left"):
        freeze_tree(root, tmp_path / "copy", ["**/*.py"], most_files=100, most_bytes=1 << 20)
    assert not (tmp_path / "copy").exists()


def test_changes_are_counted_where_they_are_too_many(tmp_path: Path) -> None:
    changes = Changes(tmp_path)
    for n in range(1100):
        (tmp_path / f"f{n:04}").write_text("x\n" * 2000)
    told = changes.now()
    assert len(told["changes"]) == 1000
    assert told["left_out"] == 100
    assert sum(len(change["diff"] or "") for change in told["changes"]) <= 1 << 20


def test_changes_are_told_within_bounds_whatever_is_written(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("1\n")
    changes = Changes(tmp_path, kept=100_000)
    (tmp_path / "a").write_text("2\n")
    (tmp_path / "b").write_text("x\n" * 6000)
    (tmp_path / "c").write_text("x" * 90_000)
    (tmp_path / os.fsdecode(b"d\xff")).write_text("3\n")
    told = changes.now(most=3, diffs=2000)
    assert [(change["path"], bool(change["diff"])) for change in told["changes"]] == [
        ("a", True),
        ("b", False),
        ("c", False),
    ]
    assert told["left_out"] == 1
    odd = changes.now()["changes"][3]
    assert odd["path"] == "d\N{REPLACEMENT CHARACTER}"
    assert "+++ b/d\N{REPLACEMENT CHARACTER}\n" in odd["diff"]


def test_a_change_that_is_taken_back_is_none(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("1\n")
    changes = Changes(tmp_path)
    (tmp_path / "b").write_text("2")
    assert [change["change"] for change in changes.now()["changes"]] == ["added"]
    assert changes.now()["changes"][0]["diff"].endswith("+2\n\\ No newline at end of file\n")
    (tmp_path / "b").unlink()
    assert changes.now()["changes"] == []
