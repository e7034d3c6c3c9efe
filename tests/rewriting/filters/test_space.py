"""Filters become points and messages regions, so that nothing that matches is missed."""

import random

import pytest

from rewriting.filters import Dimension, Filter, Kind, Rectangle, Space, SpaceError
from tests.rewriting.filters.test_filter import random_filter, random_message

NUMBERS = ("-1e999", "-5", "0", " 1 ", "2", "03", "2.5", "1e999", "many", "")


def random_space(rng):
    names = rng.sample(("topic", "location", "price", "stock"), rng.randint(1, 3))
    kinds = [rng.choice(list(Kind)) for _ in names]
    return Space("s", tuple(Dimension(name, kind, low=0, high=2) for name, kind in zip(names, kinds, strict=True)))


def test_the_point_of_a_filter_lies_in_the_region_of_every_message_that_it_matches():
    rng = random.Random(11)
    matched = spared = 0
    for _ in range(4000):
        space, wanted, message = random_space(rng), random_filter(rng), random_message(rng)
        if rng.random() < 0.5:
            message |= {name: rng.choice(NUMBERS) for name in ("price", "stock") if rng.random() < 0.7}
        point, region = space.point(wanted), space.region(message)
        space.check(point)
        if wanted.matches(message):
            matched += 1
            assert region.contains(point), (space, str(wanted), message)
        else:
            spared += not region.contains(point)
    assert matched > 300
    assert spared > 700


def test_ranges_become_low_and_high_on_every_dimension():
    space = Space("market", (Dimension("price", low=0, high=100), Dimension("topic", Kind.ORDERED)))
    low, high, begin, end = space.point(Filter.parse("price >= 20 and price < 50 and topic = 'sport'"))
    assert (low, high) == (20, 50)
    assert begin == end == float(int.from_bytes(b"sport\0"))
    assert space.axes == 4


def test_ordered_text_keeps_its_order_and_hashed_text_its_equality():
    ordered, hashed = Dimension("a", Kind.ORDERED), Dimension("a", Kind.HASHED)
    words = sorted(["", "a", "aa", "ab", "b", "ä", "zebra", "zebras", "zebrastripes"], key=str.encode)
    places = [ordered.coordinate(word) for word in words]
    assert places == sorted(places)
    assert len({hashed.coordinate(word) for word in words}) == len(words)
    assert hashed.coordinate("a") == hashed.coordinate("a")


def test_a_message_without_the_attribute_reaches_only_filters_that_do_not_bound_it():
    space = Space("market", (Dimension("price", low=0, high=100),))
    region = space.region({"topic": "sport"})
    assert region.contains(space.point(Filter.parse("topic = 'sport'")))
    assert not region.contains(space.point(Filter.parse("price < 50")))
    assert region == Rectangle.north_west((0.0, 100.0))


def test_a_space_for_chosen_points_has_one_axis_per_dimension_and_no_filters():
    space = Space("radii", (Dimension("radius", low=0, high=10, holds_ranges=False),))
    space.check((3.0,))
    assert space.axes == 1
    with pytest.raises(SpaceError, match="holds values"):
        space.point(Filter.parse("radius < 3"))
    with pytest.raises(SpaceError, match="1 coordinates, not 2"):
        space.check((3.0, 4.0))
    with pytest.raises(SpaceError, match="not finite"):
        space.check((float("nan"),))


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda: Dimension("a b"), "no attribute name"),
        (lambda: Dimension("a", low=1, high=1), "bounds"),
        (lambda: Dimension("a", low=0, high=float("inf")), "bounds"),
        (lambda: Space("s", ()), "1 to 8 dimensions"),
        (lambda: Space("s", (Dimension("a"), Dimension("a"))), "twice"),
        (lambda: Space("a/b", (Dimension("a"),)), "no name"),
    ],
)
def test_what_is_no_space_is_refused(make, reason):
    with pytest.raises(SpaceError, match=reason):
        make()


def test_lists_and_beginnings_bound_where_values_lie():
    space = Space("s", (Dimension("n", low=0, high=9), Dimension("t", Kind.ORDERED), Dimension("h", Kind.HASHED)))
    wanted = Filter.parse("n in (2, 5) and t prefix 'ab' and h prefix 'x'")
    assert wanted.matches({"n": "5", "t": "abz", "h": "xy"})
    assert space.region({"n": "5", "t": "abz", "h": "xy"}).contains(space.point(wanted))
    assert not space.region({"n": "6", "t": "abz", "h": "xy"}).contains(space.point(wanted))
    assert not space.region({"n": "5", "t": "ac", "h": "xy"}).contains(space.point(wanted))
