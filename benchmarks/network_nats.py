"""The rival of ``benchmarks.network``: every document goes to every host by nats-server, and is matched there.

A host is a process of its own, this module: it reads the text protocol of NATS from a plain socket, matches every
document against its subscriptions, and stores: the results, each written out, or the document and a byte for each
subscription, as a peer behind a relay does. It counts what each step takes, so that matching alone can be told
from storing. There is no TLS here, nobody passes anything on, and nothing is fetched again after a failure.
"""

import json
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack, contextmanager
from pathlib import Path

import numpy as np

from benchmarks.network_watch import cpu_s
from peer.hosting.results import DOCUMENTS, from_document, whole_link
from peer.hosting.rows import write_columns
from peer.storage.result_store import ResultStore
from peer.storage.result_values import Begin, Entry, Followers, Frontier, Kind, Results, Together
from peer.warm import warm_peer
from xmlmatch import Document, Matcher, Pattern

SERVER = "nats-server"
SUBJECT = "documents"
WITHOUT = f"{SERVER} is not on PATH"
_CONNECT = b'CONNECT {"verbose":false,"pedantic":false,"name":"host"}\r\n'
# A host that is behind is waited for: on a busy machine the server would cut it off after some seconds.
_SETTINGS = 'ping_interval: "60m"\nwrite_deadline: "60m"\nmax_pending: 1GB\n'
_STEPS = ("match", "encode", "store")
_END_S = 600
_DOCUMENTS = "documents"


def find_server():
    """Return the path of the server, None if there is none."""
    return shutil.which(SERVER)


def measure(patterns_of, bodies, rate, keeps):
    """Send all documents to all hosts, at a rate and then at once; ``patterns_of``: the patterns per host.
    ``keeps``: "results" or "documents"."""
    with tempfile.TemporaryDirectory(prefix="bench-nats-") as name, ExitStack() as stack:
        server, port = stack.enter_context(_server(Path(name)))
        hosts = [
            stack.enter_context(
                _host(Path(name) / f"host-{i}", port, [p.text for p in patterns], 2 * len(bodies), keeps)
            )
            for i, patterns in enumerate(patterns_of)
        ]
        if any(host.stdout.readline() != b"ready\n" for host in hosts):
            raise RuntimeError("a host of the rival did not start")
        pids = [server.pid, *(host.pid for host in hosts)]
        before = [cpu_s(pid) for pid in pids]
        due = _publish(port, bodies, rate)
        first = [json.loads(host.stdout.readline()) for host in hosts]  # told after the half
        spent = np.array([cpu_s(pid) for pid in pids]) - before
        begun, before = time.monotonic(), [cpu_s(pid) for pid in pids]
        _publish(port, bodies, None)
        second = [json.loads(host.stdout.readline()) for host in hosts]
        total = float(sum(cpu_s(pid) for pid in pids) - sum(before))
        return _told(due, first, spent) | {
            "documents_per_s": round(len(bodies) / (max(one["at"][-1] for one in second) - begun), 2),
            "at_once_cpu_s": round(total, 2),
            "at_once_matching_cpu_s": round(total - _beside_matching(second), 2),
        }


def _told(due, hosts, spent):
    done = np.array([one["at"] for one in hosts])
    delivery = done.max(axis=0) - due
    count = sum(one["batches"] for one in hosts)
    total, bytes_out = float(spent.sum()), sum(one["bytes"] for one in hosts)
    matching = total - _beside_matching(hosts)
    return {
        "documents": len(due),
        "batches": count,
        "delivery_p50_s": round(float(np.percentile(delivery, 50)), 3),
        "delivery_p99_s": round(float(np.percentile(delivery, 99)), 3),
        "view_latency_s": round(float((done - due).mean()), 3),
        "source_cpu_s": round(float(spent[0]), 2),
        "source_mb_out": round(bytes_out / 1e6, 2),
        "total_mb_out": round(bytes_out / 1e6, 2),
        "total_cpu_s": round(total, 2),
        "matching_cpu_s": round(matching, 2),
        "cpu_ms_per_batch": round(total / count * 1000, 3),
    }


def _beside_matching(hosts):
    """Return what hosts took for anything but getting and matching documents."""
    return sum(one["cpu"][step] for one in hosts for step in _STEPS if step != "match")


def _publish(port, bodies, rate):
    """Publish documents; return when each was due."""
    with _connected(port) as wire, wire.makefile("rb") as lines:
        begun, due = time.monotonic(), []
        for i, body in enumerate(bodies):
            at = begun + i / rate if rate else time.monotonic()
            time.sleep(max(0.0, at - time.monotonic()))
            due.append(at)
            wire.sendall(b"PUB %s %d\r\n%s\r\n" % (SUBJECT.encode(), len(body), body))
        wire.sendall(b"PING\r\n")  # it is answered when the server has everything
        while lines.readline().strip() not in (b"PONG", b""):
            pass
    return np.array(due)


