"""Backups of a log in use, what is made of them, and publishing again after a restart."""

import sqlite3
import threading
from contextlib import closing

import pytest

from peer.storage import (
    Appended,
    BrokenStore,
    Missing,
    NewDocument,
    NewerStore,
    NewSubscription,
    SourceLog,
    restore,
)

EVERYTHING = 1 << 40


def document(key, body=b"<a/>"):
    return NewDocument("p", str(key), "n", body)


def test_a_publication_is_recognised_after_a_restart(tmp_path):
    for is_new in (True, False, False):
        with SourceLog.open(tmp_path / "log.db") as log:
            assert log.append([document(1), document(2)]) == [Appended(1, is_new), Appended(2, is_new)]


def test_a_backup_taken_during_writes_is_the_log_of_one_moment(tmp_path):
    paths = [tmp_path / f"backup{i}.db" for i in range(4)]
    is_over = threading.Event()

    def copy():
        for path in paths:
            log.backup(path)
        is_over.set()

    acknowledged = 0
    with SourceLog.open(tmp_path / "log.db") as log:
        log.append([document(0, bytes(3_000_000))])
        thread = threading.Thread(target=copy)
        thread.start()
        while not is_over.is_set():
            acknowledged += 4
            log.append([document(k, b"x" * 500) for k in range(acknowledged - 3, acknowledged + 1)])
        thread.join()
    lasts = []
    for path in paths:
        with SourceLog.open(path) as copied:
            lasts.append(copied.last)
            found = copied.documents(0, copied.last, EVERYTHING)
            assert [item.number for item in found] == list(range(1, copied.last + 1))
            assert (copied.last - 1) % 4 == 0
    assert lasts == sorted(lasts)


def test_a_restored_log_numbers_on_above_what_was_seen(tmp_path):
    backup, path = tmp_path / "backup.db", tmp_path / "new" / "log.db"
    with SourceLog.open(tmp_path / "log.db") as log:
        log.append([document(1), NewSubscription("s", "//a", b"", "here"), document(2)])
        log.put_state("epoch", b"5")
        log.backup(backup)
        log.append([document(3), document(4)])
    before = backup.read_bytes()
    extent = restore(backup, path, above=5)
    assert (extent.generation, extent.last) == (2, 5)
    assert backup.read_bytes() == before
    with SourceLog.open(path) as log:
        assert log.append([document(1), document(3)]) == [Appended(1, False), Appended(6, True)]
        items = log.documents(0, 6, EVERYTHING)
        assert [getattr(item, "number", item) for item in items] == [1, 3, Missing(3, 5), 6]
        assert [entry.id for entry in log.subscriptions()] == ["s"]
        assert log.get_state("epoch") == b"5"
    assert sorted(file.name for file in path.parent.iterdir()) == ["log.db"]


def test_a_restore_goes_above_a_generation_that_peers_have_seen(tmp_path):
    with SourceLog.open(tmp_path / "log.db") as log:
        log.backup(tmp_path / "backup.db")
    assert restore(tmp_path / "backup.db", tmp_path / "a.db", above=0).generation == 2
    assert restore(tmp_path / "backup.db", tmp_path / "b.db", above=0, generation_above=2).generation == 3


@pytest.mark.parametrize("ending", ["", "-wal", "-journal"])
def test_nothing_is_restored_or_backed_up_over_what_is_there(tmp_path, ending):
    there = tmp_path / f"there.db{ending}"
    there.write_bytes(b"mine")
    with SourceLog.open(tmp_path / "log.db") as log:
        log.backup(tmp_path / "backup.db")
        with pytest.raises(BrokenStore, match=r"there\.db.*: it is there already"):
            log.backup(tmp_path / "there.db")
    with pytest.raises(BrokenStore, match=r"there\.db.*: it is there already"):
        restore(tmp_path / "backup.db", tmp_path / "there.db", above=0)
    assert there.read_bytes() == b"mine"


def test_what_is_no_backup_is_refused_by_its_name_and_leaves_nothing(tmp_path):
    backup = tmp_path / "backup.db"
    with pytest.raises(BrokenStore, match=r"backup\.db: No such file"):
        restore(backup, tmp_path / "log.db", above=0)
    backup.write_bytes(b"no database at all, whatever it may be" * 30)
    with pytest.raises(BrokenStore, match=r"backup\.db: file is not a database"):
        restore(backup, tmp_path / "log.db", above=0)
    backup.unlink()
    SourceLog.open(backup).close()
    with closing(sqlite3.connect(backup)) as connection:
        connection.execute("PRAGMA user_version = 99")
    with pytest.raises(NewerStore, match=r"backup\.db: its format is 99"):
        restore(backup, tmp_path / "log.db", above=0)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["backup.db"]


def test_a_store_in_use_is_no_backup(tmp_path):
    with SourceLog.open(tmp_path / "log.db"), pytest.raises(BrokenStore, match="a store in use"):
        restore(tmp_path / "log.db", tmp_path / "new.db", above=0)


def test_what_an_interrupted_copy_left_does_not_get_into_the_next(tmp_path):
    with SourceLog.open(tmp_path / "log.db") as log:
        log.append([document(1)])
        log.backup(tmp_path / "backup.db")
        log.append([document(2)])
        # The write-ahead log of another store, valid by itself, under the name the copy's would have.
        left = (tmp_path / "log.db-wal").read_bytes()
    (tmp_path / "new.db.partial-wal").write_bytes(left)
    (tmp_path / "new.db.partial").write_bytes(b"half")
    assert restore(tmp_path / "backup.db", tmp_path / "new.db", above=0).last == 1
