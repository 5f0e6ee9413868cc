"""The checks of one world, in the process that :mod:`hudsim.testing.apart` starts."""

from __future__ import annotations

import faulthandler
import json
import os
import sys
import threading
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from hudsim.errors import HudsimError, UsageError
from hudsim.robot.spec import WorldSpec
from hudsim.target import load_target
from hudsim.testing.checks import iter_findings

__all__ = ["main"]


def main() -> None:
    """Read an order, one line of JSON, from stdin; say on its ``findings_fd`` what begins and what is found."""
    order = json.loads(sys.stdin.readline())
    threading.Thread(target=_lifeline, name="hudsim-lifeline", daemon=True).start()
    faulthandler.enable()  # stderr then says where a crash was
    os.set_inheritable(order["findings_fd"], False)
    with os.fdopen(order["findings_fd"], "w") as out:
        _answer(order, lambda **message: print(json.dumps(message), file=out, flush=True))


def _answer(order: dict[str, Any], tell: Callable[..., None]) -> None:
    spec = WorldSpec(**order["spec"])
    try:
        factory = _factory(spec)
        recognise = None if order["recognise"] is None else load_target(order["recognise"])
    except UsageError as error:
        tell(refused={"name": error.name, "message": error.message, "data": error.data})
        return
    for finding in iter_findings(
        factory, task_args=spec.task_args, recognise=recognise, on_check=lambda what: tell(check=what)
    ):
        tell(finding=asdict(finding))
    tell(done=True)


def _factory(spec: WorldSpec) -> Callable[..., Any]:
    try:
        return spec.factory()
    except HudsimError:
        raise
    except (Exception, SystemExit) as error:
        raise UsageError(f"{spec.target} cannot be imported: {type(error).__name__}: {error}") from error


def _lifeline() -> None:
    """The parent holds stdin's other end as long as it lives."""
    while sys.stdin.readline():
        pass
    os._exit(1)


if __name__ == "__main__":
    main()
