"""Configurations as they were issued: their versions, and who names whom.

A version is (generation, epoch, revision). Every change gets the next revision of the epoch; a new epoch begins at
revision 0 with everybody. A configuration that would say the same as before is not issued again.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Container, Iterable

    from peer.hosting.configuration import Configuration


@dataclass(slots=True, eq=False)
class Issued:
    """The newest configuration of every subscription, in catalog order."""

    generation: int
    epoch: int = 0
    revision: int = 0
    configurations: dict[str, Configuration] = field(default_factory=dict)
    _named: dict[str, dict[str, None]] = field(default_factory=dict)

    def load(self, stored: Iterable[Configuration], known: Container[str]) -> None:
        """Take configurations in that were issued before, of those that are still known; go on where they end."""
        newest = (self.epoch, self.revision)
        for one in stored:
            newest = max(newest, (one.epoch, one.revision))
            if one.subscription in known:
                self._put(one)
        self.epoch, self.revision = newest

    def put(self, wanted: Configuration) -> Configuration | None:
        """Issue a configuration, whatever version it has, unless it says what the newest says; then None."""
        before = self.configurations.get(wanted.subscription)
        if before is not None and before.generation == self.generation and _says(before) == _says(wanted):
            return None
        self.revision += 1
        return self._put(self._versioned(wanted))

    def begin_epoch(self) -> None:
        """Begin the next epoch; everybody's configuration becomes one of it."""
        self.epoch, self.revision = self.epoch + 1, 0
        for one in list(self.configurations.values()):
            self._put(self._versioned(one))

    def issue_again(self) -> None:
        """Give everybody's configuration the next revision: it says the same, and is signed anew."""
        self.revision += 1
        for one in list(self.configurations.values()):
            self._put(self._versioned(one))

    def forget(self, subscription: str) -> list[str]:
        """Strike out a subscription that has left; list those whose configurations name it."""
        gone = self.configurations.pop(subscription, None)
        if gone is not None:
            self._unname(gone)
        return list(self._named.get(subscription, ()))

    def _versioned(self, one: Configuration) -> Configuration:
        return msgspec.structs.replace(one, generation=self.generation, epoch=self.epoch, revision=self.revision)

    def _put(self, one: Configuration) -> Configuration:
        before = self.configurations.get(one.subscription)
        if before is not None:
            self._unname(before)
        self.configurations[one.subscription] = one
        for name in _inputs(one):
            self._named.setdefault(name, {})[one.subscription] = None
        return one

    def _unname(self, one: Configuration) -> None:
        for name in _inputs(one):
            del self._named[name][one.subscription]
            if not self._named[name]:
                del self._named[name]


def _inputs(one: Configuration) -> set[str]:
    return {u.subscription for choice in one.choices for u in choice}


def _says(one: Configuration) -> tuple[object, ...]:
    return one.site, one.pattern, one.start, one.feeds, one.choices
