"""The source's log: numbers, what is recognised, what is refused, what is read and what is dropped."""

import sqlite3
from contextlib import suppress

import pytest

from peer.storage import (
    Appended,
    CatalogEntry,
    Configuration,
    LocalMisuse,
    Missing,
    NewDocument,
    NewSubscription,
    Refused,
    Retention,
    SiteRecord,
    SourceLog,
    Start,
    Unstorable,
    Version,
    Withdrawal,
)

EVERYTHING = 1 << 40


def document(key, body=b"<a/>", publisher="p", name="n"):
    return NewDocument(publisher, str(key), name, body)


def subscription(name, start=Start.NOW, limit=None):
    return NewSubscription(name, "//a", b"columns", "here", limit, start)


@pytest.fixture
def clock():
    return Clock()


class Clock:
    now = 1000.0

    def __call__(self):
        return self.now


@pytest.fixture
def log(tmp_path, clock):
    limits = Retention(document_bytes=1000, document_age_s=100, keys=3, key_age_s=200)
    with SourceLog.open(tmp_path / "log.db", limits=limits, clock=clock) as log:
        yield log


def numbers(items):
    return [item.number for item in items]


def test_documents_and_subscriptions_share_one_numbering(log):
    outcomes = log.append([document(1), subscription("s"), document(2), Withdrawal("s")])
    assert outcomes == [Appended(1, True), Appended(2, True, 2), Appended(3, True), Appended(4, True, 2)]
    assert (log.generation, log.lowest, log.last) == (1, 0, 4)
    assert numbers(log.documents(0, 4, EVERYTHING)) == [1, 3]


def test_a_key_that_was_used_gives_its_first_number(log):
    assert log.append([document(1), document(1)]) == [Appended(1, True), Appended(1, False)]
    assert log.append([document(1), document(1, publisher="q")]) == [Appended(1, False), Appended(2, True)]


def test_a_key_with_another_body_is_refused_and_the_rest_is_kept(log):
    log.append([document(1)])
    first, second = log.append([document(1, b"<b/>"), document(2)])
    assert isinstance(first, Refused)
    assert first.number == 1
    assert "'1' of p stands for another document" in first.reason
    assert second == Appended(2, True)


def test_publishers_and_keys_do_not_run_together(log):
    assert [o.number for o in log.append([document("c", publisher="ab"), document("bc", publisher="a")])] == [1, 2]


def test_a_subscription_starts_now_or_at_the_earliest_or_behind_a_number(log, clock):
    log.append([document(k, b"x" * 500) for k in range(3)])
    log.trim(clock.now)
    outcomes = log.append(
        [
            subscription("now"),
            subscription("early", Start.EARLIEST),
            subscription("one", 1),
            subscription("late", 9),
        ]
    )
    assert outcomes[:3] == [Appended(4, True, 4), Appended(5, True, 2), Appended(6, True, 1)]
    assert outcomes[3] == Refused("subscription late cannot start behind 9: the log ends at 6")
    assert isinstance(log.append([subscription("minus", -1)])[0], Refused)


def test_a_subscription_is_recognised_by_its_id(log):
    log.append([subscription("s"), document(1)])
    assert log.append([subscription("s")]) == [Appended(1, False, 1)]
    assert log.append([subscription("s", limit=3)]) == [
        Refused("subscription s is there and says something else", 1)
    ]
    assert log.subscriptions() == [CatalogEntry("s", 1, "//a", b"columns", "here", None, 1)]


def test_a_withdrawal_ends_a_subscription_once_and_for_all(log):
    log.append([subscription("s"), document(1), Withdrawal("s")])
    assert log.append([Withdrawal("s")]) == [Appended(3, False, 1)]
    assert log.append([Withdrawal("t")]) == [Refused("there is no subscription t")]
    assert log.append([subscription("s")]) == [Refused("subscription s ended at 3; take a new id", 3)]
    assert log.subscriptions() == []
    assert [(entry.id, entry.start, entry.end) for entry in log.ended()] == [("s", 1, 3)]
    assert log.ended(after=3) == []


def test_reading_hands_out_what_fits_and_at_least_one(log):
    log.append([document(k, b"x" * 100) for k in range(4)])
    charged = 100 + 1 + 64
    assert numbers(log.documents(0, 4, 2 * charged)) == [1, 2]
    assert numbers(log.documents(0, 4, 2 * charged - 1)) == [1]
    assert numbers(log.documents(1, 3, 0)) == [2]
    assert log.documents(4, 9, 0) == []


def test_a_document_is_read_as_it_was_published(log):
    log.append([document(1, b"\0\xff", name="N\u00e4me")])
    found = log.document(1)
    assert (found.name, found.body, found.publisher, found.at) == ("N\u00e4me", b"\0\xff", "p", 1000.0)
    assert log.document(2) is None


def test_documents_beyond_the_bytes_go_and_are_told_as_missing(log, clock):
    log.append([subscription("s"), *(document(k, b"x" * 400) for k in range(3))])
    assert log.trim(clock.now) == log.lowest == 2
    assert log.documents(0, 9, EVERYTHING)[0] == Missing(0, 2)
    assert numbers(log.documents(0, 9, EVERYTHING)[1:]) == [3, 4]
    assert log.documents(0, 1, EVERYTHING) == [Missing(0, 1)]
    assert numbers(log.documents(2, 9, EVERYTHING)) == [3, 4]
    assert numbers(log.subscriptions()) == [1]
    assert log.last == 4


