"""Payloads cross a link once while the caps allow, and always arrive: whatever the caps, the mix, and the
faults."""

import random
from collections import Counter

import pytest

from overlay.content import frames
from overlay.payloads.desk import Desk
from overlay.payloads.directory import Directory
from overlay.payloads.payload import BadPayload, payload_id, put_back, take_out
from overlay.payloads.repository import Repository
from scenarios.hosts.links import Link
from scenarios.simulation.content import SOURCE, ContentWorld
from scenarios.simulation.content_drawn import Drawn
from tests.overlay.content.drawn import PRICES, a_filter, a_message, a_region

PHOTOS = tuple(str(i) * 300 for i in range(6))
ROUTINGS = pytest.mark.parametrize(
    ("to_neighbours", "access"), [(False, ""), (True, ""), (True, "m0")], ids=["tree", "neighbours", "through one"]
)


def a_world(caps, *, seed=1, to_neighbours=False, access=""):
    world = ContentWorld(seed, PRICES, link=Link(rtt_ms=10), to_neighbours=to_neighbours, access=access)
    for i, cap in enumerate(caps):
        world.add(f"m{i}", cap_bytes=cap)
        for k in range(8):
            world.subscribe(f"s{i}{k}", f"m{i}", a_filter(world.agenda.rng, PRICES))
        world.agenda.run(world.agenda.now + 0.5)
    world.finish()
    return world


def publish(world, photo, **more):
    world.publish({**a_message(world.agenda.rng, PRICES), **more, "photo": photo}, payload=["photo"])


def publish_one_by_one(world, count=40):
    for _ in range(count):
        publish(world, world.agenda.rng.choice(PHOTOS))
        world.agenda.run(world.agenda.now + 0.5)


@ROUTINGS
def test_a_payload_crosses_a_link_once(to_neighbours, access):
    world = a_world([1 << 20] * 8, to_neighbours=to_neighbours, access=access)
    publish_one_by_one(world, 120)
    assert max(world.crossed.values()) == 1
    assert world.sent["Spread"] > 2 * len(world.crossed), "most messages came without"
    assert world.sent.get("Fetch", 0) == 0, "and nobody had to ask"
    assert world.finish() == []


@pytest.mark.parametrize("caps", [[0] * 6, [350] * 6, [None] * 6, [None, 0, 1 << 20, 350, None, 1 << 20]], ids=str)
@ROUTINGS
def test_everybody_gets_whole_messages_whatever_the_caps_and_the_mix(caps, to_neighbours, access):
    world = a_world(caps, to_neighbours=to_neighbours, access=access)
    for _ in range(3):
        publish_one_by_one(world, 8)
        for photo in PHOTOS:
            publish(world, photo)
    assert world.finish() == []
    got = [item for m in world.machines.values() for one in m.inbox.received.values() for item in one.values()]
    assert len(got) > 50
    assert all(item["photo"] in PHOTOS for item in got)
    for machine in world.machines.values():
        if machine.cap_bytes is not None:
            assert machine.node.desk.repository.size_bytes <= machine.cap_bytes


def test_a_plain_node_always_gets_the_payload_and_never_says_so():
    world = a_world([1 << 20, None, None, 1 << 20])
    publish_one_by_one(world, 60)
    plain = [times for (_, to, _), times in world.crossed.items() if to in ("m1", "m2")]
    stars = [times for (_, to, _), times in world.crossed.items() if to in ("m0", "m3")]
    assert max(plain) > 2
    assert max(stars) > 1, "what comes through a plain node comes whole"
    direct = [n for (by, to, _), n in world.crossed.items() if {by, to} <= {"m0", "m3", SOURCE}]
    assert max(direct) == 1


def test_a_filter_may_ask_about_what_is_in_the_payload():
    world = a_world([1 << 20] * 4)
    world.subscribe("photo", "m0", f"photo = '{PHOTOS[1]}'")
    publish_one_by_one(world, 25)
    assert world.finish() == []
    assert world.machines["m0"].inbox.received["photo"]


@pytest.mark.parametrize("caps", [[1 << 20] * 5, [0] * 5, [None, 1 << 20, 0, None, 1 << 20]], ids=str)
def test_a_corrupted_payload_is_noticed_and_fetched_again(caps):
    world = a_world(caps)
    world.corrupt = 0.4
    publish_one_by_one(world, 20)
    assert world.finish() == []


@pytest.mark.parametrize("seed", range(8))
def test_payloads_arrive_whatever_happens(seed):
    world = ContentWorld(seed, PRICES, link=Link(rtt_ms=30, jitter_ms=10), to_neighbours=seed % 2 == 1)
    drawn = Drawn(
        world,
        wanted=lambda rng: a_filter(rng, PRICES),
        message=lambda rng: {**a_message(rng, PRICES), "photo": rng.choice(PHOTOS)},
        region=lambda rng: a_region(rng, PRICES),
        payload=("photo",),
        cap_bytes=lambda rng: rng.choice((None, 0, 700, 1 << 20)),
    )
    drawn.begin(5, 30)
    world.corrupt = 0.05
    drawn.run(120)
    assert world.finish() == [], drawn.faults


# Broken on purpose.


def set_the_bit_at_once(monkeypatch):
    """Believe that what was sent has arrived, and was understood."""
    outgoing = Desk.outgoing

    def believing(self, site, message):
        going = outgoing(self, site, message)
        if going is not None and going.payload_id:
            self.kept(site, going.payload_id)
        return going

    monkeypatch.setattr(Desk, "outgoing", believing)


