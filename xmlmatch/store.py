"""The patterns of a matcher, hash-consed into arrays.

Theory of operation
-------------------
Bottom-up, every sub-pattern (an *atom*: label and predicates; and its child edges) gets one number, however
many patterns contain it; what a node returns plays no part. A child edge is ``2 * sub-pattern + axis``. A
*body* is a whole pattern without its returns: the edge that leads to its first node. Uses are counted, so
removing a pattern frees exactly what no other pattern needs, and numbers are reused: the store never
rebuilds and never grows beyond what is in it. Children keep the canonical order, so the pre-order of a body
is the pattern's own.

The arrays (``Arrays``) are what the compiled matcher reads; they grow by doubling.
"""

from __future__ import annotations

import struct
from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

import numpy as np

from xmlmatch.equal_index import EqualIndex
from xmlmatch.pattern import ANY
from xmlmatch.predicates import Operator
from xmlmatch.slots import Slots
from xmlmatch.values import CODES

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from xmlmatch.pattern import Pattern, PatternNode
    from xmlmatch.predicates import Predicate

ANY_LABEL: Final = -1
# Kinds of atoms: a number not in use; one string ``=`` on a label; anything else.
FREE, EQUAL, OTHER = 0, 1, 2


class Arrays(NamedTuple):
    """What the kernel reads; rows by number."""

    atom_label: NDArray[np.int32]
    atom_first: NDArray[np.int32]
    """Where the atom's predicates begin in ``lists``, and how many there are."""
    atom_count: NDArray[np.int32]
    atom_kind: NDArray[np.int32]
    sub_atom: NDArray[np.int32]
    sub_first: NDArray[np.int32]
    """Where the sub-pattern's child edges begin in ``lists``, and how many there are."""
    sub_count: NDArray[np.int32]
    lists: NDArray[np.int32]
    predicate: NDArray[np.int32]
    """Rows: operator, numeric, start and end of the constant's bytes."""
    number: NDArray[np.float64]
    text: NDArray[np.uint8]


class _Lists:
    """Short integer lists in one array; a freed list's place serves the next of the same length."""

    def __init__(self) -> None:
        self.array = np.zeros(1024, np.int32)
        self._used = 0
        self._free: dict[int, list[int]] = {}

    def add(self, values: list[int]) -> int:
        if not values:
            return 0
        free = self._free.get(len(values))
        if free:
            start = free.pop()
        else:
            start = self._used
            self._used += len(values)
            self.array = grown(self.array, self._used)
        for i, value in enumerate(values, start):
            self.array[i] = value
        return start

    def remove(self, start: int, length: int) -> None:
        if length:
            self._free.setdefault(length, []).append(start)


_Kind = TypeVar("_Kind", bound=np.generic)


def grown(array: NDArray[_Kind], size: int) -> NDArray[_Kind]:
    """Return the array, or a copy of at least twice its last dimension that holds ``size``."""
    have = array.shape[-1]
    if size <= have:
        return array
    bigger = np.zeros((*array.shape[:-1], max(size, 2 * have)), array.dtype)
    bigger[..., :have] = array
    return bigger


@lru_cache(maxsize=64)
def _packer(length: int) -> struct.Struct:
    return struct.Struct(f"={length}i")


