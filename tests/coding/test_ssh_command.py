from __future__ import annotations

import asyncio
from pathlib import Path
from subprocess import PIPE

import pytest

from hudsim.capability import Capability
from hudsim.coding.login import Login, ssh_command
from hudsim.errors import UsageError
from tests.asyncrun import on_loop
from tests.coding.shells import shell


@on_loop
async def test_the_line_opens_the_workspace_as_it_stands(tmp_path: Path) -> None:
    folder = tmp_path / "a folder"
    folder.mkdir()
    async with shell(tmp_path) as host:
        for program, given, said in (("ssh", b"pwd\n", b"/workspace"), ("sftp", b"pwd\n", b"directory: /workspace")):
            line = ssh_command(host.capability, host.binding, folder, program=program)  # type: ignore[arg-type]
            process = await asyncio.create_subprocess_shell(line, stdin=PIPE, stdout=PIPE, stderr=PIPE)
            out, err = await process.communicate(given)
            assert (process.returncode, said in out) == (0, True), err


def test_the_keys_are_their_owners_alone_also_where_others_stood(tmp_path: Path) -> None:
    (tmp_path / "shell.key").write_text("old")
    (tmp_path / "shell.key").chmod(0o644)
    there = Capability.ssh(url="127.0.0.1:1", host_pubkey="ssh-ed25519 AAAA")
    ssh_command(there, {"client_key": "secret"}, tmp_path)
    assert (tmp_path / "shell.key").stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "shell.key").read_text() == "secret\n"
    assert (tmp_path / "shell.hosts").read_text() == "[127.0.0.1]:1 ssh-ed25519 AAAA\n"


def test_a_login_says_what_is_missing_and_hides_its_key() -> None:
    there = Capability.ssh(url="127.0.0.1:1", user="one", host_pubkey="x")
    with pytest.raises(UsageError, match="client_key missing"):
        Login.of(there)
    login = Login.of(there, {"client_key": "secret", "user": "other"})
    assert login.user == "other"
    assert "secret" not in repr(login)
