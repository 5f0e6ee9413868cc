"""``network=True``: a network of one's own, from which the world is reached, and this host is not."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from hudsim.coding import Workspace, pasta
from hudsim.coding.pasta import Pasta
from hudsim.errors import SandboxError, UsageError
from tests.coding.outside import HOST, LATER, METADATA, OUTSIDE
from tests.coding.test_left_behind import assert_nothing_is_left_of

pytestmark = pytest.mark.xdist_group("pasta")  # what is found is found once

HERE = Path(__file__).parents[2]
APART = ["unshare", "--net", "--mount"]


@pytest.fixture(scope="module")
def found() -> Any:
    """What a sandbox of a host made for it, with all that is outside, reaches."""
    if Pasta.found() is None:
        pytest.skip("there is no pasta (apt-get install passt)")
    if os.geteuid() != 0:
        pytest.skip("only root can make a host and what is outside of it")
    if shutil.which("ip") is None:
        pytest.skip("there is no ip (apt-get install iproute2)")
    if not Path("/proc/net/if_inet6").exists():
        pytest.skip("this kernel has no IPv6, which is tried too")
    cable = "ip link add cable type veth peer name far"
    if subprocess.run([*APART, *cable.split()], capture_output=True, check=False).returncode:
        pytest.skip("no network with a cable can be made here")
    done = subprocess.run(
        [*APART, sys.executable, "-m", "tests.coding.outside"],
        cwd=HERE,
        capture_output=True,
        text=True,
        check=False,
        timeout=50,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_what_is_outside_is_reached_also_by_name(found: Any) -> None:
    everything = {(address, kind) for address in OUTSIDE for kind in ("SOCK_STREAM", "SOCK_DGRAM")}
    named = {("somewhere.example", "SOCK_STREAM"), ("somewhere.example", "SOCK_DGRAM")}
    assert set(map(tuple, found["outside"])) == everything | named


def test_no_address_of_this_host_is_reached(found: Any) -> None:
    assert len(found["control"]) == 1  # what comes is seen
    assert found["host"] == []
    assert found["asked"] == [], f"of {HOST} and {LATER}"


def test_what_a_cloud_tells_its_machines_is_not_reached(found: Any) -> None:
    assert found["metadata from the host"] == ["outside"] * len(METADATA)
    assert found["metadata"] == []


def test_the_card_says_what_was_tried(found: Any) -> None:
    assert found["card"]["holds"] is True
    assert found["card"]["how"].startswith("own namespace, pasta")
    assert {"127.0.0.1", "198.51.100.2", "2001:db8:1::2"} <= set(
        found["card"]["how"].partition("tried: ")[2].split(", ")
    )


def test_one_that_somebody_ended_is_made_again_as_tight(found: Any) -> None:
    assert {kind for _, kind in json.loads(found["again"])} == {"SOCK_STREAM", "SOCK_DGRAM"}
    assert found["asked again"] == []


def test_it_ends_with_the_workspace(found: Any) -> None:
    assert len(found["running"]) == 1
    assert found["left"] == []


def test_it_ends_with_an_owner_that_is_killed(found: Any) -> None:
    assert len(found["killed"]["running"]) == 1
    assert_nothing_is_left_of(found["killed"]["pid"])


def test_a_host_without_a_way_out_says_so(found: Any) -> None:
    assert "no default route" in found["alone"]


def test_without_pasta_it_is_refused_with_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Pasta, "found", lambda: None)
    with pytest.raises(UsageError, match=r"apt-get install passt.*network='host'"):
        Workspace(network=True)


def test_one_that_does_not_answer_is_said_in_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "pasta").write_text("#!/bin/sh\nexec sleep 60\n")
    (tmp_path / "pasta").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setattr(pasta, "_VERSION_S", 0.2)
    Pasta.found.cache_clear()
    try:
        with pytest.raises(SandboxError, match="pasta does not say which it is"):
            Pasta.found()
    finally:
        Pasta.found.cache_clear()


# As the first process of a container is, to which orphans come.
_FIRST = """
import asyncio, ctypes, pathlib
from hudsim.coding import Box, Limits
async def main():
    async with Box(limits=Limits(), guest_path="/workspace", network=True) as box:
        await box.run("true")
assert ctypes.CDLL(None).prctl(36, 1) == 0
asyncio.run(main())
children = " ".join(path.read_text() for path in pathlib.Path("/proc/self/task").glob("*/children")).split()
stats = [pathlib.Path("/proc", child, "stat").read_text() for child in children]
print([stat for stat in stats if stat.rpartition(")")[2].split()[0] == "Z"])
"""


def test_it_leaves_no_dead_process_to_whom_orphans_come() -> None:
    if Pasta.found() is None:
        pytest.skip("there is no pasta (apt-get install passt)")
    done = subprocess.run(
        [sys.executable, "-c", _FIRST], cwd=HERE, capture_output=True, text=True, check=False, timeout=50
    )
    if "no default route" in done.stderr:
        pytest.skip("this host has no way out")
    assert (done.stdout, done.stderr) == ("[]\n", "")
