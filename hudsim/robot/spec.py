"""``WorldSpec``: a world that another process can make, and how it is to be served. Plain JSON both ways."""

from __future__ import annotations

import functools
import inspect
import json
import ssl
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Self

from hudsim.contract import Contract
from hudsim.errors import UsageError
from hudsim.net.address import new_token
from hudsim.robot.bridge import RobotBridge
from hudsim.target import load_target, target_of

__all__ = ["Serving", "WorldSpec"]


@dataclass(frozen=True, slots=True)
class WorldSpec:
    """A bridge class or factory, ``module:attr`` or ``file.py:attr``, and its keyword arguments (plain JSON).

    ``task_args`` go to every ``reset``.
    """

    target: str
    args: dict[str, Any] = field(default_factory=dict)
    task_args: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, bridge: RobotBridge | type[RobotBridge], args: Mapping[str, Any] | None = None) -> Self:
        """How to make ``bridge`` (an instance, or a class with ``args``) again in another process.

        Raises :class:`~hudsim.errors.UsageError` if that cannot be said in JSON; serve it inline then.
        """
        kind = bridge if isinstance(bridge, type) else type(bridge)
        keywords = dict(args or {})
        if not isinstance(bridge, type):
            positional, named = bridge.made_with
            parameters = list(inspect.signature(kind.__init__).parameters.values())[1:]
            names = [p.name for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD]
            if len(positional) > len(names):
                raise UsageError(f"{kind.__name__}: arguments without a name; use RobotEndpoint.inline")
            keywords = {**dict(zip(names, positional, strict=False)), **named}
        try:
            json.dumps(keywords)
        except TypeError as error:
            raise UsageError(
                f"{kind.__name__}: an argument cannot be sent to another process ({error}); use RobotEndpoint.inline"
            ) from None
        if "<locals>" in kind.__qualname__:
            message = f"{kind.__qualname__} is local to a function; move it to a module, or use RobotEndpoint.inline"
            raise UsageError(message)
        return cls(target_of(kind), keywords)

    def factory(self) -> Callable[..., RobotBridge]:
        """What makes the bridge; further keyword arguments may be given to it."""
        made = load_target(self.target)
        if not callable(made):
            raise UsageError(f"{self.target}: got a {type(made).__name__}, expected a RobotBridge class or a factory")
        return functools.partial(made, **self.args) if self.args else made


@dataclass(frozen=True, slots=True)
class Serving:
    """How a world is served.

    num_envs
        Slots. 1: what the world has by itself.
    mode, rate_hz
        Timing mode and control rate; None: the contract's own.
    encode
        {camera: encoding}: how cameras cross a link that is not local, over what the contract says. A camera is a
        feature's name or the last part of it, ``*`` all of them; ``raw``, ``jpeg`` or ``jpeg:QUALITY``.
    host, port, bearer, name
        Where; port 0 picks a free one. ``bearer`` None: a fresh token; "": everybody is let in.
    autostart, seed
        No environment in front: claims start episodes by themselves, with seeds counting up from this one.
    tls_cert, tls_key
        PEM files; with them the server speaks wss only. None: ws.
    watchdog_s
        How long the bridge may take for one call.
    """

    num_envs: int = 1
    mode: str | None = None
    rate_hz: float | None = None
    encode: dict[str, str] = field(default_factory=dict)
    host: str = "127.0.0.1"
    port: int = 0
    bearer: str | None = None
    name: str = "robot"
    autostart: bool = False
    seed: int = 0
    watchdog_s: float = 60.0
    tls_cert: str | None = None
    tls_key: str | None = None

    def to_json(self) -> dict[str, Any]:
        """As keyword arguments of the class."""
        return asdict(self)

    def adjust(self, contract: Contract) -> Contract:
        """The contract with the timing and the encodings asked for."""
        document = contract.to_json()
        if self.rate_hz is not None:
            document["control_rate"] = self.rate_hz
        if self.mode is not None:
            document["timing"] = {**document.get("timing", {}), "mode": self.mode}
        return Contract.load(document).encoded(self.encode)

    def slots(self, bridge: object, args: Mapping[str, Any]) -> int:
        """How many slots ``bridge`` (an instance or a class; None: not known yet), made with ``args``, is served with.

        A world that takes more by itself than ``args`` say has at least these.
        """
        counts = (self.num_envs, args.get("num_envs"), getattr(bridge, "num_envs", None))
        return max((count for count in counts if isinstance(count, int)), default=1)

    def with_bearer(self) -> Serving:
        """With a fresh token where none was given."""
        return self if self.bearer is not None else replace(self, bearer=new_token())

    def tls(self) -> ssl.SSLContext | None:
        """The server's TLS context; None without a certificate. Raises :class:`~hudsim.errors.UsageError`."""
        if self.tls_cert is None:
            return None
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        try:
            context.load_cert_chain(self.tls_cert, self.tls_key)
        except OSError as error:  # SSLError is one too
            raise UsageError(f"tls: cannot use {self.tls_cert} with {self.tls_key}: {error}") from None
        return context

    def tls_client(self) -> ssl.SSLContext | None:
        """What whoever started the server trusts: that very certificate, whatever host it names."""
        if self.tls_cert is None:
            return None
        context = ssl.create_default_context(cafile=self.tls_cert)
        context.check_hostname = False
        return context
