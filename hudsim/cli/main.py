"""``hudsim``: the commands, and what a mistake looks like."""

from __future__ import annotations

import logging
import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from hudsim.cli import contract, jobs, sandbox, task
from hudsim.cli.bench import bench
from hudsim.cli.check import check
from hudsim.cli.diff import diff
from hudsim.cli.evaluate import eval_
from hudsim.cli.init import init
from hudsim.cli.listing import list_
from hudsim.cli.output import forgive, printable, say
from hudsim.cli.run import run
from hudsim.cli.serve import serve
from hudsim.cli.show import show
from hudsim.cli.validate import validate
from hudsim.errors import HudsimError, UsageError

__all__ = ["app"]


class _Commands(TyperGroup):
    """Says a :class:`~hudsim.errors.HudsimError` in one message: exit code 2 for usage, 1 for work that failed."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """``--debug`` may stand anywhere."""
        others = [word for word in args if word != "--debug"]
        parsed: list[str] = super().parse_args(ctx, others if len(others) == len(args) else ["--debug", *others])
        return parsed

    def make_context(self, *args: Any, **options: Any) -> Any:
        try:
            return super().make_context(*args, **options)
        except KeyboardInterrupt:  # typer imports some of itself only here
            raise _interrupted("interrupted") from None

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except HudsimError as error:
            if ctx.params.get("debug"):
                raise
            say(f"hudsim: {error.message}")
            raise typer.Exit(2 if isinstance(error, UsageError) else 1) from None
        except KeyboardInterrupt as interrupt:
            raise _interrupted(str(interrupt) or "interrupted") from None


def _interrupted(words: str) -> typer.Exit:
    say(words)
    return typer.Exit(130)


app = typer.Typer(
    cls=_Commands,
    help="Run a policy against a world, or an agent through graded tasks, on time, and say what happened.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,  # boxes leave a third of the width to the words
    pretty_exceptions_enable=False,  # its pages of local variables hide the message
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command()(run)
app.command("eval")(eval_)
app.add_typer(jobs.commands, name="jobs")
app.command()(show)
app.command()(serve)
app.add_typer(task.commands, name="task")
app.command("list")(list_)
app.command()(init)
app.command()(check)
app.command()(validate)
app.add_typer(sandbox.commands, name="sandbox")
app.add_typer(contract.commands, name="contract")
app.command()(diff)
app.command(context_settings={"ignore_unknown_options": True, "allow_extra_args": True, "help_option_names": []})(bench)


def _version(asked: bool) -> None:
    if asked:
        from importlib.metadata import version

        typer.echo(f"hudsim {version('hudsim')}")
        raise typer.Exit


@app.callback()
def _main(
    *,
    debug: Annotated[
        bool, typer.Option("--debug", envvar="HUDSIM_DEBUG", help="Log what happens; show a mistake's traceback.")
    ] = False,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    # A module of the user's own is found from the working folder, as with `python -m`; the sim process does so too.
    if "" not in sys.path and str(Path.cwd()) not in sys.path:
        sys.path.insert(0, "")
    forgive()
    level = logging.INFO if debug else logging.WARNING
    logging.basicConfig(level=level, stream=sys.stderr)
    for handler in logging.getLogger().handlers:
        handler.setFormatter(_Formatter("%(levelname)s %(name)s: %(message)s"))


class _Formatter(logging.Formatter):
    """Of what may hold the words of an agent or a peer."""

    def format(self, record: logging.LogRecord) -> str:
        return printable(super().format(record))
