"""``Ground``: what a grader needs of a workspace."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self

from hudsim.coding.bubblewrap import Bind
from hudsim.coding.process import Completed
from hudsim.coding.sandbox import Sandbox
from hudsim.errors import UsageError

__all__ = ["Copy", "Fresh", "Ground", "ground"]


class Copy(Protocol):
    """The agent's files when its processes were dead, as :class:`hudsim.coding.freeze.Frozen`."""

    folder: Path
    skipped: list[tuple[str, str]]

    def close(self) -> None: ...


class Fresh(Protocol):
    """A sandbox that nothing has run in, as :class:`hudsim.coding.box.Box`."""

    async def sandbox(self) -> Sandbox: ...
    async def stop(self) -> None: ...
    def own(self, folder: Path) -> None: ...
    def evidence(self) -> list[str]: ...
    async def __aenter__(self) -> Self: ...
    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None
    ) -> None: ...


class Ground(Protocol):
    """As :class:`hudsim.coding.Workspace`."""

    @property
    def room(self) -> Any: ...
    async def run(
        self, argv: Sequence[str] | str, *, cwd: str | None = None, env: Mapping[str, str] | None = None,
        timeout_s: float | None = None, keep_running: bool = False,
    ) -> Completed: ...  # fmt: skip
    async def seal(self) -> None: ...
    async def freeze(self, files: Sequence[str] = ("**/*",)) -> Copy: ...
    def new_sandbox(self, binds: Sequence[Bind] = (), **options: Any) -> Fresh: ...
    def evidence(self) -> list[str]: ...


def ground(workspace: Any) -> Ground:
    """``workspace``, if it is one. Raises :class:`~hudsim.errors.UsageError`."""
    missing = [name for name in _ASKED if not hasattr(workspace, name)]
    if missing:
        raise UsageError(f"workspace: got a {type(workspace).__name__}, expected a Workspace: it has no {missing[0]}()")
    checked: Ground = workspace
    return checked


_ASKED = ("run", "seal", "freeze", "new_sandbox", "evidence")
