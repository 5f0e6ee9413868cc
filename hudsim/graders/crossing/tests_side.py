"""``attach``: where the tests run. The solution's modules can be imported, and are on the other side."""

from __future__ import annotations

import builtins
import importlib.machinery
import socket
import sys
import types
import warnings
from collections.abc import Callable, Sequence
from typing import Any

from hudsim.graders.crossing.errors import SolutionGone
from hudsim.graders.crossing.link import Link
from hudsim.graders.crossing.names import BY_PARTS, SAFE, safe_name, standard_name, untouchable
from hudsim.graders.crossing.peer import Peer
from hudsim.graders.crossing.permits import OPERATIONS_FOR_THE_SOLUTION, Given, public, raw, refusal

__all__ = ["Crossing", "Done", "attach"]


class Done:
    """A program of the solution that has ended: ``returncode``, ``stdout`` and ``stderr`` as text."""

    def __init__(self, args: Sequence[str], returncode: int, stdout: str, stderr: str) -> None:
        self.args, self.returncode, self.stdout, self.stderr = list(args), returncode, stdout, stderr

    def __repr__(self) -> str:
        return f"Done({self.args!r}, returncode={self.returncode}, stdout={self.stdout!r}, stderr={self.stderr!r})"


class TestsSide:
    """For :class:`Peer`. What is received never runs: a callback is called, nothing else."""

    lends = True

    def __init__(self, opaque: Sequence[str]) -> None:
        self._opted = frozenset(opaque)
        self.peer: Any = None

    def name(self, value: Any) -> tuple[str, str] | None:
        return safe_name(value) or standard_name(value)

    def named(self, module: str, name: str) -> Any:
        return SAFE[module, name]

    def forbids(self, value: Any) -> str | None:
        return untouchable(value)

    def remake(self, value: Any) -> tuple[Any, tuple[Any, ...], tuple[tuple[str, Any], ...]] | None:
        if type(value) not in BY_PARTS:
            return None
        if hasattr(value, "func"):
            return type(value), (value.func, *value.args), tuple(value.keywords.items())
        made, parts = value.__reduce__()[:2]
        return made, parts, ()

    def make(self, function: Any, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
        raise LookupError("nothing is made for the solution here")

    def public(self, value: Any, name: str) -> Any:
        return public(value, name)

    def raw(self, kind: type, name: str) -> bool:
        return raw(kind, name)

    def trusts(self, description: dict[str, Any]) -> bool:
        module, name = str(description["module"]), str(description["qualname"])
        return not self._opted.isdisjoint({name, f"{module}.{name}", f"{module.partition('.')[0]}.{name}"})

    def module(self, name: str, package: bool) -> types.ModuleType:
        return SolutionModule(name, package, self.peer)

    def permits(self, what: str, operands: tuple[Any, ...], given: Given) -> str | None:
        return refusal(what, operands, given)

    def said(self) -> tuple[tuple[str, Any], ...]:
        return ()

    def show(self, said: tuple[tuple[str, Any], ...]) -> None:
        for way, what in said:
            if way == "warning":
                text, kind, file, line = what
                if isinstance(kind, type) and issubclass(kind, Warning):
                    warnings.warn_explicit(str(text), kind, str(file), int(line))
            else:
                (sys.stderr if way == "stderr" else sys.stdout).write(str(what))


_OWN: Any = vars(types.ModuleType)["__dict__"]


class SolutionModule(types.ModuleType):
    # A module that is on the other side: each look at it is a look there, also for its text.
    __doc__ = property(lambda self: _OWN.__get__(self)["_peer"].ask("get", self, "__doc__"))

    def __init__(self, name: str, package: bool, peer: Peer) -> None:
        super().__init__(name)
        own = _OWN.__get__(self)
        own["_peer"] = peer
        del own["__doc__"]
        if package:
            own["__path__"] = []

    @property
    def __dict__(self) -> Any:  # type: ignore[override]
        return types.MappingProxyType(_OWN.__get__(self)["_peer"].ask("vars", self))

    def __getattr__(self, name: str) -> Any:
        if name in {"__path__", "__file__", "__wrapped__", "__test__"}:
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}", name=name, obj=self)
        peer = _OWN.__get__(self)["_peer"]
        return peer.ask("names", self) if name == "__all__" else peer.ask("get", self, name)

    def __setattr__(self, name: str, value: Any) -> None:
        own = _OWN.__get__(self)
        if name.startswith("__") or isinstance(value, SolutionModule):
            own[name] = value
        else:
            own["_peer"].ask("set", self, name, value)

    def __delattr__(self, name: str) -> None:
        own = _OWN.__get__(self)
        if name in own:
            del own[name]
        else:
            own["_peer"].ask("del", self, name)

    def __dir__(self) -> list[str]:
        return list(_OWN.__get__(self)["_peer"].ask("dir", self))


