from __future__ import annotations

import shutil
import subprocess
import sys
import threading

import pytest

from hudsim.net import host_id

_SAY = "from hudsim.net import host_id; print(host_id())"


def _said_by(*command: str) -> str:
    return subprocess.run(
        [*command, sys.executable, "-c", _SAY], capture_output=True, text=True, check=True
    ).stdout.strip()


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux says which processes share a loopback")
def test_processes_that_share_a_loopback_say_the_same() -> None:
    said: list[str] = []
    thread = threading.Thread(target=lambda: said.append(host_id()))
    thread.start()
    thread.join()
    assert {host_id(), said[0], _said_by()} == {host_id()}


def test_a_process_in_a_network_of_its_own_says_something_else() -> None:
    apart = ["unshare", "--user", "--net"]
    if shutil.which("unshare") is None or subprocess.run([*apart, "true"], capture_output=True, check=False).returncode:
        pytest.skip("no network namespace can be made here")
    assert _said_by(*apart) != host_id()


def test_where_nothing_tells_processes_apart_no_two_say_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hudsim.net.host.Path", lambda _: _Missing())
    asked_anew = host_id.__wrapped__
    assert len({asked_anew(), asked_anew(), _said_by(), ""}) == 4


class _Missing:
    def stat(self) -> None:
        raise FileNotFoundError
