"""Own records are put again in time, renewed before they end, and then forgotten."""

import msgspec
import pytest

from overlay.dht.errors import LocalTooMany
from overlay.dht.own_records import OwnRecords
from tests.overlay.dht.network import make_record


def own_of(renew=None, most=10):
    return OwnRecords(every_s=100, renew_before_s=50, most=most, renew=renew)


RECORD = make_record(life_s=1000)
START = RECORD.expires_at - 1000


def test_a_record_is_due_again_and_again_until_it_expires():
    own = own_of()
    own.add(RECORD, now=START)
    assert own.due(START + 99) == []
    assert own.due(START + 100) == [RECORD]
    own.note_put(RECORD, 3, now=START + 100)
    assert own.due(START + 199) == []
    assert own.due(START + 200) == [RECORD]
    assert own.due(START + 1000) == []
    assert own.records == 0


def test_a_record_that_reached_nobody_is_due_at_once():
    own = own_of()
    own.add(RECORD, now=START)
    own.note_put(RECORD, 0, now=START)
    assert own.due(START) == [RECORD]


def test_the_newest_version_of_a_record_is_the_one_put_again():
    own = own_of()
    newer = make_record(revision=2)
    own.add(newer, now=START)
    own.add(RECORD, now=START)
    own.note_put(RECORD, 0, now=START)
    assert own.due(START + 1) == []
    assert own.due(START + 100) == [newer]


def test_a_record_is_renewed_before_it_expires():
    successor = msgspec.structs.replace(RECORD, version=make_record(revision=2).version, expires_at=START + 5000)
    own = own_of(renew=lambda record: successor)
    own.add(RECORD, now=START + 900)
    assert own.due(START + 949) == []
    assert own.due(START + 950) == [successor]


@pytest.mark.parametrize("answer", [None, RECORD, make_record("other", revision=9)])
def test_what_is_no_successor_does_not_replace_a_record(answer):
    own = own_of(renew=lambda record: answer)
    own.add(RECORD, now=START)
    assert own.due(START + 960) == [RECORD]
    assert own.due(START + 1000) == []


def test_own_records_are_bounded_and_can_be_forgotten():
    own = own_of(most=1)
    own.add(RECORD, now=START)
    own.add(make_record(revision=2), now=START)
    with pytest.raises(LocalTooMany):
        own.add(make_record("other"), now=START)
    own.forget(RECORD.key)
    own.add(make_record("other"), now=START)
    assert own.records == 1
