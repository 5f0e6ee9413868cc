"""``Login``: where a workspace's shell is and what opens it."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Self

from hudsim.capability import Capability
from hudsim.errors import UsageError

__all__ = ["Login", "ssh_command"]


@dataclass(frozen=True, slots=True)
class Login:
    """From an ``ssh/2`` capability and a run's binding of it.

    host_pubkey, client_key
        What is to be found there, as in ``authorized_keys``; and the private key in OpenSSH's own form.
    """

    host: str
    port: int
    user: str
    host_pubkey: str
    client_key: str = field(repr=False)

    @classmethod
    def of(cls, capability: Capability, binding: Mapping[str, Any] | None = None) -> Self:
        """``binding`` is looked at before the capability's own params.

        Raises :class:`~hudsim.errors.UsageError` if it is no shell, or one of the keys is missing.
        """
        if capability.protocol.partition("/")[0] != "ssh":
            raise UsageError(f"capability {capability.name}: got protocol {capability.protocol}, expected ssh/2")
        params = {**capability.params, **(binding or {})}
        missing = [name for name in ("host_pubkey", "client_key") if not isinstance(params.get(name), str)]
        if missing:
            raise UsageError(f"capability {capability.name}: {' and '.join(missing)} missing; is its binding given?")
        host, port = capability.endpoint
        return cls(host, port, str(params.get("user", "agent")), params["host_pubkey"], params["client_key"])


def ssh_command(
    capability: Capability,
    binding: Mapping[str, Any] | None,
    folder: Path,
    *,
    program: Literal["ssh", "sftp"] = "ssh",
) -> str:
    """A line for one's own shell that opens the workspace with OpenSSH.

    Its key and host key are written into ``folder``, readable by its owner alone; whoever made that removes it.
    Raises as :meth:`Login.of`.
    """
    login = Login.of(capability, binding)
    key, hosts = folder / f"{capability.name}.key", folder / f"{capability.name}.hosts"
    _write(key, login.client_key.rstrip() + "\n")
    _write(hosts, f"[{login.host}]:{login.port} {login.host_pubkey}\n")
    options = {
        "Port": str(login.port),
        "IdentityFile": str(key),
        "IdentitiesOnly": "yes",
        "UserKnownHostsFile": str(hosts),
        "StrictHostKeyChecking": "yes",
    }
    words = [program, "-F", "none"]
    for name, value in options.items():
        words += ["-o", f'{name}="{value}"' if " " in value else f"{name}={value}"]
    return shlex.join([*words, f"{login.user}@{login.host}"])


def _write(path: Path, text: str) -> None:
    path.unlink(missing_ok=True)
    with open(path, "x", opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
        file.write(text)
