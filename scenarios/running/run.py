"""One run of a scenario: hosts laid out, daemons started, documents published while faults happen, all torn down.

A thread publishes in order, at the rate, and asks again while the source is away; events happen in the thread of
the run. Times count from the first document. What everybody got is judged afterwards, from the stores.
"""

from __future__ import annotations

import random
import signal
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from peer.errors import CommandError
from scenarios.running.cast import cast_of, links_of
from scenarios.running.link_faults import LinkFaults
from scenarios.running.plans import Plans
from scenarios.running.truth import Owed, Published
from scenarios.scenario_file import LARGEST, SOURCE
from scenarios.timeline import timeline

if TYPE_CHECKING:
    from collections.abc import Callable

    from scenarios.hosts.places import Places
    from scenarios.processes import ProcessNetwork
    from scenarios.running.cast import Wish
    from scenarios.scenario_file import Scenario
    from scenarios.timeline import Event

_AGAIN_S: Final = 0.1
_LOOK_S: Final = 0.25
_END_S: Final = 2.0
_BEFORE: Final = -1.0
"""When a plan is made that comes before the first document, as the report counts time: nothing else is then."""
_QUIET: Final = 3
"""How often nobody must be on the move, a second apart, before everybody is fed as planned."""
_AT_ONCE: Final = 8
"""How many subscribe at once: what is asked of the source waits for its disk, mostly."""


class RunFailed(Exception):
    """The run could not be carried through; the message says what did not happen."""


@dataclass(frozen=True, slots=True)
class Happened:
    """Something that happened, when, and what came of it."""

    at: float
    what: str
    outcome: str = ""
    event: int = 0
    undoes: int | None = None
    """The number of its event, and of the one that it ended."""


@dataclass(slots=True)
class Story:
    """What a run was: everything needed to judge it and to tell of it."""

    began: float = 0.0
    """The clock's time of the first document."""
    documents: list[Published] = field(default_factory=list)
    owed: dict[str, Owed] = field(default_factory=dict)
    happened: list[Happened] = field(default_factory=list)
    standing: dict[str, dict[str, Any]] = field(default_factory=dict)
    """How each subscription stood at the end."""
    hosts: dict[str, dict[str, Any]] = field(default_factory=dict)
    """How each daemon stood at the end."""
    plans: list[dict[str, Any]] = field(default_factory=list)
    packets: dict[str, int] = field(default_factory=dict)
    is_complete: bool = False
    fallen: list[str] = field(default_factory=list)
    """Daemons that have ended by themselves, which none may."""
    seconds: dict[str, float] = field(default_factory=dict)
    """How long each phase took."""


def nowhere(what: str, done: int, total: int) -> None:
    """Nobody watches how far it is."""


