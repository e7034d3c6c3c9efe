"""A process that writes to both stores until it is killed, and tells on its output what has been committed.

Every document and result says which commit it belongs to and how many there are in it, so that a half would show.
"""

import random
import sys
from pathlib import Path

from peer.storage import (
    Begin,
    Cursor,
    Entry,
    Frontier,
    Kind,
    NewDocument,
    ResultLimits,
    Results,
    ResultStore,
    Retention,
    SourceLog,
)

LIMITS = Retention(document_bytes=200_000)
RESULT_LIMITS = ResultLimits(kept_bytes=100_000, hard_bytes=200_000)


def body_of(key):
    """The body of a key ``commit.place.count``: some go over several pages."""
    return key.encode() * (1 + hash_of(key) % 7 * 150)


def hash_of(key):
    return sum(key.encode())


def keys_of(commit, rng):
    count = rng.randint(1, 5)
    return [f"{commit}.{place}.{count}" for place in range(count)]


def document(key):
    return NewDocument("p", key, "n", body_of(key))


def open_both(folder):
    return SourceLog.open(folder / "log.db", limits=LIMITS), ResultStore.open(
        folder / "results.db", limits=RESULT_LIMITS
    )


def say(text):
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def main(folder, seed):
    rng = random.Random(seed)
    log, results = open_both(Path(folder))
    results.commit([Begin("s", "//a", b"", 0, 1)])
    say("ready")
    commit = seed * 1_000_000
    keys = []
    while True:
        commit += 1
        # The last publication is sent again with the next ones.
        keys = keys[-1:] + keys_of(commit, rng)
        outcomes = log.append([document(key) for key in keys])
        say("log " + " ".join(f"{key}={outcome.number}" for key, outcome in zip(keys, outcomes, strict=True)))
        upto = results.frontier("s").upto
        new = keys_of(commit, rng)
        # The last entry is sent again with the next ones.
        again = [Entry(upto, Kind.ERROR, "again")] if upto else []
        entries = again + [Entry(upto + 1 + i, Kind.BATCH, key, body_of(key)) for i, key in enumerate(new)]
        results.commit([Results("s", entries, Frontier(1, upto + len(new))), Cursor("s", "c", upto)])
        say(f"results {upto + len(new)} {upto}")
        if rng.random() < 0.1:
            log.trim(0)
            results.trim(0)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
