"""``ClientKey``: what opens one workspace's shell."""

from __future__ import annotations

from dataclasses import dataclass, field

import asyncssh

__all__ = ["ClientKey", "new_client_key", "new_host_key"]

_KIND = "ssh-ed25519"


@dataclass(frozen=True, slots=True)
class ClientKey:
    """An ed25519 key.

    private
        In OpenSSH's own form, not encrypted: whoever has it is the agent.
    public
        One line, as in ``authorized_keys``.
    """

    private: str = field(repr=False)
    public: str


def new_client_key() -> ClientKey:
    """A fresh one (0.3 ms)."""
    key = asyncssh.generate_private_key(_KIND)
    return ClientKey(key.export_private_key().decode(), key.export_public_key().decode().strip())


def new_host_key() -> asyncssh.SSHKey:
    """A fresh one, never written down: a server's clients learn its public half from the capability."""
    return asyncssh.generate_private_key(_KIND)
