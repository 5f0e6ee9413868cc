"""A process whose children keep runs until each is killed at a moment of chance; prints what each had said was kept."""

from __future__ import annotations

import asyncio
import json
import os
import random
import select
import signal
import sys
from pathlib import Path

from hudsim.eval.job import Job
from tests.eval.keeping import CONFIG, over, task

TIMES = 20
RUNS = 250


async def work(folder: Path, pipe: int) -> None:
    """Begin or go on with a job; write the id of each run to ``pipe`` once it is kept."""
    begun = (folder / "hudsim.db").exists()
    job = await Job.resume("last", runs=folder) if begun else await Job.start("kills", runs=folder)
    for run in await job.plan([task("a"), task("b")], RUNS, CONFIG):
        await job.finish(over(run))
        os.write(pipe, f"{run.id}\n".encode())


def killed_once(folder: Path) -> list[str]:
    """The ids that a child said before it was killed, within a millisecond after its first few."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        asyncio.run(work(folder, writer))
        os._exit(0)
    os.close(writer)
    enough, said = random.randint(1, 8), b""
    while said.count(b"\n") < enough and (more := os.read(reader, 4096)):
        said += more
    select.select([], [], [], random.uniform(0, 0.001))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    while more := os.read(reader, 4096):
        said += more
    os.close(reader)
    return said.decode().splitlines()


if __name__ == "__main__":
    json.dump([killed_once(Path(sys.argv[1])) for _ in range(TIMES)], sys.stdout)