def trust_the_payload(monkeypatch):
    """Take whatever comes for what its hash says."""
    monkeypatch.setattr("overlay.payloads.desk.payload_id", lambda payload: ANY)


def ask_the_source_only(monkeypatch):
    """Never ask the origin."""
    ask = Desk._ask

    def again(self, key, now):
        if key in self._fetching:
            self._fetching[key].tries = 0
        return ask(self, key, now)

    monkeypatch.setattr(Desk, "_ask", again)


class _Any:
    __hash__ = None

    def __eq__(self, other):
        return True


ANY = _Any()


def a_mixed_run(corrupt):
    world = a_world([350, 0, 350, None, 350, None, 350])
    world.corrupt = corrupt
    publish_one_by_one(world, 30)
    for _ in range(6):
        for photo in PHOTOS:  # at once: who had a payload may have dropped it when it is asked
            publish(world, photo)
        world.agenda.run(world.agenda.now + 1.0)
    return world.finish()


@pytest.mark.parametrize(
    ("broken", "corrupt"), [(set_the_bit_at_once, 0.0), (trust_the_payload, 0.3), (ask_the_source_only, 0.0)]
)
def test_a_broken_desk_is_found_out(broken, corrupt, monkeypatch):
    assert a_mixed_run(corrupt) == []
    broken(monkeypatch)
    try:
        wrong = a_mixed_run(corrupt)
    except BadPayload as exc:
        wrong = [str(exc)]
    assert wrong


# The parts.


def test_a_payload_is_put_back_as_it_was_and_known_by_its_content():
    message = {"a": "1", "b": "2", "c": "3"}
    rest, payload = take_out(message, ["c", "b", "absent"])
    assert rest == {"a": "1"}
    assert put_back(rest, payload) == message
    assert take_out({"b": "2", "c": "3", "a": "9"}, ["b", "c"])[1] == payload
    assert payload_id(payload) != payload_id(payload + b"x")
    with pytest.raises(BadPayload):
        put_back(rest, payload + b"x")
    with pytest.raises(BadPayload, match="above"):
        take_out({"b": "x" * (9 << 20)}, ["b"])


def test_a_repository_never_exceeds_its_cap_and_drops_what_was_used_longest_ago():
    rng = random.Random(1)
    for cap in (0, 10, 100):
        kept, model = Repository(cap), []
        for _ in range(2000):
            key = bytes([rng.randrange(30)])
            if rng.random() < 0.5:
                assert (kept.get(key) is not None) == (key in model)
                if key in model:
                    model.remove(key)
                    model.append(key)
            else:
                kept.put(key, key * 7)
                if cap >= 7:
                    model = [one for one in model if one != key] + [key]
                model = model[-(cap // 7) :] if cap >= 7 else []
            assert kept.size_bytes == 7 * len(kept) <= cap


def test_what_has_crossed_every_link_goes_first():
    kept = Repository(21)
    for key in (b"a", b"b", b"c"):
        kept.put(key, key * 7)
    kept.settle(b"b")
    kept.put(b"d", b"d" * 7)
    assert b"b" not in kept
    assert b"a" in kept
    kept.settle(b"c")
    kept.unsettle()
    kept.put(b"e", b"e" * 7)
    assert b"a" not in kept
    assert b"c" in kept


def test_a_directory_forgets_links_that_start_anew_and_what_is_above_its_cap():
    directory = Directory(most=50)
    rng, model, links = random.Random(2), {}, Counter()
    for _ in range(5000):
        key, site = bytes([rng.randrange(40)]), f"n{rng.randrange(6)}"
        what = rng.random()
        if what < 0.05:
            links[site] += 1
            directory.link(site, links[site])
            model = {one: True for one in model if one[1] != site}
        elif what < 0.5:
            directory.set(key, site)
            model[key, site] = True
        else:
            assert directory.has(key, site) == model.get((key, site), False)
    for i in range(1000):
        directory.set(i.to_bytes(2), "n0")
    assert len(directory) == 50
    assert not Directory(0).has(b"x", "n0")


def test_a_node_asks_its_source_and_then_the_origin():
    desk = Desk("me", SOURCE, cap_bytes=0)
    payload = b"\x90"
    message = frames.Message(1, 0, 0, {}, (), ("p",), payload_id(payload), "near", None)
    assert desk.fetch(message, 0.0) == [("near", frames.Fetch(message.payload_id))]
    assert desk.fetch(message, 0.1) == [], "once is enough"
    assert desk.arrived(frames.Payload(message.payload_id, None), 0.2) == (
        None,
        [(SOURCE, frames.Fetch(message.payload_id))],
    )
    assert desk.arrived(frames.Payload(message.payload_id, b"other"), 0.25) == (None, []), "not at once again"
    assert desk.tick(0.3) == []
    assert desk.tick(1.5) == [(SOURCE, frames.Fetch(message.payload_id))]
    assert desk.arrived(frames.Payload(message.payload_id, payload), 1.6) == (payload, [])
    assert desk.tick(9.0) == []
    assert desk.fetched == 1
    desk.fetch(message, 10.0)
    desk.keep_fetching(set())
    assert desk.tick(20.0) == [], "nobody waits for it any more"
