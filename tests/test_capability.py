"""Capabilities: whole URLs, plain JSON, and a place that can be dialled."""

from __future__ import annotations

import pytest

from hudsim.capability import Capability
from hudsim.errors import UsageError


@pytest.mark.parametrize(
    ("capability", "protocol", "url"),
    [
        (Capability.ssh(url="host", host_pubkey="k"), "ssh/2", "ssh://host:22"),
        (Capability.ssh(url="host:2222", host_pubkey="k"), "ssh/2", "ssh://host:2222"),
        (
            Capability.robot(url="ws://host:8000/robot/a?bearer=x", contract={}),
            "hudsim/1",
            "ws://host:8000/robot/a?bearer=x",
        ),
        (Capability.mcp(url="http://host:8000/mcp"), "mcp", "http://host:8000/mcp"),
        (Capability.cdp(url="ws://host"), "cdp/1.3", "ws://host:9222"),
        (Capability.rfb(url="host", display=2), "rfb/3.8", "rfb://host:5902"),
        (Capability.filetracking(url="tcp://host:1"), "filetracking/1", "tcp://host:1"),
    ],
)
def test_the_usual_protocols_have_their_own_ports(capability: Capability, protocol: str, url: str) -> None:
    assert (capability.protocol, capability.url) == (protocol, url)
    assert Capability.from_manifest(capability.to_manifest()) == capability


def test_a_capability_can_be_reached_elsewhere_with_all_else_the_same() -> None:
    moved = Capability("x", "http", "http://user@host:80/deep/path?q=1", {"a": 1}).moved("127.0.0.1", 9)
    assert moved.url == "http://user@127.0.0.1:9/deep/path?q=1"
    assert moved.params == {"a": 1}


def test_a_place_is_a_host_and_a_port() -> None:
    assert Capability("x", "http", "http://host/").endpoint == ("host", 80)
    assert Capability("x", "x/1", "tcp://[::1]:9").endpoint == ("::1", 9)


@pytest.mark.parametrize("url", ["nowhere", "x://host", "tcp://host:99999", "tcp://:9"])
def test_a_url_without_a_place_is_refused_without_its_secrets(url: str) -> None:
    with pytest.raises(UsageError, match="expected scheme://host:port") as refused:
        _ = Capability("x", "x/1", f"{url}?bearer=secret").endpoint
    assert "secret" not in str(refused.value)


def test_a_protocols_url_needs_a_host() -> None:
    with pytest.raises(UsageError, match="expected ssh://host:port"):
        Capability.ssh(url="ssh://", host_pubkey="k")
