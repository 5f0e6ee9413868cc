"""``bare``: the floor: a bubblewrap that isolates as much, runs one command and ends."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

from hudsim.coding.bubblewrap import find_bubblewrap

__all__ = ["bare"]

_TOP = ("bin", "sbin", "lib", "lib32", "lib64", "libx32")


async def bare(width: int) -> list[float]:
    """``width`` of them at once: seconds of each, from its start to its end."""
    return list(await asyncio.gather(*(_one() for _ in range(width))))


async def _one() -> float:
    began_s = time.perf_counter()
    process = await asyncio.create_subprocess_exec(
        *_words(), stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE
    )
    out, _ = await process.communicate()
    assert out == b"up\n", (process.returncode, out)
    return time.perf_counter() - began_s


def _words() -> list[str]:
    words = [str(find_bubblewrap()), "--unshare-all", "--unshare-user", "--die-with-parent", "--cap-drop", "ALL"]
    words += ["--clearenv", "--ro-bind", "/usr", "/usr"]
    for top in (Path("/", name) for name in _TOP):
        if top.is_symlink():
            words += ["--symlink", str(top.readlink()), str(top)]
        elif top.is_dir():
            words += ["--ro-bind", str(top), str(top)]
    return [*words, "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/run", "/bin/sh", "-c", "echo up"]
