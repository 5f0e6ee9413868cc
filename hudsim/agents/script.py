"""``Script``: the same commands, whatever is asked."""

from __future__ import annotations

from pathlib import Path

from hudsim.errors import UsageError
from hudsim.eval.run import Run

__all__ = ["Script"]


class Script:
    """Runs the lines of a file in each run's workspace, over SSH, and answers with what the last one printed.

    A line is a command for the shell, and begins in the workspace's directory; one that ends in a backslash goes on
    in the next. Blank lines and comments (``# …``) are left out. A command that fails does not end the script: its
    exit code is in the trace.

    Raises :class:`~hudsim.errors.UsageError` for a file that cannot be read or holds no command.
    """

    def __init__(self, file: str | Path) -> None:
        self.file = Path(file).expanduser()
        try:
            self.commands = _commands(self.file.read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(f"script {self.file} cannot be read: {error}") from None
        if not self.commands:
            raise UsageError(f"script {self.file}: got no commands, expected at least one")

    @property
    def name(self) -> str:
        """``script:FILE``."""
        return f"script:{self.file}"

    async def __call__(self, run: Run, /) -> None:
        from hudsim.coding.client import SSHClient

        async with await SSHClient.of(run) as shell:
            for command in self.commands:
                done = await shell.run(command)
                run.trace.content = done.stdout.decode(errors="replace").rstrip("\n")

    def __repr__(self) -> str:
        return f"Script({str(self.file)!r})"


def _commands(text: str) -> list[str]:
    lines = text.replace("\\\n", "").splitlines()
    return [line.strip() for line in lines if line.strip() and not line.lstrip().startswith("#")]
