"""Watching a network of processes from outside: how far subscriptions are, processor time, memory.

How the measuring stays out of the figures. A peer commits results and the frontier they reach in one transaction,
and its file may be read by others beside it. So the frontiers are read here, in the benchmark's own process, as
often as wanted: no daemon is asked anything while its processor time is counted. A look at a file that has not
changed costs a few microseconds. What the watching itself takes is reported; on a machine with few cores it delays
the rest a little, so delivery times are rather too long than too short.
"""

import os
import sqlite3
import threading
import time
from pathlib import Path

import numpy as np

LOOK_S = 0.02
NO_RELAY = "id NOT LIKE 'documents-%'"
"""Relays come and go while documents flow, and nobody reads what they have."""
_TICK_S = 1 / os.sysconf("SC_CLK_TCK")


class TooLate(Exception):
    """Not everything was complete in time."""


class Watch:
    """Notes when the frontiers of subscriptions move, in the files given, while the block runs."""

    def __init__(self, files, look_s=LOOK_S):
        self._look_s = look_s
        self._open = [
            sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, check_same_thread=False)
            for path in files
        ]
        self._versions = [None] * len(files)
        self._seen = [[] for _ in files]  # per file: when, and the frontiers then
        self._lowest = [0] * len(files)
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self.cpu_s = 0.0

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._ended.set()
        self._thread.join()
        for connection in self._open:
            connection.close()

    def wait(self, upto, patience_s):
        """Wait until every subscription is complete up to a document."""
        end = time.monotonic() + patience_s
        while min(self._lowest) < upto:
            if time.monotonic() > end or not self._thread.is_alive():
                late = sum(int((seen[-1][1] < upto).sum()) for seen in self._seen)
                raise TooLate(f"{late} subscriptions are not complete after {patience_s:.0f} s")
            time.sleep(self._look_s)

    def times(self, numbers):
        """Return when each subscription was complete up to each document: a row per subscription."""
        rows = []
        for seen in self._seen:
            when = np.array([at for at, _ in seen])
            frontiers = np.stack([found for _, found in seen])
            rows += [when[np.searchsorted(column, numbers)] for column in frontiers.T]
        return np.array(rows)

    def _run(self):
        begun = time.thread_time()
        while not self._ended.is_set():
            for i, connection in enumerate(self._open):
                [[version]] = connection.execute("PRAGMA data_version")
                if version != self._versions[i]:
                    self._versions[i] = version
                    self._look(i, connection)
            self.cpu_s = time.thread_time() - begun
            time.sleep(self._look_s)

    def _look(self, i, connection):
        asked = f"SELECT upto FROM standings JOIN hosted ON hosted = key WHERE {NO_RELAY} ORDER BY hosted"
        rows = connection.execute(asked).fetchall()
        found = np.array(rows, np.int64).reshape(-1)
        self._seen[i].append((time.monotonic(), found))
        if len(found):
            self._lowest[i] = int(found.min())


def batches(files, first, last):
    """Count the results that were stored for the documents of [first, last]; what relays store is none."""
    count = 0
    for path in files:
        connection = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)
        asked = (
            "SELECT count(*) FROM results JOIN hosted ON hosted = key"
            f" WHERE kind IN (1, 5) AND number BETWEEN ? AND ? AND {NO_RELAY}"
        )
        count += connection.execute(asked, (first, last)).fetchone()[0]
        followed = connection.execute("SELECT followers FROM followed WHERE number BETWEEN ? AND ?", (first, last))
        count += sum(sum(flags) for (flags,) in followed)
        connection.close()
    return count


def cpu_s(pid):
    """Return the processor time of a process, all its threads and what the system did for it."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) * _TICK_S


def machine_cpu_s():
    """Return the processor time of everything on this machine: what others took says how far to trust times."""
    fields = list(map(int, Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]))
    user, nice, system, _, _, irq, softirq, *_ = fields
    return (user + nice + system + irq + softirq) * _TICK_S


def memory_mb(pid):
    """Return the resident memory of a process, and its share of it where pages are shared."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:]
    kilobytes = {line.split(":")[0]: int(line.split()[1]) for line in lines}
    return kilobytes["Rss"] * 1024 / 1e6, kilobytes["Pss"] * 1024 / 1e6
