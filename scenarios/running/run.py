"""One run of a scenario: hosts laid out, daemons started, documents published while faults happen, all torn down.

A thread publishes in order, at the rate, or several as fast as the network takes it, and asks again while the
source is away; events happen in the thread of the run, and what has to wait for answers in threads of their own.
Times count from the first document. What everybody got is judged afterwards, from the stores, also if the run
could not be carried through.
"""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Final

from peer.errors import CommandError
from scenarios.processes import DaemonFailed
from scenarios.running.cast import cast_of, endless_documents, links_of
from scenarios.running.daemons import LOOK_S, Daemons
from scenarios.running.faults import Faults
from scenarios.running.link_faults import LinkFaults
from scenarios.running.load import AT_ONCE, FullLoad, at_rate
from scenarios.running.members import Members, peer_options
from scenarios.running.patience import Errands, Patience
from scenarios.running.plans import Plans
from scenarios.running.publishing import Publishing
from scenarios.running.story import RunFailed, Story
from scenarios.running.subscribing import Subscribing
from scenarios.running.truth import Published
from scenarios.scenario_file import SOURCE
from scenarios.timeline import timeline

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from scenarios.hosts.places import Places
    from scenarios.processes import ProcessNetwork
    from scenarios.scenario_file import Scenario

_LOOK_S: Final = 0.25
_END_S: Final = 2.0
_BEFORE: Final = -1.0
"""When a plan is made that comes before the first document, as the report counts time: nothing else is then."""
_QUIET: Final = 3
"""How often nobody must be on the move, a second apart, before everybody is fed as planned."""
_PLANNING_S: Final = 600.0
_AT_ONCE: Final = 8
"""How many subscribe at once: what is asked of the source waits for its disk, mostly."""


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
        self.story = Story()
        self._cast = cast_of(scenario)
        self._daemons = Daemons(network, scenario.names)
        self._patience, self._insistence = Patience(scenario.settle_s), Patience(scenario.settle_s)
        self._errands = Errands(self._patience)
        self._plans = Plans(network.home(SOURCE), network.folder / "planning")
        self._subscribing = Subscribing(self._daemons, self.story, self._patience, scenario.seed)
        members = Members(
            self.story, self._daemons, self._subscribing, self._patience,
            options=peer_options(scenario), wishes=self._cast.joining,
        )  # fmt: skip
        links = LinkFaults([SOURCE, *scenario.everybody], *links_of(scenario))
        self._faults = Faults(
            self.story, self._daemons, self._subscribing, members, self._cast.later, errands=self._errands,
            links=links, places=places, plans=self._plans,
        )  # fmt: skip
        self._full = FullLoad(self.story, self._daemons, links, scenario.documents.ahead)
        self._publisher = Publishing(self.story, self._publish_one)

    def play(self) -> Story:
        """Run all of it, or as much as can be: why it was broken off is part of the story. Before the daemons run
        there is none, and ``DaemonFailed`` says so."""
        with self._plans, self._errands:
            self._phase(self._start)
            try:
                for phase in (self._subscribe, self._plan, self._warm, self._publish, self._settle):
                    self._phase(phase)
            except (RunFailed, DaemonFailed, CommandError, OSError) as exc:
                self.story.broke_off = str(exc)
                self._told(f"breaking off: {exc}")
                self.story.happened += self._errands.wait(time.monotonic())
            self._phase(self._look)
        self.story.plans = self._plans.told
        self.story.happened.sort(key=lambda one: (one.at, one.event))
        return self.story

    def _phase(self, phase: Callable[[], None]) -> None:
        begun = time.monotonic()
        phase()
        self.story.seconds[phase.__name__.strip("_")] = round(time.monotonic() - begun, 2)

    # Phases.

    def _start(self) -> None:
        names, part = self._scenario.names, self._scenario
        self._told(f"starting a source and {len(names)} hosts")
        feeds = () if part.source.feeds is None else ("--feeds", str(part.source.feeds))
        patience = ("--timeout", str(part.hosts.timeout_s))
        self._network.start_source(*feeds, *patience)
        options = peer_options(part)
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
            for done, _ in enumerate(pool.map(self._subscribing.add, self._cast.first)):
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
            for host in self._daemons.hosts
            for one in self._daemons.many(host, "subscriptions")
        )

    def _warm(self) -> None:
        """Publish the documents that do not count."""
        self._publish_one_by_one(self._cast.warm, "warm")

    def _publish_one_by_one(self, bodies: list[bytes], kind: str) -> None:
        """Publish documents whose times do not count, one when the one before is everywhere."""
        for i, body in enumerate(bodies):
            self._going(kind, i, len(bodies))
            number = self._publish_one(f"{kind}-{i}", body)
            self.story.documents.append(Published(number, time.time(), body, is_warm=True))
            end = time.monotonic() + self._scenario.settle_s
            while late := self._late(number):
                if time.monotonic() > end:
                    raise RunFailed(f"document {number} is missing at {len(late):,} subscriptions")
                time.sleep(_LOOK_S)

    def _publish(self) -> None:
        """Publish while events happen."""
        events, part = timeline(self._scenario), self._scenario.documents
        how = (
            f"{part.known:,} documents at {part.per_s:g}/s"
            if part.per_s
            else f"at full load for {part.last_s:g} s"
        )
        self._told(f"publishing {how}")
        self.story.began = time.time()
        begun = time.monotonic()
        self._publisher.begin(self._due(begun), begun, 1 if part.per_s else AT_ONCE)
        try:
            for event in events:
                while (rest := begun + event.at - time.monotonic()) > 0:
                    self._look_on(begun, min(rest, _LOOK_S))
                self._told(event.shown)
                self._faults.happen(event, round(time.monotonic() - begun, 2))
            while self._publisher.is_under_way:
                self._look_on(begun, _LOOK_S)
        finally:
            self._insistence.is_over.set()
            self._publisher.wait(_END_S)  # if a daemon that is halted keeps it waiting, that daemon's end frees it
        if self._publisher.failed:
            raise self._publisher.failed[0]

    def _look_on(self, begun: float, seconds: float) -> None:
        time.sleep(seconds)
        part = self._scenario.documents
        if part.per_s is None:
            self._going("seconds of full load", round(time.monotonic() - begun), round(part.last_s))
        else:
            self._going("publishing", sum(not one.is_warm for one in self.story.documents), part.known)

    def _due(self, begun: float) -> Iterator[tuple[float, bytes]]:
        """Yield each document when it is to be published, and that time."""
        part, is_over = self._scenario.documents, self._insistence.is_over
        if part.per_s is not None:
            return at_rate(self._cast.documents, part.per_s, begun, is_over)
        return self._full.documents(endless_documents(self._scenario), begun + part.last_s, is_over)

    def _publish_one(self, name: str, body: bytes) -> int:
        return self._insistence.ask(lambda patience_s: self._network.publish(name, body, patience_s=patience_s))

    def _settle(self) -> None:
        """Bring everybody back, and wait until all are complete."""
        self._told("waiting until everybody is complete")
        self._daemons.bring_back()
        self._faults.heal()
        self._await_plans()
        end = time.monotonic() + self._scenario.settle_s
        self.story.happened += self._errands.wait(end)
        last = max(one.number for one in self.story.documents)
        while not self.story.is_complete and not self.story.fallen:
            self.story.fallen = self._network.ended
            late = self._late(last)
            self.story.is_complete = not late
            if late:
                if time.monotonic() > end:
                    return
                self._going("complete", len(self.story.owed) - len(late), len(self.story.owed))
                time.sleep(_LOOK_S)

    def _await_plans(self) -> None:
        end = time.monotonic() + max(_PLANNING_S, self._scenario.settle_s)
        while not self._plans.are_done:
            if time.monotonic() > end:
                raise RunFailed("a plan is not done long after the last document")
            self._going("waiting for the plan", len(self._plans.told), len(self._plans.told) + 1)
            time.sleep(_LOOK_S)

    def _late(self, last: int) -> list[str]:
        """List subscriptions that lack something they are owed."""
        late = []
        patience_s = min(LOOK_S, self._scenario.settle_s)
        for host in self._daemons.hosts:
            try:
                told = self._daemons.many(host, "subscriptions", patience_s=patience_s)
                standing = {one["subscription"]: one for one in told}
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
        """Ask everybody how it stands at the end; who does not answer is missing in the story."""
        if not self.story.fallen:
            self.story.fallen = self._network.ended
        if SOURCE in self.story.fallen:
            self.story.broke_off = f"the source has ended by itself; {self._network.last_words(SOURCE)}"
        for host in (SOURCE, *self._daemons.up):
            if host in self.story.fallen:
                continue
            try:
                told = self._daemons.one(host, "status")
            except CommandError as exc:
                self.story.broke_off = self.story.broke_off or f"{host} does not say how it stands: {exc}"
                continue
            self._daemons.heard(host, told)
            self.story.hosts[host] = {k: v for k, v in told.items() if k != "subscriptions"}
            if host != SOURCE:
                self.story.standing |= {one["subscription"]: one | {"host": host} for one in told["subscriptions"]}
        self.story.counted = self._daemons.counted()
        if self._places.is_shaped:
            self.story.packets = self._places.change("count")
