"""What the tests of verifying plans have in common."""

import numpy as np

from planner.configuration import Configuration, How
from planner.problem import Problem, Site, Subscription
from planner.verify import verify
from tests.planner.test_pricing import table_of
from xmlmatch import Pattern

WHOLE, PART, BOTH = (Pattern.parse(text) for text in ("//a{cont}", "//b{val}", "//a{val}[b{val}]"))


def configuration_of(*feeds):
    """Make a configuration: how each subscription is fed, its candidate, its inputs."""
    width = max([1, *(len(inputs) for _, _, inputs in feeds)])
    rows = [[*inputs, *[-1] * (width - len(inputs))] for _, _, inputs in feeds]
    return Configuration(
        np.array([how for how, _, _ in feeds], np.int8),
        np.array([candidate for _, candidate, _ in feeds], np.int64),
        np.array(rows, np.int32),
    )


def from_source(count):
    return configuration_of(*[(How.SOURCE, -1, ())] * count)


# whole, part and spare come from the source; both is computed from two of them, twin shares its machine, far is a
# copy of it.
NAMES = ("whole", "part", "both", "twin", "far", "spare")


PATTERNS = (WHOLE, PART, BOTH, BOTH, BOTH, PART)


SITES = ("one", "two", "three", "three", "four", "four")


def hand_problem(*, limits=(2, 2, 4, 1, 1, 0), site_limits=None, **options):
    sites = [Site(name, (site_limits or {}).get(name)) for name in dict.fromkeys(SITES)]
    subscriptions = [
        Subscription(name, pattern, site, limit)
        for name, pattern, site, limit in zip(NAMES, PATTERNS, SITES, limits, strict=True)
    ]
    return Problem.of(subscriptions, sites, **options)


HAND_TABLE = table_of([[], [], [[0, 1]]])


HAND = configuration_of(
    (How.SOURCE, -1, ()),
    (How.SOURCE, -1, ()),
    (How.REWRITING, 0, (0, 1)),
    (How.LOCAL, -1, (2,)),
    (How.COPY, -1, (2,)),
    (How.SOURCE, -1, ()),
)


def faults(configuration, *, problem=None, table=HAND_TABLE, **options):
    return verify(problem or hand_problem(), table, configuration, **options).faults