def test_documents_beyond_the_age_go(log, clock):
    log.append([document(1)])
    clock.now += 50
    log.append([document(2)])
    assert log.trim(1099) == 0
    assert log.trim(1100) == 1
    assert log.trim(1150) == 2
    assert log.extent().held_bytes == 0


def test_a_key_outlives_its_document_until_it_is_old_or_one_of_too_many(log, clock):
    log.append([document(k) for k in range(5)])
    log.trim(1100)
    assert log.last == log.lowest == 5
    # Three are remembered: the last ones.
    assert log.append([document(k) for k in (2, 3, 4)]) == [Appended(n, False) for n in (3, 4, 5)]
    assert log.append([document(0)]) == [Appended(6, True)]
    log.trim(1200)
    assert log.append([document(4)]) == [Appended(7, True)]


def test_the_keys_of_documents_that_are_there_are_never_too_many(log, clock):
    log.append([document(k) for k in range(9)])
    log.trim(clock.now)
    assert log.append([document(0)]) == [Appended(1, False)]


def test_a_trim_longer_than_one_transaction_goes_to_its_end(log, monkeypatch):
    monkeypatch.setattr("peer.storage.source_log.TRIMMED_AT_ONCE", 2)
    log.append([document(k) for k in range(7)])
    assert log.trim(5000) == 7


def test_a_new_generation_leaves_a_hole_that_is_told_as_missing(log):
    log.append([document(1), subscription("s"), document(2)])
    extent = log.begin_generation(10)
    assert (extent.generation, extent.last) == (2, 10)
    assert log.append([document(3)]) == [Appended(11, True)]
    assert log.documents(3, 11, EVERYTHING)[0] == Missing(3, 10)
    items = log.documents(0, 11, EVERYTHING)
    assert [getattr(i, "number", i) for i in items] == [1, 3, Missing(3, 10), 11]
    assert log.documents(5, 8, EVERYTHING) == [Missing(5, 8)]
    assert log.documents(5, 5, EVERYTHING) == log.documents(5, 4, EVERYTHING) == []


def test_a_generation_begins_above_all_that_are_known(log):
    assert log.begin_generation(0).generation == 2
    assert log.begin_generation(0, generation_above=7).generation == 8
    assert log.last == 0


def test_sites_are_replaced(log):
    log.put_site(SiteRecord("b", ("h:1", "[::1]:2"), 30, 5.0), SiteRecord("a", (), None, 1.0))
    log.put_site(SiteRecord("b", ("h:3",), 0, 6.0))
    assert log.sites() == [SiteRecord("a", (), None, 1.0), SiteRecord("b", ("h:3",), 0, 6.0)]


def test_an_older_configuration_never_replaces_a_newer_one(log):
    versions = [Version(1, 2, 0), Version(1, 1, 9), Version(1, 2, 0), Version(1, 2, 1), Version(2, 1, 0)]
    taken = [log.put_configurations([Configuration("s", v, str(v).encode())]) for v in versions]
    assert taken == [1, 0, 0, 1, 1]
    assert log.configurations() == [Configuration("s", versions[-1], str(versions[-1]).encode())]


def test_many_configurations_are_put_at_once(log):
    many = [Configuration(f"s{i:03}", Version(1, 1, 1), bytes([i])) for i in range(200)]
    assert log.put_configurations(iter(many)) == 200
    assert log.configurations() == many


def test_state_is_kept_and_forgotten(log):
    assert log.get_state("epoch") is None
    log.put_state("epoch", b"1")
    log.put_state("epoch", b"")
    assert log.get_state("epoch") == b""
    log.put_state("epoch", None)
    assert log.get_state("epoch") is None


def sign_and_fail(log):
    with log.transaction():
        log.put_state("epoch", b"2")
        log.append([document(1)])
        raise ZeroDivisionError


def test_several_writes_in_one_transaction_are_all_there_or_none(log):
    with pytest.raises(ZeroDivisionError):
        sign_and_fail(log)
    assert (log.get_state("epoch"), log.last) == (None, 0)
    with log.transaction():
        log.put_state("epoch", b"2")
        log.append([document(1)])
    assert (log.get_state("epoch"), log.last) == (b"2", 1)


def swallow_a_failure(log):
    with log.transaction():
        log.put_state("epoch", b"2")
        with suppress(sqlite3.Error):
            log.put_state("key", object())


def test_a_transaction_of_which_a_part_failed_is_not_committed(log):
    with pytest.raises(LocalMisuse, match="a part of this transaction failed"):
        swallow_a_failure(log)
    assert log.get_state("epoch") is None


def test_keys_are_kept_at_least_as_long_as_documents():
    with pytest.raises(LocalMisuse):
        Retention(document_age_s=10, key_age_s=5)


def test_an_entry_that_cannot_be_written_is_refused_and_leaves_nothing(log):
    with pytest.raises(Unstorable, match="this cannot be stored: UnicodeEncodeError"):
        log.append([document(1), document(2, name="caf\udce9.xml")])
    assert log.append([document(3)]) == [Appended(1, is_new=True)]