class Run:
    """See the module's text; ``told`` hears of each step, ``going`` how many of how many are done meanwhile."""

    def __init__(
        self, scenario: Scenario, network: ProcessNetwork, places: Places, told: Callable[[str], None],
        going: Callable[[str, int, int], None] = nowhere,
    ) -> None:  # fmt: skip
        self._scenario, self._network, self._places = scenario, network, places
        self._told, self._going = told, going
        self._cast = cast_of(scenario)
        self._links = LinkFaults([SOURCE, *scenario.names], *links_of(scenario))
        self._later = list(self._cast.later)
        self._rng = random.Random(f"{scenario.seed} faults")
        self._hosts_of: dict[int, list[str]] = {}
        self._away: set[str] = set()
        self._plans = Plans(network.home(SOURCE), network.folder / "planning")
        self._failed: list[BaseException] = []
        self._is_over = threading.Event()
        self.story = Story()

    def play(self) -> Story:
        """Run all of it."""
        with self._plans:
            for phase in (
                self._start,
                self._subscribe,
                self._plan,
                self._warm,
                self._publish,
                self._settle,
                self._look,
            ):
                begun = time.monotonic()
                phase()
                self.story.seconds[phase.__name__.strip("_")] = round(time.monotonic() - begun, 2)
        self.story.plans = self._plans.told
        return self.story

    # Phases.

    def _start(self) -> None:
        names, part = self._scenario.names, self._scenario
        self._told(f"starting a source and {len(names)} hosts")
        feeds = () if part.source.feeds is None else ("--feeds", str(part.source.feeds))
        patience = ("--timeout", str(part.hosts.timeout_s))
        self._network.start_source(*feeds, *patience)
        capacity = () if part.hosts.capacity is None else ("--capacity", str(part.hosts.capacity))
        options = ("--relay", part.hosts.relay, *capacity, *patience)
        for done, name in enumerate(names):
            self._going("joining", done, len(names))
            self._network.join(name)
            self._network.begin_peer(name, *options)
        for done, name in enumerate(names):
            self._going("starting", done, len(names))
            self._network.await_ready(name)

    def _subscribe(self) -> None:
        self._told(f"subscribing {len(self._cast.first):,} times")
        pool = ThreadPoolExecutor(_AT_ONCE)
        try:
            for done, _ in enumerate(pool.map(self._add, self._cast.first)):
                self._going("subscribing", done, len(self._cast.first))
        finally:
            pool.shutdown(wait=False, cancel_futures=True)  # who interrupts does not wait for answers

    def _plan(self) -> None:
        """Plan before the first document, and wait until everybody is fed by the plan."""
        if self._scenario.plan is None:
            return
        self._publish_one_by_one(self._cast.sample, "sample")
        how = "" if self._scenario.plan.latency else " without LOGA"
        self._told(f"planning{how}")
        self._plans.begin(_BEFORE, latency=self._scenario.plan.latency)
        while not self._plans.are_done:
            time.sleep(_LOOK_S)
        if "failed" in self._plans.told[0]:
            raise RunFailed(f"there is no plan: {self._plans.told[0]['failed']}")
        self._told("moving to the plan")
        total, end = len(self.story.owed), time.monotonic() + self._scenario.settle_s
        quiet = 0
        while quiet < _QUIET:  # what was adopted may not have been told to everybody yet
            left = self._otherwise()
            quiet = 0 if left else quiet + 1
            self._going("fed as planned", total - left, total)
            if left and time.monotonic() > end:
                raise RunFailed(
                    f"{left:,} subscriptions are not fed as planned after {self._scenario.settle_s:g} s; "
                    "allow more with settle_s"
                )
            time.sleep(1.0)

    def _otherwise(self) -> int:
        """Count the subscriptions that are not fed as configured."""
        return sum(
            not one["is_as_configured"]
            for host in self._scenario.names
            for one in self._network.many(host, "subscriptions")
        )

    def _warm(self) -> None:
        """Publish the documents that do not count."""
        self._publish_one_by_one(self._cast.warm, "warm")

    def _publish_one_by_one(self, bodies: list[bytes], kind: str) -> None:
        """Publish documents whose times do not count, one when the one before is everywhere."""
        for i, body in enumerate(bodies):
            self._going(kind, i, len(bodies))
            number = self._patiently(lambda i=i, body=body: self._network.publish(f"{kind}-{i}", body))  # type: ignore[misc]  # its defaults
            self.story.documents.append(Published(number, time.time(), body, is_warm=True))
            end = time.monotonic() + self._scenario.settle_s
            while late := self._late(number):
                if time.monotonic() > end:
                    raise RunFailed(f"document {number} is missing at {len(late):,} subscriptions")
                time.sleep(_LOOK_S)

    def _publish(self) -> None:
        """Publish at the rate while events happen."""
        events, count = timeline(self._scenario), len(self._cast.documents)
        self._told(f"publishing {count:,} documents at {self._scenario.documents.rate:g}/s")
        self.story.began = time.time()
        begun = time.monotonic()
        publisher = threading.Thread(target=self._publish_all, args=(begun,), daemon=True)
        publisher.start()
        try:
            for event in events:
                while (rest := begun + event.at - time.monotonic()) > 0:
                    self._look_on(min(rest, _LOOK_S))
                self._happen(event, begun)
            while publisher.is_alive():
                self._look_on(_LOOK_S)
        finally:
            self._is_over.set()
            publisher.join(_END_S)  # if a daemon that is halted keeps it waiting, that daemon's end frees it
        if self._failed:
            raise self._failed[0]
        while not self._plans.are_done:
            self._going("waiting for the plan", count, count)
            time.sleep(_LOOK_S)

    def _look_on(self, seconds: float) -> None:
        time.sleep(seconds)
        done = sum(not one.is_warm for one in self.story.documents)
        self._going("publishing", done, len(self._cast.documents))

    def _publish_all(self, begun: float) -> None:
        try:
            for i, body in enumerate(self._cast.documents):
                due = begun + i / self._scenario.documents.rate
                if self._is_over.wait(max(0.0, due - time.monotonic())):
                    return
                number = self._patiently(lambda i=i, body=body: self._network.publish(f"document-{i}", body))  # type: ignore[misc]  # its defaults
                self.story.documents.append(Published(number, self.story.began + due - begun, body))
        except BaseException as exc:  # raised again by the thread of the run
            self._failed.append(exc)

    def _settle(self) -> None:
        """Bring everybody back, and wait until all are complete."""
        self._told("waiting until everybody is complete")
        for name in sorted(self._away):
            self._start_again(name)
        if self._places.is_shaped:
            self._links.heal()
            self._places.change("shape", **self._links.shape())
        last = max(one.number for one in self.story.documents)
        end = time.monotonic() + self._scenario.settle_s
        while not self.story.is_complete and time.monotonic() < end and not self.story.fallen:
            self.story.fallen = self._network.ended
            late = self._late(last)
            self.story.is_complete = not late
            if late:
                self._going("complete", len(self.story.owed) - len(late), len(self.story.owed))
                time.sleep(_LOOK_S)

    def _late(self, last: int) -> list[str]:
        """List subscriptions that lack something they are owed."""
        late = []
        for host in self._scenario.names:
            try:
                standing = {one["subscription"]: one for one in self._network.many(host, "subscriptions")}
            except CommandError:
                return [host]
            mine = [one for one in self.story.owed.values() if one.host == host]
            # One that has ended is gone from the list when it has what it is owed and feeds nobody any more.
            late += [
                one.name for one in mine
                if one.end is None and (one.name not in standing or standing[one.name]["committed"] < last)
            ]  # fmt: skip
            late += [one.name for one in mine if one.end is not None and one.name in standing]
        return late

    def _look(self) -> None:
        if SOURCE in self.story.fallen:
            raise RunFailed(f"the source has ended by itself; {self._network.last_words(SOURCE)}")
        for host in self._scenario.names:
            if host in self.story.fallen:
                continue
            told = self._network.one(host, "status")
            self.story.hosts[host] = {k: v for k, v in told.items() if k != "subscriptions"}
            self.story.standing |= {one["subscription"]: one | {"host": host} for one in told["subscriptions"]}
        self.story.hosts[SOURCE] = self._network.one(SOURCE, "status")
        if self._places.is_shaped:
            self.story.packets = self._places.change("count")

    # Events.

    def _happen(self, event: Event, begun: float) -> None:
        """Let an event happen, and note what came of it."""
        self._told(event.shown)
        at = round(time.monotonic() - begun, 2)
        try:
            outcome = self._do(event, at)
        except (CommandError, RunFailed) as exc:
            outcome = f"failed: {exc}"
        self.story.happened.append(Happened(at, event.shown, outcome, event.number, event.undoes))

    def _do(self, event: Event, at: float) -> str:
        if event.do in ("links", "links again", "cut", "heal") and not self._places.is_shaped:
            return "left out: on loopback there is nothing between hosts that could fail"
        match event.do:
            case "kill" | "stop" | "start" | "freeze" | "thaw":
                return self._to_daemons(event)
            case "cut" | "heal" | "links" | "links again":
                return self._to_links(event)
            case "subscribe":
                for wish in self._later[: event.what["count"]]:
                    self._add(wish)
                del self._later[: event.what["count"]]
            case "unsubscribe":
                self._remove(event.what["count"])
            case "replan":
                self._plans.begin(at, latency=event.what["latency"])
        return ""

    def _to_daemons(self, event: Event) -> str:
        hosts = self._hosts_of.get(event.undoes, []) if event.undoes is not None else event.what["hosts"]
        hosts = [self._largest_feeder() if name == LARGEST else name for name in hosts]
        self._hosts_of[event.number] = hosts
        for name in hosts:
            match event.do:
                case "kill" | "stop":
                    (self._network.kill if event.do == "kill" else self._network.stop)(name)
                    self._away.add(name)
                case "start":
                    self._start_again(name)
                case "freeze" | "thaw":
                    self._network.signal(name, signal.SIGCONT if event.do == "thaw" else signal.SIGSTOP)
        return ", ".join(hosts)

    def _start_again(self, name: str) -> None:
        if name in self._away:
            self._away.discard(name)
            if name == SOURCE:
                self._network.start_source()
            else:
                self._network.start_peer(name)

    def _largest_feeder(self) -> str:
        feeds: Counter[str] = Counter()
        for host in self._scenario.names:
            if host not in self._away:
                feeds[host] = sum(one["feeds"] for one in self._network.many(host, "subscriptions"))
        [(name, _)] = feeds.most_common(1)
        return name

    def _to_links(self, event: Event) -> str:
        """Begin or end a fault of links."""
        some: list[str] = []
        match event.do:
            case "cut":
                some = [self._largest_feeder() if name == LARGEST else name for name in event.what["hosts"]]
                self._links.cut(event.number, some)
            case "links":
                self._links.change(event.number, event.what)
            case "heal":
                self._links.heal()
            case _ if event.undoes is not None and not self._links.end(event.undoes):
                return "was healed before"
        self._places.change("shape", **self._links.shape())
        return ", ".join(some)

    def _add(self, wish: Wish) -> None:
        columns = [[node, what.value] for node, what in wish.pattern.selection]
        told = self._patiently(
            lambda: self._network.one(
                wish.host, "subscribe", pattern=wish.pattern.text, columns=columns, limit=wish.limit
            )
        )
        self.story.owed[told["subscription"]] = Owed(told["subscription"], wish.host, wish.pattern, told["start"])

    def _remove(self, count: int) -> None:
        live = [one for one in self.story.owed.values() if one.end is None and one.host not in self._away]
        for one in self._rng.sample(live, min(count, len(live))):
            told = self._patiently(
                lambda one=one: self._network.one(one.host, "unsubscribe", subscription=one.name)  # type: ignore[misc]  # its default
            )
            one.end, one.end_known_at = int(told["end"]), time.time()

    def _patiently(self, function: Callable[[], Any]) -> Any:
        """Ask until there is an answer: what is asked so may be asked twice."""
        end = time.monotonic() + self._scenario.settle_s
        while True:
            try:
                return function()
            except (CommandError, OSError) as exc:
                if time.monotonic() > end or self._is_over.is_set():
                    raise RunFailed(str(exc)) from exc
                time.sleep(_AGAIN_S)
