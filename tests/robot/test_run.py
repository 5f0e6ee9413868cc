"""Runs of several episodes: what is reported, and what is kept of a run that goes wrong."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hudsim.errors import ContractError, UnknownName
from hudsim.robot.adapter import Adapter
from hudsim.robot.agent import RobotAgent
from hudsim.robot.bridge import Array
from hudsim.robot.endpoint import RobotEndpoint
from hudsim.robot.model import Model
from hudsim.robot.run import RunOptions, RunReport, run_episodes
from tests.asyncrun import on_loop
from tests.robot.worlds import Cards, Dies, inline, spawned


class Wave(Model):
    """A function of what it sees, so that other observations give other actions."""

    def infer(self, batch: Any) -> Array:
        state = batch["observation/state"]
        wave: Array = np.sin(state[:, np.newaxis, -2:] + state[:, np.newaxis, :1] + state[:, np.newaxis, 2:3])
        return wave.astype(np.float32)


async def run(world: RobotEndpoint, **options: Any) -> RunReport:
    return await run_episodes(world, RobotAgent(Wave()), RunOptions(**options), world="card", policy="wave")


@on_loop
async def test_the_same_seeds_give_the_same_hashes_inline_spawned_and_with_any_number_of_slots() -> None:
    seen = set()
    for world in (inline(max_ticks=8), spawned(max_ticks=8), inline(Cards, num_envs=4, max_ticks=8)):
        async with world:
            report = await run(world, episodes=3, seed=5)
            seen.add(tuple((e.record["seed"], e.hash, e.image_hash) for e in report.episodes))
    ((first, second, third),) = seen
    assert [first[0], second[0], third[0]] == [5, 6, 7]
    assert len({first[1], second[1], third[1]}) == 3


@on_loop
async def test_a_report_says_everything_as_plain_json(tmp_path: Path) -> None:
    async with inline(max_ticks=8, faults={"success_at": [3]}) as world:
        report = await run(world, episodes=2, out=tmp_path)
    document = json.loads(json.dumps(report.to_json()))
    assert document == json.loads((tmp_path / "run.json").read_text())
    assert (document["world"], document["policy"], document["mode"]) == ("card", "wave", "lockstep")
    assert (document["success_rate"], document["mean_reward"]) == (1.0, 8.0)
    assert [(e["end"], e["ticks"], e["success"]) for e in document["episodes"]] == [("truncated", 8, True)] * 2
    assert document["cadence"]["ticks"] == 16
    for stage in ("step", "render", "encode", "wire", "adapt", "infer", "apply"):
        assert document["cadence"]["stages_us"][stage]["p50"] > 0
    ticks = [json.loads(line) for line in (tmp_path / "episode-000.ticks.jsonl").read_text().splitlines()]
    assert len(ticks) == 9
    assert set(ticks[0]) == {"observation/camera0", "observation/state", "reward", "action"}


@on_loop
async def test_an_episode_that_the_world_breaks_is_an_error_and_no_score() -> None:
    async with inline(faults={"raise_at": 3}) as world:
        report = await run(world, episodes=2)
    assert report.failed
    assert (report.success_rate, report.mean_reward) == (None, None)
    assert [e.record["end"] for e in report.episodes] == ["aborted(sim_failed)"] * 2


@on_loop
async def test_a_run_goes_on_after_its_simulator_died() -> None:
    async with spawned(Dies) as world:
        report = await run(world, episodes=2)
    assert [e.record["end"] for e in report.episodes] == ["aborted(sim_failed)"] * 2
    assert [e.record["seed"] for e in report.episodes] == [0, 1]
    assert all("exit code 11" in e.record["message"] for e in report.episodes)


class Refuses(Model):
    def bind(self, contract: Any, params: Any) -> None:
        raise ValueError("not this one")

    def infer(self, batch: Any) -> Array:
        raise NotImplementedError


class Wants(Adapter):
    def bind(self, contract: Any, params: Any) -> None:
        raise ContractError("observation/joints", got="nothing of the sort", expected="seven joints")


@pytest.mark.parametrize(
    ("agent", "said"), [(RobotAgent(Refuses()), "not this one"), (RobotAgent(Wave(), Wants()), "seven joints")]
)
@on_loop
async def test_a_policy_that_does_not_fit_the_world_has_failed(agent: RobotAgent, said: str) -> None:
    async with inline(max_ticks=3) as world:
        report = await run_episodes(world, agent, RunOptions(episodes=2), world="w", policy="p")
    assert [episode.record["end"] for episode in report.episodes] == ["aborted(policy_failed)"] * 2
    assert all(said in str(episode.error) for episode in report.episodes)
    assert report.failed


@on_loop
async def test_what_was_asked_wrongly_is_raised() -> None:
    async with inline() as world:
        with pytest.raises(UnknownName, match="nope"):
            await run(world, task_args={"nope": 1})
