from __future__ import annotations

import datetime as dt
import decimal
import fractions
import math
import uuid
from collections import Counter, OrderedDict, defaultdict, deque
from pathlib import PurePosixPath
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hudsim.graders.crossing.codec import MOST_DEPTH, Decoder, Encoder, GarbledError
from hudsim.graders.crossing.errors import CannotCross


def refuse(encoder: Encoder, value: Any) -> None:
    raise CannotCross("object", type(value).__name__)


def garbled(decoder: Decoder, tag: int) -> Any:
    raise GarbledError(str(tag))


def encoded(value: Any) -> bytes:
    encoder = Encoder(refuse)
    encoder.value(value)
    return encoder.finish()


def decoded(data: bytes) -> Any:
    decoder = Decoder(data, garbled)
    value = decoder.value()
    decoder.end()
    if decoder.problem is not None:
        raise decoder.problem
    return value


def across(value: Any) -> Any:
    return decoded(encoded(value))


def alike(a: Any, b: Any) -> bool:
    """Equal, of the same exact classes, in the same order; a nan is like a nan."""
    if type(a) is not type(b):
        return False
    if isinstance(a, float):
        return math.copysign(1, a) == math.copysign(1, b) and (a == b or (a != a and b != b))
    if isinstance(a, complex):
        return alike(a.real, b.real) and alike(a.imag, b.imag)
    if isinstance(a, (list, tuple, deque)):
        return len(a) == len(b) and all(map(alike, a, b))
    if isinstance(a, dict):
        return alike(list(a.items()), list(b.items()))
    return bool(a == b)


_text = st.text(st.characters(), max_size=20)  # lone surrogates among them
_scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(-(2**200), 2**200)
    | st.floats()
    | st.complex_numbers()
    | _text
    | st.binary(max_size=40)
    | st.just(Ellipsis)
    | st.decimals(allow_nan=False)
    | st.fractions()
    | st.uuids()
    | st.dates()
    | st.times()
    | st.datetimes(timezones=st.none() | st.timezones() | st.just(dt.UTC))
    | st.timedeltas()
    | st.builds(range, st.integers(), st.integers(), st.integers(1, 9))
    | st.builds(slice, st.integers(), st.none() | st.integers())
)
_keys = (
    st.none() | st.booleans() | st.integers() | _text | st.tuples(st.integers(), _text) | st.frozensets(st.integers())
)
_data = st.recursive(
    _scalars,
    lambda inner: (
        st.lists(inner, max_size=5)
        | st.lists(st.integers(), max_size=30)
        | st.lists(st.floats(), max_size=30)
        | st.lists(inner, max_size=5).map(tuple)
        | st.dictionaries(_keys, inner, max_size=5)
        | st.sets(_keys, max_size=5)
        | st.frozensets(_keys, max_size=5)
        | st.lists(inner, max_size=4).map(deque)
        | st.dictionaries(_keys, inner, max_size=3).map(OrderedDict)
        | st.binary(max_size=9).map(bytearray)
    ),
    max_leaves=25,
)


@settings(deadline=None)
@given(_data)
def test_plain_data_arrives_as_it_was(value: Any) -> None:
    data = encoded(value)
    assert encoded(decoded(data)) == data or alike(decoded(data), value)


@settings(deadline=None, max_examples=300)
@given(st.binary(max_size=200))
def test_any_bytes_are_a_value_or_garbled(data: bytes) -> None:
    decoder = Decoder(data, garbled)
    try:
        decoder.value()
        decoder.end()
    except GarbledError:
        pass


@settings(deadline=None, max_examples=300)
@given(_data, st.data())
def test_a_message_with_other_bytes_in_it_is_a_value_or_garbled(value: Any, data: st.DataObject) -> None:
    message = bytearray(encoded(value))
    for _ in range(data.draw(st.integers(1, 4))):
        message[data.draw(st.integers(0, len(message) - 1))] = data.draw(st.integers(0, 255))
    del message[data.draw(st.integers(0, len(message))) :]
    decoder = Decoder(bytes(message), garbled)
    try:
        decoder.value()
        decoder.end()
    except GarbledError:
        pass


