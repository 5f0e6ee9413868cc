from __future__ import annotations

import contextlib
import importlib
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hudsim.graders.crossing.errors import CannotCross, SolutionGone, SolutionRaised, explain
from hudsim.graders.crossing.tests_side import Crossing, attach
from tests.graders.crossing.pair import crossing

SOLUTION = {
    "calc.py": """
        import os, sys, time

        def exits(): sys.exit(0)
        def interrupts(): raise KeyboardInterrupt
        def outcome():
            class Skipped(BaseException): pass
            raise Skipped("skip me")
        def skips():
            import unittest
            raise unittest.SkipTest("skip me")
        def dies(): os._exit(0)
        def hangs(): time.sleep(60)
        def returns_exit(): return SystemExit(3)
        def swallow(function):
            try:
                function()
            except BaseException:
                pass
            return "fine"
        def reach(value, name): return getattr(value, name)
        def put(value, name, new): setattr(value, name, new)
        def call(function, *args): return function(*args)
        def ask(what, *operands):
            import gc
            peers = [one for one in gc.get_objects() if type(one).__name__ == "Peer"]
            return peers[0].ask(what, *operands)
        def garbage():
            import socket
            for number in range(3, 40):
                try:
                    socket.socket(fileno=number).send(b"\\0\\0\\0\\1?")
                except OSError:
                    pass
            time.sleep(60)
    """
}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Crossing]:
    with crossing(tmp_path_factory.mktemp("solution"), SOLUTION) as made:
        yield made


@pytest.fixture
def calc(made: Crossing) -> Any:
    made.troubles()
    return importlib.import_module("calc")


@pytest.mark.parametrize("way", ["exits", "interrupts", "outcome"])
def test_no_exit_interrupt_or_outcome_comes_from_the_solution(calc: Any, way: str) -> None:
    with pytest.raises(SolutionRaised) as raised:
        getattr(calc, way)()
    assert (explain(raised.value) or "").startswith("exit")


def test_a_skip_of_unittest_is_an_error_like_any_other(calc: Any) -> None:
    import unittest

    with pytest.raises(Exception, match="skip me") as raised:
        calc.skips()
    assert not isinstance(raised.value, unittest.SkipTest)


def test_an_exit_as_a_value_cannot_be_raised_as_one(calc: Any) -> None:
    assert isinstance(calc.returns_exit(), Exception)


@pytest.mark.parametrize("kind", [AssertionError, KeyboardInterrupt, pytest.fail.Exception, pytest.skip.Exception])
def test_a_failed_assertion_in_a_callback_cannot_be_swallowed(calc: Any, kind: type[BaseException]) -> None:
    def fails() -> None:
        raise kind("mine")

    with pytest.raises(kind, match="mine"):
        calc.swallow(fails)
    assert calc.swallow(lambda: 1) == "fine"


class Mine:
    shown = 1
    _hidden = 2

    def method(self) -> int:
        return 3


@pytest.mark.parametrize("name", ["__class__", "_hidden", "__init__", "__globals__", "__reduce__"])
def test_the_private_parts_of_a_tests_object_are_out_of_reach(made: Crossing, calc: Any, name: str) -> None:
    mine = Mine()
    with pytest.raises((CannotCross, AttributeError)):
        calc.call(calc.ask, "get", mine, name)
    assert calc.reach(mine, "shown") == 1


@pytest.mark.parametrize(
    ("what", "operands"),
    [
        ("get", (Mine.method, "__globals__")),
        ("get", (Mine.method, "__code__")),
        ("set", (Mine.method, "shown", 5)),
        ("set", (Mine, "shown", 5)),
        ("dunder", (Mine, "__subclasses__", ())),
        ("call", (eval, ("1 + 1",), {})),
        ("module", ("os", False)),
        ("run", (("x",), "", 1.0)),
        ("nothing", ()),
    ],
)
def test_a_forged_request_runs_nothing(tmp_path: Path, what: str, operands: Any) -> None:
    with crossing(tmp_path, SOLUTION) as made:
        calc = importlib.import_module("calc")
        with pytest.raises((CannotCross, AttributeError, SolutionGone, TypeError)):
            calc.ask(what, *operands)
        assert Mine.shown == 1
        made.troubles()


def test_a_dead_solution_is_gone_for_good(tmp_path: Path) -> None:
    with crossing(tmp_path, SOLUTION) as made:
        calc = importlib.import_module("calc")
        exits = calc.exits
        with pytest.raises(SolutionGone) as gone, contextlib.suppress(Exception):
            calc.dies()
        assert gone.value.kind == "died"
        with pytest.raises(SolutionGone):
            exits()
        assert made.gone is not None
        assert len(made.troubles()) == 2


def test_a_call_that_hangs_ends(tmp_path: Path) -> None:
    with crossing(tmp_path, SOLUTION) as made:
        calc = importlib.import_module("calc")
        made.peer.link._timeout_s = 0.5  # from here on: the start of an interpreter may take longer
        with pytest.raises(SolutionGone) as gone:
            calc.hangs()
        assert gone.value.kind == "hung"
        made.close()


def test_bytes_that_are_no_message_end_it(tmp_path: Path) -> None:
    with crossing(tmp_path, SOLUTION) as made:
        calc = importlib.import_module("calc")
        with pytest.raises(SolutionGone) as gone:
            calc.garbage()
        assert gone.value.kind == "garbled"
        assert made.gone is not None


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"\2",
        b"\2NN",
        b"\2u" + b"\0" * 8 + b"N",
        b"\2g" + b"t-\0\0\0\2s\0\0\0\2oss\0\0\0\6systemN",
        b"\2G" + b"t-\0\0\0\3NNNN",
        b"\2K" + b"\0" * 8 + b"t-\0\0\0\0N",
        b"\2a" + b"\0" * 8 + b"N",
        b"\1s\0\0\0\4callN",
    ],
)
def test_a_forged_reply_ends_it(body: bytes) -> None:
    ours, theirs = socket.socketpair()
    made = attach(ours, ["calc"], timeout_s=5.0)
    try:
        theirs.sendall(len(body).to_bytes(4, "big") + body)
        with pytest.raises(SolutionGone):
            made.peer.ask("get", 1, "x")
    finally:
        made.close()
        theirs.close()


def test_a_class_of_the_solution_cannot_bring_code(tmp_path: Path) -> None:
    source = """
        import subprocess, os, types
        Popen = subprocess.Popen
        call = os.system
        code = types.FunctionType
        def kinds(): return [subprocess.Popen, type, int, eval, exec, open]
    """
    with crossing(tmp_path, {"calc.py": source}):
        calc = importlib.import_module("calc")
        import os
        import subprocess

        assert calc.Popen is not subprocess.Popen
        assert calc.call is not os.system
        popen, *_, evaluate, execute, opened = calc.kinds()
        assert popen is calc.Popen
        assert evaluate is not eval
        assert execute is not exec
        assert opened is not open
        assert evaluate("__import__('os').getpid()") != os.getpid()
