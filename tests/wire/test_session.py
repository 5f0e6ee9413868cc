"""The session of ``/robot/<name>``: what is legal when, at both ends, and that nothing else gets through."""

from __future__ import annotations

import contextlib
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from hudsim.errors import (
    ContractError,
    EpisodeOver,
    HudsimError,
    PolicyDeadline,
    ShuttingDown,
    SimFailed,
    SimHung,
    SlotTaken,
    WireError,
)
from hudsim.wire.codec import decode, encode
from hudsim.wire.session import (
    PROTOCOL,
    Ack,
    Actions,
    AgentSession,
    Claim,
    End,
    Peer,
    State,
    WorldSession,
    encode_observation,
)

GREETING = {"contract": {"schema": "hudsim/1"}, "limits": {"max_frame_bytes": 1 << 20}}
RICH = {"protocol": PROTOCOL}
ACTION = np.array([0.5, -0.5], np.float32)

TO_WORLD = ("claim", "accept", "actions", "episode", "obs_index", "ack", "end")
TO_AGENT = ("protocol", "contract", "terminated", "truncated", "reward", "success", "meta", "result", "error")
KEYS = st.sampled_from([*TO_WORLD, *TO_AGENT])
ARRAYS = st.sampled_from([ACTION, np.zeros((0,), np.int64), np.zeros((2, 3), np.uint8), np.float32(1.5)])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats() | st.text(max_size=8) | ARRAYS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
MESSAGES = st.dictionaries(KEYS | st.text(max_size=8), VALUES, max_size=5)
ANSWERS = st.fixed_dictionaries({}, optional=dict.fromkeys(TO_AGENT[2:-1], VALUES)).map(encode)
FRAMES = MESSAGES.map(encode) | VALUES.map(encode) | st.binary(max_size=60) | st.text(max_size=20)


def observation(peer: Peer, **changes: Any) -> bytes:
    fields: dict[str, Any] = {
        "terminated": False, "truncated": False, "reward": 1.0, "success": None, "meta": {"obs_index": 3},
    }  # fmt: skip
    return encode_observation({"state": ACTION}, peer=peer, page=None, **(fields | changes)).data()


class Conversation(RuleBasedStateMachine):
    """A world's end against a model of it: legal sequences are accepted, and nothing but typed errors comes out."""

    def __init__(self) -> None:
        super().__init__()
        self.world = WorldSession(GREETING)
        self.agent = AgentSession()
        self.agent.receive_greeting(bytes(self.world.greeting()))
        self.claimed, self.playing, self.late = False, False, 0

    @precondition(lambda self: not self.playing)
    @rule(token=st.none() | st.text(max_size=5))
    def claim(self, token: str | None) -> None:
        event = self.world.receive(bytes(self.agent.claim(token)))
        assert isinstance(event, Claim)
        assert event.token == token
        assert event.peer.rich
        self.claimed = self.playing = True

    @precondition(lambda self: self.playing)
    @rule()
    def claim_while_playing(self) -> None:
        with pytest.raises(WireError, match="expected actions"):
            self.world.receive(bytes(self.agent.claim(None)))

    @precondition(lambda self: self.claimed)
    @rule(index=st.none() | st.integers(0, 1000), chunk=st.booleans())
    def act(self, index: int | None, chunk: bool) -> None:
        array = np.stack([ACTION, ACTION]) if chunk else ACTION
        event = self.world.receive(bytes(self.agent.actions(array, episode="e", obs_index=index)))
        assert isinstance(event, Actions)
        assert (event.episode, event.obs_index) == ("e", index)
        np.testing.assert_array_equal(event.array, array)
        self.late += not self.playing

    @precondition(lambda self: self.claimed)
    @rule(index=st.integers(0, 2**40))
    def ack(self, index: int) -> None:
        assert self.world.receive(bytes(self.agent.ack(index))) == Ack(index)
        self.late += not self.playing

    @precondition(lambda self: self.claimed)
    @rule(reason=st.sampled_from(["max_steps", "cancelled"]))
    def end(self, reason: str) -> None:
        assert self.world.receive(bytes(self.agent.end(reason))) == End(reason)
        self.late += not self.playing

    @rule()
    def the_episode_ends(self) -> None:
        self.world.ended()
        self.playing = False

    @precondition(lambda self: not self.claimed)
    @rule()
    def act_before_any_claim(self) -> None:
        with pytest.raises(WireError, match="before a claim"):
            self.world.receive(bytes(self.agent.actions(ACTION, episode=None, obs_index=None)))

    @invariant()
    def both_agree(self) -> None:
        assert self.world.state is (State.EPISODE if self.playing else State.IDLE)
        assert self.world.late == self.late


TestConversation = Conversation.TestCase
TestConversation.settings = settings(max_examples=60, stateful_step_count=25, deadline=None)


@given(st.lists(FRAMES, max_size=6))
def test_no_frame_makes_the_world_raise_anything_but_a_typed_error(frames: list[bytes | str]) -> None:
    world = WorldSession(GREETING)
    for frame in frames:
        with contextlib.suppress(HudsimError):
            event = world.receive(bytes(frame) if not isinstance(frame, str) else frame)
            assert isinstance(event, Claim | Actions | Ack | End)


@given(FRAMES, FRAMES | ANSWERS)
def test_no_frame_makes_the_agent_raise_anything_but_a_typed_error(first: bytes | str, second: bytes | str) -> None:
    agent = AgentSession()
    for take, frame in ((agent.receive_greeting, first), (agent.receive, second)):
        with contextlib.suppress(HudsimError):
            take(bytes(frame) if not isinstance(frame, str) else frame)


