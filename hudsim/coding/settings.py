"""``Settings``: what a workspace was asked to be."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Literal

from hudsim.coding.limits import Limits
from hudsim.coding.mount import Mount
from hudsim.coding.pasta import Network, Pasta
from hudsim.errors import UnknownName, UsageError

__all__ = ["Isolation", "Settings"]

Isolation = Literal["bubblewrap", "none"]

_KNOWN = (
    "root",
    "host",
    "port",
    "network",
    "allowed_hosts",
    "mounts",
    "env",
    "ports",
    "track_files",
    "require_isolation",
    "isolation",
    "guest_path",
    "user",
    "limits",
)
_NOT_HERE = {
    "peers": "services of the host are not reachable from a workspace",
    "local_aliases": "services of the host are not reachable from a workspace",
    "system_mounts": "the system's folders are always the same; mounts= adds others",
    "shell_uid": "as root every workspace has a user id of its own",
    "shell_gid": "as root every workspace has a user id of its own",
    "host_key_path": "host keys are made for each listener and never written down",
    "authorized_client_keys": "each run's key is made for it, and reaches its agent as a binding",
    "credentials_dir": "keys are never written down",
    "hosts_path": "a workspace has an /etc/hosts of its own",
    "hand_over_root": "what a template writes always becomes the agent's",
}
_TAKEN = ("/usr", "/proc", "/dev", "/etc", "/run", "/bin", "/sbin", "/lib", "/lib64", "/tmp", "/var/tmp")  # noqa: S108


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Checked when they are made; see :class:`~hudsim.coding.Workspace` for what they mean.

    Raises :class:`~hudsim.errors.UsageError` for what cannot be honoured, by its name.
    """

    root: str | Path = "workspace"
    host: str = "127.0.0.1"
    port: int = 0
    network: Network = False
    allowed_hosts: Collection[str] | None = None
    mounts: Sequence[Mount] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    ports: Collection[int] = ()
    track_files: bool = False
    require_isolation: bool = False
    isolation: Isolation = "bubblewrap"
    guest_path: str = "/workspace"
    user: str = "agent"
    limits: Limits = Limits()  # noqa: RUF009 - it cannot be changed

    def __post_init__(self) -> None:
        if self.allowed_hosts is not None:
            raise UsageError("allowed_hosts: there is no filter of hosts here; network=False reaches none, True all")
        if self.ports:
            raise UsageError("ports: no port of a workspace is reachable from outside it; use the shell")
        if self.network not in (False, True, "host"):
            raise UsageError(f"network: got {self.network!r}, expected False, True or 'host'")
        if self.network is True and self.isolated:
            Pasta.needed()
        if self.isolation not in ("bubblewrap", "none"):
            raise UsageError(f"isolation: got {self.isolation!r}, expected 'bubblewrap' or 'none'")
        if self.require_isolation and self.isolation == "none":
            raise UsageError("require_isolation: got True with isolation='none'; without 'none' isolation is required")
        if not isinstance(self.limits, Limits):
            raise UsageError(f"limits: got a {type(self.limits).__name__}, expected hudsim.coding.Limits")
        self._check_paths()
        for name, value in self.env.items():
            if not name or "=" in name or "\0" in name + value:
                raise UsageError(f"env: got {name!r}: {value!r}, expected names and text")
        if not self.user or not self.user.replace("-", "").replace("_", "").isalnum():
            raise UsageError(f"user: got {self.user!r}, expected a user's name")

    @property
    def isolated(self) -> bool:
        return self.isolation != "none"

    @property
    def fixed_root(self) -> Path | None:
        """The one directory that every run works in. None: each run has its own."""
        return Path(self.root) if Path(self.root).is_absolute() else None

    @classmethod
    def refuse(cls, others: Mapping[str, object]) -> None:
        """Keywords that this version does not take. Raises :class:`~hudsim.errors.UsageError` for the first."""
        for name in others:
            if name in _NOT_HERE:
                raise UsageError(f"workspace: {name}= is not taken: {_NOT_HERE[name]}")
            raise UnknownName("keyword of a workspace", name, _KNOWN)

    def _check_paths(self) -> None:
        guest = PurePosixPath(self.guest_path)
        if not guest.is_absolute() or ".." in guest.parts or str(guest) == "/":
            raise UsageError(f"guest_path: got {self.guest_path!r}, expected an absolute path below '/'")
        taken = [path for path in _TAKEN if guest.is_relative_to(path) and not path.endswith("tmp")]
        if taken or str(guest) in _TAKEN:
            raise UsageError(f"guest_path: got {self.guest_path!r}, which is the system's")
        for mount in self.mounts:
            if not isinstance(mount, Mount):
                raise UsageError(f"mounts: got a {type(mount).__name__}, expected hudsim.coding.Mount")
            mount.bind()
