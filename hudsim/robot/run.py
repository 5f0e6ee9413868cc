"""``run_episodes``: an agent through episodes of a world, one after another, with an account of it all."""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from hudsim.bridge import Episode
from hudsim.errors import HudsimError, SimFailed, SimHung, UsageError
from hudsim.robot.agent import RobotAgent, world_told
from hudsim.robot.cadence import Cadence
from hudsim.robot.client import RobotClient
from hudsim.robot.driver import policys_own
from hudsim.robot.ending import CANCELLED, End
from hudsim.robot.endpoint import RobotEndpoint
from hudsim.robot.play import lost_record
from hudsim.robot.recorder import Recorder

__all__ = ["EpisodeReport", "RunOptions", "RunReport", "run_episodes"]


@dataclass(frozen=True, slots=True)
class RunOptions:
    """What to run and what to keep.

    seed
        Of the first episode; the others count up from it.
    max_steps
        The agent's own limit on ticks. None: the world's alone.
    out
        A folder for ``run.json``, per-tick fingerprints and videos. None: keep nothing.
    shared_memory
        False: observations come through the socket, and encoded where the contract says so, also on the world's host.
    """

    episodes: int = 1
    seed: int = 0
    max_steps: int | None = None
    out: Path | None = None
    video: bool = False
    task_args: dict[str, Any] = field(default_factory=dict)
    shared_memory: bool = True


@dataclass
class EpisodeReport:
    """One episode: the world's record of it, its fingerprints (None outside lockstep), what the agent said of it."""

    record: dict[str, Any]
    hash: str | None = None
    image_hash: str | None = None
    seam: float | None = None
    error: str | None = None
    traceback: str | None = None

    @property
    def aborted(self) -> bool:
        """It did not come to an end of its own: something broke, the world, the link or the policy."""
        return End.parse(self.record["end"]).kind == "aborted"

    def to_json(self) -> dict[str, Any]:
        record = self.record
        return {
            "seed": record["seed"],
            "reward": record["total_reward"],
            "success": record["success"],
            "end": record["end"],
            "ticks": record["ticks"],
            "hash": self.hash,
            "image_hash": self.image_hash,
            "seam": self.seam,
            "clipped": record["clipped"],
            "error": self.error or record["message"],
        }


@dataclass
class RunReport:
    """All episodes of a run; ``problems``: files that could not be written, and why.

    ``encodings`` {camera: encoding}: what the agent did not see as the world showed it. Fingerprints are of what the
    world showed, videos of what the agent saw.

    Rates and means are over those that are not errors; None where there is none.
    """

    world: str
    policy: str
    mode: str
    transport: str = "socket"
    encodings: dict[str, str] = field(default_factory=dict)
    episodes: list[EpisodeReport] = field(default_factory=list)
    cadence: Cadence = field(default_factory=Cadence)
    artifacts: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    @property
    def valid(self) -> list[EpisodeReport]:
        """The episodes that count."""
        return [episode for episode in self.episodes if not episode.record["is_error"]]

    @property
    def success_rate(self) -> float | None:
        """Share of successes; None if the world does not say."""
        said = [bool(e.record["success"]) for e in self.valid if e.record["success"] is not None]
        return sum(said) / len(said) if said else None

    @property
    def mean_reward(self) -> float | None:
        rewards = [float(e.record["total_reward"]) for e in self.valid if e.record["total_reward"] is not None]
        return sum(rewards) / len(rewards) if rewards else None

    @property
    def failed(self) -> bool:
        """Some episode did not come to an end of its own, or something could not be kept."""
        return bool(self.problems) or any(episode.aborted for episode in self.episodes)

    def to_json(self) -> dict[str, Any]:
        return {
            "world": self.world,
            "policy": self.policy,
            "mode": self.mode,
            "transport": self.transport,
            "encodings": self.encodings,
            "success_rate": self.success_rate,
            "mean_reward": self.mean_reward,
            "episodes": [episode.to_json() for episode in self.episodes],
            "cadence": self.cadence.summary(),
            "artifacts": self.artifacts,
            "problems": self.problems,
        }


OnEpisode = Callable[[EpisodeReport], None]
OnTick = Callable[[int, int], None]


async def run_episodes(
    endpoint: RobotEndpoint,
    agent: RobotAgent,
    options: RunOptions,
    *,
    world: str,
    policy: str,
    on_episode: OnEpisode = lambda report: None,
    on_tick: OnTick = lambda episode, tick: None,
) -> RunReport:
    """Play ``options.episodes`` episodes of ``endpoint`` (started) with ``agent``.

    ``world`` and ``policy`` are the names for the report. An episode that the world or the link ends is in the
    report as such, and the run goes on; what the caller asked wrongly is raised. When it is interrupted, what
    was recorded is written before the interrupt goes on.
    """
    capability = endpoint.capability()
    mode = capability.params["contract"].get("timing", {}).get("mode", "lockstep")
    report = RunReport(world, policy, mode)
    if options.out is not None:
        _make_room(options.out)
    try:
        for index in range(options.episodes):
            episode = _Episode(endpoint, agent, options, index, partial(on_tick, index))
            try:
                one = await episode.play(report)
            except asyncio.CancelledError:
                report.episodes.append(episode.interrupted())
                raise
            report.episodes.append(one)
            on_episode(one)
    finally:
        if options.out is not None:
            _keep(report, options.out / "run.json")
    return report


