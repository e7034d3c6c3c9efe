"""What is to be planned: subscriptions at sites, their limits, the network between them, and what counts how much.

Three limits hang on each plan limit B: a plan gives a subscription at most B feeds, latency improvement (LOGA)
up to 1.5 B, and 1.8 B is the hard limit that a daemon enforces; the top is kept for failover and newcomers. The
source has one limit; plans leave a tenth of it to newcomers. A *feed* is one subscription serving another on
another machine: within a machine feeding is free.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import numpy as np

from planner.choices import UNBOUNDED
from planner.errors import BadProblem
from rewriting.graph import EmbeddingGraph
from rewriting.pricing import Weights
from rewriting.statistics import Statistics

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from xmlmatch import Pattern

UPLINK: Final = 125e6
SOURCE_UPLINK: Final = 1.25e9
RTT_S: Final = 0.04
MOST_FEEDS: Final = 1 << 30
K: Final = 30


def improvement_limit(limit: int) -> int:
    """How many feeds a subscription with a plan limit may get when latency is improved.

    >>> improvement_limit(30), improvement_limit(1), improvement_limit(0)
    (45, 1, 0)
    """
    return limit * 3 // 2


def hard_limit(limit: int) -> int:
    """How many feeds a subscription's daemon accepts at most.

    >>> hard_limit(30), hard_limit(1), hard_limit(0)
    (54, 1, 0)
    """
    return limit * 9 // 5


def source_plan_limit(limit: int) -> int:
    """How many feeds of the source a plan may use: a tenth is left to newcomers.

    >>> source_plan_limit(6198), source_plan_limit(1)
    (5578, 0)
    """
    return limit * 9 // 10


@dataclass(frozen=True, slots=True)
class Subscription:
    """A subscription: ``limit`` is its plan limit B, None for no limit."""

    name: str
    pattern: Pattern
    site: str
    limit: int | None = None


@dataclass(frozen=True, slots=True)
class Site:
    """A machine: its own plan limit over all its subscriptions (None for none), region, and uplink in bytes/s."""

    name: str
    limit: int | None = None
    region: str = ""
    uplink: float = UPLINK


@dataclass(frozen=True, slots=True, eq=False)
class Network:
    """Sites as arrays. ``rtt``: seconds between regions; ``source_rtt``: between the source and each region."""

    names: list[str]
    limits: NDArray[np.int64]
    region: NDArray[np.int32]
    uplink: NDArray[np.float64]
    regions: list[str]
    rtt: NDArray[np.float64]
    source_rtt: NDArray[np.float64]
    source_uplink: float = SOURCE_UPLINK

    @classmethod
    def of(
        cls, sites: Sequence[Site], rtt_s: dict[tuple[str, str], float] | None = None,
        source_rtt_s: dict[str, float] | None = None, source_uplink: float = SOURCE_UPLINK,
    ) -> Network:  # fmt: skip
        """Make a network. Round-trip times that are not given are 40 ms."""
        if len({site.name for site in sites}) < len(sites):
            twice = next(site.name for i, site in enumerate(sites) if site.name in {s.name for s in sites[:i]})
            raise BadProblem(f"site {twice}", "the name is there twice")
        for site in sites:
            if not site.uplink > 0:
                raise BadProblem(f"site {site.name}", f"its uplink is {site.uplink} bytes/s; it is above 0")
        regions = sorted({site.region for site in sites})
        at = {region: i for i, region in enumerate(regions)}
        rtt = np.full((len(regions), len(regions)), RTT_S)
        for (a, b), seconds in (rtt_s or {}).items():
            if a in at and b in at:
                rtt[at[a], at[b]] = rtt[at[b], at[a]] = seconds
        own = [(source_rtt_s or {}).get(region, RTT_S) for region in regions]
        return cls(
            [site.name for site in sites],
            np.array([limit_of(site.limit, f"site {site.name}") for site in sites], np.int64),
            np.array([at[site.region] for site in sites], np.int32),
            np.array([site.uplink for site in sites], np.float64),
            regions,
            rtt,
            np.array(own, np.float64),
            source_uplink,
        )


@dataclass(frozen=True, slots=True, eq=False)
class Problem:
    """Everything a plan depends on. Subscriptions are numbered in the order they were given.

    By subscription: its name, the number of its pattern in ``graph`` (its *class*: equal patterns share one), its
    site, its plan limit (``UNBOUNDED`` for none). ``source_feeds``: the limit of the source, None for none.
    """

    graph: EmbeddingGraph
    names: list[str]
    classes: NDArray[np.int64]
    sites: NDArray[np.int64]
    limits: NDArray[np.int64]
    network: Network
    source_feeds: int | None = None
    weights: Weights = field(default_factory=Weights)
    statistics: Statistics = field(default_factory=Statistics)
    k: int = K

    @classmethod
    def of(
        cls,
        subscriptions: Iterable[Subscription],
        network: Network | Sequence[Site] | None = None,
        *,
        source_feeds: int | None = None,
        weights: Weights | None = None,
        statistics: Statistics | None = None,
        k: int = K,
    ) -> Problem:
        """Check and number everything. Without a network, every site that is named exists and has no limit.

        >>> from xmlmatch import Pattern
        >>> Problem.of([Subscription("s1", Pattern.parse("//a"), "here", -1)])
        Traceback (most recent call last):
        planner.errors.BadProblem: subscription s1: its limit is -1; limits are 0 or more
        """
        wanted = list(subscriptions)
        if not wanted:
            raise BadProblem("subscriptions", "there are none")
        if network is None:
            network = [Site(name) for name in dict.fromkeys(s.site for s in wanted)]
        if not isinstance(network, Network):
            network = Network.of(network)
        if source_feeds is not None and source_feeds < 0:
            raise BadProblem("source", f"its limit is {source_feeds}; limits are 0 or more")
        at = {name: i for i, name in enumerate(network.names)}
        seen: set[str] = set()
        for s in wanted:
            check(s, at, seen)
        graph = EmbeddingGraph.build(s.pattern for s in wanted)
        return cls(
            graph,
            [s.name for s in wanted],
            np.array([graph.number(s.pattern) for s in wanted], np.int64),
            np.array([at[s.site] for s in wanted], np.int64),
            np.array([limit_of(s.limit, f"subscription {s.name}") for s in wanted], np.int64),
            network,
            source_feeds,
            weights or Weights(),
            statistics or Statistics(),
            k,
        )

    def __len__(self) -> int:
        return len(self.names)

    def pattern(self, subscription: int) -> Pattern:
        """Return the pattern of a subscription."""
        return self.graph.pattern(int(self.classes[subscription]))

    @property
    def source_limit(self) -> int:
        """How many feeds of the source a plan may use."""
        return UNBOUNDED if self.source_feeds is None else source_plan_limit(self.source_feeds)

    def order(self) -> NDArray[np.int64]:
        """List the subscriptions by class, and within a class in feeding order: higher tier first, then number."""
        return np.lexsort((np.arange(len(self)), -tiers(self.limits), self.classes))


def tiers(limits: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the capacity tiers of plan limits: 0 for those that feed nobody, else one more per doubling.

    >>> tiers(np.array([0, 1, 2, 30, 31, 32])).tolist()
    [0, 1, 2, 5, 5, 6]
    """
    return np.where(limits > 0, np.floor(np.log2(np.maximum(limits, 1))).astype(np.int64) + 1, 0)


def limit_of(limit: int | None, where: str) -> int:
    if limit is None:
        return UNBOUNDED
    if limit < 0:
        raise BadProblem(where, f"its limit is {limit}; limits are 0 or more")
    return UNBOUNDED if limit >= MOST_FEEDS else limit


def check(s: Subscription, sites: dict[str, int], seen: set[str]) -> None:
    where = f"subscription {s.name}"
    if s.name in seen:
        raise BadProblem(where, "the name is there twice")
    seen.add(s.name)
    if s.site not in sites:
        raise BadProblem(where, f"there is no site {s.site}")
    if s.limit is not None and s.limit < 0:
        raise BadProblem(where, f"its limit is {s.limit}; limits are 0 or more")
    if s.pattern.contradiction:
        raise BadProblem(
            where, f"its pattern never matches ({s.pattern.contradiction}), so there is nothing to plan"
        )
