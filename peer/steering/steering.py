"""What the source uses to decide how every subscription is fed, as subscriptions and machines come and go.

Every change returns the configurations that it changed, with newer versions; what nobody changed stays as it was,
so a restart changes nothing. The first choice of a configuration is the live plan's feed, the others are what to
fall back to. Whoever the source feeds, or who is pending for want of capacity, has no choices: the source comes
last in any case. A subscription whose machine is down keeps its configuration for its return.

All of it is synchronous. A change takes milliseconds; ``restored``, ``adopt`` and ``measured`` make the plan
again, which takes up to a millisecond per subscription, and either finish or change nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from peer.hosting.configuration import Configuration
from peer.steering.checking import Checked, check_proposal
from peer.steering.choosing import fresh_choices, kept_choices, names, proposed_choices
from peer.steering.entries import Entry, SiteEntry
from peer.steering.issuing import Issued
from peer.steering.levels import Description, levels
from peer.steering.proposal import Adopted, Stale
from peer.steering.steady_plan import SteadyPlan
from planner.alternatives import ALTERNATIVES
from planner.choices import UNBOUNDED
from planner.configuration import How
from planner.problem import MOST_FEEDS, Site, Subscription
from rewriting.statistics import Statistics
from xmlmatch import Pattern

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from peer.steering.choosing import Choices
    from peer.steering.proposal import Proposal
    from planner.newcomer import Member

_SEARCHES: Final = 4
"""How many searches for alternatives one change may take; whoever goes without has its turn in ``settle``."""


class Steering:
    """See the module's text. Names of subscriptions are never used again, not even after they left."""

    def __init__(
        self, source_site: str, source_feeds: int | None, *, generation: int = 1, epoch: int = 0,
        statistics: Statistics | None = None,
    ) -> None:  # fmt: skip
        self.source_site, self.source_feeds = source_site, source_feeds
        self._live = SteadyPlan.of_nothing(source_feeds, statistics or Statistics())
        self._entries: dict[str, Entry] = {}
        self._issued = Issued(generation, epoch)
        self._poor: dict[str, None] = {}

    @classmethod
    def restored(
        cls, source_site: str, source_feeds: int | None, *, sites: Iterable[SiteEntry], entries: Iterable[Entry],
        configurations: Iterable[Configuration], pending: Collection[str] = (), generation: int = 1,
        epoch: int = 0, statistics: Statistics | None = None,
    ) -> tuple[Steering, list[Configuration]]:  # fmt: skip
        """Make it again after a restart; return also the configurations that had to change.

        Entries come in catalog order. Every subscription keeps its stored configuration where its inputs are still
        there and within the hard limits; in a new generation all are issued again. ``pending``: those that were,
        for a configuration does not tell them from those that the source feeds.
        """
        steering = cls(source_site, source_feeds, generation=generation, epoch=epoch, statistics=statistics)
        steering._entries = {entry.subscription: entry for entry in entries}
        stored = {c.subscription: c for c in configurations}
        steering._issued.load(stored.values(), steering._entries)
        firsts = {name: [names(c.choices[0]) if c.choices else ()] for name, c in stored.items()}
        steering._live = steering._plan(list(sites), firsts, pending)
        return steering, steering._issue(steering._entries)

    # What can happen.

    def add_site(self, name: str, limit: int | None = None) -> None:
        """Take a machine in, with a plan limit over all its subscriptions; ``BadProblem`` if it is there."""
        self._live.add_site(Site(name, limit))

    def add(
        self, subscription: str, pattern: str, site: str, limit: int | None, start: int
    ) -> list[Configuration]:
        """Take a subscription in. ``BadProblem`` for a name that is there, a site that is not, or a pattern that
        never matches; ``PatternError`` for what is no pattern."""
        self._live.add(Subscription(subscription, Pattern.parse(pattern), site, limit))
        self._entries[subscription] = Entry(subscription, pattern, site, limit, start)
        return self._issue({subscription: None} | dict.fromkeys(p.name for p in self._live.changed))

    def withdraw(self, subscription: str) -> list[Configuration]:
        """Let a subscription go; ``KeyError`` for no such name."""
        self._live.withdraw(subscription)
        del self._entries[subscription]
        self._poor.pop(subscription, None)
        naming = self._issued.forget(subscription)
        return self._issue(dict.fromkeys((*(p.name for p in self._live.changed), *naming)))

    def limit_changed(self, subscription: str, limit: int | None) -> list[Configuration]:
        """Give a subscription another plan limit; its place in the feeding order stays."""
        moved = self._live.limit_changed(subscription, limit)
        entry = self._entries[subscription]
        self._entries[subscription] = entry._replace(limit=limit, tier=entry.joined_tier)
        return self._issue({subscription: None} | dict.fromkeys(p.name for p in moved))

    def site_failed(self, name: str) -> list[Configuration]:
        """Do without a machine; its subscriptions keep their configurations. ``BadProblem`` for no such one."""
        return self._issue(p.name for p in self._live.site_failed(name))

    def site_returned(self, name: str) -> list[Configuration]:
        """Take a machine that failed back in. ``BadProblem`` for no such one."""
        return self._issue(p.name for p in self._live.site_returned(name))

    def settle(self) -> list[Configuration]:
        """Search for some that had to do without a search; call it when there is time."""
        moved = [p.name for p in self._live.settle()]
        poor = list(self._poor)[:_SEARCHES]
        return self._issue(dict.fromkeys((*moved, *poor)), anew=poor)

    def measured(self, statistics: Statistics) -> None:
        """Price by other statistics from now on; nobody's feed changes."""
        wishes = {name: self._present(name) for name in self._entries}
        self._live = self._plan(self.sites(), wishes, self.pending, statistics=statistics)

    def issue_again(self) -> list[Configuration]:
        """Issue everybody's configuration as it is, with a newer version: what signs them has changed."""
        self._issued.issue_again()
        return self.configurations()

    def adopt(self, proposal: Proposal) -> Adopted | Stale:
        """Take a full plan over, as far as it holds for the present subscriptions, and begin a new epoch.

        Subscriptions whose proposed feed does not hold, or that came since, keep theirs or are placed anew.
        """
        if proposal.base_epoch != self.epoch:
            return Stale(proposal.base_epoch, self.epoch)
        checked = check_proposal(self._live, proposal)
        before = {name: self._present(name) for name in self._entries}
        wishes = {name: [checked.feeds[name]] if name in checked.feeds else [] for name in self._entries}
        for name, present in before.items():
            wishes[name] += present
        self._live = self._plan(self.sites(), wishes)
        self._issued.begin_epoch()
        changed = self._issue(self._entries, proposed=checked)
        return self._adopted(proposal, checked, before, changed)

    def check(self, proposal: Proposal) -> Checked | Stale:
        """Say what of a full plan holds, and change nothing."""
        if proposal.base_epoch != self.epoch:
            return Stale(proposal.base_epoch, self.epoch)
        return check_proposal(self._live, proposal)

    def _adopted(
        self, proposal: Proposal, checked: Checked, before: Mapping[str, Sequence[tuple[str, ...]]],
        changed: list[Configuration],
    ) -> Adopted:  # fmt: skip
        now = {name: self._present(name) for name in self._entries}
        taken = [name for name, feed in checked.feeds.items() if now[name] == [feed]]
        refused = dict(checked.refused)
        for name in checked.feeds.keys() - set(taken):
            refused[name] = "what others keep leaves no room for it"
        others = now.keys() - set(taken)
        came = [name for name in self._entries if name not in proposal.feeds]
        return Adopted(
            tuple(changed), tuple(sorted(taken)), tuple(sorted(n for n in others if now[n] == before[n])),
            tuple(sorted({*came, *checked.since})), dict(sorted(refused.items())),
        )  # fmt: skip

    # What is the case.

    @property
    def generation(self) -> int:
        """The log's generation, the first part of every version."""
        return self._issued.generation

    @property
    def epoch(self) -> int:
        """How many full plans were adopted."""
        return self._issued.epoch

    @property
    def pending(self) -> dict[str, str]:
        """Who finds no feed within the limits, and why; the source feeds them as a last resort."""
        return dict(self._live.pending)

    @property
    def source_feeds_used(self) -> int:
        """How many subscriptions the plan lets the source feed."""
        return self._live.ledger.source_feeds

    @property
    def should_replan(self) -> str:
        """Why a full plan is due; empty if none is."""
        return self._live.should_replan

    def configuration(self, subscription: str) -> Configuration:
        """Return the newest configuration of a subscription; ``KeyError`` for no such name."""
        return self._issued.configurations[subscription]

    def configurations(self) -> list[Configuration]:
        """List everybody's newest configuration, in catalog order."""
        return [self._issued.configurations[name] for name in self._entries]

    def entries(self) -> list[Entry]:
        """List the subscriptions in catalog order, as ``restored`` wants them."""
        return list(self._entries.values())

    def sites(self) -> list[SiteEntry]:
        """List the machines, as ``restored`` wants them."""
        return [
            SiteEntry(name, None if limit >= UNBOUNDED else limit, is_down)
            for name, limit, is_down in self._live.sites()
        ]

    def levels(self) -> dict[str, int]:
        """Return how many links are between the source and each subscription; 0 for those that are not fed."""
        return levels(self._live.members().values())

    def describe(self, subscription: str) -> Description:
        """Say how a subscription is fed; ``KeyError`` for no such name."""
        m, found = self._live.member(subscription), self._live.placement(subscription)
        sites = [self._entries[name].site for name in found.inputs]
        if found.how is How.SOURCE:
            sites = [self.source_site]
        others = max(len(self._issued.configurations[subscription].choices) - 1, 0)
        return Description(
            subscription, found.how, found.inputs, tuple(sites), levels([m])[subscription], found.utilization,
            others, found.reason,
        )  # fmt: skip

    # How it is done.

    def _plan(
        self, sites: Sequence[SiteEntry], wishes: Mapping[str, Sequence[tuple[str, ...]]],
        pending: Collection[str] = (), *, statistics: Statistics | None = None,
    ) -> SteadyPlan:  # fmt: skip
        """Make a plan of the present entries by wishes."""
        plan = SteadyPlan.of_nothing(self.source_feeds, statistics or self._live.finder.statistics)
        for site in sites:
            plan.add_site(Site(site.name, site.limit))
        plan.enter(self._entries.values(), [site.name for site in sites if site.is_down])
        plan.take(wishes, pending)
        return plan

    def _present(self, name: str) -> list[tuple[str, ...]]:
        """Return how a subscription is fed, as a wish; none if it is not."""
        found = self._live.placement(name)
        return [] if found.how is How.PENDING else [found.inputs]

    def _issue(
        self, wanted: Iterable[str], *, anew: Collection[str] = (), proposed: Checked | None = None
    ) -> list[Configuration]:
        """Issue the configurations of some as far as they changed; ``anew``: look for alternatives again."""
        searches, issued = _SEARCHES, []
        for name in wanted:
            m, before = self._live.member(name), self._issued.configurations.get(name)
            choices = kept_choices(self._live, m, before.choices if before is not None else ())
            if proposed is not None:
                choices = proposed_choices(self._live, m, proposed) or choices
            if choices is None or (choices and name in anew and m.feed is not None):
                choices = fresh_choices(self._live, m)
                if len(choices) <= ALTERNATIVES and searches > 0:
                    searches -= 1
                    self._live.list_candidates(m.pattern)
                    choices = fresh_choices(self._live, m)
            self._poor.pop(name, None)
            if 0 < len(choices) <= ALTERNATIVES:
                self._poor[name] = None
            found = self._issued.put(self._configuration(m, choices))
            if found is not None:
                issued.append(found)
        return issued

    def _configuration(self, m: Member, choices: Choices) -> Configuration:
        text, feeds = self._live.pattern_of(m).text, min(m.hard, MOST_FEEDS)
        start = self._entries[m.name].start
        return Configuration(m.name, self._live.site_of(m), text, 0, 0, 0, start, feeds, choices)