class Finder:
    """Of the named modules and what is in them."""

    def __init__(self, crossing: Crossing, modules: Sequence[str]) -> None:
        self._crossing = crossing
        self._modules = frozenset(modules)
        self._given: set[str] = set()

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> importlib.machinery.ModuleSpec | None:
        """Called by the import system."""
        if fullname.partition(".")[0] not in self._modules:
            return None
        return importlib.machinery.ModuleSpec(fullname, self, is_package=True)  # type: ignore[arg-type]

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        """Imports it over there; raises what its import raises."""
        fresh = spec.name in self._given
        self._given.add(spec.name)
        module = self._crossing.peer.ask("module", spec.name, fresh)
        if not isinstance(module, SolutionModule):
            raise ImportError(f"the solution's {spec.name} is no module", name=spec.name)  # noqa: TRY004
        if "__path__" not in _OWN.__get__(module):
            spec.submodule_search_locations = None
        return module

    def exec_module(self, module: types.ModuleType) -> None:
        """It has run over there already; unless this is a reload."""
        own = _OWN.__get__(module)
        if "_loaded" in own:
            self._crossing.peer.ask("reload", module)
        own["_loaded"] = True


class Crossing:
    """The tests' end: ``run`` is for the tests, the rest for what runs them."""

    def __init__(self, peer: Peer, link: Link, modules: Sequence[str]) -> None:
        self.peer = peer
        self._link = link
        self._finder = Finder(self, modules)
        sys.meta_path.insert(0, self._finder)

    def run(self, args: Sequence[str], *, input: str = "", timeout: float = 30.0) -> Done:  # noqa: A002
        """Run the solution as a program, ``python -m args…``, where its files are.

        timeout
            In seconds; at its end the program is killed and ``returncode`` is -9.
        """
        code, out, err = self.peer.ask("run", tuple(map(str, args)), str(input), float(timeout))
        return Done(args, int(code), str(out), str(err))

    @property
    def gone(self) -> SolutionGone | None:
        """Why the solution does not answer any more. None: it does."""
        return self._link.gone

    def troubles(self) -> list[BaseException]:
        """What could not be done across since last asked; a test with troubles has failed."""
        found, self.peer.troubles[:] = list(self.peer.troubles), []
        return found

    def close(self) -> None:
        """The solution's side ends, and its modules cannot be imported any more. Idempotent."""
        self._link.close()
        if self._finder in sys.meta_path:
            sys.meta_path.remove(self._finder)
        for name in [name for name, module in sys.modules.items() if isinstance(module, SolutionModule)]:
            del sys.modules[name]


def attach(
    sock: socket.socket, modules: Sequence[str], *, opaque: Sequence[str] = (), timeout_s: float | None = 60.0
) -> Crossing:
    """Make the named modules importable; they live at the other end of this connected stream socket.

    opaque
        The solution's classes whose own verdicts (``==``, truth, order, ``in``, ``hash``) count, as ``calc.Money``.
    timeout_s
        How long one call may take before the solution is :class:`SolutionGone`.
    """
    side = TestsSide(opaque)
    link = Link(sock, timeout_s=timeout_s)
    operations: dict[str, Callable[..., Any]] = {**OPERATIONS_FOR_THE_SOLUTION, "input": _input, "read": _read}
    peer = side.peer = Peer(link, side, operations)
    return Crossing(peer, link, modules)


def _input(prompt: str) -> str:
    return builtins.input(str(prompt))


def _read(way: str, size: int) -> str:
    """From what stands for the standard input of the test."""
    stream = sys.stdin
    return str(stream.readline(size) if way == "line" else stream.read(size))
