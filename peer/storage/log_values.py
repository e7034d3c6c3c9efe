"""What goes into the source's log and what comes out of it: entries, documents, subscriptions, their neighbours.

Intervals of numbers are written (after, upto]: without their first number, with their last.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from peer.storage.errors import LocalMisuse

DAY_S = 86_400.0


@dataclass(frozen=True, slots=True)
class Retention:
    """How much of the log is kept; each limit turned up costs disk.

    Documents go, oldest first, beyond ``document_bytes`` or the age; peers that are behind then get gaps. The key
    of a publication outlives its document: it goes when the document has gone and it is either older than
    ``key_age_s`` or not among the last ``keys`` of those. A publisher that retries even later publishes twice.
    """

    document_bytes: int = 10 << 30
    document_age_s: float = 7 * DAY_S
    keys: int = 1_000_000
    key_age_s: float = 30 * DAY_S

    def __post_init__(self) -> None:
        if self.key_age_s < self.document_age_s:
            raise LocalMisuse("keys of publications are kept at least as long as documents")


class Start(enum.Enum):
    """Where a subscription begins, if not behind a given number."""

    NOW = "now"
    EARLIEST = "earliest"


class Version(NamedTuple):
    """When a configuration was made, compared in this order.

    The generation comes first because a restored source may count epochs again from where its backup stood.
    """

    generation: int
    epoch: int
    revision: int


@dataclass(frozen=True, slots=True)
class SpaceEntry:
    """What an entry of the log is in a space of the content-driven network: by itself a change there. ``space``:
    its key; ``body``: opaque here. A change with the same ``key`` again is the same change."""

    space: str
    body: bytes
    key: str = ""

    @property
    def name(self) -> str:
        """What users call the space; its key says besides which one of that name it is."""
        return self.space.partition("@")[0]


@dataclass(frozen=True, slots=True)
class NewDocument:
    """A publication. A publisher that gives the same key again means the same publication. ``entry``: what it is
    in a space, if it is a message there too."""

    publisher: str
    key: str
    name: str
    body: bytes
    entry: SpaceEntry | None = None


@dataclass(frozen=True, slots=True)
class NewSubscription:
    """A subscription to be. A number as its ``start`` asks for the documents behind that number."""

    id: str
    pattern: str
    columns: bytes
    site: str
    limit: int | None = None
    start: Start | int = Start.NOW


@dataclass(frozen=True, slots=True)
class Withdrawal:
    """The end of a subscription: it is owed the documents up to this entry."""

    subscription: str


NewEntry: TypeAlias = NewDocument | NewSubscription | Withdrawal | SpaceEntry


@dataclass(frozen=True, slots=True)
class Appended:
    """An entry is in the log under ``number``; it was there before unless ``is_new``.

    Of a subscription also ``start``: it is owed the documents in (start, end].
    """

    number: int
    is_new: bool
    start: int | None = None


@dataclass(frozen=True, slots=True)
class Refused:
    """An entry is not in the log, and why. ``number``: the entry that stands in its way."""

    reason: str
    number: int | None = None


@dataclass(frozen=True, slots=True)
class StoredDocument:
    """A document of the log; ``at`` is when it was appended, in seconds since 1970."""

    number: int
    publisher: str
    name: str
    at: float
    body: bytes


@dataclass(frozen=True, slots=True)
class Missing:
    """Documents in (after, upto] are not here any more: trimmed, or lost before a restore."""

    after: int
    upto: int


@dataclass(frozen=True, slots=True)
class CatalogEntry:
    """A subscription in the catalog: owed the documents in (start, end], without end while ``end`` is None."""

    id: str
    number: int
    pattern: str
    columns: bytes
    site: str
    limit: int | None
    start: int
    end: int | None = None


@dataclass(frozen=True, slots=True)
class SiteRecord:
    """A machine of the network; ``last_seen`` in seconds since 1970."""

    name: str
    addresses: tuple[str, ...]
    capacity: int | None
    last_seen: float


@dataclass(frozen=True, slots=True)
class Configuration:
    """What a subscription's peer is to do, as of a version."""

    subscription: str
    version: Version
    body: bytes


@dataclass(frozen=True, slots=True)
class Extent:
    """What a log holds: of documents those in (lowest, last] that no restore lost, together ``held_bytes``."""

    generation: int
    lowest: int
    last: int
    held_bytes: int