@pytest.mark.parametrize(
    "value",
    [
        dt.timezone(dt.timedelta(hours=2), "here"),
        decimal.Decimal("-0.00"),
        fractions.Fraction(3, 7),
        uuid.UUID(int=5),
        PurePosixPath("a/b"),
        Counter("hello"),
        deque([1, 2], maxlen=2),
        {1: 2, None: 3}.keys(),
        np.float32(1.5),
        np.datetime64("2020-01-01"),
    ],
)
def test_a_standard_value_keeps_its_class(value: Any) -> None:
    assert type(across(value)) is type(value)
    assert across(value) == value


def test_a_decimal_that_is_no_number_stays_that_one() -> None:
    assert [str(across(decimal.Decimal(word))) for word in ("NaN", "sNaN12", "-Infinity")] == [
        "NaN",
        "sNaN12",
        "-Infinity",
    ]


def test_a_defaultdict_of_none_keeps_what_it_holds() -> None:
    made = across(defaultdict(None, a=[1]))
    assert type(made) is defaultdict
    assert made == {"a": [1]}


@pytest.mark.parametrize("dtype", ["u1", "<f4", ">i8", "?", "c16", "U3", "M8[s]", [("a", "i4"), ("b", "f8")]])
def test_an_array_keeps_dtype_shape_and_bytes(dtype: Any) -> None:
    array = (
        np.zeros((2, 0, 3), dtype)
        if dtype == "u1"
        else np.arange(6).astype("i4").reshape(2, 3).astype(dtype)
        if isinstance(dtype, str)
        else np.ones(4, dtype)
    )
    made = across(array)
    assert made.dtype == array.dtype or made.dtype.str == array.dtype.str
    assert made.shape == array.shape
    assert made.tobytes() == array.tobytes()


def test_an_array_of_objects_goes_element_by_element() -> None:
    array = np.array([1, "two", None], dtype=object)
    assert list(across(array)) == [1, "two", None]


def test_what_is_shared_stays_shared() -> None:
    inner: list[int] = [1]
    made = across([inner, inner, (inner,), {"k": inner}])
    assert made[0] is made[1] is made[2][0] is made[3]["k"]


def test_a_list_that_contains_itself_arrives() -> None:
    loop: list[Any] = [1]
    loop.append(loop)
    made = across(loop)
    assert made[1] is made


def test_a_tuple_that_contains_itself_is_refused() -> None:
    inner: list[Any] = []
    loop = (inner,)
    inner.append(loop)
    with pytest.raises(CannotCross) as refused:
        encoded(loop)
    assert refused.value.reason == "cycle"


def test_an_instance_of_a_subclass_is_no_data() -> None:
    class Always(int):
        pass

    for value in (Always(3), [Always(3)], {"k": Always(3)}):
        with pytest.raises(CannotCross):
            encoded(value)


def test_data_nested_too_deep_is_refused_and_garbled() -> None:
    deep: list[Any] = []
    for _ in range(MOST_DEPTH + 1):
        deep = [deep]
    with pytest.raises(CannotCross) as refused:
        encoded(deep)
    assert refused.value.reason == "deep"
    data = b"t-\0\0\0\1" * 100_000
    with pytest.raises(GarbledError):
        decoded(data)


def test_a_huge_count_costs_nothing() -> None:
    with pytest.raises(GarbledError):
        decoded(b"t-\xff\xff\xff\xff")
    with pytest.raises(GarbledError):
        decoded(b"tq\xff\xff\xff\xff")


def test_an_unhashable_key_is_a_problem_but_the_rest_is_read() -> None:
    decoder = Decoder(
        encoded((1, 2)).replace(b"t", b"z", 1)[:-18] + encoded([1]) + encoded([2]) + encoded("after"), garbled
    )
    assert decoder.value() is None
    assert decoder.value() == "after"
    assert isinstance(decoder.problem, TypeError)
