"""Looking for the k nodes nearest to an id: whom to ask next, given what was heard so far.

The paper's iterative lookup (sec. 2.3), without its rounds: ``take`` names contacts to ask, ``heard`` and
``failed`` take what came of it, in any order, so one dead contact holds up nothing but itself. A lookup ends when
the k nearest contacts that did not fail were all asked. Whatever a member answers, a lookup asks at most
``MOST_ASKED`` contacts.

For a record (``FoundRecords``), it ends as soon as enough nodes gave a valid record; of these the highest version
wins.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

    from overlay.dht.contacts import Contact
    from overlay.dht.records import Record

MOST_ASKED: Final = 256
_MOST_KNOWN: Final = 1024


@dataclass(slots=True)
class Lookup:
    """A search for the ``k`` nearest contacts to ``target``; ``own_id`` is never asked nor found."""

    target: int
    k: int
    own_id: bytes
    _known: dict[bytes, Contact] = field(default_factory=dict)
    _asked: set[bytes] = field(default_factory=set)
    _answered: set[bytes] = field(default_factory=set)
    _failed: set[bytes] = field(default_factory=set)

    def learn(self, contacts: Iterable[Contact]) -> None:
        """Take in contacts that may be worth asking; whoever failed once does not come back."""
        for contact in contacts:
            if contact.id != self.own_id and contact.id not in self._failed:
                self._known.setdefault(contact.id, contact)
        if len(self._known) > _MOST_KNOWN:
            kept = heapq.nsmallest(_MOST_KNOWN // 2, self._known.values(), key=self._distance)
            self._known = {contact.id: contact for contact in kept}

    def take(self, count: int) -> list[Contact]:
        """Name up to ``count`` contacts to ask now, nearest first; they count as asked."""
        count = max(0, min(count, MOST_ASKED - len(self._asked)))
        taken = [contact for contact in self._nearest() if contact.id not in self._asked][:count]
        self._asked |= {contact.id for contact in taken}
        return taken

    def heard(self, contact: Contact, contacts: Iterable[Contact] = ()) -> None:
        """Note that a contact answered, and whom it named."""
        self._answered.add(contact.id)
        self.learn(contacts)

    def failed(self, contact: Contact) -> None:
        """Note that a contact did not answer, or nonsense."""
        self._failed.add(contact.id)
        self._known.pop(contact.id, None)

    @property
    def is_waiting(self) -> bool:
        """Whether somebody was asked and did neither answer nor fail yet."""
        return len(self._asked) > len(self._answered) + len(self._failed)

    def found(self) -> list[Contact]:
        """List the nearest contacts that answered, nearest first."""
        return [contact for contact in self._nearest() if contact.id in self._answered]

    def _nearest(self) -> list[Contact]:
        return heapq.nsmallest(self.k, self._known.values(), key=self._distance)

    def _distance(self, contact: Contact) -> int:
        return contact.long_id ^ self.target


@dataclass(slots=True)
class FoundRecords:
    """The valid records of one key that a lookup came across; ``enough`` ends it."""

    enough: int
    best: tuple[Record, bytes] | None = None
    _by: list[tuple[Contact, bytes]] = field(default_factory=list)

    def add(self, record: Record, encoded: bytes, contact: Contact | None) -> None:
        """Note a valid record and who gave it, None for this node itself."""
        if self.best is None or record.version > self.best[0].version:
            self.best = (record, encoded)
        if contact is not None:
            self._by.append((contact, encoded))

    @property
    def is_enough(self) -> bool:
        """Whether as many other nodes as wanted gave a record."""
        return len(self._by) >= self.enough

    def outdated(self, found: Iterable[Contact]) -> list[Contact]:
        """List who should be given the best record: those that gave another, and the nearest that had none."""
        if self.best is None:
            return []
        behind = [contact for contact, encoded in self._by if encoded != self.best[1]]
        holders = {contact.id for contact, _ in self._by}
        without = next((contact for contact in found if contact.id not in holders), None)
        return behind if without is None else [*behind, without]
