"""What a CN* node does with payloads: which stay behind, which are sent along, which must be fetched.

Theory of operation (section 5 and Appendices G, H of the paper). A message names its payload by hash. Where it
comes with the payload, the node checks it against the hash, keeps it (``repository``) and tells the sender that
it has seen it; the sender then leaves it out next time (``directory``). Where it comes without, the node takes it
from its repository; if it is not there, and somebody needs it, the node fetches it: from ``source``, the last
node on the way that had it, and if that does not have it or does not answer, from the origin, who keeps every
payload while a number that names it may be asked for. A payload that is not what its hash says is as good as
none. A node that has the payload puts itself into ``source`` when it forwards.

A plain CN node is ``None`` instead of a desk: it passes on what it gets and says nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import msgspec

from overlay.content.frames import Fetch, Kept, Payload
from overlay.payloads.directory import Directory
from overlay.payloads.payload import payload_id
from overlay.payloads.repository import Repository

if TYPE_CHECKING:
    from overlay.content.frames import Frame, Message

FETCH_S: Final = 1.0
"""After so long another place is asked for a payload."""
MOST_DIRECTORY: Final = 1 << 15


@dataclass(slots=True)
class _Fetching:
    """A payload that is being fetched, and where it may be."""

    source: str
    deadline: float
    tries: int = 0


class Desk:
    """The payloads of one node."""

    def __init__(self, me: str, origin: str, *, cap_bytes: int, most_directory: int = MOST_DIRECTORY) -> None:
        self._me, self._origin = me, origin
        self.repository = Repository(cap_bytes)
        self.directory = Directory(most_directory)
        self._fetching: dict[bytes, _Fetching] = {}
        self.fetched = 0
        """How many payloads had to be fetched."""

    def link(self, site: str, incarnation: int) -> None:
        """There is a link with another machine, which has started so often."""
        if self.directory.link(site, incarnation):
            self.repository.unsettle()

    def take_in(self, sender: str, message: Message) -> tuple[Message, list[tuple[str, Frame]]]:
        """A message has come: return it with its payload, if that is at hand, and what to tell the sender."""
        key = message.payload_id
        if not key:
            return message, []
        if message.payload is not None:
            if payload_id(message.payload) == key:
                self.repository.put(key, message.payload)
                return message, [(sender, Kept(key))]
            message = msgspec.structs.replace(message, payload=None)
        return self.fill(message), []

    def fill(self, message: Message) -> Message:
        """Return a message with its payload, if that is at hand."""
        if not message.payload_id or message.payload is not None:
            return message
        return msgspec.structs.replace(message, payload=self.repository.get(message.payload_id))

    def kept(self, site: str, key: bytes) -> None:
        """Another node has seen a payload."""
        self.directory.set(key, site)
        if self.directory.crossed_all(key):
            self.repository.settle(key)

    def outgoing(self, site: str, message: Message) -> Message | None:
        """Return a message as it goes over a link; None if its payload must be fetched first."""
        key = message.payload_id
        if not key:
            return message
        self.link(site, self.directory.incarnation(site))
        source = self._me if key in self.repository else message.source
        if self.directory.has(key, site):
            return msgspec.structs.replace(message, payload=None, source=source)
        if message.payload is None:
            return None
        return msgspec.structs.replace(message, source=source)

    def fetch(self, message: Message, now: float) -> list[tuple[str, Frame]]:
        """Ask for a payload, where it is likely to be."""
        key = message.payload_id
        if key in self._fetching:
            return []
        source = message.source or self._origin
        self._fetching[key] = _Fetching(source, now)
        return self._ask(key, now)

    def arrived(self, frame: Payload, now: float) -> tuple[bytes | None, list[tuple[str, Frame]]]:
        """Somebody has answered: return the payload if this is it, and whom else to ask if not."""
        if frame.payload is not None and payload_id(frame.payload) == frame.payload_id:
            if self._fetching.pop(frame.payload_id, None) is not None:
                self.fetched += 1
            self.repository.put(frame.payload_id, frame.payload)
            return frame.payload, []
        one = self._fetching.get(frame.payload_id)
        if one is None or one.tries > 1:
            return None, []  # the origin is asked again when it is time
        return None, self._ask(frame.payload_id, now)

    def answer(self, sender: str, key: bytes) -> list[tuple[str, Frame]]:
        """Somebody asks for a payload."""
        return [(sender, Payload(key, self.repository.get(key)))]

    def tick(self, now: float) -> list[tuple[str, Frame]]:
        """Ask again for what has not come."""
        late = [key for key, one in self._fetching.items() if one.deadline <= now]
        return [ask for key in late for ask in self._ask(key, now)]

    def keep_fetching(self, wanted: set[bytes]) -> None:
        """Stop asking for what nobody waits for any more."""
        for key in self._fetching.keys() - wanted:
            del self._fetching[key]

    def _ask(self, key: bytes, now: float) -> list[tuple[str, Frame]]:
        one = self._fetching.get(key)
        if one is None:
            return []
        # The first time where it should be; from then on whoever has it for certain.
        whom = one.source if one.tries == 0 and one.source != self._me else self._origin
        one.tries += 1
        one.deadline = now + FETCH_S
        return [(whom, Fetch(key))]
