"""``Matcher``: very many patterns against each document, with patterns coming and going in between."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import numpy as np

from xmlmatch.atoms import place_atoms, place_equal_atoms
from xmlmatch.bodies import Bodies
from xmlmatch.errors import MatchLimitError
from xmlmatch.handlers import END, LEVEL_OF, PARENT, SIZE, START
from xmlmatch.nodesets import NodeSets
from xmlmatch.pattern import Column, Pattern, Return
from xmlmatch.scratch import Capacities
from xmlmatch.set_algebra import BODIES, FULL, POOL, RESULTS, SETS, begin, match_bodies
from xmlmatch.store import ANY_LABEL, Store, grown
from xmlmatch.values import read_numbers

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from numpy.typing import NDArray

    from xmlmatch.document import Document
    from xmlmatch.scratch import Scratch

_RETURNS: Final = tuple(Return)
DEFAULT_MAX_ENTRIES: Final = 1 << 28


@dataclass(frozen=True, slots=True)
class Matches:
    """The answer for one document: the keys of the patterns that match, and their node sets as arrays.

    The sets of ``keys[i]`` are, node by node in canonical order, the sets numbered
    ``results[first[rank[i]] : first[rank[i] + 1]]``; set ``s`` is ``pool[set_first[s] : set_first[s + 1]]``.
    Equal sets are stored once, and equal patterns share their results.
    """

    keys: NDArray[np.int64]
    rank: NDArray[np.int32] = field(repr=False)
    first: NDArray[np.int64] = field(repr=False)
    results: NDArray[np.int32] = field(repr=False)
    set_first: NDArray[np.int64] = field(repr=False)
    pool: NDArray[np.int32] = field(repr=False)
    document: Document = field(repr=False)
    changes: int = field(repr=False)
    """How many patterns had been added when it was made: a key reused since then names another pattern."""

    def __len__(self) -> int:
        return len(self.keys)

    def sets(self, i: int) -> tuple[NDArray[np.int32], ...]:
        """Return the node sets of the ``i``-th matching pattern; views, nothing is copied."""
        rank = self.rank[i]
        numbers = self.results[self.first[rank] : self.first[rank + 1]]
        return tuple(self.pool[self.set_first[s] : self.set_first[s + 1]] for s in numbers)


class Matcher:
    """Matches all its patterns against one document at once, sharing their sub-patterns.

    ``add`` returns a key; ``match`` answers with the keys that match. Patterns may come and go between any two
    documents, without a rebuild; every method may be called from any thread.

    >>> from xmlmatch import Document
    >>> matcher = Matcher([Pattern.parse("//a/b{val}"), Pattern.parse("//c")])
    >>> document = Document.parse(b"<a><b>1</b><b>2</b></a>")
    >>> matches = matcher.match(document)
    >>> matches.keys.tolist()
    [0]
    >>> list(matcher.node_sets(matches, 0).rows())
    [('1',), ('2',)]
    >>> matcher.remove(0)
    >>> len(matcher.match(document))
    0
    """

    def __init__(self, patterns: Iterable[Pattern] = (), *, max_entries: int = DEFAULT_MAX_ENTRIES) -> None:
        self._store = Store()
        self._bodies = Bodies()
        self._text: list[str | None] = []  # the canonical text by key, None where a key is free
        self._selection: list[bytes] = []
        self._free: list[int] = []
        self._born = np.zeros(64, np.int64)  # by key: the number of the change that added its pattern
        self._changes = 0
        self._capacities = Capacities()
        self._max_entries = max_entries
        self._lock = threading.Lock()
        for pattern in patterns:
            self.add(pattern)

    def __len__(self) -> int:
        return len(self._text) - len(self._free)

    @property
    def sub_patterns(self) -> int:
        """How many distinct sub-patterns the patterns share."""
        return self._store.live_sub_patterns

    def add(self, pattern: Pattern) -> int:
        """Add a pattern and return its key; equal patterns may be added again and get keys of their own."""
        with self._lock:
            if self._free:
                key = self._free.pop()
            else:
                key = len(self._text)
                self._text.append(None)
                self._selection.append(b"")
            self._bodies.add(key, self._store.add(pattern))
            self._text[key] = pattern.text
            self._selection[key] = _pack(pattern.selection)
            self._changes += 1
            self._born = grown(self._born, key + 1)
            self._born[key] = self._changes
            return key

    def remove(self, key: int) -> None:
        """Remove the pattern ``add`` gave this key for; ``KeyError`` if there is none."""
        with self._lock:
            if not 0 <= key < len(self._text) or self._text[key] is None:
                raise KeyError(key)
            self._store.remove(self._bodies.remove(key))
            self._text[key] = None
            self._free.append(key)

    def pattern(self, key: int) -> Pattern:
        """Return the pattern behind a key."""
        text = self._text[key] if 0 <= key < len(self._text) else None
        if text is None:
            raise KeyError(key)
        return Pattern(Pattern.parse(text).nodes, _unpack(self._selection[key]))

    def __iter__(self) -> Iterator[int]:
        """Iterate over the keys in use."""
        return (key for key, text in enumerate(self._text) if text is not None)

    def match(self, document: Document) -> Matches:
        """Return the keys of the patterns that match, in ascending order, with complete node sets.

        Raises ``MatchLimitError`` where the sets would need more than ``max_entries`` entries.
        """
        with self._lock:
            edges = self._bodies.edges
            scratch = self._run(document, edges)
            used = scratch.state.tolist()
            matched = scratch.matched[: used[BODIES]]
            keys, rank = self._bodies.keys_of(matched, len(self._text))
            changes = self._changes
        return Matches(
            keys,
            rank,
            scratch.body_first[: used[BODIES] + 1],
            scratch.results[: used[RESULTS]].copy(),
            scratch.set_first[: used[SETS] + 1],
            scratch.pool[: used[POOL]].copy(),
            document,
            changes,
        )

    def node_sets(self, matches: Matches, key: int) -> NodeSets:
        """Return the node sets of one pattern; ``KeyError`` if it does not match or has been removed since."""
        i = int(np.searchsorted(matches.keys, key))
        if i == len(matches.keys) or matches.keys[i] != key or self._born[key] > matches.changes:
            raise KeyError(key)
        return NodeSets(self.pattern(key), matches.document, matches.sets(i))

    def _run(self, document: Document, edges: NDArray[np.int64]) -> Scratch:
        store = self._store
        label_here, numbers = self._labels_and_numbers(document)
        while True:
            scratch = self._capacities.allocate(subs=store.sub_count, nodes=len(document), bodies=len(edges))
            if _match(store, document, label_here, numbers, scratch, edges) != FULL:
                self._capacities.learn(scratch)
                return scratch
            if not self._capacities.grow(self._max_entries):
                raise MatchLimitError(self._max_entries)

    def _labels_and_numbers(self, document: Document) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
        """Map the store's labels to the document's (-1: absent), and read the numbers predicates ask about."""
        labels = self._store.labels
        label_here = np.full(len(labels) + 1, -1, np.int32)
        for i, known in enumerate(labels.find_all(document.labels)):
            if known is not None:
                label_here[known] = i
        wanted = self._store.numeric_labels
        if not wanted:
            return label_here, np.empty(0)
        index, numbers = document.index, np.empty(len(document))
        asked = [index.elements] if ANY_LABEL in wanted else []
        present = label_here[[label for label in wanted if label != ANY_LABEL]].tolist()
        asked += [index.order[index.first[here] : index.first[here + 1]] for here in present if here >= 0]
        if asked:
            read_numbers(document, np.concatenate(asked), numbers)
        return label_here, numbers


def _match(
    store: Store,
    document: Document,
    label_here: NDArray[np.int32],
    numbers: NDArray[np.float64],
    scratch: Scratch,
    edges: NDArray[np.int64],
) -> int:
    """Run both kernels; 0, or ``FULL`` when the scratch memory is too small."""
    arrays, index, nodes, s = store.arrays(), document.index, document.nodes, scratch
    atom_here, atom_set = np.empty((2, store.atom_count), np.int32)
    begin(s.state, nodes[PARENT], s.pool, s.set_first, s.intern, s.marks)
    full = place_atoms(
        label_here, arrays.atom_label, arrays.atom_first, arrays.atom_count, arrays.atom_kind, arrays.lists,
        arrays.predicate, arrays.number, arrays.text,
        nodes[START], nodes[END], document.chars, numbers, index.order, index.first, index.elements,
        s.state, s.pool, atom_here, atom_set,
    )  # fmt: skip
    if full == FULL:
        return FULL
    full = place_equal_atoms(
        label_here, store.label_longest, arrays.atom_label, arrays.atom_first, store.equal.head,
        store.equal.next, arrays.lists, arrays.predicate, arrays.text,
        nodes[START], nodes[END], document.chars, index.order, index.first,
        s.state, s.pool, atom_set,
    )  # fmt: skip
    if full == FULL:
        return FULL
    full = match_bodies(
        s.state, edges, arrays.sub_atom, arrays.sub_first, arrays.sub_count, arrays.lists, arrays.atom_count,
        atom_here, atom_set, nodes[PARENT], nodes[SIZE], nodes[LEVEL_OF], document.label,
        s.memo, s.sub_set, s.stack, s.marks, s.results, s.matched, s.body_first,
    )  # fmt: skip
    return int(full)


def _pack(selection: tuple[Column, ...]) -> bytes:
    """Keep a column order in a few bytes: a million patterns have one each."""
    return b"".join(node.to_bytes(2) + bytes([_RETURNS.index(what)]) for node, what in selection)


def _unpack(raw: bytes) -> tuple[Column, ...]:
    return tuple(Column(int.from_bytes(raw[i : i + 2]), _RETURNS[raw[i + 2]]) for i in range(0, len(raw), 3))
