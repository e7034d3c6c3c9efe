"""A map put together from the directory is the catalog's, or none."""

import random

import pytest

from overlay.content.frames import Entry
from overlay.content.keeper import ZoneKeeper
from overlay.zones import map_walk
from overlay.zones.errors import MalformedZone
from overlay.zones.map_walk import MapWalk, changed_records
from overlay.zones.records import ZoneRecord, encode_zone
from overlay.zones.tree import Split
from overlay.zones.zone_map import Change, History, ZoneMap


def a_history(seed, steps=30):
    """Return a map that was changed at random."""
    rng = random.Random(seed)
    history = History.begin(2)
    history.change({}, {"": "m0"})
    for _ in range(steps):
        zone = rng.choice(sorted(history.now.tree.leaves()))
        box = history.now.tree.box(zone)
        if rng.random() < 0.5:
            axis = rng.randrange(2)
            low, high = max(box.lows[axis], -100.0), min(box.highs[axis], 100.0)
            middle = (low + high) / 2
            value = int(middle) if middle.is_integer() else middle  # as bounds that users declare
            history.change({zone: Split(axis, value)}, {zone + "1": f"m{rng.randrange(4)}"})
        else:
            history.change({}, {zone: f"m{rng.randrange(4)}"})
    return history


def directory_of(history, portions=(1, 4, 16, 31)):
    """Return what the directory holds after the map was pushed in portions, and before the last of them."""
    known, held, before = ZoneMap(history.now.tree.axes), {}, {}
    for upto in portions:
        before = dict(held)
        changed = changed_records(known, history.steps[known.version : upto])
        held |= {prefix: encode_zone(record) for prefix, record in changed.items()}
    return held, before


def walked(held, after=0, axes=2):
    walk = MapWalk(axes, after)
    while walk.wanted:
        prefix = min(walk.wanted)
        walk.take(prefix, held.get(prefix))
    return walk.outcome


@pytest.mark.parametrize("seed", range(8))
def test_a_map_put_together_from_records_is_the_catalogs(seed):
    history = a_history(seed)
    held, _ = directory_of(history)
    found = walked(held)
    assert (found.version, found.grants) == (31, history.now.grants)
    assert found.tree.splits == history.now.tree.splits
    assert found.owners() == history.now.owners()
    late = Change(32, (), ((next(iter(sorted(found.grants))), "m9"),))
    found.apply(late)
    history.now.apply(late)
    assert found.grants == history.now.grants


@pytest.mark.parametrize("seed", range(8))
def test_a_map_with_one_older_record_in_it_is_none(seed):
    held, before = directory_of(a_history(seed))
    changed = [prefix for prefix in before if prefix and before[prefix] != held[prefix]]
    assert changed
    for prefix in changed:
        assert walked(held | {prefix: before[prefix]}) is None
    assert walked(held | {"": before[""]}) is None, "the head is older than the rest"


def test_a_map_that_is_not_newer_is_refused():
    held, _ = directory_of(a_history(1))
    assert walked(held, after=30).version == 31
    assert walked(held, after=31) is None
    walk = MapWalk(2, 31)
    walk.take("", held[""])
    assert not walk.wanted, "nothing more is looked up"


def test_records_that_make_no_map_are_refused():
    held, _ = directory_of(a_history(2))
    leaf = max(held, key=len)
    for bad in (None, b"", b"\x93\x01\x02\x03", encode_zone(ZoneRecord(31, 7, 1.0, "", 0))):
        with pytest.raises(MalformedZone):
            walked(held | {leaf: bad})
    cut = {"": encode_zone(ZoneRecord(1, 0, 0.0, "", 0))}
    with pytest.raises(MalformedZone):  # a half that does not reach that far
        walked(cut | {"0": encode_zone(ZoneRecord(1, 0, 5.0, "", 0))})


class EverSmaller(dict):
    """A directory in which every zone is split."""

    def get(self, prefix):
        return encode_zone(ZoneRecord(1, 0, 2.0 ** -len(prefix), "", 0))


def test_records_without_end_are_refused(monkeypatch):
    with pytest.raises(MalformedZone, match="times already"):
        walked(EverSmaller(), axes=1)
    monkeypatch.setattr(map_walk, "MAX_ZONES", 50)
    with pytest.raises(MalformedZone, match="more zones"):
        walked(EverSmaller(), axes=1)


def test_a_machine_that_adopts_a_map_keeps_what_is_its_own_and_loads_the_rest():
    history = History.begin(1)
    history.change({}, {"": "a"})
    history.change({"": Split(0, 5.0)}, {"1": "b"})
    keeper = ZoneKeeper("a", "source", ZoneMap(1))
    keeper.adopt(walked(directory_of(history, (2,))[0], axes=1), 0.0)
    keeper.tables["0"].is_loaded = True
    keeper.tables["0"].merge(Entry("s", "p", 3, 3, -1, (2.0,), ""))
    history.change({}, {"1": "a"})
    newer = walked(directory_of(history, (3,))[0], axes=1)
    asked = keeper.adopt(newer, 1.0)
    assert keeper.known.version == 3
    assert (keeper.has(["0"]), keeper.has(["1"]), len(keeper.tables["0"].entries)) == (True, False, 1)
    assert [(site, frame.prefix) for site, frame in asked] == [("source", "1")]
    history.change({}, {"0": "b"})
    keeper.known.apply(history.steps[-1])
    assert keeper.adopt(newer, 2.0) == []
    assert keeper.known.version == 4, "an older one changes nothing"
