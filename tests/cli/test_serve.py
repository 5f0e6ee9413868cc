from __future__ import annotations

import asyncio
import json
import os
import signal
import urllib.request
from pathlib import Path

import numpy as np
import pytest

from hudsim import RobotClient
from hudsim.environment import ControlClient
from hudsim.net import Address
from tests.cli.command import LIMIT_S, alive, children, hudsim, serving, told
from tests.cli.sums import ENV, write_sums

SMALL = ("test-card", "--set", "width=32", "--set", "height=16")


async def play(url: str, ticks: int) -> list[int]:
    """Play two episodes by claims without a token; the seeds they had."""
    seeds = []
    async with await RobotClient.connect(url) as robot:
        for _ in range(2):
            seen = await robot.get_observation()
            seeds.append(int(seen.data["observation/state"][2]))
            while not seen.over:
                await robot.send_action(robot.contract.example()[1])
                seen = await robot.get_observation()
            assert seen.index == ticks
            await robot.claim()
    return seeds


def test_the_first_line_says_where_and_each_claim_starts_an_episode() -> None:
    with serving(*SMALL, "--seed", "5", "--set", "max_ticks=3") as (_, said):
        address = Address.parse(said["url"])
        assert said.keys() == {"url", "port"}
        assert (address.host, address.port, address.path) == ("127.0.0.1", said["port"], "/robot/robot")
        assert address.bearer
        assert asyncio.run(asyncio.wait_for(play(said["url"], 3), LIMIT_S)) == [5, 6]


def test_on_every_interface_it_says_how_others_reach_it() -> None:
    with serving(*SMALL, "--host", "0.0.0.0") as (process, said):
        address = Address.parse(said["url"])
        assert address.port == said["port"]
        assert address.bearer
        _, _, errors = told(process, signal.SIGINT)
    assert "others reach it by this machine's name or address in the place of 0.0.0.0" in errors


def test_encodings_that_are_asked_for_are_those_of_agents_on_other_hosts() -> None:
    async def seen(url: str, *, shared_memory: bool) -> tuple[str, int]:
        async with await RobotClient.connect(url, shared_memory=shared_memory) as robot:
            image = (await robot.get_observation()).data["observation/camera1"]
            return robot.contract.observations["observation/camera1"].encoding, len(np.unique(image))

    words = ("--set", "width=64", "--set", "height=64", "--encode", "camera1=jpeg:30")
    with serving("test-card", *words, "--num-envs", "2") as (_, said):
        (word, raw), (_, lossy) = (
            asyncio.run(asyncio.wait_for(seen(said["url"], shared_memory=local), LIMIT_S)) for local in (True, False)
        )
    assert word == "jpeg:30"
    assert raw != lossy


@pytest.mark.parametrize(
    ("target", "words", "error"),
    [
        ("test-card", ["png"], "got 'png', expected raw, jpeg or jpeg:QUALITY (1 to 100)"),
        ("test-card", ["camera0=jpeg:0"], "got 'jpeg:0'"),
        ("test-card", ["jpeg", "raw"], "all cameras had an encoding already"),
        ("test-card", ["scene=jpeg"], "no camera to encode 'scene'. There are: observation/camera0, observation/cam"),
        ("letters", ["jpeg"], "--encode is a world's"),
    ],
)
def test_encodings_that_cannot_be_are_refused_in_words(target: str, words: list[str], error: str) -> None:
    done = hudsim("serve", target, *(part for word in words for part in ("--encode", word)))
    assert done.returncode == 2
    assert error in done.stderr


def test_no_auth_lets_in_who_has_no_token() -> None:
    with serving(*SMALL, "--no-auth", "--set", "max_ticks=2") as (_, said):
        assert "bearer" not in said["url"]
        assert asyncio.run(asyncio.wait_for(play(said["url"], 2), LIMIT_S)) == [0, 1]


def test_settings_of_the_task_reach_episodes_that_claims_start() -> None:
    async def prompt(url: str) -> str:
        async with await RobotClient.connect(url) as robot:
            return str((await robot.get_observation()).meta["prompt"])

    with serving(*SMALL, "--set", "prompt=look closely") as (_, said):
        assert asyncio.run(asyncio.wait_for(prompt(said["url"]), LIMIT_S)) == "look closely"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_told_to_stop_it_ends_well_and_leaves_no_process(number: signal.Signals) -> None:
    with serving(*SMALL, "--mode", "realtime") as (process, _):
        sims = children(process.pid)
        assert sims
        code, seconds, errors = told(process, number)
        assert code == 0, errors
        assert seconds < 2
        assert not any(alive(sim) for sim in sims)


def test_a_sim_that_dies_ends_the_server_with_the_reason() -> None:
    with serving(*SMALL) as (process, _):
        for sim in children(process.pid):
            os.kill(sim, signal.SIGKILL)
        _, errors = process.communicate(timeout=LIMIT_S)
    assert process.returncode == 1
    assert "SIGKILL" in errors
    assert "Traceback" not in errors


def test_a_port_that_is_taken_is_named() -> None:
    with serving(*SMALL) as (_, said):
        done = hudsim("serve", *SMALL, "--port", str(said["port"]))
    assert done.returncode != 0
    assert done.stdout == ""
    assert f"127.0.0.1:{said['port']}" in done.stderr
    assert "Traceback" not in done.stderr


async def grade(url: str, answer: str) -> float:
    async with await ControlClient.connect(url) as control:
        await control.start("add", {"a": 2})
        return float((await control.grade(answer))["score"])


def test_of_an_environment_the_first_line_says_what_it_has(tmp_path: Path) -> None:
    write_sums(tmp_path)
    with serving(str(tmp_path), "--set", "offset=3") as (process, said):
        address = Address.parse(said["url"])
        assert (address.port, said["environment"], said["tasks"]) == (said["port"], "sums", ["add"])
        assert said["capabilities"] == []
        assert address.bearer
        assert asyncio.run(asyncio.wait_for(grade(said["url"], "6"), LIMIT_S)) == 1.0
        with urllib.request.urlopen(f"http://127.0.0.1:{said['port']}/healthz?bearer={address.bearer}") as page:
            assert json.load(page) == {"status": "ok"}
        code, seconds, errors = told(process, signal.SIGTERM)
    assert code == 0, errors
    assert seconds < 2


def test_of_several_environments_one_is_named(tmp_path: Path) -> None:
    (tmp_path / "both.py").write_text(f"{ENV}\nother = Environment('others')\n")
    refused = hudsim("serve", "both.py", cwd=tmp_path)
    assert refused.returncode == 2
    assert "name one of others, sums" in refused.stderr
    with serving(str(tmp_path / "both.py"), "--env", "others", "--no-auth") as (_, said):
        assert (said["environment"], said["tasks"]) == ("others", [])
        assert "bearer" not in said["url"]


def test_a_name_that_a_world_bears_too_is_the_world_unless_an_environment_is_asked_for() -> None:
    with serving("arm-reach", "--env", "arm-reach", "--set", "cameras=false") as (process, said):
        assert (said["environment"], said["tasks"], said["capabilities"]) == ("arm-reach", ["reach"], ["robot"])
        sims = children(process.pid)
        assert sims
        code, seconds, errors = told(process, signal.SIGINT)
    assert code == 0, errors
    assert seconds < 2
    assert not any(alive(sim) for sim in sims)
