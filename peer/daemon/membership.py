"""A peer as a member: what it tells the source when they meet, and what it takes from it.

When a peer connects to the source they compare what they have. Lists of the revoked, DHT keys and generations of
the log only move forward. A subscription that has ended at the source ends here. One that lives here and is not
known there, since the source was restored from a backup that is older, is announced again under its name, from
its first document on. One that the source still has and that was withdrawn here is withdrawn again.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Final, Protocol

from overlay.identity import Address, IdentityError
from peer.daemon.questions import NoAnswer
from peer.daemon.revocation_news import RevocationNews
from peer.hosting.configuration import MalformedConfiguration
from peer.storage.errors import StorageError

if TYPE_CHECKING:
    from peer.daemon.hosted import HostedHere
    from peer.daemon.links import Links
    from peer.daemon.own_identity import OwnIdentity
    from peer.daemon.questions import Questions
    from peer.daemon.remembered import Remembered

_LOG: Final = logging.getLogger("distributary.peer")
_WRONG: Final = (
    NoAnswer, IdentityError, MalformedConfiguration, KeyError, TypeError, ValueError, AttributeError, OSError,
    StorageError,
)  # fmt: skip
"""What may be wrong with what another machine says, or with the disk on which it is to be kept."""

REVOKED_HERE: Final = (
    "this machine was revoked; ask for a new invitation, join with it ('distributary network join TOKEN') and "
    "start the daemon again"
)


class Place(Protocol):
    """What the source is told of this machine."""

    def own_addresses(self) -> tuple[Address, ...]:
        """Where it can be dialled."""

    def own_capacity(self) -> int | None:
        """How many feeds it bears."""

    def told_machines(self, machines: dict[str, list[str]]) -> None:
        """Where some other machines are."""


class Membership:
    """This machine's standing in its network. ``trouble``: why it does not agree with the source, if so."""

    def __init__(
        self, identity: OwnIdentity, links: Links, questions: Questions, hosted: HostedHere, place: Place, *,
        remembered: Remembered, source: str,
    ) -> None:  # fmt: skip
        self._identity, self._links, self._questions, self._hosted = identity, links, questions, hosted
        self._place, self._source = place, source
        self.news = RevocationNews(identity, links, questions, remembered, source=source)
        self._has_greeted = self.is_revoked = False
        self.trouble = ""
        self.generation = hosted.seen()[0]

    async def greet(self) -> bool:
        """Compare with the source; False if that went wrong, and then the connection is of no use."""
        try:
            found = await self._questions.ask(self._source, "greet", self._greeting())
            self._check_generation(found["generation"])
            self.news.take_list(found["revocations"])
            self.news.take_dht_key(found["dht_key"])
            self._identity.keep_source_at(tuple(Address.parse(text) for text in found["source"]))
            self._place.told_machines(found["machines"])
            for name, end in found["ended"].items():
                self._hosted.withdrawn(name, end)
            over = await self._configured(found)
        except _WRONG as exc:
            if self.is_revoked:  # told so meanwhile
                return False
            self.trouble = str(exc)
            _LOG.error("the source and this machine do not agree", extra={"reason": self.trouble})
            return False
        self.generation, self._has_greeted, self.trouble = found["generation"], True, ""
        self.is_revoked = False
        for name in over:
            await self._announce("unsubscribe", name, {"subscription": name})
        for name in found["unknown"]:
            await self._announce_again(name)
        return True

    async def _configured(self, told: dict[str, Any]) -> list[str]:
        """Take configurations in, and ask for those that the answer had no room for; list the withdrawn here."""
        over = [name for signed in told["configurations"] if (name := self._hosted.configure(signed))]
        while more := told.get("more"):
            told = await self._questions.ask(self._source, "configurations", {"after": more})
            over += [name for signed in told["configurations"] if (name := self._hosted.configure(signed))]
        return over

    def _greeting(self) -> dict[str, Any]:
        generation, frontier = self._hosted.seen()
        return {
            "addresses": [str(one) for one in self._place.own_addresses()],
            "capacity": self._place.own_capacity(),
            "is_first": not self._has_greeted,
            "generation": generation,
            "frontier": frontier,
            "revocations": max(self._links.revocations.number, 0),
            "subscriptions": self._hosted.live(),
            "in_parts": True,
        }

    def _check_generation(self, found: int) -> None:
        known = self._hosted.seen()[0]
        if found < known:
            raise ValueError(f"its log is of generation {found}, and this machine has seen {known}")
        if 0 < self.generation < found:
            _LOG.warning(
                "the source was restored: what only the lost log had is gone, and shown as a gap",
                extra={"generation": found, "before": self.generation, "frontier": self._hosted.seen()[1]},
            )

    async def _announce_again(self, name: str) -> None:
        asked = self._hosted.announcement(name)
        if asked is not None:
            _LOG.warning("subscription announced again", extra={"subscription": name})
            await self._announce("subscribe", name, asked)

    async def _announce(self, what: str, name: str, asked: dict[str, Any]) -> None:
        try:
            found = await self._questions.ask(self._source, what, asked)
            if what == "subscribe":
                self._hosted.configure(found["configuration"])
        except _WRONG as exc:
            _LOG.error("not announced", extra={"subscription": name, "what": what, "reason": str(exc)})

    # What the source says.

    def told_revoked(self) -> None:
        """The source says that this machine is a member no more."""
        self.trouble = REVOKED_HERE
        if not self.is_revoked:
            _LOG.error("this machine was revoked", extra={"site": self._identity.credential.member.site})
        self.is_revoked = True

    def check_not_revoked(self) -> None:
        """Raise ``NoAnswer`` if there is no use in asking the source."""
        if self.is_revoked:
            raise NoAnswer(REVOKED_HERE)
