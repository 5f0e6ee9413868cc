"""Where nothing can be kept or read: said in words, and what was kept before is still there."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from hudsim.errors import StoreError
from hudsim.eval.schema import VERSION
from hudsim.eval.store import Store
from tests.asyncrun import on_loop
from tests.eval.keeping import JOB, member, planned


async def refused(folder: Path, words: str) -> None:
    """Neither writing nor reading works, and both say so in ``words``."""
    async with Store(folder) as store:
        with pytest.raises(StoreError, match=words):
            await store.create(JOB)
        with pytest.raises(StoreError, match=words):
            await store.jobs()


@on_loop
async def test_a_file_that_is_no_database_is_named(tmp_path: Path) -> None:
    (tmp_path / "hudsim.db").write_bytes(b"no database " * 500)
    await refused(tmp_path, "hudsim.db.*: file is not a database")


@on_loop
async def test_another_program_s_database_is_left_alone(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "hudsim.db") as other:
        other.execute("CREATE TABLE mine (a)")
    other.close()
    before = (tmp_path / "hudsim.db").read_bytes()
    await refused(tmp_path, "is the database of another program")
    assert (tmp_path / "hudsim.db").read_bytes() == before


@on_loop
async def test_a_newer_layout_is_refused_with_both_versions(tmp_path: Path) -> None:
    async with Store(tmp_path) as store:
        await planned(store)
    with sqlite3.connect(tmp_path / "hudsim.db") as newer:
        newer.execute(f"PRAGMA user_version = {VERSION + 1}")
    newer.close()
    await refused(tmp_path, f"newer hudsim: got layout {VERSION + 1}, expected at most {VERSION}")


@on_loop
async def test_a_damaged_database_is_no_traceback(tmp_path: Path) -> None:
    async with Store(tmp_path) as store:
        await planned(store)
        for n in range(8):
            await store.finish(0, n, member(n))
    size = (tmp_path / "hudsim.db").stat().st_size
    with (tmp_path / "hudsim.db").open("r+b") as file:
        file.seek(4096)
        file.write(b"\xff" * (size - 4096))
    async with Store(tmp_path) as store:
        with pytest.raises(StoreError, match=r"hudsim\.db cannot be read: database disk image is malformed"):
            await store.load("last")


@on_loop
async def test_a_folder_that_is_a_file_is_named(tmp_path: Path) -> None:
    folder = tmp_path / "runs"
    folder.write_text("")
    async with Store(folder) as store:
        with pytest.raises(StoreError, match=f"nothing can be kept in {folder}: File exists"):
            await store.create(JOB)
        with pytest.raises(StoreError, match=f"job {JOB.id} cannot be held: {folder}"):
            await store.hold(JOB.id)
        with pytest.raises(StoreError):
            await store.jobs()


@on_loop
async def test_a_folder_deleted_while_it_is_open_is_noticed_before_a_run_is_lost(tmp_path: Path) -> None:
    folder = tmp_path / "runs"
    async with Store(folder) as store:
        await planned(store)
        folder.rename(tmp_path / "away")
        with pytest.raises(StoreError, match="was moved or deleted meanwhile"):
            await store.finish(0, 0, member(0))


@on_loop
async def test_a_run_of_no_planned_batch_is_not_kept(tmp_path: Path) -> None:
    async with Store(tmp_path) as store:
        with pytest.raises(StoreError, match=f"run {JOB.id}-0 was not kept .*FOREIGN KEY"):
            await store.finish(0, 0, member(0))
        await planned(store)
        await store.finish(0, 0, member(0))


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of one megabyte. Skips where none may be mounted."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(disk)], check=False, capture_output=True
    )
    if mounted.returncode:
        pytest.skip("may not mount")
    yield disk
    subprocess.run(["umount", "-l", str(disk)], check=True)


async def keep_on(store: Store, kept: list[int]) -> None:
    """Keep runs until it fails; ``kept``: their indices."""
    for n in range(1000):
        run = member(n)
        run.trace.content = "x" * 8000
        await store.finish(0, n, run)
        kept.append(n)


@on_loop
async def fill(folder: Path, kept: list[int], room: list[Path]) -> None:
    async with Store(folder) as store:
        await planned(store, expected=1000)
        with pytest.raises(StoreError, match=r"run 0123abcd-\d+ was not kept in .*full; .*before is still there"):
            await keep_on(store, kept)
        assert [run.index for run in (await store.load("last")).runs] == kept
        for path in room:
            path.unlink()
        again = member(len(kept))
        await store.finish(0, len(kept), again)
        kept.append(again.index)


def test_a_full_disk_loses_nothing_that_was_kept_and_writing_goes_on_when_there_is_room(small_disk: Path) -> None:
    filler = small_disk / "filler"
    filler.write_bytes(b"\0" * 400_000)
    kept: list[int] = []
    fill(small_disk / "runs", kept, [filler])
    assert len(kept) > 5
    with sqlite3.connect(small_disk / "runs" / "hudsim.db") as database:
        assert database.execute("SELECT count(*) FROM runs").fetchone() == (len(kept),)
        assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    database.close()


LIMITED = """
import asyncio, resource, sys
from pathlib import Path
from hudsim.errors import StoreError
from hudsim.eval.store import Store
from tests.eval.keeping import member, planned

async def main():
    async with Store(Path(sys.argv[1])) as store:
        await planned(store, expected=1000)
        resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, 300_000))
        try:
            for n in range(1000):
                run = member(n)
                run.trace.content = "x" * 8000
                await store.finish(0, n, run)
                print(n, flush=True)
        except StoreError as error:
            print(error, file=sys.stderr)

asyncio.run(main())
"""


@on_loop
async def test_a_limit_on_the_size_of_files_loses_nothing_that_was_kept(tmp_path: Path, repository: Path) -> None:
    command = [sys.executable, "-c", LIMITED, str(tmp_path)]
    child = subprocess.run(  # noqa: ASYNC221 - nothing else runs on this loop
        command, check=False, cwd=repository, capture_output=True, text=True, timeout=40
    )
    kept = [int(line) for line in child.stdout.split()]
    assert f"run {JOB.id}-{len(kept)} was not kept" in child.stderr
    assert child.returncode == 0
    async with Store(tmp_path) as store:
        assert [run.index for run in (await store.load("last")).runs] == kept
    assert len(kept) > 5


@pytest.fixture
def read_only(small_disk: Path) -> Iterator[Path]:
    """A folder with a job, on a disk that is read-only from then on."""
    folder = small_disk / "runs"

    @on_loop
    async def keep() -> None:
        async with Store(folder) as store:
            await planned(store)
            await store.finish(0, 0, member(0))

    keep()
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    yield folder
    subprocess.run(["mount", "-o", "remount,rw", str(small_disk)], check=True)


def test_what_lies_on_a_read_only_disk_can_be_looked_at_and_not_gone_on_with(read_only: Path) -> None:
    @on_loop
    async def look() -> None:
        async with Store(read_only) as store:
            assert [run.index for run in (await store.load("last")).runs] == [0]
            with pytest.raises(StoreError, match=r"cannot be held.*Read-only file system"):
                await store.hold(JOB.id)
            with pytest.raises(StoreError, match="nothing can be kept in"):
                await store.create(JOB)

    look()
