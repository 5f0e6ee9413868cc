"""``hudsim run``: a policy through episodes of a world."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from hudsim.cli.options import AsJson, Cameras, Mode, Rate, Seed, Settings, Watchdog, World, blamed, read_settings
from hudsim.cli.output import emit_json, say
from hudsim.cli.progress import Progress
from hudsim.errors import UsageError

if TYPE_CHECKING:
    from hudsim.registry import Policy
    from hudsim.robot.endpoint import RobotEndpoint
    from hudsim.robot.run import RunOptions, RunReport

__all__ = ["run"]

_POLICY_HELP = "A name from `hudsim list`, module:attr or file.py:attr."


def run(
    context: typer.Context,
    world: World,
    *,
    policy: Annotated[str, typer.Option("--policy", "-p", metavar="POLICY", help=_POLICY_HELP)],
    episodes: Annotated[int, typer.Option("--episodes", "-n", metavar="N", min=1, help="How many, in turn.")] = 1,
    seed: Seed = 0,
    mode: Mode = None,
    rate: Rate = None,
    chunk: Annotated[
        int | None,
        typer.Option(metavar="K", min=1, help="Execute K actions of a chunk, then ask for the next."),
    ] = None,
    chunks: Annotated[
        str | None,
        typer.Option(metavar="STRATEGY", help="open-loop, receding, ensemble or rtc.", show_default="the policy's own"),
    ] = None,
    policy_rate: Annotated[
        float | None,
        typer.Option(
            metavar="HZ", min=0.1, max=1e6, help="Rate the policy's chunks are made for.", show_default="the world's"
        ),
    ] = None,
    settings: Settings = None,
    policy_settings: Annotated[
        list[str] | None, typer.Option("--policy-set", metavar="KEY=VALUE", help="An argument of the policy.")
    ] = None,
    adapter: Annotated[
        str | None,
        typer.Option(metavar="ADAPTER", help="Between world and policy: module:attr or file.py:attr."),
    ] = None,
    max_steps: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Ticks an episode.", show_default="as long as it lasts")
    ] = None,
    cameras: Cameras = None,
    transport: Annotated[
        Literal["shm", "socket"],
        typer.Option(help="How images come on the world's host; over a network it is the socket in any case."),
    ] = "shm",
    watchdog: Watchdog = 60.0,
    out: Annotated[Path | None, typer.Option(metavar="DIR", help="Keep run.json and fingerprints there.")] = None,
    video: Annotated[
        bool, typer.Option("--video", help="Keep an MP4 of each episode (in runs/… without --out).")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Run a policy against a world.

    Says how it went: success, rate, and where the time of a tick goes.

    Exit code 0 if every episode came to its end, whatever the policy made of it; 1 if one was aborted; 2 for usage.
    """
    from hudsim import loop, registry
    from hudsim.robot.run import RunOptions

    found = registry.policy(policy, read_settings(policy_settings))
    if video and cameras is None and world.startswith("gym:"):
        cameras = True  # a Gymnasium environment draws only when it is asked to
    asked = _Asked(world, read_settings(settings), mode, rate, cameras, watchdog)
    endpoint, task_args = _remote(asked) if registry.is_url(world) else _spawned(asked, found)
    agent = found.agent(chunks=chunks, length=chunk, rate_hz=policy_rate, adapter=adapter)
    if out is None and video:
        out = Path("runs") / f"{_file_name(asked.label)}-{_file_name(policy)}"
    if out is not None:
        _make_folder(out)
    options = RunOptions(episodes, seed, max_steps, out, video, task_args, shared_memory=transport == "shm")
    show = Progress(options)
    try:
        report = loop.run(_play(endpoint, agent, options, show, asked=asked, policy=policy))
    except KeyboardInterrupt:
        raise KeyboardInterrupt(show.interrupted()) from None
    except UsageError as error:
        if registry.is_url(world) and found.needs_privileged and "privileged" in error.message:
            raise UsageError(f"{error.message}: start the server with `hudsim serve --privileged`") from error
        raise
    if context.find_root().params["debug"]:
        for episode in report.episodes:
            if episode.traceback:
                say(f"seed {episode.record['seed']}: {episode.record['end']}\n{episode.traceback}")
    if as_json:
        emit_json(report.to_json())
    else:
        from hudsim.cli.report import print_report

        print_report(report)
    raise typer.Exit(1 if report.failed else 0)


@dataclass(frozen=True, slots=True)
class _Asked:
    """What was asked of the world."""

    world: str
    settings: dict[str, Any]
    mode: str | None
    rate: float | None
    cameras: bool | None
    watchdog_s: float

    @property
    def label(self) -> str:
        """The world's name; of a server its address without the token."""
        return self.world.partition("?")[0]


def _remote(asked: _Asked) -> tuple[RobotEndpoint, dict[str, Any]]:
    """A server that runs already; settings can only be its task's."""
    from hudsim.robot.endpoint import RobotEndpoint

    for option, value in (("--mode", asked.mode), ("--rate", asked.rate), ("--cameras", asked.cameras)):
        if value is not None:
            raise UsageError(f"{option} is the server's: give it to `hudsim serve`")
    return RobotEndpoint.remote(asked.world), asked.settings


def _spawned(asked: _Asked, policy: Policy) -> tuple[RobotEndpoint, dict[str, Any]]:
    """A world of its own process, which ends with this run."""
    from hudsim import registry
    from hudsim.robot.endpoint import RobotEndpoint

    spec = registry.world(
        asked.world,
        asked.settings,
        cameras=asked.cameras,
        privileged=policy.needs_privileged,
        control_rate=asked.rate,
    )
    return RobotEndpoint.spawn(spec, mode=asked.mode, rate_hz=asked.rate, watchdog_s=asked.watchdog_s), {}


async def _play(
    endpoint: RobotEndpoint, agent: Any, options: RunOptions, show: Progress, *, asked: _Asked, policy: str
) -> RunReport:
    from hudsim.robot.run import run_episodes

    with show:
        with blamed(asked.world, asked.settings):
            await endpoint.start()
        async with endpoint:
            return await run_episodes(
                endpoint,
                agent,
                options,
                world=asked.label,
                policy=policy,
                on_episode=show.on_episode,
                on_tick=show.on_tick,
            )


def _make_folder(out: Path) -> None:
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"nothing can be kept in {out}: {error.strerror}") from None


def _file_name(words: str) -> str:
    return re.sub(r"[^\w.-]+", "-", words).strip("-")
