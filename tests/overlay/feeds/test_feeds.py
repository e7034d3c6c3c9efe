"""Both ends of a feed, and the joining of inputs, against obvious twins."""

import random

import pytest

from overlay.feeds.intake import Intake
from overlay.feeds.items import Item, Kind
from overlay.feeds.receiving import Receiving, Stage
from overlay.feeds.serving import Serving
from overlay.wire.errors import MalformedFrame
from overlay.wire.frames import Batch, Ended, Frontier, Gap, Opened


def history(rng, upto):
    """Draw items for some documents up to one; gaps cover several."""
    items, number = [], 0
    while number < upto:
        begin = number
        number = min(number + rng.randint(1, 4), upto)
        kind = rng.choices([Kind.RESULTS, Kind.ERROR, Kind.GAP], [8, 1, 1])[0]
        if kind is Kind.GAP:
            items.append(Item(number, kind, after=begin))
        else:
            items.append(Item(number, kind, rng.randbytes(rng.randint(1, 40)) if kind is Kind.RESULTS else b"why"))
    return items


@pytest.mark.parametrize("seed", range(40))
def test_everything_arrives_once_within_the_credit(seed):
    rng = random.Random(seed)
    upto, window = 60, rng.randint(1, 120)
    items = history(rng, upto)
    sender, receiver = Serving(1, 0, window), Receiving(1, 0, window)
    receiver.handle(Opened(1, 0, 1))
    got, waiting = [], []
    for _ in range(500):
        frames = sender.serve([item for item in items if item.number > sender.cursor], upto)
        largest = max((len(item.data) for item in items), default=0)
        assert sum(len(f.data) for f in frames if isinstance(f, Batch)) <= window + largest
        for frame in frames:
            waiting += receiver.handle(frame)
        for item in waiting:
            for credit in receiver.use(len(item.data), 0):
                sender.grant(credit.total, credit.acknowledged)
        got, waiting = got + waiting, []
        if sender.cursor == upto:
            break
    assert receiver.covered == upto
    assert [(i.number, i.kind, i.data) for i in got] == [(i.number, i.kind, i.data) for i in items]
    assert [i.after for i in got if i.kind is Kind.GAP] == [i.after for i in items if i.kind is Kind.GAP]


def test_a_batch_larger_than_the_window_arrives():
    sender, receiver = Serving(1, 0, 10), Receiving(1, 0, 10)
    receiver.handle(Opened(1, 0, 1))
    (frame,) = sender.serve([Item(3, Kind.RESULTS, b"x" * 1000)], 3)
    assert [item.number for item in receiver.handle(frame)] == [3]
    assert sender.serve([Item(4, Kind.RESULTS, b"y")], 4) == []


def test_who_never_grants_gets_no_more_than_its_window():
    sender = Serving(1, 0, 100)
    items = [Item(n, Kind.RESULTS, b"x" * 30) for n in range(1, 1000)]
    sent = sender.serve(items, 1000) + sender.serve(items, 1000)
    assert sum(len(frame.data) for frame in sent) == 120


def test_a_jump_is_refused():
    receiver = Receiving(1, 5)
    receiver.handle(Opened(1, 5, 1))
    with pytest.raises(MalformedFrame, match="jumps from 5 to 6"):
        receiver.handle(Frontier(1, 6, 9))
    assert receiver.stage is Stage.ENDED


def test_a_sender_that_exceeds_its_credit_is_cut_off():
    receiver = Receiving(1, 0, 10)
    receiver.handle(Opened(1, 0, 1))
    receiver.handle(Batch(1, 0, 1, "", b"x" * 11, more=False))
    with pytest.raises(MalformedFrame, match="granted"):
        receiver.handle(Batch(1, 1, 2, "", b"x", more=False))


def test_what_the_sender_lacks_is_said():
    receiver = Receiving(1, 5)
    receiver.handle(Opened(1, 9, 1))
    assert (receiver.missing, receiver.covered) == (9, 5)
    receiver.skip_missing()
    receiver.handle(Frontier(1, 9, 12))
    assert receiver.covered == 12


def test_a_gap_is_told_as_one_and_no_frontier_goes_over_it():
    items = [Item(4, Kind.RESULTS, b"x"), Item(9, Kind.GAP, after=6)]
    told = Serving(1, cursor=2, granted=10).serve(items, upto=12)
    batch = Batch(1, 2, 4, "", b"x", more=False)
    assert told == [batch, Frontier(1, 4, 6), Gap(1, 6, 9), Frontier(1, 9, 12)]


def test_an_ended_feed_takes_nothing_more():
    receiver = Receiving(1, 0)
    receiver.handle(Ended(1, "busy", ""))
    assert receiver.handle(Gap(1, 0, 5)) == []
    assert (receiver.stage, receiver.why, receiver.covered) == (Stage.ENDED, "busy", 0)


def joined(histories, upto):
    """Say, document by document, what can be known: the obvious twin of ``Intake``."""
    out = {}
    for n in range(1, upto + 1):
        found = []
        for items in histories:
            at = [i for i in items if i.begin < n <= i.number and (i.kind is Kind.GAP or i.number == n)]
            found.append(at[0] if at else None)
        if any(i is not None and i.kind is Kind.GAP for i in found):
            out[n] = "gap"
        elif any(i is not None and i.kind is Kind.ERROR for i in found):
            out[n] = "error"
        elif all(i is not None for i in found):
            out[n] = tuple(i.data for i in found)
    return out


@pytest.mark.parametrize("seed", range(60))
def test_inputs_are_joined_by_document(seed):
    rng = random.Random(seed)
    upto, count = 40, rng.randint(1, 3)
    histories = [history(rng, upto) for _ in range(count)]
    intake, got, covered = Intake(count, 0), {}, [0] * count
    while min(covered) < upto:
        i = rng.randrange(count)
        if covered[i] < upto:
            rest = [item for item in histories[i] if item.number > covered[i]]
            item = rest[0] if rest else None
            covered[i] = upto if item is None else item.number
            intake.take(i, item, covered[i])
        ready = intake.ready()
        for number, _, data, _ in ready.documents:
            assert number not in got
            got[number] = data
        for trouble in ready.troubles:
            for n in range(trouble.begin + 1, trouble.number + 1):
                assert n not in got
                got[n] = trouble.kind.value
        assert ready.upto == min(covered)
    assert got == joined(histories, upto)


@pytest.mark.parametrize("kind", [Kind.RESULTS, Kind.ERROR])
def test_what_is_known_elsewhere_is_used_up_and_left_out(kind):
    intake = Intake(inputs=1, frontier=3)
    for number in (5, 6):
        intake.take(0, Item(number, kind, b"abc"), covered=6)
    ready = intake.ready(frontier=5)
    told = [number for number, *_ in ready.documents] + [item.number for item in ready.troubles]
    assert (told, ready.upto, ready.used) == ([6], 6, [6])
