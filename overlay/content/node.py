"""A machine's part in the content-driven network of one space.

Theory of operation. The machine owns zones: the subscriptions whose points lie there. It is asked to bring a
message to everybody under a prefix (``Spread``). It accepts if it knows the map at least as well as the message
asks (its stamp is a fence: who was cut off and has lost its zones does not know that version), owns something
there, and has loaded its zones. From then on it answers for the whole prefix, whatever is split or moved
meanwhile: it matches the message in its own zones and hands it to the subscribers' machines, asks others for the
rest (``routing``), and asks again where nothing is heard, whoever owns the part by then. When all have answered
it says ``Done``. It remembers that until the source's frontier has passed the number, so it can be asked twice.

    Spread --refused: the map is too old, nothing owned there, a zone not loaded--> Refused
    Spread --accepted--> task: own zones -> Deliver ... Delivered;  others -> Spread ... Done
    task with nothing missing --> Done to all who asked

Nothing here is durable: a machine that starts again owns nothing until the source grants it zones anew, and loads
them from the catalog. Payloads (CN*) are the business of a ``Desk``; without one this is a plain CN node.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol, TypeAlias

import msgspec

from overlay.content import frames
from overlay.content.keeper import ZoneKeeper
from overlay.content.routing import Request, is_mine, next_towards, parts
from overlay.content.table import PlainLoop
from overlay.content.tasks import AGAIN_S, BEHIND_AFTER, SOON_S, Asked, Delivery, Task
from overlay.payloads.payload import payload_id, put_back
from overlay.zones.zone_map import ZoneMap

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from overlay.content.table import Matching
    from overlay.payloads.desk import Desk
    from rewriting.filters.space import Space

Sends: TypeAlias = "list[tuple[str, frames.Frame]]"
ALIVE_S: Final = 1.0
_OF_ORIGIN: Final = (frames.MapSteps, frames.Load, frames.Place, frames.Seen)
"""What the source alone may say."""
MOST_HOPS: Final = 200
"""So often a message is passed on to its corner: machines that know different maps may send it round."""
MOST_APPROACHING: Final = 1000
MAX_TASKS: Final = 20_000
"""How many messages may be on their way through one machine; then it refuses, and is asked again."""


class ZoneHook(Protocol):
    """What an application does in a zone: it sees each message with the subscriptions that match, and says which
    of them get it. It may keep state by zone; the network knows nothing of it."""

    def __call__(
        self, zone: str, message: frames.Message, found: list[frames.Entry], /
    ) -> Iterable[frames.Entry]: ...


class ContentNode:
    """See the module's text. ``hook``: what an application does in every zone."""

    def __init__(
        self, me: str, origin: str, space: Space, *, incarnation: int = 1, desk: Desk | None = None,
        hook: ZoneHook | None = None, make_matcher: Callable[[], Matching] = PlainLoop,
        known: ZoneMap | None = None,
    ) -> None:  # fmt: skip
        self.me, self.origin, self.space, self.incarnation = me, origin, space, incarnation
        self.known = ZoneMap(space.axes) if known is None else known
        self.keeper = ZoneKeeper(me, origin, self.known, make_matcher)
        self.desk = desk
        self.frontier = 0
        self.tasks: dict[int, dict[Request, Task]] = {}
        """By the message's number."""
        self._hook = hook
        self._done: dict[int, dict[Request, frames.Done]] = {}
        self._delivered: dict[int, dict[str, frozenset[str]]] = {}
        """Zones in which a message was handed to everybody, but for those machines."""
        self._handled: dict[str, int] = {}
        self._approaching: list[tuple[str, frames.Approach]] = []
        self._now = 0.0
        self._alive_at = -1e9

    def handle(self, sender: str, frame: frames.Frame, now: float) -> Sends:
        """Take a frame in and return what to send to whom."""
        self._now = now
        if sender != self.origin and isinstance(frame, _OF_ORIGIN):
            return []
        match frame:
            case frames.Spread():
                return self._spread(sender, frame)
            case frames.Approach():
                return self._approach(sender, frame)
            case frames.Done():
                return self._answered(frame)
            case frames.Refused():
                return self._refused(frame)
            case frames.Delivered():
                return self._stored(sender, frame)
            case frames.MapSteps():
                self._advance(frame.frontier)
                return self.keeper.learn(frame, now)
            case frames.Load():
                return self.keeper.load(frame)
            case frames.Place():
                return self.keeper.place(sender, frame, now)
            case frames.Seen():
                self._advance(frame.frontier)
                return self._refresh(frame.version)
            case frames.Kept() | frames.Fetch() | frames.Payload():
                return self._payload(sender, frame)
            case _:  # what only the source or a subscriber understands
                return []

    def tick(self, now: float) -> Sends:
        """Let time pass: say that we are here, ask again where nothing was heard. At least every half second."""
        self._now = now
        out: Sends = []
        if now - self._alive_at >= ALIVE_S:
            self._alive_at = now
            out.append((self.origin, frames.Alive(self.incarnation, self.known.version, self._handled)))
            self._handled = {}
        out += self.keeper.ask_loads(now)
        if self.desk is not None:
            out += self.desk.tick(now)
        for task in [task for tasks in self.tasks.values() for task in tasks.values()]:
            late = [request for request, asked in task.asked.items() if asked.deadline <= now]
            if late:
                out += self.keeper.ask_map(now)
            for request in late:
                out += self._ask(task, request)
            out += self._deliver_again(task)
            out += self._finish(task)
        return out

    # Messages.

    def _spread(self, sender: str, frame: frames.Spread) -> Sends:
        message, request = frame.message, Request(frame.prefix, frame.to_neighbours)
        number = message.number
        self._advance(message.frontier)
        if number <= self.frontier:
            return [(sender, frames.Done(number, frame.prefix, (frame.prefix,)))]
        if (done := self._done.get(number, {}).get(request)) is not None:
            return [(sender, done)]
        if (task := self.tasks.get(number, {}).get(request)) is not None:
            return self._asked_twice(sender, task)
        if not self._accepts(message, request):
            return [
                (sender, frames.Refused(number, frame.prefix, self.known.version)),
                *self._refresh(message.version),
            ]
        out: Sends = []
        if self.desk is not None:
            message, out = self.desk.take_in(sender, message)
        elif message.payload_id and payload_id(message.payload or b"") != message.payload_id:
            return [(sender, frames.Refused(number, frame.prefix, self.known.version))]
        task = Task(request, message, frames.region_of(message, self.space), [sender])
        self.tasks.setdefault(number, {})[request] = task
        out += self._part(task, request)
        self._let_go(task)
        return out + self._finish(task)

    def _asked_twice(self, sender: str, task: Task) -> Sends:
        """Under the tree everybody who asks is told in the end. Between neighbours two may ask for the same zone,
        and could wait for each other: the second one is told that nothing more comes from here through it."""
        if sender in task.requesters:
            return []
        if task.request.to_neighbours:
            return [(sender, frames.Done(task.message.number, task.request.prefix, ()))]
        task.requesters.append(sender)
        return []

    def _accepts(self, message: frames.Message, request: Request) -> bool:
        if message.version > self.known.version or len(self.tasks) >= MAX_TASKS:
            return False
        if not is_mine(self.known, self.me, request.prefix):
            return False
        own = parts(self.known, self.me, request, frames.region_of(message, self.space)).own
        return self.keeper.has(own)

    def _refresh(self, version: int) -> Sends:
        return self.keeper.ask_map(self._now) if version > self.known.version else []

    def _approach(self, sender: str, frame: frames.Approach) -> Sends:
        """Pass a message on towards its corner. What is lost on the way the source asks for again, directly."""
        message = frame.message
        out: Sends = []
        if frame.hops >= MOST_HOPS:
            return out
        if self.desk is not None:
            message, out = self.desk.take_in(sender, message)
        region = frames.region_of(message, self.space)
        zone = next_towards(self.known, self.known.owned_by(self.me), region)
        if zone is None:
            return out + self._spread(self.origin, frames.Spread(self.known.tree.entry(region), True, message))
        owner = self.known.owner(zone)
        if owner is None:
            return out
        if self.desk is None:
            return [*out, (owner, frames.Approach(message, frame.hops + 1))]
        going = self.desk.outgoing(owner, message)
        if going is not None:
            return [*out, (owner, frames.Approach(going, frame.hops + 1))]
        waiting = frames.Approach(message, frame.hops + 1)
        self._approaching = [*self._approaching[-MOST_APPROACHING:], (owner, waiting)]
        return out + self._fetch(message)

    def _part(self, task: Task, request: Request) -> Sends:
        """Answer for a part: by own zones, and by asking others."""
        found = parts(self.known, self.me, request, task.region)
        out: Sends = []
        for zone in found.own:
            out += self._zone(task, zone)
        for other in found.others:
            out += self._ask(task, other)
        if not request.to_neighbours:
            task.covered.add(request.prefix)
        return out

    def _zone(self, task: Task, zone: str) -> Sends:
        """Match a message in a zone of one's own."""
        task.message = message = task.message if self.desk is None else self.desk.fill(task.message)
        table = self.keeper.tables[zone]
        task.covered.add(zone)
        if (behind := self._delivered.get(message.number, {}).get(zone)) is not None:
            task.behind |= behind
            return []
        if message.payload_id and message.payload is None:
            if table.may_match(message.number, task.region):
                task.blocked_zones.append(zone)
                return self._fetch(message)
            return []
        whole = dict(message.attributes)
        if message.payload is not None:
            whole = put_back(whole, message.payload)
        found = table.matching(message.number, task.region, whole)
        self._handled[zone] = self._handled.get(zone, 0) + 1
        by_site: dict[str, list[str]] = {}
        for entry in found if self._hook is None else self._hook(zone, message, found):
            by_site.setdefault(entry.site, []).append(entry.subscription)
        out: Sends = []
        for site, names in sorted(by_site.items()):
            deliver = frames.Deliver(message.number, zone, tuple(sorted(names)), whole)
            task.deliveries[zone, site] = Delivery(deliver, self._now + AGAIN_S)
            out.append((site, deliver))
        return out

    def _ask(self, task: Task, request: Request) -> Sends:
        """Ask whoever owns a part for it; if that is this machine by now, do it."""
        tree, me = self.known.tree, self.me
        owner = self.known.owner(tree.entry(task.region, tree.nearest_known(request.prefix)))
        if owner == me:
            task.asked.pop(request, None)
            if self._accepts(task.message, request):
                return self._part(task, request)
            owner = None
        task.asked[request] = Asked(owner or "", self._now + (AGAIN_S if owner else SOON_S))
        if owner is None:
            return []
        message: frames.Message | None = task.message
        if self.desk is not None:
            message = self.desk.outgoing(owner, self.desk.fill(task.message))
            if message is None:
                del task.asked[request]
                task.blocked_requests.append(request)
                return self._fetch(task.message)
        assert message is not None
        return [(owner, frames.Spread(request.prefix, request.to_neighbours, message))]

    def _answered(self, frame: frames.Done) -> Sends:
        out: Sends = []
        for task in self._waiting_for(frame.number, frame.prefix):
            for request in [request for request in task.asked if request.prefix == frame.prefix]:
                del task.asked[request]
            task.covered.update(frame.covered)
            task.behind.update(frame.behind)
            out += self._finish(task)
        return out

    def _refused(self, frame: frames.Refused) -> Sends:
        for task in self._waiting_for(frame.number, frame.prefix):
            for request, asked in task.asked.items():
                if request.prefix == frame.prefix:
                    asked.deadline = min(asked.deadline, self._now + SOON_S)
        return self._refresh(frame.version)

    def _stored(self, sender: str, frame: frames.Delivered) -> Sends:
        out: Sends = []
        for task in list(self.tasks.get(frame.number, {}).values()):
            if task.deliveries.pop((frame.prefix, sender), None) is not None:
                out += self._finish(task)
        return out

    def _deliver_again(self, task: Task) -> Sends:
        out: Sends = []
        for key, delivery in list(task.deliveries.items()):
            if delivery.deadline > self._now:
                continue
            if delivery.tries >= BEHIND_AFTER:
                del task.deliveries[key]
                task.behind.add(key[1])
                continue
            delivery.tries += 1
            delivery.deadline = self._now + AGAIN_S
            out.append((key[1], delivery.frame))
        return out

    def _finish(self, task: Task) -> Sends:
        """Say that a task is done, if it is."""
        number, request = task.message.number, task.request
        here = self.tasks.get(number, {})
        if not task.is_done or here.pop(request, None) is None:
            return []
        if not here:
            del self.tasks[number]
        behind = frozenset(task.behind)
        delivered = self._delivered.setdefault(number, {})
        delivered |= {zone: behind for zone in task.covered if zone in self.keeper.tables}
        done = frames.Done(number, request.prefix, tuple(sorted(task.covered)), tuple(sorted(behind)))
        self._done.setdefault(number, {})[request] = done
        return [(who, done) for who in task.requesters]

    def _waiting_for(self, number: int, prefix: str) -> list[Task]:
        tasks = self.tasks.get(number, {}).values()
        return [task for task in tasks if any(request.prefix == prefix for request in task.asked)]

    def _advance(self, frontier: int) -> None:
        """Everything up to there has reached everybody: forget it."""
        if frontier <= self.frontier:
            return
        self.frontier = frontier
        for number in [number for number in self.tasks if number <= frontier]:
            del self.tasks[number]
        for number in [number for number in self._done if number <= frontier]:
            del self._done[number]
        for number in [number for number in self._delivered if number <= frontier]:
            del self._delivered[number]
        self.keeper.forget(frontier)
        self._approaching = [one for one in self._approaching if one[1].message.number > frontier]
        if self.desk is not None:
            tasks = [task.message.payload_id for tasks in self.tasks.values() for task in tasks.values()]
            self.desk.keep_fetching({*tasks, *(one.message.payload_id for _, one in self._approaching)})

    # Payloads.

    def _payload(self, sender: str, frame: frames.Kept | frames.Fetch | frames.Payload) -> Sends:
        if self.desk is None:
            return []
        match frame:
            case frames.Kept():
                self.desk.kept(sender, frame.payload_id)
                return []
            case frames.Fetch():
                return self.desk.answer(sender, frame.payload_id)
            case frames.Payload():
                payload, out = self.desk.arrived(frame, self._now)
                return out if payload is None else out + self._unblock(frame.payload_id, payload)

    def _fetch(self, message: frames.Message) -> Sends:
        assert self.desk is not None  # plain nodes get every message whole
        return self.desk.fetch(message, self._now)

    def _unblock(self, key: bytes, payload: bytes) -> Sends:
        ready = [one for one in self._approaching if one[1].message.payload_id == key]
        self._approaching = [one for one in self._approaching if one[1].message.payload_id != key]
        out: Sends = [
            (owner, frames.Approach(msgspec.structs.replace(one.message, payload=payload), one.hops))
            for owner, one in ready
        ]
        tasks = [task for tasks in self.tasks.values() for task in tasks.values()]
        for task in [task for task in tasks if task.message.payload_id == key]:
            zones, task.blocked_zones = task.blocked_zones, []
            requests, task.blocked_requests = task.blocked_requests, []
            task.message = msgspec.structs.replace(task.message, payload=payload)
            for zone in zones:  # it may be somebody else's by now
                out += self._zone(task, zone) if self.keeper.has([zone]) else self._ask(task, Request(zone, False))
            for request in requests:
                out += self._ask(task, request)
            self._let_go(task)
            out += self._finish(task)
        return out

    def _let_go(self, task: Task) -> None:
        """A task that waits for others does not hold its payload: the repository has it, or it is fetched
        again."""
        if self.desk is not None and task.message.payload is not None:
            task.message = msgspec.structs.replace(task.message, payload=None)
