"""Who is revoked, and the DHT's key that goes with it: how a member learns of both, and lets others know.

The list is signed and numbered, so anybody may tell it: a member that takes a newer one tells its neighbours at
once. Signs of life carry its number besides; who hears of a higher one than its own asks whoever said so. So a
member that cannot reach the source learns what any neighbour knows.

The key is what all members share. It is not signed, but the list names its number: a member gives its key only
beside a list that names it, hence to nobody whom that list revokes, and takes one from a neighbour only if the
list here names it. What the source says replaces what a neighbour said.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Final

import trio

from overlay.identity import IdentityError, NotPermitted, Role, StaleList, decode_list_untrusted
from peer.daemon.questions import NoAnswer

if TYPE_CHECKING:
    from collections.abc import Callable

    from overlay.identity import Member, RevocationList
    from peer.daemon.links import Links
    from peer.daemon.own_identity import OwnIdentity
    from peer.daemon.questions import Questions
    from peer.daemon.remembered import Remembered

_LOG: Final = logging.getLogger("distributary.peer")
_WRONG: Final = (NoAnswer, IdentityError, KeyError, TypeError, ValueError, AttributeError)
NEWS: Final = frozenset({"revocations", "dht_key", "your_revocations", "your_dht_key"})
"""What members tell and ask each other about it."""


class RevocationNews:
    """What a member knows of revocations. ``users`` are told of every newer list."""

    def __init__(
        self, identity: OwnIdentity, links: Links, questions: Questions, remembered: Remembered, *, source: str
    ) -> None:
        self._identity, self._links, self._questions = identity, links, questions
        self._remembered, self._source = remembered, source
        links.revocations = remembered.revocations(links.revocations)
        self.users: list[Callable[[RevocationList], None]] = []
        self._told_of = links.revocations.number
        self._asking: set[str] = set()
        self._nursery: trio.Nursery | None = None

    async def run(self) -> None:
        """Ask and tell others, until cancelled."""
        async with trio.open_nursery() as self._nursery:
            await trio.sleep_forever()

    def take_list(self, encoded: bytes) -> None:
        """Take a list of the revoked; ``IdentityError`` if it is none, or older than the one here."""
        known = self._links.revocations
        if encoded == known.encoded:
            return
        found = decode_list_untrusted(encoded, self._identity.credential.root, self._identity.now())
        if known.number >= 0:
            known.replaced_by(found)
        self._remembered.keep_revocations(found)
        self._links.revoked(found)
        for use in self.users:
            use(found)
        self._tell_neighbours()

    def take_dht_key(self, told: dict[str, Any]) -> None:
        """Take the DHT's key from the source; ``IdentityError`` for one that is older than the one here."""
        self._identity.take_dht_key(told["number"], told["secret"])
        self._tell_neighbours()

    def heard(self, site: str, number: int) -> None:
        """A machine has the list of a number: it is asked for what is not here."""
        if self._nursery is not None and (number > self._links.revocations.number or self._lacks_key(number)):
            self._nursery.start_soon(self.learn, site, number)

    def told(self, member: Member, what: str, body: Any) -> Any:
        """Take what another member says, or answer what it asks."""
        match what:
            case "revocations":
                self._told_list(member, body)
            case "dht_key":
                member.require(Role.SOURCE)
                self.take_dht_key(body)
            case "your_revocations":
                return self._links.revocations.encoded
            case "your_dht_key":
                return self._own_key(member)
        return True

    async def learn(self, site: str, number: int) -> None:
        """Ask a machine for the list of a number and for the key that goes with it, unless they are here."""
        if site in self._asking:
            return
        self._asking.add(site)
        your = "" if site == self._source else "your_"
        try:
            if number > self._links.revocations.number:
                self.take_list(await self._questions.ask(site, your + "revocations", None))
            if self._lacks_key(self._links.revocations.number):
                self._take_key_of(site, await self._questions.ask(site, your + "dht_key", None))
        except _WRONG as exc:
            _LOG.warning("revocations", extra={"site": site, "reason": str(exc)})
        finally:
            self._asking.discard(site)

    def _lacks_key(self, number: int) -> bool:
        """Say whether the DHT's key of the list of a number, which is the one here, is not here."""
        known = self._links.revocations
        return number == known.number and known.dht_key > self._key_number

    @property
    def _key_number(self) -> int:
        return self._identity.credential.settings.dht_keys.current.number

    def _told_list(self, member: Member, encoded: bytes) -> None:
        try:
            self.take_list(encoded)
        except StaleList:
            if Role.SOURCE in member.roles:
                raise
            return  # a neighbour that is behind: it will be told
        if Role.SOURCE not in member.roles:  # the source tells its key itself
            self.heard(member.site, self._links.revocations.number)

    def _own_key(self, member: Member) -> dict[str, Any]:
        key, known = self._identity.credential.settings.dht_keys.current, self._links.revocations
        if known.is_revoked(member) or key.number > known.dht_key:
            raise NotPermitted(
                member.site, f"the list {known.number} does not let it have the DHT key {key.number}"
            )
        return {"number": key.number, "secret": key.secret}

    def _take_key_of(self, site: str, told: dict[str, Any]) -> None:
        named = self._links.revocations.dht_key
        if site != self._source and told["number"] != named:
            raise NotPermitted(site, f"it has another DHT key than {named}, which the list names")
        self.take_dht_key(told)

    def _tell_neighbours(self) -> None:
        """Pass a newer list on, once the key that goes with it is here, for that is what they ask for next."""
        found = self._links.revocations
        if self._nursery is None or found.number <= self._told_of or found.dht_key > self._key_number:
            return
        self._told_of = found.number
        for site in self._links.sites:
            if site != self._source and site not in found.sites:  # whose connections end, or hear the number
                self._nursery.start_soon(self._tell, site, found.encoded)

    async def _tell(self, site: str, encoded: bytes) -> None:
        try:
            await self._questions.ask(site, "revocations", encoded)
        except NoAnswer as exc:
            _LOG.info("not told", extra={"site": site, "what": "revocations", "reason": str(exc)})
