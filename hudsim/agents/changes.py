"""``Changes``: what is to be changed in a workspace, as plain data."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Self

from hudsim.errors import AgentError

if TYPE_CHECKING:
    from hudsim.coding.client import SSHClient
    from hudsim.eval.run import Run

__all__ = ["Changes"]


@dataclass(frozen=True)
class Changes:
    """A patch, then files, then commands.

    patch
        A unified diff, as ``git apply`` takes it. None: there is none.
    files
        Paths in the workspace, and the text that each file is to hold.
    commands
        Lines for the shell, each of which must go well.
    """

    KEYS: ClassVar[tuple[str, ...]] = ("patch", "files", "commands")

    patch: str | None = None
    files: Mapping[str, str] = field(default_factory=dict)
    commands: Sequence[str] = ()

    @classmethod
    def of(cls, where: str, parts: Mapping[str, Any]) -> Self | None:
        """From JSON; other keys than these are not looked at. None: there is nothing to be changed.

        Raises :class:`~hudsim.errors.AgentError` that names ``where`` for what cannot be carried out.
        """
        patch, files, commands = (parts.get(key) for key in cls.KEYS)
        if patch is None and files is None and commands is None:
            return None
        if not isinstance(patch, str | None):
            raise AgentError(f"{where}: patch: got {_shown(patch)}, expected a unified diff")
        if not isinstance(files, dict | None) or not all(isinstance(text, str) for text in (files or {}).values()):
            raise AgentError(f"{where}: files: got {_shown(files)}, expected an object of paths and texts")
        if not isinstance(commands, list | None) or not all(isinstance(line, str) for line in commands or []):
            raise AgentError(f"{where}: commands: got {_shown(commands)}, expected a list of lines for the shell")
        return cls(patch, files or {}, commands or [])

    async def make(self, run: Run) -> None:
        """Make them in the run's workspace, over SSH.

        Raises :class:`~hudsim.errors.AgentError` with what was said if the patch does not fit or a command fails.
        """
        from hudsim.coding.client import SSHClient

        async with await SSHClient.of(run) as shell:
            if self.patch is not None:
                await _must(shell, "git apply --whitespace=nowarn -", self.patch.encode())
            for path, text in self.files.items():
                await shell.write(path, text.encode())
                run.note("tool", content=f"write {path}", data={"path": path, "bytes": len(text.encode())})
            for line in self.commands:
                await _must(shell, line)


async def _must(shell: SSHClient, line: str, given: bytes = b"") -> None:
    done = await shell.run(line, input=given)
    if done.code != 0:
        said = (done.stderr or done.stdout).decode(errors="replace").strip()
        raise AgentError(f"{line!r:.80} ended with {done.code}: {said:.400}")


def _shown(value: Any) -> str:
    return f"{json.dumps(value):.80}"
