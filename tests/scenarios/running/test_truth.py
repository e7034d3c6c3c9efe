"""The judge of a run: every kind of wrong that is planted into a store is found, and nothing else."""

import shutil
import sqlite3

import pytest

from peer.hosting.results import from_document, whole_link
from peer.hosting.rows import write_columns
from peer.storage.log_values import Version
from peer.storage.result_store import ResultStore
from peer.storage.result_values import Begin, Entry, Frontier, Install, Kind, Results
from scenarios.running.figures import unmet
from scenarios.running.truth import Owed, Published, Truth, judge
from scenarios.scenario_file import Expected
from xmlmatch import Document, Matcher, Pattern

TEXTS = ["//a/b{val}", "//b[.>5]{val}"]
DOCUMENTS = [Published(n, 100.0 + n, f"<r><a><b>{n}</b></a></r>".encode()) for n in range(2, 10)]


def batch(pattern, body):
    document, matcher = Document.parse(body), Matcher([pattern])
    matches = matcher.match(document)
    return from_document(whole_link(pattern), matches, 0, document) if len(matches) else None


@pytest.fixture(scope="module")
def right(tmp_path_factory):
    """A store in which everything is as it must be."""
    path = tmp_path_factory.mktemp("store") / "results.sqlite"
    with ResultStore.open(path, clock=lambda: 111.0) as store:
        for i, text in enumerate(TEXTS):
            pattern, name = Pattern.parse(text), f"s{i}"
            entries = [
                Entry(one.number, Kind.BATCH, "", data) for one in DOCUMENTS[1:]
                if (data := batch(pattern, one.body)) is not None
            ]  # fmt: skip
            store.commit([
                Begin(name, text, write_columns(pattern), 2, 1), Install(name, Version(1, 1, 1), b"c"),
                Results(name, entries, Frontier(1, 9)),
            ])  # fmt: skip
    return path


def verdict(path):
    owed = [Owed(f"s{i}", "h00", Pattern.parse(text), 2) for i, text in enumerate(TEXTS)]
    return judge({"h00": path}, owed, DOCUMENTS, Truth([one.pattern for one in owed], DOCUMENTS))


def test_what_is_right_is_right_and_timed(right):
    found = verdict(right)
    assert (found.expected, found.delivered, found.wrong, found.violations) == (7 + 4, 7 + 4, 0, [])
    assert found.times["s0"][9] == pytest.approx(111.0 - 109.0)


@pytest.mark.parametrize(
    ("planted", "said", "wrong"),
    [
        ("DELETE FROM results WHERE number = 7 AND hosted = 1", "lacks 7", 1),
        ("UPDATE results SET data = (SELECT data FROM results WHERE number = 8 AND hosted = 1) "
         "WHERE number = 7 AND hosted = 1", "another result for 7", 1),
        ("UPDATE results SET data = x'00' WHERE number = 9 AND hosted = 2", "another result for 9", 1),
        ("UPDATE results SET number = 77 WHERE number = 9 AND hosted = 2", "has 77, which is not owed", 2),
        ("UPDATE results SET number = 3 WHERE number = 9 AND hosted = 2", "3 stands after 8", 3),
    ],
)  # fmt: skip
def test_what_is_wrong_is_found(right, tmp_path, planted, said, wrong):
    path = tmp_path / "results.sqlite"
    shutil.copy(right, path)
    with sqlite3.connect(path) as connection:
        connection.execute(planted)
    found = verdict(path)
    assert any(said in one for one in found.violations)
    assert found.wrong == wrong


@pytest.mark.parametrize(("known_at", "early", "wrong"), [(112.0, 2, 0), (110.0, 0, 2)])
def test_behind_its_end_a_subscription_has_only_what_came_before_that_was_known(right, known_at, early, wrong):
    owed = [Owed("s0", "h00", Pattern.parse(TEXTS[0]), 2, end=7, end_known_at=known_at)]
    found = judge({"h00": right}, owed, DOCUMENTS, Truth([owed[0].pattern], DOCUMENTS))
    assert (found.expected, found.delivered, found.early, found.wrong) == (5, 5, early, wrong)


def test_what_came_early_must_be_right_too(right, tmp_path):
    path = tmp_path / "results.sqlite"
    shutil.copy(right, path)
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE results SET data = x'00' WHERE number = 9 AND hosted = 1")
    owed = [Owed("s0", "h00", Pattern.parse(TEXTS[0]), 2, end=7, end_known_at=112.0)]
    found = judge({"h00": path}, owed, DOCUMENTS, Truth([owed[0].pattern], DOCUMENTS))
    assert (found.early, found.wrong) == (1, 1)


