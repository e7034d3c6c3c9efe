"""Columns from bytes: two compiled passes, one over the nodes and one over the lists.

Everything is checked as it is read, each count against the bytes that are left, so that nothing is made of a
number that cannot be true. What is wrong comes back as one of the codes below; only texts are left to the caller,
for Python reads UTF-8 faster.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from rewriting.kernels import kernel

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

FINE: Final = 0
ENDS_EARLY: Final = 1
OVER_MOST_PRE: Final = 2
OVER_LEVEL: Final = 3
REACHES_TOO_FAR: Final = 4
OVERLAP: Final = 5
TOO_MANY_NAMES: Final = 6
UNKNOWN_NAME: Final = 7
UNUSED_NAME: Final = 8
TOO_MANY_TEXTS: Final = 9
OTHER_TEXTS: Final = 10
INSIDE_CHARACTER: Final = 11
TOO_MANY_LISTS: Final = 12
UNORDERED_LISTS: Final = 13
NOT_THERE: Final = 14
UNKNOWN_WAY: Final = 15
NOT_SHORTEST: Final = 16
TOO_MANY_POSITIONS: Final = 17

MOST_PRE: Final = (1 << 31) - 2
ALL, BITMAP, DIFFERENCES = range(3)
PRE, SPAN, LEVEL, LABEL, PARENT, BELOW = range(6)
"""Rows of what is read of the nodes: as in a fragment, then the nearest node above, and how many stand below."""
AT, CODE, NAMES, VALS, VALS_END, CONTS, CONTS_END = range(7)
"""Entries of the state: where the rest begins, what is wrong, how many names, where the texts stand."""
STATE: Final = 7
_MOST_BYTES: Final = 9


@kernel
def read_number(data: Any, at: int) -> tuple[int, int]:
    """Read one varint; return it and where the rest begins, or -1 if the data end or it has another spelling."""
    number, shift, byte = 0, 0, 128
    while byte >= 128:
        if at >= data.size or shift >= 7 * _MOST_BYTES:
            return -1, at
        byte = int(data[at])
        at += 1
        number |= (byte & 127) << shift
        shift += 7
    if number < 0 or (byte == 0 and shift > 7):
        return -1, at
    return number, at


@kernel
def number_size(number: int) -> int:
    """Say how many bytes a varint takes."""
    size = 1
    while number >= 128:
        number >>= 7
        size += 1
    return size


@kernel
def read_nodes(
    data: Any, most_level: int, most_names: int, ints: Any, slices: Any, names: Any, state: Any
) -> None:
    """Fill the nodes, the slices of their texts (values, contents) and of names; ``state`` says how it went."""
    state[CODE] = _structure(data, most_level, ints, state)
    if state[CODE] == FINE:
        state[CODE] = _names(data, most_names, ints, names, state)
    if state[CODE] == FINE:
        state[VALS], state[VALS_END], state[CODE] = _texts(data, slices[:2], state)
    if state[CODE] == FINE:
        state[CONTS], state[CONTS_END], state[CODE] = _texts(data, slices[2:], state)


@kernel
def _structure(data: Any, most_level: int, ints: Any, state: Any) -> int:
    """Read pre, span and level; nodes stand beside or inside each other, deeper ones inside."""
    at, last = state[AT], -1
    for row in range(3):
        for i in range(ints.shape[1]):
            number, at = read_number(data, at)
            state[AT] = at
            if number < 0:
                return ENDS_EARLY
            if number > (most_level if row == LEVEL else MOST_PRE):
                return OVER_LEVEL if row == LEVEL else OVER_MOST_PRE
            if row == PRE:
                last += number + 1
                number = last
                if last > MOST_PRE:
                    return OVER_MOST_PRE
            ints[row, i] = number
    above = -1
    for i in range(ints.shape[1]):
        end = int(ints[PRE, i]) + int(ints[SPAN, i])
        if end > MOST_PRE:
            return REACHES_TOO_FAR
        while above >= 0 and ints[PRE, above] + ints[SPAN, above] < ints[PRE, i]:
            above = ints[PARENT, above]
        if above >= 0 and (end > ints[PRE, above] + ints[SPAN, above] or ints[LEVEL, i] <= ints[LEVEL, above]):
            return OVERLAP
        ints[PARENT, i], ints[BELOW, i], above = above, 0, i
    for i in range(ints.shape[1] - 1, -1, -1):
        if ints[PARENT, i] >= 0:
            ints[BELOW, ints[PARENT, i]] += ints[BELOW, i] + 1
    return FINE


@kernel
def _names(data: Any, most_names: int, ints: Any, names: Any, state: Any) -> int:
    """Read the dictionary of names, and each node's place in it."""
    count, at = read_number(data, state[AT])
    state[AT], state[NAMES] = at, count
    if count < 0:
        return ENDS_EARLY
    if count > most_names:
        return TOO_MANY_NAMES
    if count > names.shape[1]:
        return UNUSED_NAME  # there are fewer nodes
    for i in range(count):
        length, at = read_number(data, at)
        state[AT] = at
        if length < 0 or length > data.size - at:
            return ENDS_EARLY
        names[0, i], names[1, i], names[2, i] = at, at + length, 0
        at += length
    used = 0
    for i in range(ints.shape[1]):
        number = 0
        if count:
            number, at = read_number(data, at)
            state[AT] = at
            if number < 0:
                return ENDS_EARLY
            if number > count:
                return UNKNOWN_NAME
            if number > 0 and names[2, number - 1] == 0:
                names[2, number - 1] = 1
                used += 1
        ints[LABEL, i] = number - 1
    state[AT] = at
    return FINE if used == count else UNUSED_NAME


