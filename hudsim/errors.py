"""Every error that hudsim raises on purpose, in one tree.

::

    HudsimError
    ├── UsageError                  what the caller asked for cannot be (also a ValueError)
    │   └── UnknownName             a name that is not there; says which are
    ├── ContractError               an observation or action that breaks the contract      4422
    ├── WireError                   a frame that is not legal here                         4400
    │   └── DecodeError             bytes that are not a message
    ├── LinkError                   the way to the peer
    │   ├── ConnectError            refused, no answer in time, not a hudsim server; a tunnel's daemon    4502
    │   ├── BearerError             bearer token missing or wrong                      HTTP 401
    │   ├── OriginError             a web page of another origin                       HTTP 403
    │   ├── NoSuchCapability        no such path; lists those there are                HTTP 404
    │   ├── FrameTooLarge           a frame over ``limits.max_frame_bytes``                1009
    │   └── LinkLost                the peer is gone: EOF, reset, killed
    ├── TaskError                   a task cannot be started or graded
    │   ├── TemplateError           its template raised, or does not yield as it must
    │   ├── NoTask                  nothing was started here, or it has been graded already
    │   └── EnvironmentFailed       the environment did not come up, or died
    ├── AgentError                  the agent raised, or is none
    ├── StoreError                  the record cannot be kept or read
    ├── SandboxError                no sandbox can be made
    │   └── SandboxBroken           it was up; now it is gone, or starts nothing more
    ├── WorkspaceError              what a workspace's files, as they are, do not let be done
    └── EpisodeError                the episode cannot go on
        ├── EpisodeOver             it has ended already
        ├── PolicyDeadline          no action in time                                      4408
        ├── PolicyFailed            the policy raised
        ├── SlotTaken               the slot has a live connection                         4409
        ├── NoFreeSlot              every slot holds an episode
        ├── SimFailed               the bridge raised                                      4500
        │   └── SimDiverged         the physics left the finite numbers                    4500
        ├── SimHung                 the bridge did not return within its watchdog          4501
        └── ShuttingDown            the server is going down                               4503

Each says what was got, what was expected and what there is. Those that cross the wire carry ``code``
(the WebSocket close code) and ``name`` (the word in the error frame); :func:`from_wire` gives back the
same class at the other end.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

__all__ = [
    "AgentError",
    "BearerError",
    "ConnectError",
    "ContractError",
    "DecodeError",
    "EnvironmentFailed",
    "EpisodeError",
    "EpisodeOver",
    "FrameTooLarge",
    "HudsimError",
    "LinkError",
    "LinkLost",
    "NoFreeSlot",
    "NoSuchCapability",
    "NoTask",
    "OriginError",
    "PolicyDeadline",
    "PolicyFailed",
    "SandboxBroken",
    "SandboxError",
    "ShuttingDown",
    "SimDiverged",
    "SimFailed",
    "SimHung",
    "SlotTaken",
    "StoreError",
    "TaskError",
    "TemplateError",
    "UnknownName",
    "UsageError",
    "WireError",
    "WorkspaceError",
    "from_wire",
    "words",
]


_LONGEST_NAME = 80
"""Characters: a name may come from a peer, and to look for near ones takes time that grows with its square."""


class HudsimError(Exception):
    """Base of all errors raised on purpose.

    ``code`` is the WebSocket close code that it travels with (None: it does not travel), ``name`` its
    word in an error frame, ``data`` what a program may want of it, plain JSON values only.
    """

    code: ClassVar[int | None] = None
    name: ClassVar[str] = "error"

    def __init__(self, message: str, **data: Any) -> None:
        super().__init__(message)
        self.data: dict[str, Any] = data

    @property
    def message(self) -> str:
        return str(self.args[0]) if self.args else ""


class UsageError(HudsimError, ValueError):
    """What the caller asked for cannot be: a wrong option, type or combination. CLI exit code 2."""

    name = "usage"


class UnknownName(UsageError):
    """A name that is not there. The message names the nearest and lists what there is.

    ``UnknownName("world", "arm-lft", ["arm-lift", "arm-push"])`` reads *no world 'arm-lft'; did you
    mean 'arm-lift'? There are: arm-lift, arm-push*. Of a long name its beginning is told, and none is near it.
    """

    name = "unknown_name"

    def __init__(self, kind: str, got: str, there_are: Iterable[str]) -> None:
        names = sorted(there_are)
        near = difflib.get_close_matches(got, names, n=1) if len(got) <= _LONGEST_NAME else []
        if len(got) > _LONGEST_NAME:
            got = f"{got[:_LONGEST_NAME]}…"
        hint = f"; did you mean {near[0]!r}?" if near else "."
        listed = f" There are: {', '.join(names)}" if names else " There are none"
        super().__init__(f"no {kind} {got!r}{hint}{listed}", kind=kind, got=got, there_are=names)


class ContractError(HudsimError):
    """An observation or action that breaks the contract, or a contract that contradicts itself.

    ``feature`` names the feature, ``got`` and ``expected`` say the difference in words.
    """

    code = 4422
    name = "contract_violation"

    def __init__(self, feature: str, *, got: str, expected: str, hint: str = "") -> None:
        message = f"{feature}: got {got}, expected {expected}"
        super().__init__(f"{message} ({hint})" if hint else message, feature=feature, got=got, expected=expected)
        self.feature, self.got, self.expected = feature, got, expected


class WireError(HudsimError):
    """A frame that is not legal here."""

    code = 4400
    name = "protocol_error"


class DecodeError(WireError):
    """Bytes that are not a message: truncated, too deep, too many, or a dtype that is not carried."""


class LinkError(HudsimError):
    """The way to the peer."""

    name = "link"


class ConnectError(LinkError):
    """Nobody answered at host:port, or what answered is not a hudsim server."""

    name = "connect"


class BearerError(LinkError):
    """The bearer token is missing or wrong (HTTP 401)."""

    name = "bearer"


class OriginError(LinkError):
    """A browser page of another origin asked (HTTP 403)."""

    name = "origin"


class NoSuchCapability(LinkError):
    """No such path on this server (HTTP 404); the message lists those there are."""

    name = "no_such_capability"


class FrameTooLarge(LinkError):
    """A frame over ``limits.max_frame_bytes``."""

    code = 1009
    name = "frame_too_large"


class LinkLost(LinkError):
    """The peer is gone: end of file, reset or killed. Not *slow*: silence alone never raises this."""

    name = "link_lost"


class TaskError(HudsimError):
    """A task cannot be started or graded."""

    name = "task"


class TemplateError(TaskError):
    """A task's template raised, or does not yield as it must. The message names template, phase and place."""

    name = "template"


