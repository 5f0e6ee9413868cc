"""``Environment``: what is there to work on, and the tasks to be done there."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import Any, ParamSpec, Self

from hudsim.bridge import Bridge
from hudsim.capability import Capability, check_name
from hudsim.coding.bubblewrap import hide
from hudsim.coding.workspace import Workspace
from hudsim.environment.attached import Attached, current_holder
from hudsim.environment.gym import gym_spec
from hudsim.environment.template import Template
from hudsim.errors import EnvironmentFailed, HudsimError, UnknownName, UsageError, words
from hudsim.given import given_a, given_count, given_hook, given_object, given_text, refusal
from hudsim.loop.bounded import bounded, is_cancellation
from hudsim.robot.bridge import RobotBridge
from hudsim.robot.endpoint import RobotEndpoint

__all__ = ["Environment"]

log = logging.getLogger(__name__)

P = ParamSpec("P")
Hook = Callable[[], Awaitable[None]]

_STOP_S = 10.0
_HOOK = "a coroutine function without arguments (async def)"
_ROBOT = "a RobotEndpoint or other Bridge, a RobotBridge class, or a function of the settings that makes a Bridge"
_TRACKING = "filetracking"


class Environment:
    """A declaration: capabilities, templates and hooks. Nothing runs until it is served.

    ::

        env = Environment("balls")
        ball = env.robot(RobotEndpoint(Ball))

        @env.template()
        async def settle(seed: int = 0):
            episode = await ball.reset(seed=seed)
            yield episode["prompt"]
            yield await ball.result()

    name, version
        What a task's ``env`` names; shown to whoever connects.
    capabilities
        Of what runs already.
    settings
        What can be told to it before it starts (``hudsim eval … --set key=value``), with its defaults: plain JSON.

    One environment serves one run after another, and several at once as far as its bridges have slots; what a run
    must find fresh, its template makes.
    """

    def __init__(
        self,
        name: str = "environment",
        *,
        version: str = "0.0.1",
        capabilities: Iterable[Capability] = (),
        settings: Mapping[str, Any] = MappingProxyType({}),
    ) -> None:
        self.name = given_text(name, "environment name", "a name, as in Environment('balls')")
        self.version = given_text(version, f"version of environment {name}", "a text, as in '0.0.1'")
        self.settings = given_object(settings, f"settings of environment {name}")
        self.templates: dict[str, Template[Any]] = {}
        self._declared: dict[str, Capability] = {}
        self._attached: dict[str, Attached] = {}
        self.workspaces: dict[str, Workspace] = {}
        self._up: list[Hook] = []
        self._down: list[Hook] = []
        self._users = 0
        self._changing: asyncio.Lock | None = None
        for capability in given_a(Iterable, capabilities, f"capabilities of environment {name}", "a list of them"):
            self.add_capability(capability)

    # Declaring ----------------------------------------------------------------------------------------------------

    def template(
        self,
        id: str | None = None,  # noqa: A002 - HUD's name for it
        *,
        description: str = "",
        input: Any = None,  # noqa: A002 - HUD's name for it
        returns: Any = None,
    ) -> Callable[[Callable[P, AsyncGenerator[Any, Any]]], Template[P]]:
        """Register an async generator of two yields as a :class:`~hudsim.environment.template.Template`.

        id
            None: the function's name.
        description
            One line. "": the function's docstring.
        input, returns
            Types of what the agent is given and must answer; their JSON Schemas are published. With ``returns`` the
            template is sent an :class:`~hudsim.environment.Answer`. None: plain text.

        Raises :class:`~hudsim.errors.UsageError` for another kind of function, and for an id that is taken.
        """
        if id is not None:
            given_text(id, f"template of environment {self.name}", "an id or none, in parentheses: @env.template()")

        def register(func: Callable[P, AsyncGenerator[Any, Any]]) -> Template[P]:
            name = str(id or getattr(func, "__name__", type(func).__name__))
            if name in self.templates:
                raise UsageError(f"environment {self.name} has a template {name} already; give this one another id")
            made = Template(self, func, id=name, description=description, input=input, returns=returns)
            self.templates[name] = made
            if (file := getattr(func, "__globals__", {}).get("__file__")) is not None:
                hide(file)  # with it and its tests installed below /usr, a workspace would see them there
            return made

        return register

    @property
    def tasks(self) -> dict[str, Template[Any]]:
        """HUD's name for ``templates``."""
        return self.templates

    def initialize(self, hook: Hook) -> Hook:
        """Register what runs before the environment serves: start a daemon and :meth:`add_capability`."""
        self._up.append(given_hook(hook, f"initialize of environment {self.name}", 0, _HOOK))
        return hook

    def shutdown(self, hook: Hook) -> Hook:
        """Register what runs after it has served; the last registered runs first."""
        self._down.append(given_hook(hook, f"shutdown of environment {self.name}", 0, _HOOK))
        return hook

    def add_capability(self, capability: Capability) -> None:
        """Publish what runs already, at a URL. One of the same name is replaced."""
        given_a(Capability, capability, f"capability of environment {self.name}", "a Capability")
        self._refuse_taken(capability.name, self._attached)
        given_object(capability.params, f"params of capability {capability.name}")
        _ = capability.endpoint  # both refused now, not when somebody connects
        self._declared[capability.name] = capability

    def robot(
        self, endpoint: Bridge | type[RobotBridge] | Callable[[Mapping[str, Any]], Bridge], *, name: str = "robot"
    ) -> Attached:
        """Serve a robot world; returns the handle that templates drive.

        ``endpoint`` is a :class:`~hudsim.robot.endpoint.RobotEndpoint` (or any :class:`~hudsim.bridge.Bridge`), a
        ``RobotBridge`` class, or a function that makes the endpoint of the environment's settings.
        """
        if isinstance(endpoint, Bridge):
            return self._attach(name, lambda settings: endpoint)
        if isinstance(endpoint, type):
            kind = endpoint
            if not issubclass(kind, RobotBridge):
                raise UsageError(f"robot {name}: got the class {kind.__name__}, expected a RobotBridge")
            return self._attach(name, lambda settings: RobotEndpoint(kind))
        make: Any = endpoint
        if not callable(make) or inspect.iscoroutinefunction(make):
            raise refusal(f"robot {name}", make, _ROBOT)
        return self._attach(name, lambda settings: given_a(Bridge, make(settings), f"robot {name}", _ROBOT))

    def gym(self, target: Any, *, name: str = "robot", num_envs: int = 1, **options: Any) -> Attached:
        """Serve a Gymnasium environment.

        ``target`` is an id (``"CartPole-v1"``), ``"module:factory"``, a factory or class that another process can
        import, or an environment that ``gymnasium.make`` made. ``options`` are the world's own arguments.
        """
        given_count(num_envs, "num_envs")
        spec = gym_spec(target, options)
        return self._attach(name, lambda settings: RobotEndpoint.spawn(spec, num_envs=num_envs))

    def workspace(self, root: str | Path = "workspace", *, name: str = "shell", **options: Any) -> Workspace:
        """Serve a directory and a shell in it, of which every run has its own; returns the handle that templates drive.

        ``root`` and ``options`` are those of :class:`~hudsim.coding.Workspace`. A run's agent always finds it, with
        the key to it among its bindings.
        """
        made = Workspace(root, **options)
        made.serve(current_holder.get)
        self._attach(name, lambda settings: made)
        if made.settings.track_files:
            self._refuse_taken(_TRACKING, {**self._attached, **self._declared})
            self._up.append(lambda: self._publish_tracking(made))
        self.workspaces[name] = made
        return made

    async def _publish_tracking(self, workspace: Workspace) -> None:
        self.add_capability(workspace.tracking_capability(_TRACKING))

    def _attach(self, name: str, make: Callable[[Mapping[str, Any]], Bridge]) -> Attached:
        self._refuse_taken(name, {**self._attached, **self._declared})
        attached = Attached(name, make)
        self._attached[name] = attached
        self._up.append(lambda: attached.start(self.settings))
        self._down.append(attached.stop)
        return attached

    def _refuse_taken(self, name: str, taken: Mapping[str, Any]) -> None:
        if check_name(name) in taken:
            raise UsageError(f"environment {self.name} has a capability {name!r} already; give this one another name=")

    # Serving ------------------------------------------------------------------------------------------------------

    def configure(self, **settings: Any) -> None:
        """Change settings before the start.

        Raises :class:`~hudsim.errors.UnknownName` for one that is not declared, :class:`~hudsim.errors.UsageError` for
        one of another type than its default, and once the environment runs.
        """
        self.check_settings(settings)
        if self._users and any(self.settings[key] != value for key, value in settings.items()):
            raise UsageError(f"environment {self.name} runs already; its settings are given before it starts")
        self.settings.update(settings)

    def check_settings(self, settings: Mapping[str, Any]) -> None:
        """Whether it has these settings, of the types of their defaults. Raises as :meth:`configure`."""
        for key, value in settings.items():
            if key not in self.settings:
                raise UnknownName(f"setting of environment {self.name}", key, self.settings)
            default = self.settings[key]
            kinds = (int, float) if type(default) is float else (type(default),)
            if default is not None and type(value) not in kinds:
                raise UsageError(
                    f"setting {key} of environment {self.name}: got {value!r}, expected a {type(default).__name__}, as "
                    f"its default, {default!r}, is"
                )

    @property
    def capabilities(self) -> list[Capability]:
        """What is there now. A bridge's only once the environment runs."""
        served = [attached.capability() for attached in self._attached.values()] if self._users else []
        return [*self._declared.values(), *served]

    def capability(self, name: str) -> Capability:
        """The capability called ``name``. Raises :class:`~hudsim.errors.UnknownName`."""
        there_are = {capability.name: capability for capability in self.capabilities}
        given_text(name, "capability", "the name of one")
        if name not in there_are:
            raise UnknownName("capability", name, there_are)
        return there_are[name]

    @property
    def slots(self) -> int | None:
        """How many runs it can serve at once: what its bridges have slots for. None: any number. While it runs."""
        counts = [attached.bridge.slots for attached in self._attached.values()]
        return min((count for count in counts if count is not None), default=None)

    def find(self, template_id: str) -> Template[Any]:
        """The template called so. Raises :class:`~hudsim.errors.UnknownName`, which lists those there are."""
        given_text(template_id, "task", "the id of one")
        if template_id not in self.templates:
            raise UnknownName(f"task in environment {self.name}", template_id, self.templates)
        return self.templates[template_id]

    async def start(self) -> None:
        """Run the ``initialize`` hooks, in order. Each start wants its stop: hooks run for the first and the last.

        What one raises ends the start, after everything has been taken down again: a typed error as it is, anything
        else as :class:`~hudsim.errors.EnvironmentFailed`.
        """
        async with self._lock():
            if not self._users:
                await self._bring_up()
            self._users += 1

    async def stop(self) -> None:
        """Run the ``shutdown`` hooks, the last first, each whatever became of the others; nothing if it is stopped."""
        async with self._lock():
            if self._users:
                self._users -= 1
                if not self._users:
                    await self._take_down()

    async def _bring_up(self) -> None:
        try:
            for hook in self._up:
                await bounded(hook, f"an initialize hook of environment {self.name}", timeout_s=None)
        except BaseException as error:
            await self._take_down()
            if isinstance(error, HudsimError) or is_cancellation(error):
                raise
            raise EnvironmentFailed(
                f"environment {self.name} did not start: {type(error).__name__}: {words(error)}"
            ) from error

    async def _take_down(self) -> None:
        for hook in reversed(self._down):
            try:
                await bounded(hook, f"a shutdown hook of environment {self.name}", timeout_s=_STOP_S)
            except BaseException as error:  # it is the user's, and the others are to run too
                if is_cancellation(error):
                    raise
                log.warning(
                    "environment %s: a shutdown hook raised %s: %s", self.name, type(error).__name__, words(error)
                )

    def _lock(self) -> contextlib.AbstractAsyncContextManager[None]:
        if self._changing is None:
            self._changing = asyncio.Lock()
        return self._changing

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None
    ) -> None:
        await self.stop()

    def __repr__(self) -> str:
        return f"<Environment {self.name}: {', '.join(self.templates) or 'no templates'}>"