@kernel
def _texts(data: Any, slices: Any, state: Any) -> tuple[int, int, int]:
    """Read the lengths of texts, and where each stands; return where all stand, and what is wrong."""
    given, at = read_number(data, state[AT])
    state[AT] = at
    if given < 0:
        return 0, 0, ENDS_EARLY
    if given > slices.shape[1]:
        return 0, 0, TOO_MANY_TEXTS
    if given == 0:
        slices[:] = -1
        return at, at, FINE
    known = total = 0
    for i in range(slices.shape[1]):
        length, at = read_number(data, at)
        state[AT] = at
        if length < 0 or length > data.size:
            return 0, 0, ENDS_EARLY
        slices[0, i] = length
        known += length > 0
        total += max(length - 1, 0)
        if total > data.size:
            return 0, 0, ENDS_EARLY
    if known != given:
        return 0, 0, OTHER_TEXTS
    if total > data.size - at:
        return 0, 0, ENDS_EARLY
    begin = at
    for i in range(slices.shape[1]):
        length = slices[0, i] - 1
        slices[0, i] = slices[1, i] = -1
        if length >= 0:
            if length > 0 and data[at] & 0xC0 == 0x80:
                return 0, 0, INSIDE_CHARACTER
            slices[0, i], slices[1, i] = at, at + length
            at += length
    state[AT] = at
    return begin, at, FINE


@kernel
def read_lists(data: Any, count: int, most_lists: int, lists: Any, flat: Any, state: Any) -> int:
    """Fill ``lists`` (query node, slice of ``flat``, -1 for all nodes) and ``flat``; return how many lists."""
    wanted, at = read_number(data, state[AT])
    state[AT], filled, last = at, 0, -1
    if wanted < 0 or wanted > most_lists or wanted > lists.shape[1]:
        state[CODE] = ENDS_EARLY if wanted < 0 else TOO_MANY_LISTS if wanted > most_lists else ENDS_EARLY
        return 0
    for i in range(wanted):
        n, at = read_number(data, state[AT])
        state[AT] = at
        if n < 0 or n > most_lists or n <= last or at >= data.size:
            state[CODE] = ENDS_EARLY if n < 0 or at >= data.size else UNORDERED_LISTS
            return 0
        last, lists[0, i], lists[1, i], lists[2, i] = n, n, filled, filled
        way = data[at]
        state[AT] = at + 1
        if way == ALL:
            lists[1, i] = lists[2, i] = -1
            continue
        if way == BITMAP:
            filled, state[CODE] = _bitmap(data, count, flat, filled, state)
        elif way == DIFFERENCES:
            filled, state[CODE] = _differences(data, count, flat, filled, state)
        else:
            state[CODE] = UNKNOWN_WAY
        if state[CODE] != FINE:
            return 0
        lists[2, i] = filled
    return wanted


@kernel
def _bitmap(data: Any, count: int, flat: Any, filled: int, state: Any) -> tuple[int, int]:
    at, width, first = state[AT], (count + 7) // 8, filled
    if width > data.size - at:
        return filled, ENDS_EARLY
    state[AT] = at + width
    for byte in range(width):
        bits = int(data[at + byte])
        for bit in range(8):
            if bits & (128 >> bit):
                if 8 * byte + bit >= count:
                    return filled, NOT_THERE
                if filled >= flat.size:
                    return filled, TOO_MANY_POSITIONS
                flat[filled] = 8 * byte + bit
                filled += 1
    shortest = filled - first < count and width <= differences_size(flat[first:filled])
    return filled, FINE if shortest else NOT_SHORTEST


@kernel
def _differences(data: Any, count: int, flat: Any, filled: int, state: Any) -> tuple[int, int]:
    begin = state[AT]
    length, at = read_number(data, begin)
    state[AT], last = at, -1
    if length < 0:
        return filled, ENDS_EARLY
    if length > count:
        return filled, NOT_THERE
    for _ in range(length):
        number, at = read_number(data, at)
        state[AT] = at
        if number < 0:
            return filled, ENDS_EARLY
        if number >= count or last + number + 1 >= count:
            return filled, NOT_THERE
        if filled >= flat.size:
            return filled, TOO_MANY_POSITIONS
        last += number + 1
        flat[filled] = last
        filled += 1
    return filled, FINE if length < count and (count + 7) // 8 > at - begin else NOT_SHORTEST


@kernel
def differences_size(positions: NDArray[np.int32]) -> int:
    """Say how many bytes positions take as their number and their differences."""
    size, last = number_size(positions.size), -1
    for position in positions:
        size += number_size(position - last - 1)
        last = position
    return size