class NoTask(TaskError):
    """Nothing was started in this session, or it has been graded or cancelled already."""

    name = "no_task"


class EnvironmentFailed(TaskError):
    """The environment did not come up, or its process died. Says nothing about the agent."""

    name = "environment_failed"


class AgentError(HudsimError):
    """The agent raised; the message says what and where."""

    name = "agent"


class StoreError(HudsimError):
    """The record of a run cannot be kept, or read."""

    name = "store"


class SandboxError(HudsimError):
    """No sandbox can be made here; what cannot be isolated is not run."""

    name = "sandbox"


class SandboxBroken(SandboxError):
    """A sandbox that was up is gone, does not answer, or starts nothing more.

    What ran in it may have brought that about: it has if the sandbox is known to have run into a limit
    (:meth:`hudsim.coding.Workspace.evidence`).
    """

    name = "sandbox_broken"


class WorkspaceError(HudsimError):
    """What the files of a workspace, as they are, do not let be done: something is missing, of another kind, too long
    or not permitted. The sandbox is well.
    """

    name = "workspace"


class EpisodeError(HudsimError):
    """The episode cannot go on."""

    name = "episode"


class EpisodeOver(EpisodeError):
    """The episode named has ended already, or never was."""

    code = 4400
    name = "episode_over"


class PolicyDeadline(EpisodeError):
    """The policy sent no action in time. The policy's own fault: the episode counts as failed."""

    code = 4408
    name = "policy_deadline"


class PolicyFailed(EpisodeError):
    """The policy's model or adapter raised, or gave what is no chunk; the message says what and where."""

    name = "policy_failed"


class SlotTaken(EpisodeError):
    """The slot that the token names has a live connection already."""

    code = 4409
    name = "slot_taken"


class NoFreeSlot(EpisodeError):
    """Every slot holds an episode that has not been graded yet."""

    code = 4409
    name = "no_free_slot"


class SimFailed(EpisodeError):
    """The bridge raised. Not the policy's fault: the run is an error, never a 0."""

    code = 4500
    name = "sim_failed"


class SimDiverged(SimFailed):
    """The physics left the finite numbers. The policy can bring this about, so it counts as failed."""

    code = 4500
    name = "sim_diverged"


class SimHung(EpisodeError):
    """The bridge did not return within its watchdog."""

    code = 4501
    name = "sim_hung"


class ShuttingDown(EpisodeError):
    """The server is going down."""

    code = 4503
    name = "shutting_down"


def _descendants(cls: type[HudsimError]) -> Iterable[type[HudsimError]]:
    for sub in cls.__subclasses__():
        yield sub
        yield from _descendants(sub)


def from_wire(name: str, message: str, data: Mapping[str, Any] | None = None) -> HudsimError:
    """The typed error for an error frame's ``name``, with its ``message`` and ``data`` as they came.

    A name that this version does not know becomes a plain :class:`HudsimError` that says it.
    """
    for cls in _descendants(HudsimError):
        if cls.name == name:
            error = cls.__new__(cls)
            HudsimError.__init__(error, message, **dict(data or {}))
            for key in ("feature", "got", "expected"):
                if isinstance(error, ContractError):
                    setattr(error, key, str(error.data.get(key, "")))
            return error
    return HudsimError(f"{name}: {message}", **dict(data or {}))


def words(error: BaseException) -> str:
    """What an error says. Its ``__str__`` may be anybody's code, and raise."""
    try:
        return str(error)
    except Exception:  # noqa: BLE001 - as said
        return "it cannot say why"
