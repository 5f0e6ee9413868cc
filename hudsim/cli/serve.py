"""``hudsim serve``: one world on its own, for agents that connect."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hudsim.cli.options import Cameras, Mode, Rate, Seed, Settings, Watchdog, World, blamed, read_settings
from hudsim.cli.output import say

if TYPE_CHECKING:
    from hudsim.robot.endpoint import RobotEndpoint

__all__ = ["serve"]

_ANY_HOST = ("0.0.0.0", "::")  # noqa: S104 - what was asked for is looked at, not bound here


def serve(
    world: World,
    *,
    host: Annotated[str, typer.Option(help="Where to listen. Others than this machine reach 0.0.0.0.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0: one that is free.")] = 0,
    num_envs: Annotated[int, typer.Option("--num-envs", min=1, metavar="N", help="Episodes at once.")] = 1,
    mode: Mode = None,
    rate: Rate = None,
    seed: Seed = 0,
    settings: Settings = None,
    cameras: Cameras = None,
    privileged: Annotated[bool, typer.Option("--privileged", help="Show what a real robot would not have.")] = False,
    watchdog: Watchdog = 60.0,
    tls_cert: Annotated[Path | None, typer.Option(metavar="PEM", help="Serve wss with this certificate.")] = None,
    tls_key: Annotated[Path | None, typer.Option(metavar="PEM", help="The certificate's key.")] = None,
    no_auth: Annotated[bool, typer.Option("--no-auth", help="Let everybody in who can reach the port.")] = False,
) -> None:
    """Serve a world to agents that connect.

    Until told to stop; each claim starts an episode.

    The first line on stdout is JSON: the url to connect to and its port.
    """
    from hudsim import registry
    from hudsim.errors import UsageError
    from hudsim.loop import run
    from hudsim.robot.endpoint import RobotEndpoint

    if registry.is_url(world):
        raise UsageError(f"{world.partition('?')[0]} is served already")
    given = read_settings(settings)
    spec = registry.world(world, given, cameras=cameras, privileged=privileged, control_rate=rate)
    endpoint = RobotEndpoint.spawn(
        spec,
        num_envs=num_envs,
        mode=mode,
        rate_hz=rate,
        host=host,
        port=port,
        bearer="" if no_auth else None,
        autostart=True,
        seed=seed,
        watchdog_s=watchdog,
        tls_cert=None if tls_cert is None else str(tls_cert),
        tls_key=None if tls_key is None else str(tls_key),
    )
    run(_until_told(endpoint, world, given))


async def _until_told(endpoint: RobotEndpoint, world: str, settings: dict[str, Any]) -> None:
    from hudsim.net import Address

    with blamed(world, settings):
        await endpoint.start()
    async with endpoint:
        address = Address.parse(endpoint.capability().url)
        # To whoever started this the line is the sign that the world is up.
        typer.echo(json.dumps({"url": address.url, "port": address.port}))
        if address.host in _ANY_HOST:
            say(f"others reach it by this machine's name or address in the place of {address.host}")
        say(f"{world} is up; Ctrl-C ends it")
        try:
            raise await endpoint.wait()
        except asyncio.CancelledError:
            return  # told to stop, which is how serving ends well
