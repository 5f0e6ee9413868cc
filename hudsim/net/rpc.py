"""JSON-RPC 2.0 over a link: text frames, calls answered in any order, errors that stay typed."""

from __future__ import annotations

import asyncio
import inspect
import itertools
import json
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from hudsim.errors import HudsimError, LinkLost, UnknownName, UsageError, WireError, from_wire
from hudsim.net.link import Link

__all__ = ["Method", "RpcClient", "serve_rpc"]

log = logging.getLogger(__name__)

Method = Callable[..., Awaitable[Any]]

_NO_JSON, _INVALID, _NO_METHOD, _BAD_PARAMS, _FAILED = -32700, -32600, -32601, -32602, -32000


async def serve_rpc(link: Link, methods: Mapping[str, Method]) -> None:
    """Answer calls until the peer is gone. Each call is a task of its own; those under way end with the link."""
    calls: set[asyncio.Task[None]] = set()
    try:
        while True:
            frame = await link.receive()
            task = asyncio.create_task(_answer(link, methods, frame))
            calls.add(task)
            task.add_done_callback(calls.discard)
    except LinkLost:
        return
    finally:
        for task in calls:
            task.cancel()


async def _answer(link: Link, methods: Mapping[str, Method], frame: bytes | str) -> None:
    reply = await _reply(methods, frame)
    if reply is not None:
        try:
            await link.send(reply)
        except HudsimError:
            return  # the caller has gone


async def _reply(methods: Mapping[str, Method], frame: bytes | str) -> str | None:
    call_id: Any = None
    try:
        call = json.loads(frame)
    except ValueError as error:
        return _error(None, _NO_JSON, f"got no JSON: {error}", {"name": WireError.name})
    try:
        call_id = call.get("id") if isinstance(call, dict) else None
        method, params = _called(methods, call)
        _check_params(str(call["method"]), method, params)
        result = await method(**params)
        # What cannot be said is this method's fault, not the link's.
        reply = json.dumps({"jsonrpc": "2.0", "id": call_id, "result": result})
        return reply if "id" in call else None
    except HudsimError as error:
        code = _INVALID if isinstance(error, WireError) else _BAD_PARAMS if isinstance(error, UsageError) else _FAILED
        if isinstance(error, UnknownName) and error.data.get("kind") == "method":
            code = _NO_METHOD
        return _error(call_id, code, error.message, {"name": error.name, **error.data})
    except (TypeError, ValueError) as error:
        return _error(call_id, _BAD_PARAMS, str(error), {"name": UsageError.name})
    except Exception as error:  # whoever called must not wait for ever because of our bug
        log.exception("a method failed")
        return _error(call_id, _FAILED, f"{type(error).__name__}: {error}", {"name": "internal"})


def _called(methods: Mapping[str, Method], call: Any) -> tuple[Method, dict[str, Any]]:
    if not isinstance(call, dict) or not isinstance(call.get("method"), str):
        raise WireError("got no JSON-RPC 2.0 call, expected an object with method, params, id")
    params = call.get("params") or {}
    if not isinstance(params, dict):
        raise UsageError(f"params: got a {type(params).__name__}, expected an object")
    method = methods.get(call["method"])
    if method is None:
        raise UnknownName("method", call["method"], methods)
    return method, params


def _check_params(name: str, method: Method, params: Mapping[str, Any]) -> None:
    takes = inspect.signature(method).parameters
    required = [p.name for p in takes.values() if p.default is p.empty]
    unknown, missing = [key for key in params if key not in takes], [key for key in required if key not in params]
    if unknown or missing:
        wrong = f"unknown {', '.join(unknown)}" if unknown else f"{', '.join(missing)} is missing"
        raise UsageError(f"{name}: {wrong}; it takes {', '.join(takes) or 'nothing'}")


def _error(call_id: Any, code: int, message: str, data: Mapping[str, Any]) -> str:
    error = {"code": code, "message": message, "data": data}
    return json.dumps({"jsonrpc": "2.0", "id": call_id, "error": error})


class RpcClient:
    """The calling end. ``call`` returns what the method returned, or raises the error that it raised.

    When the link ends, every call under way raises :class:`~hudsim.errors.LinkLost` at once.
    """

    def __init__(self, link: Link) -> None:
        self._link = link
        self._ids = itertools.count(1)
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        self._lost: HudsimError | None = None
        self._reader = asyncio.create_task(self._read(), name="hudsim-rpc-reader")

    async def call(self, method: str, *, timeout_s: float | None = None, **params: Any) -> Any:
        """Call ``method``. ``timeout_s`` None: as long as the link lives.

        Raises the method's own typed error, TimeoutError, or :class:`~hudsim.errors.LinkLost`.
        """
        if self._lost is not None:
            raise self._lost
        call_id = next(self._ids)
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._waiting[call_id] = future
        try:
            frame = {"jsonrpc": "2.0", "id": call_id, "method": method, "params": params}
            await self._link.send(json.dumps(frame))
            async with asyncio.timeout(timeout_s):
                return await future
        finally:
            self._waiting.pop(call_id, None)
            if future.done() and not future.cancelled():
                future.exception()  # it may have come when nobody waited any more

    async def close(self) -> None:
        """Close the link. Idempotent."""
        await self._link.close()
        await asyncio.wait([self._reader])

    async def _read(self) -> None:
        try:
            while True:
                self._settle(json.loads(await self._link.receive()))
        except Exception as error:  # noqa: BLE001 - whatever a peer may send, nobody is left waiting
            lost = error if isinstance(error, HudsimError) else WireError(f"{self._link.peer}: no JSON-RPC: {error}")
            self._lost = lost
        for future in self._waiting.values():
            if not future.done():
                future.set_exception(self._lost)

    def _settle(self, reply: Any) -> None:
        if not isinstance(reply, dict):
            raise WireError(f"{self._link.peer}: got {reply!r:.60}, expected a JSON-RPC reply")
        future = self._waiting.get(reply.get("id", 0))
        if future is None or future.done():
            return
        if (error := reply.get("error")) is None:
            future.set_result(reply.get("result"))
            return
        data = dict(error.get("data") or {})
        future.set_exception(from_wire(str(data.pop("name", "error")), str(error.get("message")), data))
