"""``Capability``: where and how an agent reaches one thing that an environment serves."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import urlsplit

from hudsim.errors import UsageError, WireError
from hudsim.given import given_a, given_text, refusal

__all__ = ["Capability", "check_name"]

_DISPLAYS = 65536 - 5900
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._~-]{0,99}")


def check_name(name: Any) -> str:
    """``name`` itself. Raises :class:`~hudsim.errors.UsageError` for one that no URL's path can hold as it is."""
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise refusal("capability name", name, "letters, digits, '_', '-', '.', '~', 100 at most")
    return name


@dataclass(frozen=True)
class Capability:
    """One thing that an environment serves: a robot, a shell, a browser, any TCP daemon.

    ``name`` is the capability's own name (``robot``), ``protocol`` what is spoken there (``hudsim/1``,
    ``ssh/2``), ``url`` where (with its bearer token, if it needs one), ``params`` what the protocol wants
    told beforehand: for a robot ``{"contract": {...}}``. All of it is plain JSON.

    The class methods make those of the usual protocols; any other is ``Capability(name, protocol, url)``.
    Raises :class:`~hudsim.errors.UsageError` for a name that cannot stand in a URL, and for values of other types.
    """

    name: str
    protocol: str
    url: str
    params: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_name(self.name)
        given_text(self.protocol, f"protocol of capability {self.name}", "its name, as in ssh/2")
        given_text(self.url, f"url of capability {self.name}", "scheme://host:port")
        given_a(dict, self.params, f"params of capability {self.name}", "a dict of plain JSON")

    @classmethod
    def ssh(cls, *, url: str, name: str = "shell", user: str = "agent", host_pubkey: str, **params: Any) -> Capability:
        """``ssh/2``: a shell and its files. ``host_pubkey`` is what the client must find there."""
        return cls(name, "ssh/2", _url(url, "ssh", 22), {"user": user, "host_pubkey": host_pubkey, **params})

    @classmethod
    def robot(cls, *, url: str, name: str = "robot", contract: Mapping[str, Any], **params: Any) -> Capability:
        """``hudsim/1``: a world with a contract."""
        return cls(
            name,
            "hudsim/1",
            _url(url, "ws", None),
            {"contract": dict(given_a(Mapping, contract, "contract", "an object")), **params},
        )

    @classmethod
    def mcp(cls, *, url: str, name: str = "mcp", **params: Any) -> Capability:
        """``mcp``: tools over the Model Context Protocol, at an ``http://`` or ``ws://`` URL."""
        return cls(name, "mcp", _url(url, "http", None), params)

    @classmethod
    def cdp(cls, *, url: str, name: str = "browser", **params: Any) -> Capability:
        """``cdp/1.3``: Chromium's DevTools."""
        return cls(name, "cdp/1.3", _url(url, "ws", 9222), params)

    @classmethod
    def rfb(cls, *, url: str, name: str = "screen", display: int = 0, **params: Any) -> Capability:
        """``rfb/3.8``: a screen over VNC. ``display`` N stands for port 5900 + N where the URL says none."""
        if type(display) is not int or not 0 <= display < _DISPLAYS:
            raise refusal("display", display, "a screen's number, from 0")
        return cls(name, "rfb/3.8", _url(url, "rfb", 5900 + display), {"display": display, **params})

    @classmethod
    def filetracking(cls, *, url: str, name: str = "filetracking", **params: Any) -> Capability:
        """``filetracking/1``: which files a workspace changed, and when."""
        return cls(name, "filetracking/1", _url(url, "tcp", None), params)

    @property
    def endpoint(self) -> tuple[str, int]:
        """Host and port of its daemon. Raises :class:`~hudsim.errors.UsageError` if the URL names none."""
        host, port, scheme = _host_and_port(self.url)
        port = port or _PORTS.get(scheme)
        if not host or port is None:
            raise UsageError(f"capability {self.name}: got the url {self._shown}, expected scheme://host:port")
        return host, port

    def moved(self, host: str, port: int) -> Capability:
        """The same, reached at another host and port."""
        parts = urlsplit(self.url)
        user = f"{parts.netloc.rpartition('@')[0]}@" if "@" in parts.netloc else ""
        return replace(self, url=parts._replace(netloc=f"{user}{host}:{port}").geturl())

    def to_manifest(self) -> dict[str, Any]:
        """The JSON form."""
        return {"name": self.name, "protocol": self.protocol, "url": self.url, "params": self.params}

    @classmethod
    def from_manifest(cls, manifest: Mapping[str, Any]) -> Capability:
        """From the JSON form; keys that this version does not know are left out.

        Raises :class:`~hudsim.errors.WireError` for what is no capability.
        """
        if not isinstance(manifest, Mapping):
            raise WireError(f"a capability's manifest: {refusal('manifest', manifest, 'an object').message}")
        name, protocol, url, params = (manifest.get(key) for key in ("name", "protocol", "url", "params"))
        try:
            return cls(name, protocol, url, params or {})  # type: ignore[arg-type]
        except UsageError as error:
            raise WireError(f"a capability's manifest: {error.message}") from None

    @property
    def _shown(self) -> str:
        """The URL without what may be secret in it."""
        return repr(self.url.partition("?")[0])


_PORTS = {"http": 80, "https": 443, "ws": 80, "wss": 443, "ssh": 22}


def _url(url: str, scheme: str, port: int | None) -> str:
    """``host``, ``host:port`` or a URL as a whole URL, with the protocol's own port where it says none."""
    given_text(url, "url", f"{scheme}://host:port")
    whole = url if "://" in url else f"{scheme}://{url}"
    host, own_port, _ = _host_and_port(whole)
    if not host:
        raise UsageError(f"got the url {url.partition('?')[0]!r}, expected {scheme}://host:port")
    if own_port is None and port is not None:
        parts = urlsplit(whole)
        whole = parts._replace(netloc=f"{parts.netloc}:{port}").geturl()
    return whole


def _host_and_port(url: str) -> tuple[str | None, int | None, str]:
    """Of a URL, with its scheme. No host: it is none."""
    try:
        parts = urlsplit(url)
        return parts.hostname, parts.port, parts.scheme
    except ValueError:  # a port beyond 65535, half an IPv6 address
        return None, None, ""
