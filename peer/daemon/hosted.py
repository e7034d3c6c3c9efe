"""What a peer hosts: configurations taken in, kept, and taken up again after a restart."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Final

import trio

from overlay.identity import IdentityError
from peer.hosting.configuration import MalformedConfiguration
from peer.hosting.rows import write_columns
from peer.storage.log_values import Version
from peer.storage.result_values import Begin, Drain, Install, State
from planner.problem import MOST_FEEDS
from xmlmatch import Pattern

if TYPE_CHECKING:
    from collections.abc import Callable

    from peer.daemon.committing import Committer
    from peer.daemon.permits import Permits
    from peer.hosting.configuration import Configuration
    from peer.hosting.host import Host
    from peer.storage.result_store import ResultStore
    from peer.storage.result_values import Change, Hosted

_LOG: Final = logging.getLogger("distributary.peer")


class HostedHere:
    """The subscriptions of this machine, in its store and in its host."""

    def __init__(
        self, site: str, store: ResultStore, permits: Permits, host: Host, committer: Committer[Change, bool],
        clock: Callable[[], float] = trio.current_time,
    ) -> None:  # fmt: skip
        self._site, self._store, self._permits, self._host = site, store, permits, host
        self._committer, self._clock = committer, clock
        self._columns: dict[str, bytes] = {}
        self._ended: set[str] = set()

    def expect(self, name: str, columns: bytes) -> None:
        """A subscription is being asked for: its configuration may come before the answer."""
        self._columns[name] = columns

    async def begin(self, name: str, pattern: str, start: int, generation: int, signed: bytes) -> None:
        """Host a subscription that was asked for; returns when it is safe."""
        self._committer.put(Begin(name, pattern, self._columns[name], start, generation))
        self.configure(signed)
        await self._committer.commit(self._installed(signed))

    def configure(self, signed: bytes) -> str:
        """Take a configuration in; return the subscription's name if it was withdrawn here, else nothing."""
        found = self._permits.open(signed)
        if found.site != self._site:
            raise MalformedConfiguration(f"it is for {found.site}")
        name, is_here = found.subscription, found.subscription in self._host.subscriptions
        known = None if is_here else self._store.hosted(name)
        if name in self._ended or (known is not None and known.state is not State.LIVE):
            return name  # this was said before
        if known is None and not is_here:
            # If this process did not ask for it, the answer was lost, with the order of its columns.
            columns = self._columns.get(name) or write_columns(Pattern.parse(found.pattern))
            self._committer.put(Begin(name, found.pattern, columns, found.start, found.generation))
        self._committer.put(self._installed(signed))
        _LOG.info(
            "configuration", extra={"subscription": name, "epoch": found.epoch, "choices": len(found.choices)}
        )
        if known is None:
            self._host.install(found, signed, self._clock())
        else:
            self._again(found, signed, known)
        return ""

    def seen(self) -> tuple[int, int]:
        """Return the highest generation and the highest number of the log that anything here has."""
        known = self._store.subscriptions()
        generations = [one.frontier.generation for one in known] + [
            one.version.generation for one in known if one.version
        ]
        return max(generations, default=0), max((one.frontier.upto for one in known), default=0)

    def live(self) -> list[str]:
        """List the subscriptions that live here."""
        return [
            one.id for one in self._store.subscriptions() if one.state is State.LIVE and one.id not in self._ended
        ]

    def announcement(self, name: str) -> dict[str, Any] | None:
        """Say what a subscription is, for a source that does not know it; None if it does not live here."""
        known = self._store.hosted(name)
        if known is None or known.state is not State.LIVE or name in self._ended:
            return None
        hosted = self._host.subscriptions.get(name)
        feeds = MOST_FEEDS if hosted is None else hosted.configuration.feeds
        return {
            "subscription": name, "pattern": known.pattern, "columns": known.columns, "start": known.start,
            "limit": None if feeds >= MOST_FEEDS else limit_of(feeds),
        }  # fmt: skip

    async def end(self, name: str, end: int) -> None:
        """End a subscription with a document; returns when that is safe."""
        self.withdrawn(name, end)
        if self._store.hosted(name) is not None:
            await self._committer.commit(Drain(name, end))

    def withdrawn(self, name: str, end: int) -> None:
        """The source has ended a subscription with a document."""
        self._ended.add(name)
        if name in self._host.subscriptions:
            self._committer.put(Drain(name, end))
            self._host.withdraw(name, self._clock(), end)
        elif self._store.hosted(name) is not None:
            self._committer.put(Drain(name, end))  # it could not be resumed

    def resume(self, only: str | None = None) -> None:
        """Go on with what was hosted before; what has ended goes on until it has what it is owed."""
        for known in self._store.subscriptions():
            if known.id in self._host.subscriptions or only not in (None, known.id):
                continue
            is_due = known.end is not None and known.frontier.upto < known.end
            if known.configuration is None or not (known.state is State.LIVE or is_due):
                continue
            try:
                found = self._permits.open_kept(known.configuration)
            except (IdentityError, MalformedConfiguration) as exc:
                # The source says it anew.
                _LOG.warning("not resumed", extra={"subscription": known.id, "reason": str(exc)})
                continue
            self._again(found, known.configuration, known)
            if known.end is not None:
                self.withdrawn(known.id, known.end)

    def _installed(self, signed: bytes) -> Install:
        found = self._permits.open(signed)
        return Install(found.subscription, Version(*found.version), signed)

    def _again(self, found: Configuration, signed: bytes, known: Hosted) -> None:
        """Go on with a subscription from what is stored of it."""
        self._host.install(found, signed, self._clock(), frontier=known.frontier.upto, lowest=known.lowest)


def limit_of(hard: int) -> int:
    """Return the plan limit of which a number of feeds is the hard limit (``planner.problem.hard_limit``).

    >>> from planner.problem import hard_limit
    >>> [limit_of(hard_limit(limit)) for limit in (0, 1, 2, 30, 31)]
    [0, 1, 2, 30, 31]
    """
    return (hard * 5 + 8) // 9
