"""Two threads write to one connection, and the peer receives whole frames in order."""

from __future__ import annotations

import asyncio
import threading

import websockets

from hudsim.net import Link, Server

MANY = 300
BIG = 400_000  # more than a loopback socket takes at once, many times over


async def _serve_and_read(frames_at_once: int, size: int) -> list[bytes]:
    """Another thread sends numbered frames through the gate while the loop thread sends its own."""
    refused: list[bytes] = []

    async def handler(link: Link) -> None:
        link.open_gate()

        def other_thread() -> None:
            for number in range(MANY):
                frame = b"T" + number.to_bytes(4) + bytes(size)
                if not link.send_now([frame]):
                    refused.append(frame)

        thread = threading.Thread(target=other_thread)
        thread.start()
        for number in range(frames_at_once):
            await link.send(b"L" + number.to_bytes(4) + bytes(100))
            await asyncio.sleep(0)
        await asyncio.to_thread(thread.join)
        link.shut_gate()
        await link.send(b"end")
        await link.receive()

    server = Server({"/": handler}, bearer=None)
    address = await server.start()
    received: list[bytes] = []
    async with websockets.connect(str(address), max_size=None, compression=None, ping_interval=0.05) as ws:
        async for frame in ws:
            assert isinstance(frame, bytes)
            if frame == b"end":
                break
            received.append(frame[:5])
            assert frame[5:].strip(b"\x00") == b""
        await ws.send("done")
    await server.stop()
    assert len(received) == MANY + frames_at_once - len(refused)
    return received


def test_frames_of_two_threads_never_mix_and_each_keeps_its_order() -> None:
    for size in (10, BIG):
        received = asyncio.run(asyncio.wait_for(_serve_and_read(200, size), 30))
        for kind in (b"T", b"L"):
            numbers = [int.from_bytes(frame[1:]) for frame in received if frame[:1] == kind]
            assert numbers == sorted(numbers)
        assert any(frame[:1] == b"T" for frame in received)


def test_a_gate_that_is_shut_sends_nothing_and_the_connection_goes_on() -> None:
    async def main() -> None:
        sent: list[bool] = []

        async def handler(link: Link) -> None:
            sent.append(link.send_now([b"before it is open"]))
            link.open_gate()
            sent.append(link.send_now([b"one"]))
            link.shut_gate()
            link.shut_gate()
            sent.append(link.send_now([b"after it is shut"]))
            await link.send(b"two")
            await link.receive()

        server = Server({"/": handler}, bearer=None)
        async with websockets.connect(str(await server.start())) as ws:
            assert [await ws.recv(), await ws.recv()] == [b"one", b"two"]
            await ws.send("done")
        await server.stop()
        assert sent == [False, True, False]

    asyncio.run(asyncio.wait_for(main(), 10))
