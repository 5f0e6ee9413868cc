"""What docs/openpi.md tells people to do is done here, word for word but for the port."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.policies.openpi_peer import Peer, running
from tests.test_readme import ROOT, blocks, run

PAGE = (ROOT / "docs" / "openpi.md").read_text()
COMMANDS = [line for block in blocks("sh", PAGE) for line in block.splitlines()]

# Where openpi-client is not installed (it holds numpy below 2), what `loop.py` needs of it.
CLIENT = """
from websockets.sync.client import connect
from hudsim.wire.codec import decode, encode


class WebsocketClientPolicy:
    def __init__(self, host, port):
        self._ws = connect(f"ws://{host}:{port}", compression=None, max_size=None)
        decode(self._ws.recv())

    def infer(self, observation):
        self._ws.send(encode(observation))
        return decode(self._ws.recv())
"""


@pytest.fixture(scope="module")
def peer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Peer]:
    with running(tmp_path_factory.mktemp("peer"), "stay") as server:
        yield server


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, peer: Peer) -> Path:
    """A folder with the files that the page shows."""
    path = tmp_path_factory.mktemp("page")
    for block in blocks("python", PAGE):
        (path / block.splitlines()[0].removeprefix("# ")).write_text(block.replace("8000", str(peer.port)))
    (path / "info.json").write_text(blocks("json", PAGE)[0])
    if importlib.util.find_spec("openpi_client") is None:
        (path / "openpi_client").mkdir()
        (path / "openpi_client" / "websocket_client_policy.py").write_text(CLIENT)
    return path


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_runs(command: str, folder: Path, peer: Peer) -> None:
    before = len(peer.seen)
    said = json.loads(
        run(f"-m hudsim.cli {command.removeprefix('hudsim ')} --json".replace("8000", str(peer.port)), folder)
    )
    assert len(peer.seen) > before
    if command.startswith("hudsim run"):
        assert all(not episode["end"].startswith("aborted") for episode in said["episodes"])
    else:
        assert said["verdicts"].keys() <= {"failed", "partial"}


def test_the_adapter_that_is_shown_gives_the_keys_of_the_policy(folder: Path, peer: Peer) -> None:
    run(f"-m hudsim.cli run arm-lift -p openpi:{peer.url} --adapter droid.py:Droid --max-steps 2", folder)
    assert peer.seen[-1] == {
        "observation/exterior_image_1_left": ["|u1", [224, 224, 3]],
        "observation/wrist_image_left": ["|u1", [224, 224, 3]],
        "observation/joint_position": ["<f4", [7]],
        "observation/gripper_position": ["<f4", [1]],
        "prompt": peer.seen[-1]["prompt"],
    }


def test_the_world_that_is_shown_ends_where_the_loop_does(folder: Path, peer: Peer) -> None:
    words = f"-m hudsim.cli run slider_world.py:SliderWorld -p openpi:{peer.url} --chunks open-loop --chunk 5 --json"
    (episode,) = json.loads(run(words, folder))["episodes"]
    assert episode["end"] == "terminated"
    assert run("loop.py", folder).split() == [str(episode["success"]), str(episode["ticks"])]
    run("-m hudsim.cli check slider_world.py:SliderWorld", folder)
    (bridge,) = (block for block in blocks("python", PAGE) if block.startswith("# slider_world.py"))
    assert len(bridge.splitlines()) == 28
    assert "becomes a world in 28 lines" in PAGE


def test_the_features_that_are_shown_make_a_contract(folder: Path) -> None:
    assert run("from_lerobot.py", folder).splitlines() == [
        "observation.state float32 [3] pan.pos lift.pos gripper.pos",
        "observation.images.top uint8 [480, 640, 3]",
        "action float32 [3] pan.pos lift.pos gripper.pos",
    ]
