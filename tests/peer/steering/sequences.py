"""Random changes to a steering, and an oracle that knows only configurations, the catalog and obvious rules."""

import random
from collections import Counter
from graphlib import TopologicalSorter

from peer.hosting.results import Joining
from peer.steering.steering import Steering
from planner.configuration import How
from planner.problem import MOST_FEEDS, hard_limit
from scenarios.presets import table2
from xmlmatch import Pattern

# Some of them return equally much and embed in each other: between those only the feeding order decides.
TEXTS = [
    "//a{cont}", "//a[b]{cont}", "//a[b][c]{cont}", "//b{val}", "//a/b{val}", "//a[c]/b{val}", "//c{val}",
    "//a[b{val}]", "//a[b{val}][c{val}]", "//*{val}", "//a[b='1']{cont}", "//a[.//c]", "//a[c{val}]/b{val}",
    "//a[b]", "//a{id}[b]", "//a[b{id}]", "//a{id}[b{id}]", "//a[b][c]", "//a{id}[b][c]", "//a[b{id}][c]",
]  # fmt: skip
LIMITS = (0, 1, 2, 3, 5, None)
SITES = [f"m{i}" for i in range(8)]


def broad(seed):
    """Draw patterns of the papers' experiments, and some that return much and so feed many of them."""
    drawn = [p.text for p in table2(seed, 16).distinct]
    labels = {node.label for text in drawn for node in Pattern.parse(text).nodes if node.label[0] not in "@*"}
    return drawn + [f"//{label}{{id,cont}}" for label in sorted(labels)[:12]]


class Sequence:
    """A steering, everything it ever issued, and the catalog kept beside it."""

    def __init__(self, seed, texts=None, *, source_feeds=None):
        self.rng = random.Random(seed)
        self.texts = texts or (TEXTS if seed % 3 else broad(seed))
        self.limits = {site: self.rng.choice((None, None, 4, 12)) for site in SITES}
        self.catalog, self.down, self.joined = {}, set(), 0
        self.versions, self.ever = {}, {}
        given = self.rng.choice((None, 8, 14)) if source_feeds is None else source_feeds
        self.steering = Steering("origin", given)
        for site, limit in self.limits.items():
            self.steering.add_site(site, limit)

    def grown(self, count):
        """Subscribe so many, and check after each."""
        for _ in range(count):
            self.add()
        return self

    def step(self, *, limits=True):
        """Make one random change and check everything; return what was issued."""
        names = sorted(self.catalog)
        what = self.rng.choice(
            ("add",) * 8 + ("withdraw",) * 4 + ("limit",) * 2 + ("fail",) + ("back",) * 3 + ("settle",)
        )
        if what == "add" or not names:
            return self.add()
        if what == "withdraw":
            return self.withdraw(self.rng.choice(names))
        if what == "limit" and limits:
            return self.limit(self.rng.choice(names), self.rng.choice(LIMITS))
        if what == "fail":
            site = self.rng.choice(SITES)
            self.down.add(site)
            return self.took(self.steering.site_failed(site))
        if what == "back":
            site = self.rng.choice(SITES)
            self.down.discard(site)
            return self.took(self.steering.site_returned(site))
        return self.took(self.steering.settle())

    def add(self, text=None, site=None, limit="any"):
        name, self.joined = f"s{self.joined}", self.joined + 1
        text, site = text or self.rng.choice(self.texts), site or self.rng.choice(SITES)
        limit = self.rng.choice(LIMITS) if limit == "any" else limit
        self.catalog[name] = (Pattern.parse(text), site, limit, self.joined * 10)
        issued = self.steering.add(name, text, site, limit, self.joined * 10)
        assert name in {c.subscription for c in issued}
        return self.took(issued)

    def withdraw(self, name):
        del self.catalog[name], self.versions[name]
        return self.took(self.steering.withdraw(name))

    def limit(self, name, limit):
        pattern, site, _, start = self.catalog[name]
        self.catalog[name] = (pattern, site, limit, start)
        return self.took(self.steering.limit_changed(name, limit))

    def restored(self, **options):
        """Make a steering anew from what this one would have stored."""
        s = self.steering
        given = {"sites": s.sites(), "configurations": s.configurations(), "pending": s.pending} | options
        return Steering.restored(s.source_site, s.source_feeds, entries=s.entries(), **given)

    def restart(self):
        self.steering, issued = self.restored()
        return self.took(issued)

    def took(self, issued):
        """Note what was issued, and check everything."""
        issued = list(issued)
        assert len({c.subscription for c in issued}) == len(issued)
        for c in issued:
            assert c.version > self.versions.get(c.subscription, (0, 0, 0))
            self.versions[c.subscription] = c.version
            assert self.steering.configuration(c.subscription) == c
        for c in self.steering.configurations():
            assert c.version[:2] == (self.steering.generation, self.steering.epoch)
            self.note(c)
        check(self)
        return issued

    def note(self, configuration):
        """Remember by whom a subscription was ever to be fed."""
        inputs = {u.subscription for choice in configuration.choices for u in choice}
        self.ever.setdefault(configuration.subscription, set()).update(inputs)


def check(sequence):
    """Check every configuration by the catalog alone."""
    steering, catalog = sequence.steering, sequence.catalog
    configurations = {c.subscription: c for c in steering.configurations()}
    assert configurations.keys() == catalog.keys()
    feeds, site_feeds, by_source = Counter(), Counter(), 0
    for name, c in configurations.items():
        pattern, site, limit, start = catalog[name]
        most = MOST_FEEDS if limit is None else hard_limit(limit)
        assert (c.site, c.pattern, c.start, c.feeds) == (site, pattern.text, start, most)
        for choice in c.choices:
            check_choice(catalog, pattern, choice)
        if site in sequence.down:
            assert steering.describe(name).how is How.PENDING
            continue
        check_online(sequence, c)
        by_source += steering.describe(name).how is How.SOURCE
        first = c.choices[0] if c.choices else ()
        feeds.update(u.subscription for u in first if u.site != site)
        site_feeds.update(u.site for u in first if u.site != site)
    for name, count in feeds.items():
        assert count <= configurations[name].feeds
    for site, count in site_feeds.items():
        assert sequence.limits[site] is None or count <= hard_limit(sequence.limits[site])
    assert steering.source_feeds_used == by_source
    assert steering.source_feeds is None or by_source <= steering.source_feeds
    TopologicalSorter(sequence.ever).prepare()  # raises for a circle


def check_choice(catalog, pattern, choice):
    """Check that inputs are those of the catalog, and enough."""
    views = tuple(Pattern.parse(u.pattern) for u in choice)
    for u, view in zip(choice, views, strict=True):
        assert (view, u.site) == catalog[u.subscription][:2]
    assert choice
    joining = Joining(pattern, views)
    assert joining.cuts()
    assert joining.is_copy or joining.rewriting is not None


def check_online(sequence, c):
    """Check the first choice against what is said of the subscription, and that alternatives are others."""
    said = sequence.steering.describe(c.subscription)
    assert (said.how is How.PENDING) == (c.subscription in sequence.steering.pending)
    first = c.choices[0] if c.choices else ()
    assert said.inputs == tuple(u.subscription for u in first)
    assert bool(first) == (said.how in (How.REWRITING, How.COPY, How.LOCAL))
    assert len(c.choices) <= 4
    assert len(set(c.choices)) == len(c.choices)
    sites = {u.site for u in first}
    for choice in c.choices[1:]:
        # Whatever machine of the first choice is lost, no alternative is lost by all of them.
        assert not sites <= {u.site for u in choice}
    for u in first:
        assert u.site not in sequence.down
