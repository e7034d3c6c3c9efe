"""Finding feeds for single subscriptions while a plan lives: for newcomers and for those who lost theirs.

The cheapest free feed within the hard limits; else a *take-over*: a full feeder feeds the newcomer, which feeds
one of the feeder's consumers in its place. What was tried in vain is as it was before.
"""

from __future__ import annotations

from collections import deque
from itertools import islice
from typing import TYPE_CHECKING, Final

import numpy as np

from planner.choices import UNBOUNDED
from planner.configuration import How
from planner.newcomer import Feed, Ledger, Member
from rewriting.statistics import DOCUMENTS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from numpy.typing import NDArray

    from planner.drift import Bound
    from rewriting.graph import EmbeddingGraph
    from rewriting.newcomer import Finder, Priced

_MANY: Final = 16
"""Where more than so many lose their feed at once, the searches are left to the next changes."""
_RETRIES: Final = 16
"""How many of those pending are tried again at a change."""
_TRIALS: Final = 6
_GIVERS: Final = 4


class Placing:
    """What is known of everybody, and the search for feeds. ``pending`` says by name why somebody is not fed."""

    graph: EmbeddingGraph
    finder: Finder
    ledger: Ledger
    bound: Bound
    pending: dict[str, str]
    _members: dict[str, Member]
    _searches: int
    _unsearched: dict[Member, None]
    _touched: dict[Member, None]

    def _list(self, pattern: int, found: Iterable[Priced]) -> None:
        for c in self.ledger.list_more(pattern, found):
            self.bound.offer(pattern, c)

    def _replace(self, orphans: Iterable[Member]) -> None:
        """Feed these anew, and those that were fed by any that must stay pending."""
        queue = deque(sorted(orphans, key=lambda m: m.rank))
        if len(queue) > _MANY:
            self._searches = 0
        for m in queue:
            self.ledger.release(m)
        while queue:
            m = queue.popleft()
            self._touched[m] = None
            if self._place(m, urgent=True):
                self.pending.pop(m.name, None)
                continue
            self.pending[m.name] = self._reason(m)
            lost = sorted(m.consumers, key=lambda c: c.rank)
            for c in lost:
                self.ledger.release(c)
            queue.extend(lost)

    def _retry(self) -> None:
        """Try those that are pending, the longest waiting first; then search for those who had to do without."""
        for name in list(islice(self.pending, _RETRIES)):
            m, reason = self._members[name], self.pending.pop(name)
            if self._place(m):
                self._touched[m] = None
            else:
                self.pending[name] = reason
        for m in list(islice(self._unsearched, max(self._searches, 0))):
            del self._unsearched[m]
            if m.feed is not None and m.feed.how is How.SOURCE:
                before = m.feed
                self.ledger.release(m)
                self._place(m)
                if m.feed != before:
                    self._touched[m] = None

    def _reason(self, m: Member) -> str:
        views = self.ledger.more.get(m.pattern) or next(self.ledger.candidates(m.pattern), None)
        others = len(self.ledger.members[m.pattern]) > 1 or views
        rest = "every feeder is full" if others else "nothing else can feed it"
        return f"the source is at its limit of {self.ledger.source_limit:,} and {rest}"

    def _place(self, m: Member, *, urgent: bool = False) -> bool:
        """Feed a subscription if that is possible; say whether it was. ``urgent``: others hang on it."""
        if self._step_in(m):
            return True
        feed = self.ledger.best(m)
        if feed is None or feed.how is How.SOURCE:
            if self._searches > 0 or (feed is None and urgent):
                self._searches -= 1
                self._search(m)
                feed = self.ledger.best(m)
            else:
                self._unsearched[m] = None
        if self._searches > 0 and self._take_over(m, feed):
            return True
        if feed is not None:
            self.ledger.feed(m, feed)
        return feed is not None

    def _step_in(self, m: Member) -> bool:
        """Take the feed of an equal one on the same machine that comes later in the order, and feed that."""
        for u in self.ledger.here[m.site][m.pattern]:
            feed = u.feed
            if feed is not None and feed.how is not How.LOCAL and m.rank < u.rank:
                if feed.how is How.COPY and feed.inputs[0].rank > m.rank:
                    continue
                self.ledger.release(u)
                self.ledger.feed(m, feed)
                self.ledger.feed(u, Feed(How.LOCAL, 0, feed.delay, (m,)))
                self._touched[u] = None
                return True
        return False

    def _search(self, m: Member) -> None:
        """List candidates of only those views that have room, beside those that are listed."""
        open_ = self.ledger.open
        near = self.ledger.here[m.site]
        able = [u for u in self.graph.views_of(m.pattern).tolist() if u in open_ or u in near]
        views = self.finder.feeders(m.pattern, np.array(able, np.int64))
        if len(views):
            self._list(m.pattern, self.finder.find(m.pattern, views))

    # Taking over.

    def _take_over(self, m: Member, feed: Feed | None) -> bool:
        """Feed one by a full one, and a consumer of that one by it, if that is cheaper than ``feed``."""
        most = UNBOUNDED if feed is None else feed.cost
        if m.hard < 1 or (feed is not None and feed.cost == 0):
            return False
        queries: NDArray[np.int64] | None = None
        trials = _TRIALS
        for giver, way in self._full(m, most):
            for consumer in sorted(giver.consumers, key=lambda c: c.number):
                if queries is None:
                    queries = self.graph.queries_of(m.pattern)
                if trials == 0:
                    return False
                if consumer.pattern != m.pattern and not _contains(queries, consumer.pattern):
                    continue
                if consumer.feed is None or giver not in self.ledger.crossing(consumer, consumer.feed):
                    continue
                trials -= 1
                if self._exchange(m, giver, way, consumer, most):
                    return True
        return False

    def _full(self, m: Member, most: int) -> Iterator[tuple[Member, Priced | None]]:
        """Yield those that could feed a subscription for less if they were not full, and by which candidate."""
        ledger = self.ledger
        ways: list[tuple[int, Priced | None]] = []
        if ledger.copies[m.pattern] < most and ledger.copy(m, ledger.count) is None:
            ways.append((m.pattern, None))
        for c in ledger.candidates(m.pattern):
            if -(-c.utilization // DOCUMENTS) >= most:
                break
            full = [v for v in c.views if ledger.provider(v, m.site) is None]
            if len(full) == 1:
                ways.append((full[0], c))
        for view, way in ways[:_GIVERS]:
            givers = [u for u in ledger.members.get(view, ()) if u.feed is not None and u.hard > 0]
            for u in givers[:_GIVERS]:
                if way is not None or (u.rank < m.rank and u.site != m.site):
                    yield u, way

    def _exchange(self, m: Member, giver: Member, way: Priced | None, consumer: Member, most: int) -> bool:
        """Try one take-over; leave everything as it was if it does not fit or is not cheaper."""
        ledger, before = self.ledger, consumer.feed
        new = self._instead(consumer, giver, m)
        if before is None or new is None:
            return False
        ledger.release(consumer)
        own = ledger.copied(m, giver) if way is None else ledger.computed(m, way, giver)
        if own is not None and ledger.fits(m, own):
            ledger.feed(m, own)
            inputs = tuple(m if u is giver else u for u in before.inputs)
            after = ledger.copied(consumer, m) if isinstance(new, How) else ledger.priced(consumer, new, inputs)
            if own.cost + after.cost - before.cost < most and ledger.fits(consumer, after):
                ledger.feed(consumer, after)
                if after.candidate is not None:
                    self._list(consumer.pattern, [after.candidate])
                self._touched[consumer] = None
                return True
            ledger.release(m)
        ledger.feed(consumer, before)
        return False

    def _instead(self, consumer: Member, giver: Member, m: Member) -> Priced | How | None:
        """Return the candidate by which a consumer can be computed with one subscription in place of another.

        ``How.COPY`` where it is a copy, None where it cannot be.
        """
        feed = consumer.feed
        if feed is None or consumer.pattern == m.pattern:
            fine = feed is not None and feed.how is How.COPY and m.rank < consumer.rank and m.site != consumer.site
            return How.COPY if fine else None
        if giver.pattern == m.pattern:
            return feed.candidate
        old = (giver.pattern,) if feed.candidate is None else feed.candidate.views
        views = tuple(m.pattern if v == giver.pattern else v for v in old)
        if len(set(views)) < len(views) or not self.finder.may_feed(m.pattern, consumer.pattern):
            return None
        listed = next((c for c in self.ledger.candidates(consumer.pattern) if c.views == views), None)
        if listed is not None:
            return listed
        return (
            self.finder.price(consumer.pattern, [views])[0]
            if self.finder.covers(consumer.pattern, views)
            else None
        )


def _contains(numbers: NDArray[np.int64], number: int) -> bool:
    """Say whether a number is in an ascending list."""
    at = int(np.searchsorted(numbers, number))
    return at < len(numbers) and int(numbers[at]) == number