def _keep(report: RunReport, path: Path) -> None:
    report.artifacts.insert(0, str(path))
    try:
        path.write_text(json.dumps(report.to_json(), indent=1) + "\n")
    except OSError as error:
        report.problems.append(f"{path}: {error.strerror}")


def _make_room(out: Path) -> None:
    """Make the folder; what an earlier run left in it goes, or the two would be taken for one.

    Raises :class:`~hudsim.errors.UsageError` if nothing can be written there.
    """
    try:
        out.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=out):
            pass
    except OSError as error:
        raise UsageError(f"nothing can be kept in {out}: {error.strerror}") from None
    if (out / "run.json").exists():
        for artifact in _artifacts_of(out / "run.json"):
            (out / artifact).unlink(missing_ok=True)


def _artifacts_of(run: Path) -> list[str]:
    """The names of the files that an earlier run lists as its own."""
    try:
        return [Path(path).name for path in json.loads(run.read_text())["artifacts"]]
    except (OSError, ValueError, KeyError, TypeError):
        return []


class _Episode:
    """One episode of a run."""

    def __init__(
        self,
        endpoint: RobotEndpoint,
        agent: RobotAgent,
        options: RunOptions,
        index: int,
        on_tick: Callable[[int], None],
    ) -> None:
        self._endpoint, self._agent, self._options = endpoint, agent, options
        self._index, self._seed = index, options.seed + index
        self._on_tick = on_tick
        self._recorder: Recorder | None = None

    async def play(self, report: RunReport) -> EpisodeReport:
        try:
            episode = await self._endpoint.reset(seed=self._seed, **self._options.task_args)
        except (SimFailed, SimHung) as error:
            return EpisodeReport(self._lost(End.of(error), error.message), error=error.message)
        said: EpisodeReport | None = None
        try:
            said = await self._played(episode, report)
        finally:
            fingerprints = await self._finish(report)
        if fingerprints is not None:
            said.hash, said.image_hash = fingerprints
        return said

    def interrupted(self) -> EpisodeReport:
        """What is to be said of an episode that the run was broken off in."""
        return EpisodeReport(self._lost(CANCELLED, "the run was interrupted"))

    async def _played(self, episode: Episode, report: RunReport) -> EpisodeReport:
        error: HudsimError | None = None
        seam = None
        try:
            capability = self._endpoint.capability()
            shared_memory = self._options.shared_memory
            async with await RobotClient.connect(capability, token=episode.token, shared_memory=shared_memory) as robot:
                report.transport = robot.transport
                self._recorder = self._new_recorder(robot, report)
                async with world_told(robot):
                    with policys_own():
                        self._agent.bind(robot.contract, robot.params)
                rollout = await self._agent.play(robot, max_steps=self._options.max_steps, on_step=self._step)
            report.cadence.merge(rollout.cadence)
            seam = None if rollout.seam != rollout.seam else rollout.seam
        except HudsimError as failure:
            if failure.code is None and failure.name == "usage":
                raise
            error = failure
        record = await self._record(episode, error)
        report.encodings = record.get("encodings", {})
        report.cadence.merge(Cadence.from_json(record["cadence"]))
        traceback = error.data.get("traceback") if error else None
        return EpisodeReport(record, seam=seam, error=error.message if error else None, traceback=traceback)

    async def _step(self, heard: Any, action: Any) -> None:
        self._on_tick(heard.index)
        if self._recorder is not None:
            await self._recorder.step(heard, action)

    def _new_recorder(self, robot: RobotClient, report: RunReport) -> Recorder:
        out, video = self._options.out, None
        if self._options.video and out is not None:
            video = out / f"episode-{self._index:03d}.mp4"
            report.artifacts.append(str(video))
        return Recorder(robot.contract, hashes=robot.contract.timing.mode != "realtime", video=video)

    async def _finish(self, report: RunReport) -> tuple[str, str | None] | None:
        if self._recorder is None:
            return None
        out = self._options.out
        path = None
        if out is not None and self._recorder.chain is not None:
            path = out / f"episode-{self._index:03d}.ticks.jsonl"
            report.artifacts.append(str(path))
        fingerprints = await self._recorder.finish(path)
        if self._recorder.problem is not None:
            report.problems.append(self._recorder.problem)
        return fingerprints

    async def _record(self, episode: Episode, error: HudsimError | None) -> dict[str, Any]:
        """The world's record of the episode; if the world has none any more, one that says why."""
        try:
            return await self._endpoint.result(episode.token)
        except HudsimError as failure:
            why = error or failure
            return self._lost(End.of(why), why.message)

    def _lost(self, end: End, message: str) -> dict[str, Any]:
        return lost_record(None, 0, self._seed, "", end=end, message=message)
