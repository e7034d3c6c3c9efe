"""The file under a store: private, of one format, written by one at a time, read by many, never half-written."""

import sqlite3
import stat
import threading
from contextlib import closing

import pytest

from peer.storage import BrokenStore, DiskFull, LocalMisuse, NewDocument, NewerStore, ResultStore, SourceLog
from peer.storage.database import Database, Schema

ONE = Schema("a test's store", 77, (("CREATE TABLE t (a INTEGER)", "INSERT INTO t VALUES (1)"),))
TWO = Schema("a test's store", 77, (*ONE.steps, ("ALTER TABLE t ADD COLUMN b INTEGER", "UPDATE t SET b = a + 1")))


def rows(database):
    with database.reading() as connection:
        return connection.execute("SELECT * FROM t").fetchall()


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


def test_a_store_is_readable_by_its_owner_alone(tmp_path):
    path = tmp_path / "state" / "log.db"
    with SourceLog.open(path) as log:
        log.append([NewDocument("p", "1", "n", b"<a/>")])
        files = {file.name: mode(file) for file in path.parent.iterdir()}
        assert files == {"log.db": 0o600, "log.db-wal": 0o600, "log.db-shm": 0o600}
        assert mode(path.parent) == 0o700
        log.backup(tmp_path / "copy.db")
    assert mode(tmp_path / "copy.db") == 0o600


def test_a_store_that_others_could_read_is_closed_to_them(tmp_path):
    path = tmp_path / "log.db"
    SourceLog.open(path).close()
    path.chmod(0o644)
    SourceLog.open(path).close()
    assert mode(path) == 0o600


def test_every_commit_is_forced_to_disk(tmp_path):
    with closing(Database(tmp_path / "t.db", ONE)) as database, database.transaction() as connection:
        found = [
            connection.execute(f"PRAGMA {name}").fetchone()[0]
            for name in ("journal_mode", "synchronous", "foreign_keys", "busy_timeout")
        ]
    assert found == ["wal", 2, 1, 5000]


def test_a_path_may_hold_signs_that_mean_something_in_an_address(tmp_path):
    path = tmp_path / "a?mode=ro&b#c%41.db"
    SourceLog.open(path).close()
    assert path.exists()


def test_an_older_format_is_brought_up_to_date(tmp_path):
    path = tmp_path / "t.db"
    Database(path, ONE).close()
    with closing(Database(path, TWO)) as database:
        assert rows(database) == [(1, 2)]
    with closing(Database(path, TWO)) as database:
        assert rows(database) == [(1, 2)]


def test_a_step_that_fails_leaves_the_older_format(tmp_path):
    path = tmp_path / "t.db"
    Database(path, ONE).close()
    wrong = Schema("a test's store", 77, (*ONE.steps, ("ALTER TABLE t ADD COLUMN b", "UPDATE nowhere SET b = 1")))
    with pytest.raises(BrokenStore, match="no such table"):
        Database(path, wrong)
    with closing(Database(path, ONE)) as database:
        assert rows(database) == [(1,)]


def test_a_newer_format_is_left_alone_and_the_user_told_what_to_do(tmp_path):
    path = tmp_path / "t.db"
    Database(path, TWO).close()
    before = path.read_bytes()
    with pytest.raises(NewerStore) as caught:
        Database(path, ONE)
    assert str(caught.value) == (
        f"{path}: its format is 2, this program knows up to 1; run the newer program that wrote it"
    )
    assert path.read_bytes() == before


@pytest.mark.parametrize("content", [b"a text that is no database, and long enough to be seen as none" * 20, None])
def test_another_kind_of_file_is_refused_and_left_alone(tmp_path, content):
    path = tmp_path / "t.db"
    if content is None:
        ResultStore.open(path).close()
    else:
        path.write_bytes(content)
    before = path.read_bytes()
    with pytest.raises(BrokenStore, match=r"it is not a source's log|file is not a database"):
        SourceLog.open(path)
    assert path.read_bytes() == before


def test_a_folder_is_no_store(tmp_path):
    with pytest.raises(BrokenStore, match="unable to open"):
        SourceLog.open(tmp_path)


def documents(keys, size):
    return [NewDocument("p", str(key), "n", bytes(size)) for key in keys]


def test_a_full_disk_loses_nothing_and_leaves_nothing_half_written(tmp_path):
    path = tmp_path / "log.db"
    with SourceLog.open(path) as log:
        log.append(documents([1], 10))
        with log._database.transaction() as connection:
            [[pages]] = connection.execute("PRAGMA page_count")
            connection.execute(f"PRAGMA max_page_count = {pages + 20}").fetchall()
        with pytest.raises(DiskFull, match="the disk is full; make room"):
            log.append(documents([2, 3, 4], 50_000))
        assert log.last == 1
        assert [outcome.number for outcome in log.append(documents([5], 10))] == [2]
    with SourceLog.open(path) as log:
        assert (log.last, log.document(3), log.extent().held_bytes) == (2, None, 2 * (10 + 1 + 64))
        assert [outcome.number for outcome in log.append(documents([2], 50_000))] == [3]


def test_a_second_thread_that_writes_at_the_same_time_is_refused(tmp_path):
    caught = []

    def write():
        try:
            log.put_state("a", b"")
        except LocalMisuse as exc:
            caught.append(str(exc))

    with SourceLog.open(tmp_path / "log.db") as log:
        with log.transaction():
            run(write)
        run(write)
        assert log.get_state("a") == b""
    assert len(caught) == 1
    assert "two threads write at once" in caught[0]


def run(target):
    thread = threading.Thread(target=target)
    thread.start()
    thread.join()


def test_readers_in_other_threads_see_whole_commits_while_the_writer_goes_on(tmp_path):
    wrong = []
    is_over = threading.Event()

    def read():
        while not is_over.is_set():
            last = log.last
            keys = [item.number for item in log.documents(0, last, 1 << 30)]
            if last % 3 or keys != list(range(1, last + 1)):
                wrong.append((last, keys))

    with SourceLog.open(tmp_path / "log.db") as log:
        threads = [threading.Thread(target=read) for _ in range(3)]
        for thread in threads:
            thread.start()
        for first in range(0, 90, 3):
            log.append(documents(range(first, first + 3), 10))
        is_over.set()
        for thread in threads:
            thread.join()
        assert len(log._database._idle) <= 4
    assert wrong == []


def test_what_is_read_in_one_reading_is_of_one_moment(tmp_path):
    with closing(Database(tmp_path / "t.db", ONE)) as database:
        with database.reading() as reader:
            before = reader.execute("SELECT * FROM t").fetchall()
            with database.transaction() as writer:
                writer.execute("INSERT INTO t VALUES (2)")
            assert reader.execute("SELECT * FROM t").fetchall() == before == [(1,)]
        assert rows(database) == [(1,), (2,)]


def test_a_closed_store_says_so(tmp_path):
    log = SourceLog.open(tmp_path / "log.db")
    log.close()
    with pytest.raises(LocalMisuse, match="it is closed"):
        _ = log.last


def test_a_reader_that_ends_after_the_store_was_closed_leaves_no_connection(tmp_path):
    database = Database(tmp_path / "t.db", ONE)
    with database.reading() as connection:
        database.close()
    with pytest.raises(sqlite3.ProgrammingError):
        connection.execute("SELECT 1")
