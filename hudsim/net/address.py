"""``Address``: a server's URL taken apart, with its bearer token kept out of messages."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from urllib.parse import parse_qs, quote, urlsplit

from hudsim.errors import UsageError

__all__ = ["Address", "new_token"]

_PORTS = {"ws": 80, "wss": 443}


def new_token() -> str:
    """A fresh secret, 128 bits, safe in a URL."""
    return secrets.token_urlsafe(16)


@dataclass(frozen=True, slots=True)
class Address:
    """``ws://host:port/path?bearer=token``. ``bearer`` None: the server asks for none. Printing leaves it out."""

    host: str
    port: int
    path: str = "/"
    bearer: str | None = None
    tls: bool = False

    @classmethod
    def parse(cls, url: str) -> Address:
        """From a URL. Raises :class:`~hudsim.errors.UsageError` for another scheme or a missing host."""
        shown = url.partition("?")[0]
        try:
            parts = urlsplit(url)
        except ValueError as error:
            raise UsageError(f"got {shown!r}, expected ws://host:port/path: {error}") from None
        if parts.scheme not in _PORTS or not parts.hostname:
            raise UsageError(f"got {url.partition('?')[0]!r}, expected ws://host:port/path or wss://…")
        try:
            port = parts.port or _PORTS[parts.scheme]
        except ValueError:
            raise UsageError(f"got port in {parts.netloc!r}, expected 1 to 65535") from None
        bearer = parse_qs(parts.query).get("bearer", [None])[0]
        return cls(parts.hostname, port, parts.path or "/", bearer, parts.scheme == "wss")

    @property
    def netloc(self) -> str:
        """``host:port``, for messages."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def url(self) -> str:
        """The whole URL, with the token."""
        return str(self) + (f"?bearer={quote(self.bearer)}" if self.bearer else "")

    def at(self, path: str) -> Address:
        """The same server under another path."""
        return Address(self.host, self.port, path, self.bearer, self.tls)

    def __str__(self) -> str:
        return f"{'wss' if self.tls else 'ws'}://{self.netloc}{self.path}"

    def __repr__(self) -> str:
        return f"<Address {self}>"
