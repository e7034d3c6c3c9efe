"""Zones: every point in one, the right ones found, neighbours, and maps that grow."""

import random

import pytest

from overlay.zones.balance import Plan, best_split, join, leave, rebalance
from overlay.zones.errors import CannotSplit, MalformedZone, NoSuchZone, StaleGrant
from overlay.zones.records import ZoneRecord, decode_zone_untrusted, encode_zone, is_prefix, record_name
from overlay.zones.tree import Split, ZoneTree, shares_face
from overlay.zones.zone_map import Change, History, ZoneMap
from tests.rewriting.filters.test_region import random_region


def random_tree(rng, axes, splits):
    tree = ZoneTree(axes)
    for _ in range(splits):
        prefix = rng.choice(sorted(tree.leaves()))
        axis, value = rng.randrange(axes), rng.random() * 6
        box = tree.box(prefix)
        if box.lows[axis] < value < box.highs[axis]:
            tree.split(prefix, Split(axis, value))
    return tree


@pytest.mark.parametrize("axes", [1, 2, 4])
def test_every_point_lies_in_one_zone_and_regions_find_theirs(axes):
    rng = random.Random(axes)
    for _ in range(40):
        tree = random_tree(rng, axes, 30)
        leaves = list(tree.leaves())
        for _ in range(20):
            point = tuple(rng.random() * 8 - 1 for _ in range(axes))
            assert [leaf for leaf in leaves if tree.box(leaf).contains(point)] == [tree.leaf(point)]
            region = random_region(rng, axes)
            met = {leaf for leaf in leaves if region.meets(tree.box(leaf))}
            assert set(tree.meeting(region)) == met
            if met:
                assert tree.entry(region) in met
            done = rng.sample(leaves, rng.randint(0, len(leaves)))
            assert set(tree.covers(done, region)) == met - set(done)
            assert tree.covers([""], region) == []


def test_neighbours_share_a_face():
    rng = random.Random(3)
    for _ in range(15):
        tree = random_tree(rng, 2, 25)
        leaves = list(tree.leaves())
        for leaf in leaves:
            expected = {
                other for other in leaves if other != leaf and shares_face(tree.box(leaf), tree.box(other))
            }
            assert set(tree.neighbours(leaf)) == expected


def test_a_split_is_for_ever():
    tree = ZoneTree(1)
    tree.split("", Split(0, 3.0))
    tree.split("", Split(0, 3.0))
    with pytest.raises(NoSuchZone):
        tree.split("", Split(0, 4.0))
    with pytest.raises(CannotSplit):
        tree.split("0", Split(0, 5.0))
    with pytest.raises(NoSuchZone):
        tree.box("01")
    assert tree.nearest_known("0110") == "0"


def test_a_map_is_rebuilt_from_its_steps_in_order_only():
    history = History.begin(2)
    history.change(grants={"": "a"})
    history.change({"": Split(0, 2.0)}, {"1": "b"})
    history.change({"0": Split(1, 2.0)}, {"01": "c"})
    copy = ZoneMap(2)
    with pytest.raises(StaleGrant):
        copy.apply(history.steps[1])
    for step in history.since(0):
        copy.apply(step)
    copy.apply(history.steps[0])
    assert copy.version == 3
    assert copy.grants == history.now.grants
    assert {prefix: grant.fence for prefix, grant in copy.grants.items()} == {"00": 1, "01": 3, "1": 2}
    assert copy.owners() == {"a": ["00"], "b": ["1"], "c": ["01"]}
    with pytest.raises(NoSuchZone):
        copy.apply(Change(4, (), (("0", "d"),)))


def test_newcomers_halve_the_load_and_leavers_give_it_away():
    rng = random.Random(4)
    points = [(x, x + rng.random()) for x in (rng.random() for _ in range(1000))]
    history = History.begin(2)

    def situation():
        by_zone = {leaf: [] for leaf in history.now.tree.leaves()}
        for point in points:
            by_zone[history.now.tree.leaf(point)].append(point)
        return {leaf: float(len(found)) for leaf, found in by_zone.items()}, by_zone.__getitem__

    for i in range(32):
        plan = join(history.now, f"n{i:02}", *situation())
        history.change(plan.splits, plan.grants)
    loads, _ = situation()
    assert len(history.now.owners()) == 32
    assert max(loads.values()) <= 2 * 1000 / 32 + 1
    names = [f"n{i:02}" for i in range(32)]
    for name in names[:16]:
        plan = leave(history.now, name, names[16:], situation()[0])
        history.change(plan.splits, plan.grants)
    assert sorted(history.now.owners()) == names[16:]
    assert {leaf for zones in history.now.owners().values() for leaf in zones} == set(history.now.tree.leaves())
    assert leave(history.now, names[16], [], {}) == Plan({}, {})


def test_rebalancing_ends_and_leaves_nobody_far_above_the_mean():
    rng = random.Random(6)
    points = [(rng.random(), rng.random()) for _ in range(600)]
    history = History.begin(2)
    history.change(grants={"": "a"})
    present = ["a", "b", "c", "d"]
    for _ in range(100):
        by_zone = {leaf: [] for leaf in history.now.tree.leaves()}
        for point in points:
            by_zone[history.now.tree.leaf(point)].append(point)
        loads = {leaf: float(len(found)) for leaf, found in by_zone.items()}
        plan = rebalance(history.now, present, loads, by_zone.__getitem__)
        if not plan:
            break
        history.change(plan.splits, plan.grants)
    shares = {name: sum(loads[zone] for zone in zones) for name, zones in history.now.owners().items()}
    assert max(shares.values()) <= 1.5 * 150
    assert sorted(shares) == present


def test_points_in_one_place_cannot_be_split():
    tree = ZoneTree(2)
    assert best_split(tree.box(""), [(1.0, 2.0)] * 5, 0) is None
    assert best_split(tree.box(""), [], 0) is None
    cut = best_split(tree.box(""), [(1.0, 2.0)] * 5 + [(1.0, 3.0)], 0)
    assert cut == Split(1, 3.0)


def test_a_zone_in_the_directory_reads_back_and_nothing_else_does():
    record = ZoneRecord(7, -1, 0.0, "paris", 5)
    assert decode_zone_untrusted(encode_zone(record)) == record
    assert not record.is_split
    assert record_name("market", "") == "market/-"
    bad = [
        b"", b"\x90", encode_zone(record)[:-1], encode_zone(ZoneRecord(7, 0, float("inf"), "", 5)),
        encode_zone(ZoneRecord(-1, 0, 1.0, "", 5)), encode_zone(ZoneRecord(1, 0, 1.0, "x" * 201, 5)),
    ]  # fmt: skip
    for payload in bad:
        with pytest.raises(MalformedZone):
            decode_zone_untrusted(payload)
    assert is_prefix("0110")
    assert not is_prefix("012")
