"""JSON-RPC 2.0 over a link: text frames, calls answered in any order, errors that stay typed."""

from __future__ import annotations

import asyncio
import inspect
import itertools
import json
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from hudsim.errors import HudsimError, LinkLost, UnknownName, UsageError, WireError, from_wire, words
from hudsim.loop.bounded import is_cancellation
from hudsim.net.link import Link

__all__ = ["Method", "RpcClient", "serve_rpc"]

log = logging.getLogger(__name__)

Method = Callable[..., Awaitable[Any]]

_NO_JSON, _INVALID, _NO_METHOD, _BAD_PARAMS, _FAILED = -32700, -32600, -32601, -32602, -32000

_MOST_CALLS = 32
_LONGEST_ID = 80


async def serve_rpc(link: Link, methods: Mapping[str, Method]) -> None:
    """Answer calls until the peer is gone. Each call is a task of its own; those under way end with the link.

    While 32 calls are under way no more are received: a peer that does not read its answers waits, too.
    """
    calls: set[asyncio.Task[None]] = set()
    try:
        while True:
            while len(calls) >= _MOST_CALLS:
                await link.while_open(_any_of(calls))
            frame = await link.receive()
            task = asyncio.create_task(_answer(link, methods, frame))
            calls.add(task)
            task.add_done_callback(calls.discard)
    except LinkLost:
        return
    finally:
        for task in calls:
            task.cancel()


async def _any_of(calls: set[asyncio.Task[None]]) -> None:
    await asyncio.wait(calls, return_when=asyncio.FIRST_COMPLETED)


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
        call = _parsed(frame)
        call_id = _id_of(call)
        method, params = _called(methods, call)
        _check_params(call["method"], method, params)
        result = await method(**params)
        # What cannot be said is this method's fault, not the link's.
        reply = json.dumps({"jsonrpc": "2.0", "id": call_id, "result": result})
        return reply if "id" in call else None
    except HudsimError as error:
        return _error(call_id, _code_of(error), error.message, {"name": error.name, **error.data})
    except BaseException as error:  # whoever called must not wait for ever because of our bug
        if is_cancellation(error):
            raise
        log.exception("a method failed")
        return _error(call_id, _FAILED, f"{type(error).__name__}: {words(error)}", {"name": "internal"})


class _NotJsonError(WireError):
    """A frame that holds none."""


def _parsed(frame: bytes | str) -> Any:
    try:
        return json.loads(frame if isinstance(frame, str) else frame.decode())
    except UnicodeDecodeError:
        raise _NotJsonError("got bytes that are no UTF-8, expected JSON") from None
    except json.JSONDecodeError as error:
        raise _NotJsonError(f"got no JSON: {error.msg[:1].lower()}{error.msg[1:]} at character {error.pos}") from None
    except ValueError:
        raise _NotJsonError("got a number of too many digits in JSON") from None
    except RecursionError:
        raise _NotJsonError("got JSON that is nested too deep") from None


def _id_of(call: Any) -> Any:
    call_id = call.get("id") if isinstance(call, dict) else None
    if not isinstance(call_id, str | int | float | None) or (isinstance(call_id, str) and len(call_id) > _LONGEST_ID):
        raise WireError(
            f"id: got {_cut(repr(call_id))}, expected a number or a text of {_LONGEST_ID} characters at most"
        )
    return call_id


def _called(methods: Mapping[str, Method], call: Any) -> tuple[Method, dict[str, Any]]:
    if not isinstance(call, dict) or not isinstance(call.get("method"), str):
        raise WireError("got no JSON-RPC 2.0 call, expected an object with method, params, id")
    params = {} if call.get("params") is None else call["params"]
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
        wrong = f"unknown {_cut(', '.join(unknown))}" if unknown else f"{', '.join(missing)} is missing"
        raise UsageError(f"{name}: {wrong}; it takes {', '.join(takes) or 'nothing'}")


def _code_of(error: HudsimError) -> int:
    if isinstance(error, UnknownName) and error.data.get("kind") == "method":
        return _NO_METHOD
    kinds: dict[type[Exception], int] = {_NotJsonError: _NO_JSON, WireError: _INVALID, UsageError: _BAD_PARAMS}
    return next((code for kind, code in kinds.items() if isinstance(error, kind)), _FAILED)


def _error(call_id: Any, code: int, message: str, data: Mapping[str, Any]) -> str:
    error = {"code": code, "message": message, "data": data}
    try:
        return json.dumps({"jsonrpc": "2.0", "id": call_id, "error": error})
    except (TypeError, ValueError, RecursionError):  # its data is whatever the raiser put there
        return json.dumps({"jsonrpc": "2.0", "id": call_id, "error": error | {"data": {"name": data["name"]}}})


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST_ID else f"{text[:_LONGEST_ID]}…"


class RpcClient:
    """The calling end. ``call`` returns what the method returned, or raises the error that it raised.

    When the link ends, every call under way raises :class:`~hudsim.errors.LinkLost` at once.

    lost
        How the link has ended. None: it lives. A call that raises another LinkLost raises one of the method's.
    """

    def __init__(self, link: Link) -> None:
        self._link = link
        self._ids = itertools.count(1)
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        self.lost: HudsimError | None = None
        self._reader = asyncio.create_task(self._read(), name="hudsim-rpc-reader")

    async def call(self, method: str, *, timeout_s: float | None = None, **params: Any) -> Any:
        """Call ``method``. ``timeout_s`` None: as long as the link lives.

        Raises the method's own typed error, TimeoutError, or :class:`~hudsim.errors.LinkLost`.
        """
        if self.lost is not None:
            raise self.lost
        call_id = next(self._ids)
        try:
            frame = json.dumps({"jsonrpc": "2.0", "id": call_id, "method": method, "params": params})
        except (TypeError, ValueError, RecursionError) as error:
            raise UsageError(f"{method}: what it is called with is no plain JSON: {error}") from None
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._waiting[call_id] = future
        try:
            async with asyncio.timeout(timeout_s):
                await self._send(frame)
                return await future
        finally:
            self._waiting.pop(call_id, None)
            if future.done() and not future.cancelled():
                future.exception()  # it may have come when nobody waited any more

    async def close(self) -> None:
        """Close the link. Idempotent."""
        await self._link.close()
        await asyncio.wait([self._reader])

    async def _send(self, frame: str) -> None:
        try:
            await self._link.send(frame)
        except HudsimError as error:
            self.lost = self.lost or error
            raise self.lost from None

    async def _read(self) -> None:
        try:
            while True:
                self._settle(json.loads(await self._link.receive()))
        except Exception as error:  # noqa: BLE001 - whatever a peer may send, nobody is left waiting
            lost = error if isinstance(error, HudsimError) else WireError(f"{self._link.peer}: no JSON-RPC: {error}")
            self.lost = self.lost or lost
        for future in self._waiting.values():
            if not future.done():
                future.set_exception(self.lost)

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
