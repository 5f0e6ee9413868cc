"""A sandbox behind an SSH server of its own, and the ways in."""

from __future__ import annotations

import asyncio
import contextlib
import os
import tempfile
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from subprocess import PIPE

from hudsim.capability import Capability
from hudsim.coding.bubblewrap import Bind, Plan
from hudsim.coding.client import SSHClient
from hudsim.coding.keys import new_client_key
from hudsim.coding.limits import Limits
from hudsim.coding.login import ssh_command
from hudsim.coding.sandbox import Sandbox
from hudsim.coding.ssh import SshServer
from hudsim.coding.uids import Uid

__all__ = ["Shell", "shell"]


@dataclass
class Room:
    """What a key opens."""

    box: Sandbox
    environment: Mapping[str, str]
    cwd: str = "/workspace"
    shell: str = "/bin/bash"
    sealed: bool = False

    async def sandbox(self) -> Sandbox:
        await self.box.start()
        return self.box

    async def admitted(self) -> None:
        """Always."""


@dataclass
class Shell:
    root: Path
    server: SshServer
    room: Room
    public: str
    capability: Capability
    binding: dict[str, str]

    async def client(self) -> SSHClient:
        return await SSHClient.connect(self.capability, self.binding)

    async def openssh(
        self, rest: str = "", *, stdin: bytes = b"", options: str = "", program: str = "ssh"
    ) -> tuple[int | None, bytes, bytes]:
        """Exit code, stdout and stderr of OpenSSH's own client, given ``rest`` as further words of a shell."""
        with tempfile.TemporaryDirectory() as folder:
            line = ssh_command(self.capability, self.binding, Path(folder), program="ssh")
            words = line.removeprefix("ssh ").rpartition(" ")
            place = f"{words[2]}:" if program == "scp" else f"{words[2]} "
            whole = f"{program} {words[0]} {options} " + (rest.format(place) if program == "scp" else place + rest)
            process = await asyncio.create_subprocess_shell(whole, stdin=PIPE, stdout=PIPE, stderr=PIPE)
            out, err = await process.communicate(stdin)
            return process.returncode, out, err


@contextlib.asynccontextmanager
async def shell(tmp_path: Path, *, limits: Limits | None = None) -> AsyncIterator[Shell]:
    root = Path(tempfile.mkdtemp(dir=tmp_path))
    uid = Uid.take() if os.geteuid() == 0 else None
    if uid is not None:
        os.chown(root, uid.number, uid.number)
    environment = {"PATH": "/usr/bin:/bin", "HOME": "/workspace", "LANG": "C.UTF-8"}
    box = Sandbox(Plan([Bind(root, "/workspace", writable=True)], environment, limits or Limits()), uid=uid)
    server = await SshServer.shared()
    key = new_client_key()
    room = Room(box, {"OF_THE_ROOM": "yes"})
    server.register(key.public, room)
    capability = Capability.ssh(url=f"127.0.0.1:{server.port}", host_pubkey=server.host_pubkey)
    try:
        yield Shell(root, server, room, key.public, capability, {"client_key": key.private, "user": "agent"})
    finally:
        await server.forget(key.public)
        await server.release()
        await box.stop()
        if uid is not None:
            uid.free()