def test_a_clock_that_is_ahead_does_not_make_results_late(right):
    owed = [Owed("s0", "h00", Pattern.parse(TEXTS[0]), 2)]
    found = judge({"h00": right}, owed, DOCUMENTS, Truth([owed[0].pattern], DOCUMENTS), {"h00": 1.5})
    assert found.times["s0"][9] == pytest.approx(111.0 - 109.0 - 1.5)


def test_gaps_and_errors_are_counted_not_wrong(right, tmp_path):
    path = tmp_path / "results.sqlite"
    shutil.copy(right, path)
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE results SET kind = 3, after = 6 WHERE number = 7 AND hosted = 1")
        connection.execute("UPDATE results SET kind = 2 WHERE number = 8 AND hosted = 2")
    found = verdict(path)
    assert (found.gaps, found.errors, found.wrong, found.delivered) == (1, 1, 0, 9)


def test_what_was_expected_and_is_not_so_is_said():
    found = {
        "is_complete": False, "errors": 2, "source_feeds": 9, "source_share": 0.5, "failovers": 0, "gaps": 1,
        "delivery_s": {"avg": 2.0}, "view_latency_s": {"avg": 1.0},
    }  # fmt: skip
    said = unmet(Expected(source_feeds_at_most=8, failovers_at_least=1, delivery_s_at_most=2.0), found)
    assert said == [
        "not everybody was complete in time", "2 documents could not be processed",
        "expected source feeds at most 8, and it is 9", "expected failovers at least 1, and it is 0",
        "expected gaps at most 0, and it is 1",
    ]  # fmt: skip


def with_relay(right, path):
    """Copy the store, and add a relay that has all documents."""
    whole = Pattern.parse("/*{cont}")
    shutil.copy(right, path)
    with ResultStore.open(path, clock=lambda: 111.0) as store:
        kept = [Entry(one.number, Kind.BATCH, "", batch(whole, one.body)) for one in DOCUMENTS[1:]]
        store.commit([Begin("r", whole.text, write_columns(whole), 2, 1), Results("r", kept, Frontier(1, 9))])
    return path


def test_references_are_right_if_what_they_refer_to_is(right, tmp_path):
    path = with_relay(right, tmp_path / "results.sqlite")
    with sqlite3.connect(path) as connection:
        meant = "(SELECT seq FROM results AS d WHERE d.number = results.number AND d.hosted = 3)"
        connection.execute(f"UPDATE results SET kind = 5, data = x'', document = {meant} WHERE hosted = 1")
    found = verdict(path)
    assert (found.delivered, found.wrong) == (7 + 4, 0)
    with sqlite3.connect(path) as connection:
        other = "(SELECT data FROM results WHERE hosted = 3 AND number = 8)"
        connection.execute(f"UPDATE results SET data = {other} WHERE hosted = 3 AND number = 7")
    assert [one.split(") ")[-1] for one in verdict(path).violations] == ["has another result for 7"]
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE results SET document = NULL WHERE hosted = 1 AND number = 8")
        connection.execute("UPDATE results SET data = x'00' WHERE hosted = 3 AND number = 7")
    said = [one.split(") ")[-1] for one in verdict(path).violations]
    assert said == ["has another result for 7", "has another result for 8"]


def test_what_was_followed_is_judged_by_the_document_and_who_followed_it(right, tmp_path):
    path = with_relay(right, tmp_path / "results.sqlite")
    with sqlite3.connect(path) as connection:
        connection.execute("DELETE FROM results WHERE hosted = 1")
        connection.execute(
            "INSERT INTO followed (number, document, followers)"
            " SELECT number, seq, x'01' FROM results WHERE hosted = 3"
        )
    found = verdict(path)
    assert (found.delivered, found.wrong) == (7 + 4, 0)
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE followed SET followers = x'00' WHERE number = 7")
        other = "(SELECT data FROM results WHERE hosted = 3 AND number = 9)"
        connection.execute(f"UPDATE results SET data = {other} WHERE hosted = 3 AND number = 8")
    said = sorted(one.split(") ")[-1] for one in verdict(path).violations)
    assert said == ["has another result for 8", "lacks 7"]
