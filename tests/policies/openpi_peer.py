"""A policy server that does what openpi's ``WebsocketPolicyServer`` does, to the frame: a process of its own.

Its messages are packed here, by msgpack alone. Its policy counts: for a test card's observation, whose state begins
with a tick, row k of its chunk is tick + k + 1. A prompt that is one of the words below says what is to go wrong; such
a word as an argument goes wrong at the question after the first, whatever its prompt, or before there is any. With the
argument ``stay`` it stays where it is.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgpack
import numpy as np
from websockets import ConnectionClosed
from websockets.asyncio.server import ServerConnection, serve

__all__ = ["ANSWERS", "Peer", "running"]

LENGTH = 10
ANSWERS: dict[str, Any] = {
    "garbage": b"\xc1 no message",
    "half a message": b"\x81\xa7actions\x84\xc4\x0b__ndarray__\xc3\xc4\x04data",
    "an object array": {"actions": {b"__ndarray__": True, b"data": b"", b"dtype": "|O", b"shape": [1]}},
    "no map": [1, 2],
    "no actions": {"state": 1.0, "server_timing": {}},
    "a list": {"actions": [[0.0, 0.0]]},
    "one action": {"actions": np.zeros(5, np.float32)},
    "no rows": {"actions": np.zeros((0, 5), np.float32)},
    "seven numbers": {"actions": np.zeros((LENGTH, 7), np.float32)},
    "not finite": {"actions": np.full((LENGTH, 5), np.nan, np.float32)},
}
"""What is answered to these prompts, whatever was observed."""

WORDS = {"raise", "vanish", "hang", *ANSWERS}
METADATA: dict[str, Any] = {"policy": "counting", "reset_pose": [0.0, 0.5], "scale": np.array([1.0, 2.0])}


def plain(value: Any) -> Any:
    """An array as openpi writes it."""
    if isinstance(value, np.ndarray):
        return {b"__ndarray__": True, b"data": value.tobytes(), b"dtype": value.dtype.str, b"shape": value.shape}
    raise TypeError(type(value).__name__)


def array(items: dict[Any, Any]) -> Any:
    if b"__ndarray__" in items:
        return np.frombuffer(items[b"data"], items[b"dtype"]).reshape(items[b"shape"])
    return items


def infer(observation: dict[str, Any], word: str) -> Any:
    if word == "raise":
        raise KeyError("observation/exterior_image_1_left")
    if word == "vanish":
        os._exit(1)
    if word == "hang":
        time.sleep(3600)  # as a model that computes: nobody else is served
    if word in ANSWERS:
        return ANSWERS[word]
    if word == "stay":
        return {"actions": np.repeat(stay(observation)[None], LENGTH, axis=0).astype(np.float64)}
    state = observation["observation/state"]
    ticks = (state[0] + np.arange(1, LENGTH + 1)).astype(np.float32)
    actions = np.repeat(ticks[:, None], len(state) - 3, axis=1)  # a test card's state has three numbers more
    return {"actions": actions, "server_timing": {"infer_ms": 0.25}}


def stay(observation: dict[str, Any]) -> Any:
    """The joints where they are, also of a DROID robot; a slider goes home."""
    if "observation/joint_position" in observation:
        assert observation["observation/exterior_image_1_left"].shape == (224, 224, 3)
        assert observation["observation/wrist_image_left"].dtype == np.uint8
        return np.concatenate([observation["observation/joint_position"], observation["observation/gripper_position"]])
    state = observation["observation/state"]
    return -2 * state if len(state) == 2 else state


async def answer(ws: ServerConnection, first: str, word: str, log: Path) -> None:
    if first == "silent":
        await asyncio.sleep(3600)
    if first == "hang up":
        return
    await ws.send({"text": "hello", "list": msgpack.packb([1])}.get(first) or msgpack.packb(METADATA, default=plain))
    questions = 0
    while True:
        try:
            observation = msgpack.unpackb(await ws.recv(), object_hook=array)
            questions += 1
            with log.open("a") as file:
                file.write(json.dumps(told(observation)) + "\n")
            prompt = observation.get("prompt", "")
            late = word if word == "stay" or questions > 1 else ""
            said = infer(observation, prompt if prompt in WORDS else late)
            await ws.send(said if isinstance(said, bytes) else msgpack.packb(said, default=plain))
        except ConnectionClosed:
            return
        except Exception:
            await ws.send(traceback.format_exc())
            await ws.close(1011, "Internal server error. Traceback included in previous frame.")
            raise


def told(value: Any) -> Any:
    """A value as JSON, an array as [dtype, shape]."""
    if isinstance(value, dict):
        return {name: told(inner) for name, inner in value.items()}
    return [value.dtype.str, list(value.shape)] if isinstance(value, np.ndarray) else value


async def main(port: int, word: str, log: Path) -> None:
    first = word if word in ("silent", "hang up", "text", "list") else ""

    async def one(ws: ServerConnection) -> None:
        await answer(ws, first, word, log)

    async with serve(one, "127.0.0.1", port, compression=None, max_size=None) as listener:
        sys.stdout.write(f"{next(iter(listener.sockets)).getsockname()[1]}\n")
        sys.stdout.flush()
        await asyncio.sleep(3600)


@dataclass
class Peer:
    """A server that runs; ``url`` is what it is dialled at."""

    process: subprocess.Popen[str]
    url: str
    log: Path

    @property
    def port(self) -> int:
        return int(self.url.rpartition(":")[2])

    @property
    def seen(self) -> list[dict[str, Any]]:
        """The observations that it was asked about: arrays as [dtype, shape]."""
        return [json.loads(line) for line in self.log.read_text().splitlines()] if self.log.exists() else []


@contextmanager
def running(folder: Path, word: str = "", port: int = 0) -> Iterator[Peer]:
    """A server for as long as it is wanted; what it was asked is logged in ``folder``."""
    log = folder / "asked.jsonl"
    words = [sys.executable, __file__, str(port), word, str(log)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout is not None
        try:
            yield Peer(process, f"ws://127.0.0.1:{int(process.stdout.readline())}", log)
        finally:
            process.kill()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), sys.argv[2], Path(sys.argv[3])))
