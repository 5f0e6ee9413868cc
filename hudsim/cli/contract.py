"""``hudsim contract``: the schema of all contracts, and the contract of one world."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from hudsim.cli.options import AsJson, Cameras, Rate, Settings, World, blamed, read_settings
from hudsim.cli.output import columns, emit_json, stdout
from hudsim.cli.words import plain

if TYPE_CHECKING:
    from hudsim.contract import Contract, Feature

__all__ = ["commands"]

commands = typer.Typer(help="What a world shows and takes.", no_args_is_help=True, rich_markup_mode=None)

_MANY = 12  # names in a line


@commands.command()
def schema() -> None:
    """Print the JSON Schema of a contract."""
    from hudsim.contract import Contract

    emit_json(Contract.json_schema())


@commands.command()
def show(
    world: World,
    *,
    settings: Settings = None,
    cameras: Cameras = None,
    rate: Rate = None,
    privileged: Annotated[bool, typer.Option("--privileged", help="With what a real robot would not have.")] = False,
    as_json: AsJson = False,
) -> None:
    """Print a world's contract: its features, their shapes and limits, and its timing."""
    from hudsim import registry

    if registry.is_url(world):
        contract = _remote(world)
    else:
        given = read_settings(settings)
        spec = registry.world(world, given, cameras=cameras, privileged=privileged, control_rate=rate)
        with blamed(world, given):
            contract = _local(spec, rate)
    if as_json:
        emit_json(contract.to_json())
    else:
        _print(contract)


def _local(spec: Any, rate: float | None) -> Contract:
    from hudsim.robot.spec import Serving
    from hudsim.robot.world import make_world

    made = make_world(spec.factory(), adjust=Serving(rate_hz=rate).adjust)
    try:
        return made.contract
    finally:
        made.close()


def _remote(url: str) -> Contract:
    from hudsim.contract import Contract
    from hudsim.loop import run
    from hudsim.robot.endpoint import RobotEndpoint

    async def ask() -> Contract:
        async with RobotEndpoint.remote(url) as world:
            return Contract.load(world.capability().params["contract"])

    return run(ask())


def _print(contract: Contract) -> None:
    console = stdout()
    timing = contract.timing
    rate = "no rate" if contract.control_rate is None else f"{contract.control_rate:g} Hz"
    robot = plain(contract.robot_type or "a robot")
    console.print(f"{robot} · {rate} · {timing.mode} · success at {_RULES[contract.success.rule]}")
    table = columns(_name="left", _array="left", _type="left", _more="left")
    for name, feature in contract.features.items():
        shape = "×".join(map(str, feature.shape or ())) or "one number"
        kind = feature.type or ""
        table.add_row(f"[cyan]{plain(name)}[/]", f"{feature.dtype} {shape}", plain(kind), _details(feature))
    console.print(table)


_RULES = {"any": "any tick", "last": "the last tick"}


def _details(feature: Feature) -> str:
    said = []
    if feature.role == "action":
        said.append("what is commanded")
    if feature.privileged:
        said.append("[yellow]privileged[/]")
    if feature.names:
        more = f" … {len(feature.names)} in all" if len(feature.names) > _MANY else ""
        said.append(plain(" ".join(feature.names[:_MANY])) + more)
    if feature.role == "action":
        said.append("out of range is " + {"clip": "clipped", "reject": "refused"}[feature.out_of_range])
    return "; ".join(said)