@contextmanager
def _server(folder):
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    (folder / "server.conf").write_text(_SETTINGS)
    command = [find_server(), "-c", str(folder / "server.conf"), "-a", "127.0.0.1", "-p", str(port)]
    command += ["-l", str(folder / "server.log")]
    process = subprocess.Popen(command)
    try:
        yield process, port
    finally:
        process.terminate()
        process.wait()


@contextmanager
def _connected(port):
    """Connect to the server, once it listens."""
    end = time.monotonic() + 10
    while True:
        try:
            wire = socket.create_connection(("127.0.0.1", port))
            break
        except ConnectionRefusedError:
            if time.monotonic() > end:
                raise
            time.sleep(0.05)
    with wire:
        wire.sendall(_CONNECT)
        yield wire


@contextmanager
def _host(folder, port, patterns, documents, keeps):
    folder.mkdir()
    (folder / "patterns.json").write_text(json.dumps(patterns))
    command = [sys.executable, "-m", "benchmarks.network_nats", str(folder), str(port), str(documents), keeps]
    process = subprocess.Popen(command, stdout=subprocess.PIPE)
    try:
        yield process
    finally:
        process.terminate()
        process.wait()


class _Host:
    """Matches and stores documents as they come."""

    def __init__(self, folder, patterns, keeps):
        self.keeps = keeps
        self.store = ResultStore.open(folder / "results.sqlite")
        self.patterns = patterns
        self.distinct = list(dict.fromkeys(patterns))
        place = {pattern: i for i, pattern in enumerate(self.distinct)}
        self.keys = [place[pattern] for pattern in patterns]
        self.links = [whole_link(pattern) for pattern in self.distinct]
        self.matcher = Matcher(self.distinct)
        self.number = 0
        self.store.commit(
            [Begin(f"s{i}", p.text, write_columns(p), 0, 1) for i, p in enumerate(patterns)]
            + [Begin(_DOCUMENTS, DOCUMENTS.text, write_columns(DOCUMENTS), 0, 1)]
        )
        self.names = [f"s{i}" for i in range(len(patterns))]
        self.restart()

    def restart(self):
        self.cpu, self.at, self.bytes, self.batches = dict.fromkeys(_STEPS, 0.0), [], 0, 0

    def take(self, body):
        self.number += 1
        marks = [time.process_time()]
        document = Document.parse(body)
        matches = self.matcher.match(document)
        marks.append(time.process_time())
        (self._keep_results if self.keeps == "results" else self._keep_document)(body, document, matches, marks)
        marks.append(time.process_time())
        for step, begin, end in zip(_STEPS, marks, marks[1:], strict=False):
            self.cpu[step] += end - begin
        self.at.append(time.monotonic())

    def _keep_document(self, body, document, matches, marks):
        """Keep the document, and who has results in it."""
        matched = set(matches.keys.tolist())
        flags = bytes(key in matched for key in self.keys)
        marks.append(time.process_time())
        own = Results(_DOCUMENTS, [Entry(self.number, Kind.BATCH, "", body)], Frontier(1, self.number))
        self.store.commit([Together([own], Followers(self.names, [flags]))])
        self.batches += sum(flags)

    def _keep_results(self, body, document, matches, marks):
        """Keep everybody's results."""
        made = {
            key: from_document(self.links[key], matches, place, document)
            for place, key in enumerate(matches.keys.tolist())
        }  # equal subscriptions of a host are matched and encoded once, as a peer does it
        found = {i: made[key] for i, key in enumerate(self.keys) if key in made}
        marks.append(time.process_time())
        upto = Frontier(1, self.number)
        self.store.commit(
            [
                Results(f"s{i}", [Entry(self.number, Kind.BATCH, "", found[i])] if i in found else [], upto)
                for i in range(len(self.patterns))
            ]
        )
        self.batches += len(found)

    def tell(self):
        told = {"cpu": self.cpu, "at": self.at, "bytes": self.bytes, "batches": self.batches}
        print(json.dumps(told), flush=True)
        self.restart()


def main():
    """Run one host: until it has had as many documents as it was told."""
    folder, port, documents, keeps = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
    warm_peer()
    patterns = [Pattern.parse(text) for text in json.loads((folder / "patterns.json").read_text())]
    host = _Host(folder, patterns, keeps)
    with _connected(port) as wire, wire.makefile("rb") as lines:
        wire.settimeout(_END_S)
        wire.sendall(b"SUB %s 1\r\nPING\r\n" % SUBJECT.encode())
        while host.number < documents:
            line = lines.readline()
            match line.split()[:1]:
                case [b"MSG"]:
                    size = int(line.split()[-1])
                    body = lines.read(size + 2)[:size]
                    host.bytes += len(line) + size + 2
                    host.take(body)
                    if host.number % (documents // 2) == 0:
                        host.tell()
                case [b"PING"]:
                    wire.sendall(b"PONG\r\n")
                case [b"PONG"]:
                    print("ready", flush=True)
                case [b"-ERR"] | []:
                    sys.exit(f"nats-server: {line.decode().strip() or 'it has gone'}")


if __name__ == "__main__":
    main()
