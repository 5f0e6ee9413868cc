"""``Ring``: large arrays in memory that both ends of a connection map; only their places cross the socket."""

from __future__ import annotations

import functools
import math
import os
import weakref
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Self

import numpy as np

from hudsim.errors import DecodeError
from hudsim.wire.format import Array
from hudsim.wire.mirror import reorder
from hudsim.wire.segment import HEADER, Segment

__all__ = ["LARGE", "Page", "Pages", "Ring", "room"]

LARGE = 16 << 10
"""Bytes from which on an array goes into shared memory. Below that, its place costs as much as its data."""

_PAGES_AT, _BACK_AT = 1024, 2048  # where in the header the words of either direction begin
_LINE = 64  # bytes: one word to a cache line, and what arrays are aligned to
_MOST_PAGES = 16
_BUDGET = 64 << 20  # bytes of address space; memory is taken for what is used of it
_BACK_BYTES = 1 << 20
_FREE, _TAKEN = 0, 1


class Ring:
    """Pages for what a world shows (``pages``) and pages for what its agent sends (``back``), in one segment.

    A frame's large arrays stand in one page. Its writer takes a page that is free, and never one that is not: with
    none free they go through the socket as ever. Its reader gets read-only views, and the page is free again when
    the last of them is gone. So a view is good for as long as it is held.
    """

    def __init__(self, segment: Segment, pages: tuple[int, int], back: tuple[int, int]) -> None:
        self._segment = segment
        words = segment.memory[:HEADER].cast("Q")
        start = HEADER
        self.pages = Pages(segment.memory, words, _PAGES_AT, start, *pages)
        self.back = Pages(segment.memory, words, _BACK_AT, start + pages[0] * pages[1], *back)

    @classmethod
    def create(cls, shown_bytes: int) -> Self | None:
        """A ring whose frames show ``shown_bytes`` of large arrays, each counted as :func:`room`.

        None where there is none to show or no such memory.
        """
        if shown_bytes <= 0:
            return None
        size = _whole(shown_bytes)
        pages = max(4, min(_MOST_PAGES, _BUDGET // size)), size
        back = 4, _BACK_BYTES
        segment = Segment.create(_size(pages, back))
        return None if segment is None else cls(segment, pages, back)

    @property
    def offer(self) -> dict[str, Any]:
        """What the other end attaches by: plain JSON."""
        return {**self._segment.offer, "pages": [*self.pages.geometry], "back": [*self.back.geometry]}

    @classmethod
    def attach(cls, offer: Any) -> Self | None:
        """The ring that ``offer`` tells of; None if that cannot be had here, or is no offer that makes sense."""
        if not isinstance(offer, Mapping):
            return None
        geometry = [_pair(offer.get(key)) for key in ("pages", "back")]
        pages, back = geometry
        if pages is None or back is None or _size(pages, back) != offer.get("size"):
            return None
        segment = Segment.attach(offer)
        return None if segment is None else cls(segment, pages, back)

    def shut(self) -> None:
        """The other end has it, or does not want it: nobody else can attach. Idempotent."""
        self._segment.shut()

    def find(self, place: int, dtype: np.dtype[Any], shape: Sequence[int], size: int) -> Array:
        """The array of ``size`` bytes at ``place``, read-only. Raises :class:`~hudsim.errors.DecodeError`."""
        for pages in (self.pages, self.back):
            if pages.holds(place, size):
                return pages.view(place, dtype, shape)
        raise DecodeError(f"got an array of {size} bytes at {place} in shared memory, expected one within a page")


class Pages:
    """The pages of one direction. One end takes and fills them; views of the other end give them back."""

    def __init__(self, memory: memoryview, words: memoryview, word: int, start: int, count: int, size: int) -> None:
        self.geometry = count, size
        self._memory, self._frozen = memory, memory.toreadonly()
        self._words = words
        self._at = [(word + _LINE * index) // 8 for index in range(count)]
        self._start, self._end = start, start + count * size
        self._whole: list[weakref.ref[Array] | None] = [None] * count
        self._give_back = [functools.partial(_free, words, at, len(_forks)) for at in self._at]

    def take(self) -> Page | None:
        """A free page for one frame; None: the reader still holds them all."""
        words = self._words
        for index, at in enumerate(self._at):
            if words[at] == _FREE:
                words[at] = _TAKEN
                size = self.geometry[1]
                return Page(self._memory, self._start + index * size, size, self._give_back[index])
        return None

    def holds(self, place: int, size: int) -> bool:
        """Whether ``size`` bytes from ``place`` lie within one of these pages, aligned."""
        if not self._start <= place < self._end or place % _LINE:
            return False
        return (place - self._start) % self.geometry[1] + size <= self.geometry[1]

    def view(self, place: int, dtype: np.dtype[Any], shape: Sequence[int]) -> Array:
        """The array at ``place``, which is one that :meth:`holds`."""
        size = self.geometry[1]
        index, offset = divmod(place - self._start, size)
        known = self._whole[index]
        whole = None if known is None else known()
        if whole is None:  # the first of its frame
            if self._words[self._at[index]] != _TAKEN:
                raise DecodeError(f"got a place ({place}) in a page of shared memory that has been given back")
            start = self._start + index * size
            whole = np.frombuffer(self._frozen[start : start + size], np.uint8)
            self._whole[index] = weakref.ref(whole, self._give_back[index])
        return np.ndarray(shape, dtype, whole, offset)


class Page:
    """A page that is being filled with the large arrays of one frame.

    It is free again when it is dropped, unless it was :meth:`sent`: then when the other end lets go of it. ``used``:
    the frame has arrays in it.
    """

    __slots__ = ("_end", "_free", "_memory", "_next", "_rooms", "used")

    def __init__(self, memory: memoryview, start: int, size: int, free: functools.partial[None]) -> None:
        self._memory = memory
        self._next, self._end = start, start + size
        self._rooms: list[tuple[Array, int]] = []
        self.used = False
        self._free: functools.partial[None] | None = free

    def room(self, shape: Sequence[int], dtype: np.dtype[Any]) -> Array | None:
        """An array in the page that is still to be written; None: there is no room for it."""
        size, place = math.prod(shape) * dtype.itemsize, self._next
        if place + size > self._end:
            return None
        array: Array = np.ndarray(shape, dtype, self._memory, place)
        self._rooms.append((array, place))
        self._next = place + _line(size)
        return array

    def place(self, array: Array) -> int | None:
        """Where ``array`` stands in the page, little-endian and in C order. One that is no :meth:`room` of it is copied
        there; None: there is no room for it.
        """
        for own, place in self._rooms:
            if array is own or (array.base is own and _is_same(array, own)):
                self.used = True
                return place
        place = self._next
        room = self.room(array.shape, array.dtype.newbyteorder("<"))
        if room is None:
            return None
        reorder(array, room)
        self.used = True
        return place

    def sent(self) -> None:
        """The other end gives it back."""
        self._free = None

    def __del__(self) -> None:
        if self._free is not None:
            self._free()


def room(sizes: Iterable[int]) -> int:
    """What :meth:`Ring.create` needs for frames with arrays of these ``sizes`` in bytes."""
    return sum(_line(size) for size in sizes if size >= LARGE)


def _free(words: memoryview, at: int, forks: int, _: object = None) -> None:
    """Also called by the collector, in whatever thread."""
    if forks == len(_forks):  # what a forked child lets go of, its parent may still hold
        words[at] = _FREE


_forks: list[None] = []
"""One for each time that this process was forked from another."""
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=functools.partial(_forks.append, None))


def _is_same(view: Array, own: Array) -> bool:
    """Whether a view of an array is the whole array."""
    alike = (view.dtype, view.shape, view.strides) == (own.dtype, own.shape, own.strides)
    return alike and view.__array_interface__["data"] == own.__array_interface__["data"]


def _pair(value: Any) -> tuple[int, int] | None:
    """A count of pages and their size, as they come from the other end."""
    if not isinstance(value, list) or len(value) != 2 or any(type(n) is not int for n in value):
        return None
    count, size = value
    return (count, size) if 0 < count <= _MOST_PAGES and size > 0 and size % HEADER == 0 else None


def _size(*directions: tuple[int, int]) -> int:
    return HEADER + sum(count * size for count, size in directions)


def _line(size: int) -> int:
    return -(-size // _LINE) * _LINE


def _whole(size: int) -> int:
    return -(-size // HEADER) * HEADER
