"""``hudsim serve --show-ssh``."""

from __future__ import annotations

import asyncio
import shlex
import shutil
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from hudsim.environment import ControlClient
from tests.cli.command import LIMIT_S, hudsim, serving, told
from tests.cli.halves import RIGHT, write_halves

pytestmark = pytest.mark.skipif(shutil.which("sftp") is None, reason="OpenSSH's clients are not installed")


def shown(process: subprocess.Popen[str]) -> list[str]:
    """The next session's lines: a comment, ssh, sftp."""
    assert process.stdout is not None
    return [process.stdout.readline().rstrip("\n") for _ in range(3)]


def key_of(line: str) -> Path:
    words = shlex.split(line)
    return Path(next(word for word in words if word.startswith("IdentityFile=")).partition("=")[2])


def opened(line: str, *words: str, input: str = "") -> subprocess.CompletedProcess[str]:  # noqa: A002
    command = [*shlex.split(line), *words]
    return subprocess.run(command, input=input, capture_output=True, text=True, timeout=LIMIT_S, check=False)


def test_the_lines_open_the_workspace_of_the_first_task_with_openssh(tmp_path: Path) -> None:
    folder = write_halves(tmp_path / "halves")
    with serving(str(folder / "env.py"), "--show-ssh") as (process, said):
        assert sorted(said["capabilities"]) == ["filetracking", "shell"]
        comment, ssh, sftp = shown(process)
        assert comment.startswith("# shell: workspace ")
        done = opened(ssh, "cat sums.py; id -u")
        assert done.returncode == 0, done.stderr
        assert done.stdout.startswith("def half(n):\n    return n\n")
        (tmp_path / "mended.py").write_text(RIGHT)
        done = opened(sftp, input=f"put {tmp_path / 'mended.py'} sums.py\n")
        assert done.returncode == 0, done.stderr
        assert opened(ssh, "cat sums.py").stdout == RIGHT
        assert key_of(ssh).stat().st_mode & 0o777 == 0o600
        code, seconds, errors = told(process, signal.SIGTERM)
    assert code == 0, errors
    assert seconds < 2
    assert not key_of(ssh).parent.exists()


def test_every_session_has_lines_of_its_own_until_it_ends(tmp_path: Path) -> None:
    folder = write_halves(tmp_path / "halves")

    async def graded(url: str, process: subprocess.Popen[str]) -> dict[str, Any]:
        async with await ControlClient.connect(url) as control:
            await control.start("halve", {"turn": 1})
            _, ssh, _ = await asyncio.to_thread(shown, process)
            assert (await asyncio.to_thread(opened, ssh, "sed -i 's/return n/return n \\/\\/ 2/' sums.py")).stderr == ""
            grade = await control.grade()
            assert not key_of(ssh).exists()
            assert (await asyncio.to_thread(opened, ssh, "true")).returncode == 255
            return grade

    with serving(str(folder / "env.py"), "--show-ssh") as (process, said):
        shown(process)
        grade = asyncio.run(asyncio.wait_for(graded(said["url"], process), LIMIT_S))
        assert grade["score"] == 1.0
        assert told(process, signal.SIGINT)[0] == 0


def test_what_has_no_workspace_is_refused() -> None:
    for target, said in (("letters", "environment letters has no workspace"), ("test-card", "test-card is a world")):
        done = hudsim("serve", target, "--show-ssh")
        assert (done.returncode, done.stdout) == (2, "")
        assert said in done.stderr
