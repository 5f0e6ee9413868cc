"""Many workspaces at once."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from hudsim.coding import SSHClient, Workspace
from hudsim.coding.sweep import live
from tests.asyncrun import within


@pytest.mark.slow
def test_sixteen_at_once_start_work_and_go() -> None:
    async def one(n: int) -> None:
        ws = Workspace()
        await ws.start()
        try:
            (ws.root / "n").write_text(str(n))
            async with await SSHClient.connect(ws.capability("shell"), await ws.binding()) as client:
                assert (await client.run("cat n; sleep 999 & exit 0")).text == str(n)
        finally:
            await ws.stop()

    async def main() -> None:
        before = len(list(Path("/proc/self/fd").iterdir()))  # noqa: ASYNC240
        for _ in range(3):
            await asyncio.gather(*(one(n) for n in range(16)))
        await asyncio.sleep(0)
        assert len(list(Path("/proc/self/fd").iterdir())) <= before + 8  # noqa: ASYNC240
        assert not [owned.rooms for owned in live() if owned.pid == os.getpid() and owned.rooms]

    within(55, main())
