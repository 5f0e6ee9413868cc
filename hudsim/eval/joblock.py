"""``JobLock``: at most one process works on a job."""

from __future__ import annotations

import fcntl
import os
from contextlib import suppress
from pathlib import Path

from hudsim.errors import StoreError

__all__ = ["JobLock"]


class JobLock:
    """A locked file that names the process which holds it. The kernel frees it if that is killed.

    Raises :class:`~hudsim.errors.StoreError`: somebody else holds it, or it cannot be written.
    """

    def __init__(self, path: Path, job: str) -> None:
        self._path = path
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._fd: int | None = self._taken(job)
        except OSError as error:
            raise StoreError(f"job {job} cannot be held: {path}: {error.strerror}") from None

    def release(self) -> None:
        """Remove the file and let others in. Idempotent."""
        if self._fd is not None:
            with suppress(OSError):
                if self._still_there(self._fd):  # and locked, so that it is nobody else's
                    self._path.unlink()
            os.close(self._fd)
            self._fd = None

    def _taken(self, job: str) -> int:
        for _ in range(100):
            fd = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if self._still_there(fd):
                    os.ftruncate(fd, 0)
                    os.pwrite(fd, b"%d\n" % os.getpid(), 0)
                    return fd
            except BlockingIOError:
                holder = os.pread(fd, 32, 0).decode(errors="replace").strip()
                os.close(fd)
                who = f"process {holder}" if holder else "another process"
                raise StoreError(f"job {job} is being worked on by {who}: wait for its end, or stop it") from None
            except OSError:
                os.close(fd)
                raise
            os.close(fd)  # its last holder removed it just now; the next try makes a new one
        raise StoreError(f"job {job} cannot be held: {self._path} comes and goes")

    def _still_there(self, fd: int) -> bool:
        try:
            there = self._path.stat()
        except FileNotFoundError:
            return False
        mine = os.fstat(fd)
        return (there.st_dev, there.st_ino) == (mine.st_dev, mine.st_ino)