def test_the_greeting_says_what_is_spoken_and_that_a_claim_is_required() -> None:
    message = decode(bytes(WorldSession(GREETING).greeting()))
    assert message == {"protocol": "hudsim/1", "claim_required": True, **GREETING}


def test_an_agent_asks_for_hudsim_1_only_where_it_is_offered() -> None:
    old = AgentSession()
    old.receive_greeting(encode({"claim_required": True}))
    assert decode(bytes(old.claim("t"))) == {"claim": "t"}
    new = AgentSession()
    new.receive_greeting(bytes(WorldSession(GREETING).greeting()))
    assert decode(bytes(new.claim("t"))) == {"claim": "t", "accept": RICH}


def test_an_openpi_0_world_gets_float32_and_nothing_else() -> None:
    agent = AgentSession()
    agent.receive_greeting(encode({"claim_required": True}))
    message = decode(bytes(agent.actions(np.array([1, 2], np.int64), episode="e", obs_index=3)))
    assert set(message) == {"actions"}
    assert message["actions"].dtype == np.float32


def test_an_unknown_protocol_is_refused_by_name() -> None:
    with pytest.raises(WireError, match="'hudsim/9'"):
        AgentSession().receive_greeting(encode({"protocol": "hudsim/9"}))
    with pytest.raises(WireError, match="'hudsim/9'"):
        WorldSession(GREETING).receive(encode({"claim": None, "accept": {"protocol": "hudsim/9"}}))


def test_a_hudsim_1_peer_gets_the_whole_observation() -> None:
    message = decode(observation(Peer(PROTOCOL), truncated=True, success=True))
    assert message["truncated"] is True
    assert message["success"] is True
    assert message["meta"] == {"obs_index": 3}


@pytest.mark.parametrize(("terminated", "truncated"), [(False, False), (True, False), (False, True)])
def test_an_openpi_0_peer_gets_no_extra_keys_and_one_word_for_the_end(terminated: bool, truncated: bool) -> None:
    message = decode(observation(Peer(), terminated=terminated, truncated=truncated))
    assert set(message) == {"state", "terminated", "reward"}
    assert message["terminated"] is (terminated or truncated)


def test_an_openpi_0_peer_is_told_of_errors_in_a_text_frame() -> None:
    world = WorldSession(GREETING)
    world.receive(encode({"claim": None}))
    frame = world.error(SlotTaken("slot 0 has a live connection"))
    assert frame == "slot_taken: slot 0 has a live connection"
    with pytest.raises(WireError, match="closed"):
        world.receive(encode({"claim": None}))


@pytest.mark.parametrize(
    "error",
    [
        WireError("a frame"),
        ContractError("action", got="nan", expected="finite numbers"),
        PolicyDeadline("late"),
        SlotTaken("taken"),
        SimFailed("raised"),
        SimHung("hung"),
        ShuttingDown("bye"),
        EpisodeOver("over"),
    ],
)
@pytest.mark.parametrize("rich", [True, False])
def test_errors_cross_the_wire_as_themselves(error: HudsimError, rich: bool) -> None:
    world, agent = WorldSession(GREETING), AgentSession()
    agent.receive_greeting(bytes(world.greeting()))
    world.receive(encode({"claim": None, "accept": RICH} if rich else {"claim": None}))
    frame = world.error(error)
    with pytest.raises(type(error)) as raised:
        agent.receive(frame if isinstance(frame, str) else bytes(frame))
    assert raised.value.message == error.message
    if rich and isinstance(error, ContractError):
        assert isinstance(raised.value, ContractError)
        assert (raised.value.feature, raised.value.got) == ("action", "nan")


def test_a_policy_client_that_sends_an_observation_first_is_told_what_this_is() -> None:
    openpi = {"observation/image": np.zeros((8, 8, 3), np.uint8), "observation/state": ACTION, "prompt": "pick"}
    with pytest.raises(WireError, match="this is a world, not a policy server"):
        WorldSession(GREETING).receive(encode(openpi))


@pytest.mark.parametrize(
    ("message", "word"),
    [
        ({"actions": [1.0, 2.0]}, "expected an array"),
        ({"actions": ACTION, "episode": 3}, "episode"),
        ({"actions": ACTION, "obs_index": -1}, "obs_index"),
        ({"actions": ACTION, "obs_index": True}, "obs_index"),
        ({"claim": 3}, "claim"),
        ({"claim": None, "accept": []}, "accept"),
        ({"ack": "3"}, "ack"),
        ({"end": 3}, "end"),
        ({}, "expected one of"),
    ],
)
def test_a_wrong_field_is_named(message: dict[str, Any], word: str) -> None:
    world = WorldSession(GREETING)
    world.receive(encode({"claim": None}))
    world.ended()
    with pytest.raises(WireError, match=word):
        world.receive(encode(message))


def test_the_last_observation_says_so() -> None:
    agent = AgentSession()
    agent.receive_greeting(bytes(WorldSession(GREETING).greeting()))
    assert not agent.receive(observation(Peer(PROTOCOL))).over
    assert agent.receive(observation(Peer(PROTOCOL), terminated=True)).over
    ended = agent.receive(encode({"result": {"end": "max_steps"}}))
    assert ended.over
    assert ended.result == {"end": "max_steps"}
    assert ended.data == {}
