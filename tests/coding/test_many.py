"""Many workspaces at once."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from hudsim.coding import Box, Limits, SSHClient, Workspace
from hudsim.coding.sweep import live
from tests.asyncrun import within


@pytest.mark.slow
def test_sixteen_at_once_start_work_and_go() -> None:
    async def one(n: int) -> None:
        async with Workspace() as ws:
            (ws.root / "n").write_text(str(n))
            async with await SSHClient.connect(ws.capability("shell"), await ws.binding()) as client:
                assert (await client.run("cat n; sleep 999 & exit 0")).text == str(n)

    async def main() -> None:
        before = len(list(Path("/proc/self/fd").iterdir()))  # noqa: ASYNC240
        for _ in range(3):
            await asyncio.gather(*(one(n) for n in range(16)))
        await asyncio.sleep(0)
        assert len(list(Path("/proc/self/fd").iterdir())) <= before + 8  # noqa: ASYNC240
        assert not [owned.rooms for owned in live() if owned.pid == os.getpid() and owned.rooms]

    within(55, main())


def test_of_256_made_at_once_no_two_share_a_folder_or_a_user() -> None:
    async def main() -> None:
        def made() -> Box:
            return Box(limits=Limits(), guest_path="/workspace")

        boxes = await asyncio.gather(*(asyncio.to_thread(made) for _ in range(256)))
        try:
            assert len({box.folder for box in boxes}) == 256
            users = {None if box.uid is None else box.uid.number for box in boxes}
            assert len(users) == (256 if os.geteuid() == 0 else 1)
        finally:
            await asyncio.gather(*(box.stop() for box in boxes))
        assert not any(box.folder.exists() for box in boxes)

    within(40, main())
