"""Plain HTTP/1.1 by hand, for what a health check or a foreign client would send."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from hudsim.net import Address

__all__ = ["get", "get_json"]


async def get(address: Address, path: str, **headers: str) -> tuple[int, str]:
    """(status, body) of a ``GET`` to ``address``."""
    reader, writer = await asyncio.open_connection(address.host, address.port)
    lines = [f"GET {path} HTTP/1.1", f"Host: {address.netloc}", *(f"{k}: {v}" for k, v in headers.items()), "", ""]
    try:
        writer.write("\r\n".join(lines).encode())
        answer = (await reader.read()).decode()
    finally:
        writer.close()
    await writer.wait_closed()
    head, _, body = answer.partition("\r\n\r\n")
    return int(head.split()[1]), body


async def get_json(address: Address, path: str) -> Any:
    """The JSON that a ``GET`` gives."""
    status, body = await get(address, path)
    assert status == 200, body
    return json.loads(body)
