"""Daemons as processes, killed with -9 while documents flow: nothing is lost, nothing comes twice."""

import random
import time

import pytest

from peer.errors import CommandError
from scenarios.processes import SOURCE, running
from xmlmatch import Document, Pattern, match

PEERS = ["p0", "p1"]
TEXTS = ["//a{cont}", "//b{val}", "//a{cont}", "//a[c]/b{val}", "//a[b{val}][c{val}]", "//b{val}"]
KILLS = 8


def patiently(function, *arguments, seconds=30):
    """Try until the daemon is there: what is asked may be asked twice."""
    end = time.monotonic() + seconds
    while True:
        try:
            return function(*arguments)
        except CommandError:
            if time.monotonic() > end:
                raise
            time.sleep(0.1)


def body(n):
    return f"<r><a><b>{n}</b><c>{n % 3}</c></a><a><b>x{n}</b></a></r>".encode()


@pytest.mark.timeout(280)
def test_kills_of_peers_and_of_the_source_only_delay(tmp_path):
    rng = random.Random(7)
    with running(tmp_path) as network:
        network.start_source()
        for name in PEERS:
            network.join(name)
            network.start_peer(name)
        wanted = {}
        for i, text in enumerate(TEXTS):
            name = PEERS[i % 2]
            told = network.one(name, "subscribe", pattern=text)
            wanted[told["subscription"]] = (name, text)
        published = {}
        for n in range(KILLS * 6):
            published[patiently(network.publish, f"d{n}", body(n))] = body(n)
            if n % 6 == 5:
                victim = rng.choice([*PEERS, SOURCE])
                time.sleep(rng.random() * 0.05)
                network.kill(victim)
                if victim == SOURCE:
                    network.start_source()
                else:
                    published[patiently(network.publish, f"e{n}", body(n))] = body(n)
                    network.start_peer(victim)
        again = patiently(network.publish, "d0", body(0))
        assert again == min(published)
        last = max(published)
        for subscription, (name, text) in wanted.items():
            found = complete(network, name, subscription, last)
            pattern = Pattern.parse(text)
            for number, data in published.items():
                rows = [
                    dict(zip(pattern.columns, row, strict=True))
                    for row in match(pattern, Document.parse(data)).rows()
                ]
                assert found.get(number, []) == rows, (text, number)
            assert set(found) <= set(published)


def complete(network, name, subscription, upto):
    """Return the rows of a subscription by document, once it is complete."""
    end = time.monotonic() + 60
    while True:
        entries = network.many(name, "entries", subscription=subscription)
        if entries[-1]["complete"] >= upto:
            break
        assert time.monotonic() < end, f"{subscription} is complete up to {entries[-1]} only, not {upto}"
        time.sleep(0.2)
    found = {}
    for one in entries[:-1]:
        assert "row" in one, one
        found.setdefault(one["document"], []).append(one["row"])
    return found
