"""Boxes, rectangles and quadrants, against looking at every point of a grid."""

import itertools
import math
import random

import pytest

from rewriting.filters import Box, Quadrants, Rectangle, RegionError, above, below

GRID = [float(x) for x in range(7)]
ENDS = [-math.inf, *GRID, math.inf]


def random_box(rng, axes):
    pairs = [sorted(rng.sample(ENDS, 2)) for _ in range(axes)]
    return Box(tuple(low for low, _ in pairs), tuple(high for _, high in pairs))


def random_region(rng, axes):
    if axes % 2 == 0 and rng.random() < 0.5:
        corners = [tuple(rng.choice(GRID) for _ in range(axes)) for _ in range(rng.randint(1, 4))]
        return Quadrants(tuple(corners))
    pairs = [sorted(rng.choices(ENDS[1:-1], k=2)) for _ in range(axes)]
    lows, highs = tuple(low for low, _ in pairs), tuple(high for _, high in pairs)
    corner = tuple(rng.choice(pair) for pair in pairs)
    return Rectangle(lows, highs, corner)


@pytest.mark.parametrize("axes", [1, 2, 4])
def test_a_region_meets_a_box_exactly_when_they_share_a_point(axes):
    rng = random.Random(axes)
    # Half steps too: a half-open box without its upper end still has points right below it.
    values = sorted({*GRID, *(x + 0.5 for x in GRID), -1.0, 8.0})
    met = 0
    for _ in range(60 if axes == 4 else 300):
        box, region = random_box(rng, axes), random_region(rng, axes)
        points = itertools.product(values, repeat=axes) if axes < 4 else (
            tuple(rng.choice(values) for _ in range(axes)) for _ in range(4000)
        )  # fmt: skip
        shared = any(box.contains(point) and region.contains(point) for point in points)
        if axes < 4 or shared:
            assert region.meets(box) == shared, (box, region)
        if region.meets(box):
            met += 1
            assert box.contains(region.entry(box))
            assert region.contains(region.entry(box))
    assert met > 5


def test_a_region_is_closed_towards_its_corner():
    rng = random.Random(5)
    for _ in range(300):
        region = random_region(rng, 2)
        for point in itertools.product(GRID, repeat=2):
            if region.contains(point):
                corner = tuple(min(max(c, -1.0), 7.0) for c in region.corner)
                axis = rng.randrange(2)
                nearer = list(point)
                nearer[axis] += (corner[axis] - point[axis]) * rng.random()
                assert region.contains(tuple(nearer))


def test_the_halves_of_a_split_box_share_nothing_and_lose_nothing():
    rng = random.Random(7)
    for _ in range(300):
        box = random_box(rng, 2)
        axis, value = rng.randrange(2), rng.choice(GRID)
        if not box.lows[axis] < value < box.highs[axis]:
            with pytest.raises(RegionError):
                box.split(axis, value)
            continue
        halves = box.split(axis, value)
        for point in itertools.product(GRID, repeat=2):
            assert sum(half.contains(point) for half in halves) == box.contains(point)


def test_open_ends_become_closed_ones():
    assert below(3.0) < 3.0 < above(3.0)
    half_open = Rectangle.north_west((5.0, 5.0), (above(2.0), below(9.0)))
    assert half_open.contains((2.5, 8.5))
    assert not half_open.contains((2.0, 8.5))
    assert not half_open.contains((2.5, 9.0))


def test_a_range_leaves_the_other_axes_alone():
    some = Rectangle.span(3, 1, 2.0, 4.0)
    assert some.contains((-1e300, 3.0, 1e300))
    assert not some.contains((0.0, 4.5, 0.0))
    assert some.corner == (0.0, 2.0, 0.0)


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda: Rectangle((1.0,), (0.0,)), "empty"),
        (lambda: Rectangle((1.0,), ()), "as many lows as highs"),
        (lambda: Rectangle((math.nan,), (1.0,)), "empty"),
        (lambda: Rectangle((0.0,), (1.0,), (2.0,)), "corner"),
        (lambda: Rectangle.north_west((1.0, 2.0, 3.0)), "low and a high"),
        (lambda: Quadrants(()), "corners"),
        (lambda: Quadrants(((1.0, 2.0, 3.0),)), "ranges"),
        (lambda: Quadrants(((1.0, 2.0), (1.0, 2.0, 3.0, 4.0))), "ranges"),
    ],
)
def test_a_region_without_points_or_with_too_few_coordinates_is_refused(make, reason):
    with pytest.raises(RegionError, match=reason):
        make()
