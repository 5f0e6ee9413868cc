from __future__ import annotations

import pytest

from hudsim.errors import UsageError
from hudsim.net import Address


def test_a_url_goes_through_whole() -> None:
    url = "ws://127.0.0.1:8123/robot/robot?bearer=s%2Fe"
    address = Address.parse(url)
    assert address == Address("127.0.0.1", 8123, "/robot/robot", "s/e")
    assert Address.parse(address.url) == address


def test_messages_never_show_the_bearer_token() -> None:
    address = Address.parse("ws://host:1/robot/robot?bearer=secret")
    assert "secret" not in f"{address} {address!r} {address.netloc}"


def test_ipv6_hosts_stand_in_brackets() -> None:
    address = Address.parse("ws://[::1]:8123/robot/robot")
    assert address.host == "::1"
    assert address.netloc == "[::1]:8123"
    assert Address.parse(address.url) == address


def test_another_path_keeps_the_server_and_its_token() -> None:
    assert Address.parse("wss://h:1/robot/robot?bearer=s").at("/control").url == "wss://h:1/control?bearer=s"


@pytest.mark.parametrize(
    "url", ["", "127.0.0.1:8000", "http://h:1/", "ws://", "ws:///path", "ws://h:99999/", "ws://h:x/"]
)
def test_what_is_no_ws_url_is_refused(url: str) -> None:
    with pytest.raises(UsageError):
        Address.parse(url)


def test_a_refused_url_does_not_show_its_token() -> None:
    with pytest.raises(UsageError) as refused:
        Address.parse("http://h:1/?bearer=secret")
    assert "secret" not in str(refused.value)
