"""A policy server of openpi's protocol, in a process of its own, played against worlds."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from websockets.asyncio.server import ServerConnection, serve

from hudsim import RobotAgent
from hudsim.contract import Contract
from hudsim.errors import ConnectError, PolicyDeadline, PolicyFailed, UsageError
from hudsim.policies import openpi_server
from hudsim.policies.openpi_server import OpenpiServer
from hudsim.robot.batched import BatchedModel
from hudsim.robot.chunks import RecedingHorizon
from hudsim.testing import ModelConformance
from tests.asyncrun import on_loop
from tests.cli.command import document, hudsim
from tests.policies.openpi_peer import Peer, running
from tests.robot.playing import joined
from tests.robot.worlds import inline

CARD = ("run", "test-card", "--max-steps", "25")
FAST = {"policy_deadline_s": 0.5, "warmup_s": 20.0}

# What openpi_client.msgpack_numpy.packb of openpi-client 0.1.2 makes, with msgpack 1.2.4 and numpy 1.26.4, of a map
# with policy "pi0", reset_pose [0.0, 0.5] and mean, the array [0.25, -1.0] of float64,
METADATA = bytes.fromhex(
    "83a6706f6c696379a3706930aa72657365745f706f736592cb0000000000000000cb3fe0000000000000a46d65616e84c40b"
    "5f5f6e6461727261795f5fc3c40464617461c410000000000000d03f000000000000f0bfc4056474797065a33c6638c40573"
    "686170659102"
)
# of observation/image, uint8 arange(12) as [2, 2, 3], observation/state, float32 [0, 0.5, 1], and prompt "pick",
OBSERVATION = bytes.fromhex(
    "83b16f62736572766174696f6e2f696d61676584c40b5f5f6e6461727261795f5fc3c40464617461c40c0001020304050607"
    "08090a0bc4056474797065a37c7531c405736861706593020203b16f62736572766174696f6e2f737461746584c40b5f5f6e"
    "6461727261795f5fc3c40464617461c40c000000000000003f0000803fc4056474797065a33c6634c40573686170659103a6"
    "70726f6d7074a47069636b"
)
# and of actions, float64 [[0.5, -0.5], [1, 0.25]], state, float32 [0, 1, 2], policy_timing with infer_ms 12.5, and
# server_timing with infer_ms 13.0 and prev_total_ms 14.5.
ANSWER = bytes.fromhex(
    "84a7616374696f6e7384c40b5f5f6e6461727261795f5fc3c40464617461c420000000000000e03f000000000000e0bf0000"
    "00000000f03f000000000000d03fc4056474797065a33c6638c4057368617065920202a5737461746584c40b5f5f6e646172"
    "7261795f5fc3c40464617461c40c000000000000803f00000040c4056474797065a33c6634c40573686170659103ad706f6c"
    "6963795f74696d696e6781a8696e6665725f6d73cb4029000000000000ad7365727665725f74696d696e6782a8696e666572"
    "5f6d73cb402a000000000000ad707265765f746f74616c5f6d73cb402d000000000000"
)


def asking(*prompts: str, tick: float = 3.0) -> dict[str, Any]:
    """A batch with a row a prompt."""
    return {"observation/state": np.full((len(prompts), 5), tick, np.float32), "prompt": list(prompts)}


@pytest.fixture(scope="module")
def peer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Peer]:
    with running(tmp_path_factory.mktemp("peer")) as server:
        TestConformance.url = server.url
        yield server


@pytest.fixture(scope="module")
def model(peer: Peer) -> Iterator[OpenpiServer]:
    made = OpenpiServer(peer.url)
    yield made
    made.close()


@on_loop
async def test_its_frames_are_those_of_openpis_own_client_and_server() -> None:
    asked: list[bytes | str] = []
    ended: asyncio.Queue[int | None] = asyncio.Queue()

    async def policy(ws: ServerConnection) -> None:
        await ws.send(METADATA)
        async for frame in ws:
            asked.append(frame)
            await ws.send(ANSWER)
        ended.put_nowait(ws.close_code)

    async with serve(policy, "127.0.0.1", 0, compression=None) as listener:
        port = next(iter(listener.sockets)).getsockname()[1]
        model = await asyncio.to_thread(OpenpiServer, f"ws://127.0.0.1:{port}")
        mean = model.metadata.pop("mean")
        assert (model.metadata, mean.tolist()) == ({"policy": "pi0", "reset_pose": [0.0, 0.5]}, [0.25, -1.0])
        image = np.arange(12, dtype=np.uint8).reshape(1, 2, 2, 3)
        state = np.arange(3, dtype=np.float32)[None] / 2
        for _ in range(2):
            for _ in range(2):
                chunk = await model.ainfer({"observation/image": image, "observation/state": state, "prompt": ["pick"]})
                assert chunk.tolist() == [[[0.5, -0.5], [1.0, 0.25]]]
            await asyncio.to_thread(model.close)
            assert await ended.get() == 1000, "one connection for all questions until it is closed, then another"
    assert asked == [OBSERVATION] * 4


def test_each_row_is_an_observation_without_the_batchs_axis(model: OpenpiServer, peer: Peer) -> None:
    batch = {**asking("go", "stop"), "images": {"top": np.zeros((2, 4, 6, 3), np.uint8)}, "delay": 2}
    assert model.infer(batch)[:, :, 0].tolist() == [[tick + 4.0 for tick in range(10)]] * 2
    row = {"observation/state": ["<f4", [5]], "images": {"top": ["|u1", [4, 6, 3]]}, "delay": 2}
    assert peer.seen[-2:] == [{**row, "prompt": "go"}, {**row, "prompt": "stop"}]


@pytest.mark.parametrize(
    ("prompt", "said"),
    [
        ("raise", r"policy server 127\.0\.0\.1:\d+ raised KeyError: 'observation/exterior_image_1_left'$"),
        ("garbage", "no msgpack-numpy message: got the msgpack type 0xc1"),
        ("half a message", "no msgpack-numpy message: .* breaks off"),
        ("an object array", "no msgpack-numpy message: got dtype '|O'"),
        ("no map", "answered with list; expected a map with actions"),
        ("no actions", "answered with a map of state, server_timing; expected a map with actions"),
        ("a list", r"actions list; expected an array \[T, D\]"),
        ("one action", r"actions float32\[5\]; expected an array \[T, D\]"),
        ("no rows", r"actions float32\[0, 5\]; expected an array \[T, D\], T at least 1"),
    ],
)
def test_what_the_server_says_wrong_is_the_policys_failure_in_its_words(
    prompt: str, said: str, model: OpenpiServer
) -> None:
    with pytest.raises(PolicyFailed, match=said) as failed:
        model.infer(asking(prompt))
    if prompt == "raise":
        assert failed.value.data["traceback"].startswith("Traceback (most recent call last):")
    assert model.infer(asking("go")).shape == (1, 10, 2), "the next question is answered"


def test_rows_of_different_shapes_are_refused(model: OpenpiServer) -> None:
    with pytest.raises(PolicyFailed, match=r"actions \[10, 2\], \[10, 7\]; expected one shape"):
        model.infer(asking("go", "seven numbers"))


def test_a_batch_that_is_none_is_the_adapters_mistake(model: OpenpiServer) -> None:
    with pytest.raises(UsageError, match="rows of a batch: got observation/state: 5, prompt: 1"):
        model.infer({"observation/state": np.zeros(5, np.float32), "prompt": ["go"]})


def test_a_server_that_goes_away_is_the_policys_failure_until_it_is_back(tmp_path: Path) -> None:
    with running(tmp_path) as peer:
        model = OpenpiServer(peer.url)
        with pytest.raises(PolicyFailed, match=r"^policy server 127\.0\.0\.1:\d+ is gone without a goodbye$"):
            model.infer(asking("vanish"))
        peer.process.wait(20)  # its connections may end before its port does
        with pytest.raises(PolicyFailed, match=r"^policy server 127\.0\.0\.1:\d+: connection refused"):
            model.infer(asking("go"))
    with running(tmp_path, port=peer.port):
        assert model.infer(asking("go")).shape == (1, 10, 2)
    model.close()


def test_a_server_that_was_restarted_between_two_questions_is_dialled_anew(tmp_path: Path) -> None:
    with running(tmp_path) as peer:
        model = OpenpiServer(peer.url)
        model.infer(asking("go"))
    with running(tmp_path, port=peer.port):
        assert model.infer(asking("go")).shape == (1, 10, 2)
    model.close()


def test_a_server_that_hangs_has_as_long_as_the_world_waits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(openpi_server, "_GRACE_S", 0.1)
    with running(tmp_path) as peer:
        model = OpenpiServer(peer.url)
        action = {"role": "action", "dtype": "float32", "shape": [2]}
        timing = {"policy_deadline_s": 0.3, "warmup_s": 0.2}
        model.bind(Contract.load({"schema": "hudsim/1", "features": {"action": action}, "timing": timing}), {})
        with pytest.raises(PolicyDeadline, match=r"did not answer within 0\.4 s"):
            model.infer(asking("hang"))


def test_an_answer_that_nobody_waits_for_any_more_is_not_the_next_ones(model: OpenpiServer) -> None:
    async def main() -> None:
        for tick in range(20):
            dropped = asyncio.ensure_future(model.ainfer(asking("go", tick=1000.0)))
            await asyncio.sleep(tick / 10_000)
            dropped.cancel()
            assert (await model.ainfer(asking("go", tick=tick)))[0, 0, 0] == tick + 1

    asyncio.run(main())


def test_many_agents_ask_at_once_and_each_gets_its_own_answer(model: OpenpiServer) -> None:
    async def main() -> Sequence[Any]:
        return await asyncio.gather(*(model.fork().ainfer(asking("go", tick=tick)) for tick in range(16)))

    assert [chunk[0, 0, 0] for chunk in asyncio.run(main())] == [tick + 1 for tick in range(16)]
    shared = BatchedModel(model, max_batch=8)
    assert shared.infer(asking("go", "go", tick=7))[:, 0, 0].tolist() == [8, 8]


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("silent", r"policy server 127\.0\.0\.1:\d+ said nothing within 0\.5 s"),
        ("hang up", r"policy server 127\.0\.0\.1:\d+ closed the connection with 1000"),
        ("text", "is none of openpi's protocol; its first frame: got str, expected bytes"),
        ("list", "is none of openpi's protocol: it began with list, expected a map"),
    ],
)
def test_what_is_no_policy_server_is_found_out_at_once(word: str, said: str, tmp_path: Path) -> None:
    with running(tmp_path, word) as peer, pytest.raises(ConnectError, match=said):
        OpenpiServer(peer.url, connect_timeout_s=0.5 if word == "silent" else 10.0)


@on_loop
async def test_a_world_is_no_policy_server() -> None:
    async with inline() as world:
        with pytest.raises(UsageError, match="serves a world and no policy"):
            await asyncio.to_thread(OpenpiServer, world.address.at("/robot/robot").url)


@on_loop
@pytest.mark.parametrize("mode", ["lockstep", "realtime"])
async def test_its_chunks_are_played_for_the_ticks_they_are_meant_for(mode: str, peer: Peer) -> None:
    model = await asyncio.to_thread(OpenpiServer, peer.url)
    async with inline(max_ticks=20, mode=mode, rate_hz=10.0) as world, joined(world) as (robot, episode):
        agent, executed = RobotAgent(model, chunks=RecedingHorizon(4)), []

        async def keep(heard: Any, action: Any) -> None:
            state = heard.data["observation/state"]
            executed.append((state[0], state[3]))

        agent.bind(robot.contract, robot.params)
        await agent.play(robot, on_step=keep)
        assert (await world.result(episode.token))["end"] == "truncated"
        meant = [tick == action for tick, action in executed[1:]]
        assert meant == [True] * 20 if mode == "lockstep" else any(meant)
        assert all(action <= tick for tick, action in executed), "none is executed before its tick"
    await asyncio.to_thread(model.close)


@on_loop
async def test_a_server_that_hangs_in_an_episode_ends_it_at_the_worlds_deadline(tmp_path: Path) -> None:
    with running(tmp_path, "hang") as peer:
        model = await asyncio.to_thread(OpenpiServer, peer.url)
        async with inline(timing=FAST) as world, joined(world) as (robot, episode):
            agent = RobotAgent(model)
            agent.bind(robot.contract, robot.params)
            with pytest.raises(PolicyDeadline):
                await agent.play(robot)
            record = await world.result(episode.token)
            assert (record["end"], record["is_error"]) == ("aborted(policy_deadline)", False)


@pytest.mark.parametrize(
    ("word", "end", "said"),
    [
        ("raise", "policy_failed", "raised KeyError: 'observation/exterior_image_1_left'"),
        ("vanish", "policy_failed", "is gone without a goodbye"),
        ("garbage", "policy_failed", "no msgpack-numpy message"),
        ("one action", "policy_failed", "expected an array [T, D]"),
        ("seven numbers", "policy_failed", "action: got float32[7], expected float32[5]"),
        ("not finite", "contract_violation", "action: got nan"),
    ],
)
def test_an_episode_that_the_server_breaks_off_counts_as_failed(word: str, end: str, said: str, tmp_path: Path) -> None:
    with running(tmp_path, word) as peer:
        done = hudsim(*CARD, "--policy", f"openpi:{peer.url}", "--json")
    assert done.returncode == 1, done.stderr
    (episode,) = json.loads(done.stdout)["episodes"]
    assert episode["end"] == f"aborted({end})"
    assert said in episode["error"]
    assert "Traceback" not in done.stderr


def test_run_plays_it_in_one_command(peer: Peer) -> None:
    plays = ("--episodes", "2", "--chunk", "5", "--chunks", "receding")
    said = document(*CARD, "--policy", f"openpi:{peer.url}", *plays)
    assert [episode["end"] for episode in said["episodes"]] == ["max_steps"] * 2
    assert said["cadence"]["stages_us"]["infer"]["p50"] > 0
    assert said["policy"] == f"openpi:{peer.url}"
    assert peer.seen[-1].keys() == {"observation/camera0", "observation/camera1", "observation/state", "prompt"}


def test_run_gives_it_the_keys_that_an_adapter_says(peer: Peer, tmp_path: Path) -> None:
    (tmp_path / "keys.py").write_text(
        "from hudsim.adapters.by_name import ByName\n"
        "def keys():\n    return ByName(rename={'observation/camera0': 'observation/image'})\n"
    )
    document(*CARD, "--policy", f"openpi:{peer.url}", "--adapter", "keys.py:keys", cwd=tmp_path)
    assert peer.seen[-1].keys() == {"observation/image", "observation/camera1", "observation/state", "prompt"}


def test_eval_has_it_as_an_agent(tmp_path: Path) -> None:
    words = ("eval", "arm-reach", "--set", "cameras=false", "--task", "reach-easy-0", "--group", "2")
    with running(tmp_path, "stay") as peer:
        job = document(*words, f"openpi:{peer.url}", cwd=tmp_path)
        assert peer.seen[0].keys() == {"observation/state", "observation/velocity", "prompt"}
    assert job["verdicts"].keys() <= {"failed", "partial"}


@pytest.mark.parametrize("words", [("run", "test-card", "-p"), ("eval", "letters")])
def test_a_server_that_is_not_there_is_said_before_anything_is_built(words: Sequence[str], tmp_path: Path) -> None:
    done = hudsim(*words, "openpi:ws://127.0.0.1:1", cwd=tmp_path)
    assert done.returncode == 1
    assert "policy server 127.0.0.1:1: connection refused; is the server running?" in done.stderr
    assert not list(tmp_path.iterdir())


@pytest.mark.usefixtures("peer")
class TestConformance(ModelConformance):
    url = ""  # the peer's

    def make_model(self) -> OpenpiServer:
        return OpenpiServer(self.url)

    def make_contract(self) -> Contract:
        state = {"role": "observation", "dtype": "float32", "shape": [5]}
        action = {"role": "action", "dtype": "float32", "shape": [2]}
        return Contract.load({"schema": "hudsim/1", "features": {"observation/state": state, "action": action}})
