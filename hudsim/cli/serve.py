"""``hudsim serve``: one world, or one environment, for agents that connect."""

from __future__ import annotations

import asyncio
import contextlib
import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hudsim.cli.options import (
    Cameras,
    Mode,
    Rate,
    Seed,
    Settings,
    Watchdog,
    blamed,
    read_encodings,
    read_settings,
    typed,
)
from hudsim.cli.output import say
from hudsim.cli.show_ssh import SshLines, started
from hudsim.errors import UsageError

if TYPE_CHECKING:
    from hudsim.environment import Environment
    from hudsim.robot.endpoint import RobotEndpoint

__all__ = ["serve"]

_ANY_HOST = ("0.0.0.0", "::")  # noqa: S104 - what was asked for is looked at, not bound here
_WORLDS_OWN = ("num_envs", "mode", "rate", "seed", "cameras", "encode", "privileged", "watchdog", "tls_cert", "tls_key")

Target = Annotated[
    str,
    typer.Argument(
        metavar="TARGET",
        help="A world or environment from `hudsim list`; gym:ID, mjcf:FILE.xml, module:attr or file.py:attr for a "
        "world; FILE.py or a folder for an environment.",
    ),
]


def serve(
    context: typer.Context,
    target: Target,
    *,
    host: Annotated[str, typer.Option(help="Where to listen. Others than this machine reach 0.0.0.0.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0: one that is free.")] = 0,
    settings: Settings = None,
    no_auth: Annotated[bool, typer.Option("--no-auth", help="Let everybody in who can reach the port.")] = False,
    env: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="An environment: which, where there are several or a world bears the name."),
    ] = None,
    reveal: Annotated[
        bool, typer.Option("--reveal-references", "--reveal", help="An environment: tell agents what is right.")
    ] = False,
    show_ssh: Annotated[
        bool, typer.Option("--show-ssh", help="An environment: print ssh and sftp commands that open its workspaces.")
    ] = False,
    num_envs: Annotated[int, typer.Option("--num-envs", min=1, metavar="N", help="A world: episodes at once.")] = 1,
    mode: Mode = None,
    rate: Rate = None,
    seed: Seed = 0,
    cameras: Cameras = None,
    encode: Annotated[
        list[str] | None,
        typer.Option(
            metavar="[CAMERA=]ENCODING",
            help="A world: how images reach agents on other hosts: raw, jpeg or jpeg:QUALITY.",
            show_default="as its contract says",
        ),
    ] = None,
    privileged: Annotated[
        bool, typer.Option("--privileged", help="A world: show what a real robot would not have.")
    ] = False,
    watchdog: Watchdog = 60.0,
    tls_cert: Annotated[
        Path | None, typer.Option(metavar="PEM", help="A world: serve wss with this certificate.")
    ] = None,
    tls_key: Annotated[Path | None, typer.Option(metavar="PEM", help="The certificate's key.")] = None,
) -> None:
    """Serve a world or an environment to agents that connect.

    Until told to stop. Of a world each claim starts an episode; of an environment each connection may start tasks.

    The first line on stdout is JSON: the url to connect to, its port, and what an environment has.
    """
    from hudsim import registry
    from hudsim.cli.environments import find_environment, is_environment
    from hudsim.loop import run

    if registry.is_url(target):
        raise UsageError(f"{target.partition('?')[0]} is served already")
    given = read_settings(settings)
    bearer = "" if no_auth else None
    if env is not None or is_environment(target):
        environment = find_environment(target, env)
        _refuse_worlds_own(context, environment)
        environment.configure(**given)
        if show_ssh and not environment.workspaces:
            raise UsageError(f"--show-ssh: environment {environment.name} has no workspace")
        shown = target if show_ssh else None
        run(_serve_environment(environment, host, port, bearer=bearer, reveal=reveal, shown=shown))
        return
    for option, given_it in (("--reveal-references", reveal), ("--show-ssh", show_ssh)):
        if given_it:
            raise UsageError(f"{option} is for an environment, and {target} is a world")
    spec = registry.world(target, given, cameras=cameras, privileged=privileged, control_rate=rate)
    from hudsim.robot.endpoint import RobotEndpoint

    endpoint = RobotEndpoint.spawn(
        spec,
        num_envs=num_envs,
        mode=mode,
        rate_hz=rate,
        encode=read_encodings(encode),
        host=host,
        port=port,
        bearer=bearer,
        autostart=True,
        seed=seed,
        watchdog_s=watchdog,
        tls_cert=None if tls_cert is None else str(tls_cert),
        tls_key=None if tls_key is None else str(tls_key),
    )
    run(_serve_world(endpoint, target, given))


async def _serve_world(endpoint: RobotEndpoint, world: str, settings: dict[str, Any]) -> None:
    with blamed(world, settings):
        await endpoint.start()
    async with endpoint:
        _announce(world, endpoint.address, {})
        try:
            raise await endpoint.wait()
        except asyncio.CancelledError:
            return  # told to stop, which is how serving ends well


async def _serve_environment(
    environment: Environment, host: str, port: int, *, bearer: str | None, reveal: bool, shown: str | None
) -> None:
    """``shown``: the target as it was typed, if its workspaces are to be shown."""
    from hudsim.environment.server import EnvironmentServer
    from hudsim.net.address import new_token

    server = EnvironmentServer(environment, bearer=new_token() if bearer is None else bearer, reveal=reveal)
    address = await server.start(host, port)
    try:
        has = {
            "environment": environment.name,
            "tasks": list(environment.templates),
            "capabilities": [capability.name for capability in environment.capabilities],
        }
        _announce(environment.name, address, has)
        async with contextlib.AsyncExitStack() as stack:
            if shown is not None:
                stack.enter_context(SshLines.shown(environment))
                await stack.enter_async_context(started(environment, shown, address.url))
            await asyncio.get_running_loop().create_future()
    except asyncio.CancelledError:
        return  # told to stop
    finally:
        await server.stop()


def _announce(what: str, address: Any, has: dict[str, Any]) -> None:
    # To whoever started this the line is the sign that it is up.
    typer.echo(json.dumps({"url": address.url, "port": address.port, **has}))
    if address.host in _ANY_HOST:
        say(f"others reach it by this machine's name or address in the place of {address.host}")
    say(f"{what} is up; Ctrl-C ends it")


def _refuse_worlds_own(context: typer.Context, environment: Environment) -> None:
    """Raises :class:`~hudsim.errors.UsageError` for an option that was given and only a world has."""
    for option, name, _ in typed(context):
        if name in _WORLDS_OWN:
            there_are = ", ".join(environment.settings) or "none"
            hint = f"; give it as --set {name}=…" if name in environment.settings else ""
            raise UsageError(
                f"{option} is a world's, and {environment.name} is an environment, whose settings are its "
                f"own: {there_are}{hint}"
            )
