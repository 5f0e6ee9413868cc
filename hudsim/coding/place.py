"""``Place``: this process's own folder on the host, in which all is that a dead process would leave behind."""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import itertools
import os
import py_compile
import shutil
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

from hudsim.errors import SandboxError

__all__ = ["CGROUPS", "LOCK", "ROOT_LOCK", "Place", "changing", "inside_python", "started_ticks", "state_folder"]

LOCK = "owner.lock"
CGROUPS = "cgroups"
"""In a place: the owner's lock, and the control groups that it made, one path a line."""
ROOT_LOCK = ".root-"
"""In the state folder: how the names of the locks on directories of the host's begin."""

_INSIDE = Path(__file__).parent / "inside"
_KEEPER = "import os, sys; os.read(0, 1) or os.execv(sys.argv[1], sys.argv[1:])"


class Place:
    """``…/hudsim-0/1234-5678``, mode 0700: the owner's process id and when it started.

    The owner holds a lock in it, which the kernel gives back when the owner ends, however it ends: so others see
    whether it lives, also from another pid namespace. It goes when the owner exits; of one that is killed the *keeper*
    cleans up at once, a small process that waits for nothing else, and whoever sweeps next if that was killed too.

    folder
        Where it is.
    inside
        What serves a sandbox from within (``hudsim/coding/inside``), compiled.
    """

    _mine: Place | None = None
    _guard = threading.Lock()

    def __init__(self) -> None:
        self.pid = os.getpid()
        self.folder = state_folder() / f"{self.pid}-{started_ticks(self.pid)}"
        self.inside = self.folder / "inside"
        self._numbers = itertools.count(1)
        with changing():
            self.folder.mkdir(mode=0o700, exist_ok=True)
            self._lock = os.open(self.folder / LOCK, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
            fcntl.flock(self._lock, fcntl.LOCK_EX)
        _compile_into(self.inside)
        self._lifeline = _keeper()
        atexit.register(self._leave)

    @classmethod
    def mine(cls) -> Place:
        """This process's; made if there is none."""
        with cls._guard:
            if cls._mine is None or cls._mine.pid != os.getpid():
                cls._mine = cls()
            return cls._mine

    def room(self, kind: str) -> Path:
        """A new empty folder in it, mode 0700."""
        folder = self.folder / f"{kind}-{next(self._numbers)}"
        folder.mkdir(mode=0o700)
        return folder

    @property
    def tag(self) -> str:
        """A name for what is this process's elsewhere."""
        return f"hudsim-{self.folder.name}"

    def note_cgroups(self, groups: list[Path]) -> None:
        """Have whoever clears up after us remove these too."""
        with (self.folder / CGROUPS).open("a") as file:
            file.write("".join(f"{group}\n" for group in groups))

    def _leave(self) -> None:
        """The process exits in order. What is still in a room is the keeper's to see to."""
        if self.pid != os.getpid():
            return
        if not any(path.is_dir() and path != self.inside for path in self.folder.iterdir()):
            shutil.rmtree(self.folder, ignore_errors=True)
            with contextlib.suppress(OSError):
                os.write(self._lifeline, b".")
        os.close(self._lock)
        os.close(self._lifeline)


def inside_python(folder: Path | str, module: str, call: str) -> list[str]:
    """An interpreter that runs one function of a module of ours, in a ``folder`` where that is compiled already."""
    code = f"import sys; sys.path.insert(0, {str(folder)!r}); import {module}; {module}.{call}"
    return [os.path.realpath(sys.executable), "-I", "-S", "-X", "utf8", "-c", code]


def _keeper() -> int:
    """Start it; the descriptor on which it waits for a byte (all is well) or for our end."""
    told, lifeline = os.pipe2(os.O_CLOEXEC)
    sweep = [sys.executable, "-c", "from hudsim.coding.sweep import clean; clean()"]
    null = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    try:
        os.posix_spawn(
            sys.executable,
            [sys.executable, "-I", "-S", "-c", _KEEPER, *sweep],
            {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            file_actions=[(os.POSIX_SPAWN_DUP2, told, 0), *((os.POSIX_SPAWN_DUP2, null, fd) for fd in (1, 2))],
            setsid=True,
        )
    finally:
        os.close(told)
        os.close(null)
    return lifeline


def _compile_into(folder: Path) -> None:
    """Also where this process writes no bytecode: each sandbox would compile it again."""
    cache = folder / "__pycache__"
    cache.mkdir(mode=0o755, parents=True, exist_ok=True)
    folder.chmod(0o755)
    for source in _INSIDE.glob("*.py"):
        shutil.copyfile(source, folder / source.name)
        (folder / source.name).chmod(0o644)
        compiled = cache / f"{source.stem}.{sys.implementation.cache_tag}.pyc"
        mode = py_compile.PycInvalidationMode.UNCHECKED_HASH
        py_compile.compile(str(source), str(compiled), f"{source.name}", invalidation_mode=mode)
        compiled.chmod(0o644)


@contextlib.contextmanager
def changing() -> Iterator[None]:
    """Nobody else makes a place or a lock, or takes one away, meanwhile."""
    fd = os.open(state_folder() / ".lock", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        yield
    finally:
        os.close(fd)


def state_folder() -> Path:
    """This user's, of all its processes. Raises :class:`~hudsim.errors.SandboxError` if somebody else made it."""
    folder = Path(tempfile.gettempdir()).resolve() / f"hudsim-{os.geteuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    about = folder.lstat()
    if about.st_uid != os.geteuid() or about.st_mode & 0o077 or folder.is_symlink():
        raise SandboxError(f"{folder} is not this user's alone (mode 0700); remove it, or set TMPDIR")
    return folder


def started_ticks(pid: int) -> int:
    """When a process started, in the kernel's ticks since it booted; 0 if there is no such process, or no /proc."""
    try:
        return int(Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[19])
    except (OSError, IndexError):
        return 0