class Store:
    """Patterns as numbered sub-patterns; ``add`` and ``remove`` cost what the pattern's own nodes cost."""

    def __init__(self) -> None:
        self.labels: Slots[str] = Slots()
        self.predicates: Slots[Predicate] = Slots()
        self._atoms: Slots[tuple[int, ...]] = Slots()
        self._subs: Slots[bytes] = Slots()
        self._lists = _Lists()
        self._atom = np.zeros((4, 256), np.int32)
        self._sub = np.zeros((3, 1024), np.int32)
        self._predicate = np.zeros((4, 256), np.int32)
        self._number = np.zeros(256)
        self._text = np.zeros(1024, np.uint8)
        self._text_used = 0
        self._text_live = 0
        self._plain: dict[str, int] = {}  # the atoms without predicates, by label
        self.equal = EqualIndex()
        self._longest = np.full(64, -1, np.int32)
        self._equal_of_label: dict[int, int] = {}
        self.numeric_labels: dict[int, int] = {}
        """How many atoms with numeric predicates each label has; ``ANY_LABEL`` for ``*``."""

    # --- reading -------------------------------------------------------------------------------------

    @property
    def sub_count(self) -> int:
        """The length of arrays over sub-patterns."""
        return len(self._subs)

    @property
    def atom_count(self) -> int:
        """The length of arrays over atoms."""
        return len(self._atoms)

    @property
    def live_sub_patterns(self) -> int:
        """How many distinct sub-patterns the patterns share."""
        return self._subs.live

    @property
    def label_longest(self) -> NDArray[np.int32]:
        """The length of the longest constant that each label is compared with by ``=``, -1 for none."""
        return self._longest[: len(self.labels)]

    def arrays(self) -> Arrays:
        """Return what the kernel reads. Valid until the next change."""
        atom, sub = self._atom, self._sub
        heads = (atom[0], atom[1], atom[2], atom[3], sub[0], sub[1], sub[2])
        return Arrays(*heads, self._lists.array, self._predicate, self._number, self._text)

    # --- changing ------------------------------------------------------------------------------------

    def add(self, pattern: Pattern) -> int:
        """Count one more pattern and return its body."""
        nodes = pattern.nodes
        children: list[list[int]] = [[] for _ in nodes]
        sub = 0
        for i in range(len(nodes) - 1, -1, -1):
            node = nodes[i]
            edges = children[i]
            edges.reverse()
            sub = self._acquire_sub(node, edges)
            if i:
                children[node.parent].append(2 * sub + node.axis)
        return 2 * sub + nodes[0].axis

    def remove(self, body: int) -> None:
        """Count one pattern less; free what nothing uses any more."""
        stack = [body >> 1]
        while stack:
            sub = stack.pop()
            atom, first, count = self._sub[:, sub].tolist()
            if self._subs.release(sub) is None:
                continue
            stack += [edge >> 1 for edge in self._lists.array[first : first + count].tolist()]
            self._lists.remove(first, count)
            self._sub[0, sub] = -1  # the kernel passes over it
            self._release_atom(atom)

    def _acquire_sub(self, node: PatternNode, edges: list[int]) -> int:
        """Find or make the sub-pattern; a known one gives back the uses its children were just given."""
        packer = _packer(len(edges) + 1)
        known = self._known_atom(node)
        if known is not None and self._subs.find(key := packer.pack(known, *edges)) is not None:
            for edge in edges:
                self._subs.release(edge >> 1)  # the known sub-pattern holds a use: never the last
            return self._subs.acquire(key)[0]
        atom = self._acquire_atom(node)
        sub, _ = self._subs.acquire(packer.pack(atom, *edges))
        table = self._sub = grown(self._sub, sub + 1)
        # One by one: NumPy takes far longer to make an array of the three first.
        table[0, sub] = atom
        table[1, sub] = self._lists.add(edges)
        table[2, sub] = len(edges)
        return sub

    def _known_atom(self, node: PatternNode) -> int | None:
        """Return the atom of a node if it is in use; most are, and looking is cheaper than counting."""
        if not node.predicates:
            return self._plain.get(node.label)
        label = ANY_LABEL if node.label == ANY else self.labels.find(node.label)
        if label is None:
            return None
        wanted = self.predicates.find_all(node.predicates)
        return None if None in wanted else self._atoms.find((label, *wanted))  # type: ignore[arg-type]  # no None

    def _acquire_atom(self, node: PatternNode) -> int:
        label = ANY_LABEL if node.label == ANY else self.labels.acquire(node.label)[0]
        wanted = [self._acquire_predicate(p) for p in node.predicates] if node.predicates else []
        atom, new = self._atoms.acquire((label, *wanted))
        if not new:
            self._release_parts(label, wanted)
            return atom
        self._atom = grown(self._atom, atom + 1)
        if not wanted:
            self._plain[node.label] = atom
        kind = self._kind(label, wanted)
        self._atom[:, atom] = label, self._lists.add(wanted), len(wanted), kind
        if kind == EQUAL:
            constant = node.predicates[0].constant
            self._enter_equal(atom, label, str(constant).encode())
        if self._is_numeric(wanted):
            self.numeric_labels[label] = self.numeric_labels.get(label, 0) + 1
        return atom

    def _release_atom(self, atom: int) -> None:
        key = self._atoms.release(atom)
        if key is None:
            return
        label, *wanted = key
        if not wanted:
            del self._plain[ANY if label == ANY_LABEL else self.labels.key(label)]
        if self._is_numeric(wanted):
            self.numeric_labels[label] -= 1
            if not self.numeric_labels[label]:
                del self.numeric_labels[label]
        self._lists.remove(int(self._atom[1, atom]), len(wanted))
        if self._atom[3, atom] == EQUAL:
            self._leave_equal(atom, label)
        self._atom[3, atom] = FREE
        self._release_parts(label, wanted)

    def _kind(self, label: int, predicates: list[int]) -> int:
        if label == ANY_LABEL or len(predicates) != 1:
            return OTHER
        operator, numeric = self._predicate[:2, predicates[0]].tolist()
        return EQUAL if not numeric and operator == CODES[Operator.EQ] else OTHER

    def _enter_equal(self, atom: int, label: int, constant: bytes) -> None:
        self.equal.add(atom, label, constant)
        if label >= len(self._longest):
            more = np.full(2 * label - len(self._longest), -1, np.int32)
            self._longest = np.concatenate((self._longest, more))
        if label not in self._equal_of_label:
            self._longest[label] = -1
        self._equal_of_label[label] = self._equal_of_label.get(label, 0) + 1
        self._longest[label] = max(int(self._longest[label]), len(constant))

    def _leave_equal(self, atom: int, label: int) -> None:
        """Take the atom out; ``label_longest`` may stay too long, which costs a look-up and nothing else."""
        self.equal.remove(atom)
        self._equal_of_label[label] -= 1
        if not self._equal_of_label[label]:
            del self._equal_of_label[label]
            self._longest[label] = -1

    def _release_parts(self, label: int, predicates: list[int]) -> None:
        if label != ANY_LABEL:
            self.labels.release(label)
        for predicate in predicates:
            if self.predicates.release(predicate) is not None:
                start, end = self._predicate[2:, predicate].tolist()
                self._text_live -= end - start

    def _is_numeric(self, predicates: list[int]) -> bool:
        return any(self._predicate[1, p] for p in predicates)

    def _acquire_predicate(self, predicate: Predicate) -> int:
        slot, new = self.predicates.acquire(predicate)
        if new:
            self._predicate = grown(self._predicate, slot + 1)
            self._number = grown(self._number, slot + 1)
            self._predicate[2:, slot] = 0  # a reused number must not show its old text to _squeeze_text
            numeric = not isinstance(predicate.constant, str)
            self._number[slot] = 0.0 if isinstance(predicate.constant, str) else predicate.constant
            start, end = self._keep_text(predicate)
            self._predicate[:, slot] = CODES[predicate.operator], numeric, start, end
        return slot

    def _keep_text(self, predicate: Predicate) -> tuple[int, int]:
        """Store the constant's bytes; first squeeze out the freed ones once they are half of all."""
        raw = predicate.constant.encode() if isinstance(predicate.constant, str) else b""
        if self._text_used + len(raw) > self._text.size and 2 * self._text_live <= self._text_used:
            self._squeeze_text()
        start = self._text_used
        self._text_used += len(raw)
        self._text_live += len(raw)
        self._text = grown(self._text, self._text_used)
        self._text[start : self._text_used] = np.frombuffer(raw, np.uint8)
        return start, self._text_used

    def _squeeze_text(self) -> None:
        text, at = np.zeros_like(self._text), 0
        for slot in self.predicates.numbers():
            start, end = self._predicate[2:, slot].tolist()
            text[at : at + end - start] = self._text[start:end]
            self._predicate[2:, slot] = at, at + end - start
            at += end - start
        self._text, self._text_used = text, at
