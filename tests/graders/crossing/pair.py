"""A solution in a process of its own, and the tests' side in this one."""

from __future__ import annotations

import contextlib
import socket
import subprocess
import sys
import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path

from hudsim.graders.crossing import boot
from hudsim.graders.crossing.tests_side import Crossing, attach

__all__ = ["crossing"]


@contextlib.contextmanager
def crossing(
    folder: Path, files: dict[str, str], *, opaque: Sequence[str] = (), timeout_s: float = 30.0
) -> Iterator[Crossing]:
    """``import calc`` is the solution made of these files, until the end of the block."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text))
    ours, theirs = socket.socketpair()
    with theirs:
        command = [sys.executable, "-I", str(boot.__file__), str(theirs.fileno()), str(folder)]
        process = subprocess.Popen(command, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL)
    for name in [name for name in sys.modules if name.partition(".")[0] == "calc"]:
        del sys.modules[name]  # another test's, in this process
    made = attach(ours, ["calc"], opaque=opaque, timeout_s=timeout_s)
    try:
        yield made
    finally:
        made.close()
        if made.gone is not None:
            process.kill()
        try:
            process.wait(5.0)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(5.0)
