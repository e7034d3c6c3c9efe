"""The Expat handlers, compiled: they fill a document's arrays and never call Python.

Theory of operation
-------------------
All handlers share one int64 array, the *state*: counters, limits and the addresses of the buffers that
``document.py`` allocated. A node is a column of the ``nodes`` buffer (``FIELDS`` int32 rows of
``CAPACITY`` entries). An element is numbered when it opens, its attributes follow it, then its content,
so a node's index is its ``pre``. Character data of the whole document goes to one buffer: the XPath string
value of an element is the slice of it between its start and its end. Attribute values go to another.
Names are interned in an open-addressing table; an attribute's name is kept with a leading ``@``.
Comments and processing instructions are no nodes; they are kept aside for serialisation.

A full buffer sets ``REFUSAL`` to ``GROW``: the caller starts again with larger buffers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numba
import numpy as np
from numba import types

from xmlmatch.kernels import kernel
from xmlmatch.pointers import address_at, bytes_at, int32_at, int64_at

# Slots of the state.
(
    CURRENT,  # index of the open element, -1 outside the root
    LEVEL,  # its level, -1 outside the root
    REFUSAL,  # 0, or one of the codes below
    NODES,
    TEXT,
    VALUES,
    NAMES,
    NAME_BYTES,
    EXTRAS,
    EXTRA_BYTES,
    DECLARATIONS,  # xmlns attributes
    MAX_LEVEL,
    CAPACITY,  # of nodes, extras and declarations
    BYTES_CAPACITY,  # of text, values, name bytes and extra bytes
    NAMES_CAPACITY,  # half the size of the hash table, a power of two
    NODES_AT,
    TEXT_AT,
    VALUES_AT,
    NAMES_AT,
    TABLE_AT,
    NAME_BYTES_AT,
    EXTRAS_AT,
    EXTRA_BYTES_AT,
    DECLARATIONS_AT,
    SECRET,
    SLOTS,
) = range(26)

# Refusals.
GROW, TOO_DEEP, ENTITY_DEFINED, ENTITY_USED = 1, 2, 3, 4

# Rows of the nodes buffer.
NAME, PARENT, SIZE, LEVEL_OF, START, END = range(6)
FIELDS: Final = 6
# Rows of the names buffer: where a name's bytes begin, how many, their hash.
NAME_FIELDS: Final = 3
# Rows of the extras buffer: kind, open element, nodes so far, text so far, start and end of the bytes.
EXTRA_FIELDS: Final = 6
COMMENT, INSTRUCTION = 0, 1
# Rows of the declarations buffer: element, name (of the xmlns attribute), start and end of the URI in values.
DECLARATION_FIELDS: Final = 4


@kernel
def _length(address: int) -> int:
    text = bytes_at(address)
    n = 0
    while text[n] != 0:
        n += 1
    return n


@kernel
def _copy(source: int, length: int, target: int, offset: int) -> None:
    s, t = bytes_at(source), bytes_at(target)
    for i in range(length):
        t[offset + i] = s[i]


@kernel
def _intern(state: Any, address: int, length: int, attribute: int) -> int:
    """Return the id of a name, adding it if it is new; -1 when there is no room."""
    text, pool = bytes_at(address), bytes_at(state[NAME_BYTES_AT])
    names, table = int32_at(state[NAMES_AT]), int32_at(state[TABLE_AT])
    room = state[NAMES_CAPACITY]
    # The secret and the shift keep a hostile document from choosing names that collide.
    mixed = np.uint64(state[SECRET]) + np.uint64(attribute)
    for i in range(length):
        mixed = (mixed ^ np.uint64(text[i])) * np.uint64(0xFF51AFD7ED558CCD)
        mixed ^= mixed >> np.uint64(32)
    h = numba.int64(mixed & np.uint64(0x3FFFFFFF))
    mask = 2 * room - 1
    slot = h & mask
    whole = length + attribute
    while table[slot] >= 0:
        name = int(table[slot])
        at = names[name]
        if names[2 * room + name] == h and names[room + name] == whole and (pool[at] == 64) == (attribute == 1):
            same = True
            for i in range(length):
                if pool[at + attribute + i] != text[i]:
                    same = False
                    break
            if same:
                return name
        slot = (slot + 1) & mask
    name = int(state[NAMES])
    start = state[NAME_BYTES]
    if name == room or start + whole > state[BYTES_CAPACITY]:
        state[REFUSAL] = GROW
        return -1
    if attribute == 1:
        pool[start] = 64  # '@'
    _copy(address, length, state[NAME_BYTES_AT], start + attribute)
    names[name] = start
    names[room + name] = whole
    names[2 * room + name] = h
    table[slot] = name
    state[NAMES] = name + 1
    state[NAME_BYTES] = start + whole
    return name


@kernel
def _is_declaration(address: int) -> bool:
    t = bytes_at(address)
    if not (t[0] == 120 and t[1] == 109 and t[2] == 108 and t[3] == 110 and t[4] == 115):
        return False
    return bool(t[5] == 0 or t[5] == 58)


@kernel
def _attribute(state: Any, name_address: int, value_address: int) -> None:
    """Record one attribute of the open element: a node, or a namespace declaration."""
    name = _intern(state, name_address, _length(name_address), 1)
    length = _length(value_address)
    start = state[VALUES]
    if name < 0 or start + length > state[BYTES_CAPACITY]:
        state[REFUSAL] = GROW
        return
    _copy(value_address, length, state[VALUES_AT], start)
    state[VALUES] = start + length
    room = state[CAPACITY]
    if _is_declaration(name_address):
        at = state[DECLARATIONS]
        if at == room:
            state[REFUSAL] = GROW
            return
        rows = int32_at(state[DECLARATIONS_AT])
        rows[at] = state[CURRENT]
        rows[room + at] = name
        rows[2 * room + at] = start
        rows[3 * room + at] = start + length
        state[DECLARATIONS] = at + 1
    else:
        _node(state, name, state[LEVEL] + 1, start, start + length)


@kernel
def _node(state: Any, name: int, level: int, start: int, end: int) -> int:
    """Append a node below the open element and return its index, -1 when there is no room."""
    room = state[CAPACITY]
    at = int(state[NODES])
    if at == room:
        state[REFUSAL] = GROW
        return -1
    rows = int32_at(state[NODES_AT])
    rows[NAME * room + at] = name
    rows[PARENT * room + at] = state[CURRENT]
    rows[SIZE * room + at] = 0
    rows[LEVEL_OF * room + at] = level
    rows[START * room + at] = start
    rows[END * room + at] = end
    state[NODES] = at + 1
    return at


@kernel
def _start(user: int, name: int, attributes: int) -> None:
    state = int64_at(user)
    if state[REFUSAL] != 0:
        return
    level = state[LEVEL] + 1
    if level >= state[MAX_LEVEL]:
        state[REFUSAL] = TOO_DEEP
        return
    label = _intern(state, name, _length(name), 0)
    if label < 0:
        return
    node = _node(state, label, level, state[TEXT], state[TEXT])
    if node < 0:
        return
    state[CURRENT] = node
    state[LEVEL] = level
    pairs = address_at(attributes)
    i = 0
    while pairs[i] != 0:
        _attribute(state, pairs[i], pairs[i + 1])
        i += 2


@kernel
def _end(user: int) -> None:
    state = int64_at(user)
    if state[REFUSAL] != 0:
        return
    rows = int32_at(state[NODES_AT])
    room, node = state[CAPACITY], state[CURRENT]
    rows[SIZE * room + node] = state[NODES] - 1 - node
    rows[END * room + node] = state[TEXT]
    state[CURRENT] = rows[PARENT * room + node]
    state[LEVEL] -= 1


@kernel
def _text(user: int, address: int, length: int) -> None:
    state = int64_at(user)
    if state[REFUSAL] != 0:
        return
    start = state[TEXT]
    if start + length > state[BYTES_CAPACITY]:
        state[REFUSAL] = GROW
        return
    _copy(address, length, state[TEXT_AT], start)
    state[TEXT] = start + length


@kernel
def _extra(user: int, kind: int, first: int, second: int) -> None:
    """Keep a comment (``first``) or a processing instruction (``first`` its target, ``second`` its data)."""
    state = int64_at(user)
    if state[REFUSAL] != 0 or state[CURRENT] < 0:
        return
    a = _length(first)
    b = _length(second) if second != 0 else 0
    gap = 1 if b > 0 else 0
    at, start, room = state[EXTRAS], state[EXTRA_BYTES], state[CAPACITY]
    if at == room or start + a + gap + b > state[BYTES_CAPACITY]:
        state[REFUSAL] = GROW
        return
    _copy(first, a, state[EXTRA_BYTES_AT], start)
    if b > 0:
        bytes_at(state[EXTRA_BYTES_AT])[start + a] = 32
        _copy(second, b, state[EXTRA_BYTES_AT], start + a + gap)
    rows = int32_at(state[EXTRAS_AT])
    rows[at] = kind
    rows[room + at] = state[CURRENT]
    rows[2 * room + at] = state[NODES]
    rows[3 * room + at] = state[TEXT]
    rows[4 * room + at] = start
    rows[5 * room + at] = start + a + gap + b
    state[EXTRAS] = at + 1
    state[EXTRA_BYTES] = start + a + gap + b


@kernel
def _other(user: int, address: int, length: int) -> None:
    """Refuse entities: Expat passes on, as they stand, tokens of the internal subset and skipped references."""
    state = int64_at(user)
    t = bytes_at(address)
    if length >= 2 and (t[0] == 38 or t[0] == 37):  # '&name;' or '%name;'
        state[REFUSAL] = ENTITY_USED
    if length == 8 and t[0] == 60 and t[1] == 33 and t[2] == 69 and t[3] == 78:  # '<!ENTITY'
        state[REFUSAL] = ENTITY_DEFINED


_address = types.intp


@numba.cfunc(types.void(_address, _address, _address), cache=True)
def _on_start(user: int, name: int, attributes: int) -> None:
    _start(user, name, attributes)


@numba.cfunc(types.void(_address, _address), cache=True)
def _on_end(user: int, name: int) -> None:
    _end(user)


@numba.cfunc(types.void(_address, _address, types.int32), cache=True)
def _on_text(user: int, address: int, length: int) -> None:
    _text(user, address, length)


@numba.cfunc(types.void(_address, _address), cache=True)
def _on_comment(user: int, text: int) -> None:
    _extra(user, COMMENT, text, 0)


@numba.cfunc(types.void(_address, _address, _address), cache=True)
def _on_instruction(user: int, target: int, data: int) -> None:
    _extra(user, INSTRUCTION, target, data)


@numba.cfunc(types.void(_address, _address, types.int32), cache=True)
def _on_other(user: int, address: int, length: int) -> None:
    _other(user, address, length)


@dataclass(frozen=True, slots=True)
class Handlers:
    """The C addresses of the compiled handlers."""

    start: int
    end: int
    text: int
    comment: int
    instruction: int
    other: int


def _address_of(handler: Any) -> int:
    return int(handler.address)


HANDLERS: Final = Handlers(
    start=_address_of(_on_start),
    end=_address_of(_on_end),
    text=_address_of(_on_text),
    comment=_address_of(_on_comment),
    instruction=_address_of(_on_instruction),
    other=_address_of(_on_other),
)
