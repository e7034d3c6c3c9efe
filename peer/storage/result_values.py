"""What a peer keeps of its subscriptions, and the changes that a commit makes to it.

A subscription hosted here has *entries*, one per document that gave a result or an error and one per gap, and a
*frontier*: everything up to it is complete. Where there is no entry up to the frontier, there was no result.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, TypeAlias

from peer.storage.errors import LocalMisuse

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from peer.storage.log_values import Version

DAY_S = 86_400.0


@dataclass(frozen=True, slots=True)
class ResultLimits:
    """How much all results together may take; each limit turned up costs disk.

    Beyond ``kept_bytes`` and ``kept_age_s`` the oldest go, except what a cursor has yet to read. Beyond
    ``hard_bytes`` those go as well, and the reader gets a ``TRIMMED`` entry in their place.
    """

    kept_bytes: int = 1 << 30
    kept_age_s: float = 7 * DAY_S
    hard_bytes: int = 4 << 30

    def __post_init__(self) -> None:
        if self.hard_bytes < self.kept_bytes:
            raise LocalMisuse("the hard limit of results is at least as high as the one for keeping them")


class Kind(enum.IntEnum):
    """What an entry tells; the values are stored."""

    BATCH = 1
    ERROR = 2
    GAP = 3
    TRIMMED = 4
    """Never stored: what this store has dropped, as a reader is told."""
    REFERENCE = 5
    """The results are what matching a document gives that another subscription here has."""


@dataclass(frozen=True, slots=True)
class Entry:
    """The result of document ``number``. A ``GAP`` or ``TRIMMED`` entry stands for (after, number] instead.

    ``data`` of a ``REFERENCE``: when it is stored, the subscription here that has the document, which is stored
    before or with it; when it is read, what that one has. It is dropped together with that.
    """

    number: int
    kind: Kind
    name: str = ""
    data: bytes = b""
    after: int | None = None

    def __post_init__(self) -> None:
        is_interval = self.kind in (Kind.GAP, Kind.TRIMMED)
        if is_interval != (self.after is not None) or self.begin >= self.number:
            raise LocalMisuse(f"entry {self.number}: a {self.kind.name} cannot begin after {self.after}")

    @property
    def begin(self) -> int:
        """The number before the first that this entry tells of."""
        return self.number - 1 if self.after is None else self.after


@dataclass(frozen=True, slots=True, order=True)
class Frontier:
    """Everything up to ``upto`` is complete, by the numbers of a generation of the log."""

    generation: int
    upto: int


class State(enum.Enum):
    """Live; draining: unsubscribed, and feeding on for others; ended."""

    LIVE = "live"
    DRAINING = "draining"
    ENDED = "ended"


@dataclass(frozen=True, slots=True)
class Hosted:
    """A subscription as it stands here. ``end`` is None until it is known; what lies behind it is not owed."""

    id: str
    pattern: str
    columns: bytes
    start: int
    state: State
    end: int | None
    frontier: Frontier
    lowest: int
    version: Version | None
    configuration: bytes | None


@dataclass(frozen=True, slots=True)
class Begin:
    """Host a subscription: it is owed what lies behind ``start``. Saying the same again changes nothing."""

    subscription: str
    pattern: str
    columns: bytes
    start: int
    generation: int


@dataclass(frozen=True, slots=True)
class Install:
    """Keep a configuration, unless one as new is kept."""

    subscription: str
    version: Version
    body: bytes


@dataclass(frozen=True, slots=True)
class Results:
    """Entries in order, and the frontier that they reach; it may lie behind the last of them."""

    subscription: str
    entries: Sequence[Entry]
    frontier: Frontier

    def __post_init__(self) -> None:
        for one, next_one in pairwise(self.entries):
            if next_one.begin < one.number:
                raise LocalMisuse(
                    f"subscription {self.subscription}: entry {next_one.number} overlaps the one before"
                )
        if any(entry.kind is Kind.TRIMMED for entry in self.entries):
            raise LocalMisuse(f"subscription {self.subscription}: what was trimmed elsewhere is a gap here")
        if self.entries and self.entries[-1].number > self.frontier.upto:
            raise LocalMisuse(f"subscription {self.subscription}: an entry lies behind the frontier")


@dataclass(frozen=True, slots=True)
class Followers:
    """Subscriptions that keep step with a relay: each stands where it does before, and where it does afterwards.
    ``matched``: for each of the relay's entries, which are documents all, a byte per subscription: 1 where it has
    results."""

    names: Sequence[str]
    matched: Sequence[bytes]

    def each(self) -> Iterator[tuple[str, Sequence[int]]]:
        """Yield each subscription, and of which of the relay's entries it has results.

        >>> list(Followers(["s", "t"], [bytes([1, 0]), bytes([1, 1])]).each())
        [('s', [1, 1]), ('t', [0, 1])]
        """
        for name, *matched in zip(self.names, *self.matched, strict=True):
            yield name, matched


@dataclass(frozen=True, slots=True)
class Together:
    """Results of several subscriptions that are stored all at once or not at all: documents, and what refers to
    them. ``followers`` are those of the first."""

    parts: Sequence[Results]
    followers: Followers | None = None

    def __post_init__(self) -> None:
        if self.followers is not None:
            documents = self.parts[0].entries
            if any(entry.kind is not Kind.BATCH for entry in documents):
                raise LocalMisuse(f"{self.parts[0].subscription}: only documents can be followed")
            if [len(one) for one in self.followers.matched] != [len(self.followers.names)] * len(documents):
                raise LocalMisuse(f"{self.parts[0].subscription}: it is not known who follows which document")


@dataclass(frozen=True, slots=True)
class Drain:
    """A subscription was withdrawn at ``end``: what lies behind is not stored any more."""

    subscription: str
    end: int


@dataclass(frozen=True, slots=True)
class End:
    """A subscription takes no more results. What it has stays until it is trimmed."""

    subscription: str


@dataclass(frozen=True, slots=True)
class Cursor:
    """A named reader is done up to ``upto``; a cursor never goes back. The first of its name makes it."""

    subscription: str
    name: str
    upto: int


@dataclass(frozen=True, slots=True)
class DropCursor:
    """A named reader is gone; nothing is kept for it any more."""

    subscription: str
    name: str


Change: TypeAlias = Begin | Install | Results | Together | Drain | End | Cursor | DropCursor


def results_of(change: Change) -> Sequence[Results]:
    """List the results that a change stores.

    >>> results_of(Together([Results("s", [], Frontier(1, 7))])) == [Results("s", [], Frontier(1, 7))]
    True
    >>> results_of(End("s"))
    []
    """
    if isinstance(change, Together):
        return change.parts
    return [change] if isinstance(change, Results) else []


def subscriptions_of(change: Change) -> set[str]:
    """Name the subscriptions whose results a change stores.

    >>> followers = Followers(["t"], [])
    >>> sorted(subscriptions_of(Together([Results("r", [], Frontier(1, 7))], followers)))
    ['r', 't']
    """
    followers = change.followers if isinstance(change, Together) else None
    return {part.subscription for part in results_of(change)} | set(followers.names if followers else ())
