"""What ``status`` shows of daemons that run."""

import subprocess
import sys

import trio

from peer.cli import main
from peer.commands.status import _show
from peer.daemon.controls import peer_controls, source_controls
from peer.daemon.rates import Rates
from tests.peer.daemon.network import live_network, rows
from xmlmatch import Pattern


async def test_the_source_shows_levels_and_what_each_machine_gets_and_gives(tmp_path, capsys):
    async with live_network(tmp_path) as network:
        one, two = await network.start_peer("p1"), await network.start_peer("p2")
        for peer in (one, two):
            await peer.connected.wait()
        await one.subscribe(Pattern.parse("//a/b{val}"))
        name = (await two.subscribe(Pattern.parse("//a/b[.>5]{val}")))["subscription"]
        number = (await network.source.publish("source", "d", "d", b"<r><a><b>7</b></a></r>"))["number"]
        await rows(two, name, number)
        told = await source_controls(network.source)["status"]({})
        assert told["levels"] == {"1": 1, "2": 1}
        given = {m["site"]: (m["subscriptions"], m["from_source"], m["feeds_given"]) for m in told["machines"]}
        assert given == {"p1": (1, 1, 1), "p2": (1, 0, 0)}
        assert [m["fed_by_machines"] for m in told["machines"]] == [["source"], ["p1"]]
        _show(told)
        drawn = capsys.readouterr().out
        assert "level 2  ####################  1" in drawn

        standing = await peer_controls(two)["status"]({})
        assert standing["lag"] == 0
        _show(standing)
        assert "behind the source: 0 entries" in capsys.readouterr().out
        await network.stop("source")
        with trio.fail_after(20):
            while two.connected.is_set():
                await trio.sleep(0.05)
        assert await two.lag() is None


async def test_machines_know_whom_they_feed_and_owe_frequent_signs_of_life(tmp_path):
    async with live_network(tmp_path) as network:
        one, two = await network.start_peer("p1"), await network.start_peer("p2")
        for peer in (one, two):
            await peer.connected.wait()
        pairs = [(network.source, "p1"), (network.source, "p2"), (one, "p2"), (one, "source"), (two, "p1")]
        assert [daemon.links._feeds(site) for daemon, site in pairs] == [False] * 5
        await one.subscribe(Pattern.parse("//a/b{val}"))
        name = (await two.subscribe(Pattern.parse("//a/b[.>5]{val}")))["subscription"]
        number = (await network.source.publish("source", "d", "d", b"<r><a><b>7</b></a></r>"))["number"]
        await rows(two, name, number)
        assert [daemon.links._feeds(site) for daemon, site in pairs] == [True, False, True, False, False]


def test_rates_are_over_the_last_seconds_only():
    rates = Rates()
    assert rates.per_second(0.0) == {}
    for second in range(30):
        rates.look(float(second), {"n": 1000 if second >= 25 else 0})
        rates.look(second + 0.5, {"n": 0})  # too early to count
    assert rates.per_second(29.0) == {"n": 100.0}
    for second in range(30, 45):
        rates.look(float(second), {"n": 1000})
    assert rates.per_second(44.0) == {"n": 0.0}


def test_a_pattern_is_shown_as_it_is_also_where_its_brackets_look_like_markup(capsys, monkeypatch):
    told = {
        "subscription": "s-0123456789abcdef", "pattern": "//item[bold]/name{val}", "fed_by": ["s-1"],
        "is_live": True, "level": 2, "committed": 7, "feeds": 0,
    }  # fmt: skip
    in_space = {
        "subscription": "c-0123456789abcdef", "space": "market", "filter": "a = '[red]'", "complete": 12_345,
        "is_lost": False,
    }  # fmt: skip
    answers = {"subscriptions": [told], "subscriptions_in_spaces": [in_space]}
    monkeypatch.setattr("peer.commands.subscriptions.ask", lambda _, what: iter(answers[what]))
    assert main(["subscriptions"]) == 0
    drawn = capsys.readouterr().out
    for text in (told["pattern"], told["subscription"], in_space["filter"], in_space["subscription"], "12,345"):
        assert text in drawn
    assert main(["subscriptions", "--json"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 2


def status_of(machines):
    """What a source tells."""
    standing = {"subscriptions": 0, "matched": 0, "from_source": 0, "feeds_given": 0, "fed_by_machines": []}
    standing |= {"is_connected": False, "departed": "", "last_seen": 0.0}
    return {
        "site": "source", "role": "source", "port": 1, "connected": [], "certificate_ends": "2026-01-01",
        "per_second": {}, "bytes_sent": 0, "bytes_received": 0, "last": 5, "generation": 1, "subscriptions": 2,
        "sites": [one["site"] for one in machines], "epoch": 3, "pending": 0, "matched": 0, "feeds": 1,
        "last_plan": None, "should_replan": "", "levels": {"1": 2}, "refused": {}, "doubled": ["lyon"],
        "machines": [standing | one for one in machines],
    }  # fmt: skip


def test_who_has_gone_is_shown_so_and_not_counted_and_nothing_is_cut_off_without_a_terminal(capsys):
    long = "a-machine-with-quite-a-long-name.example.org"
    _show(status_of([
        {"site": long, "is_connected": True, "subscriptions": 2, "fed_by_machines": [long] * 4},
        {"site": "lyon", "departed": "left"},
        {"site": "oslo", "departed": "revoked"},
    ]))  # fmt: skip
    drawn = capsys.readouterr().out
    assert "2 subscriptions on 1 machines, epoch 3" in drawn
    [row] = [line for line in drawn.splitlines() if f" {long} " in line]
    assert f"{long}, {long}, {long}, {long}" in row
    assert "two machines use the name lyon" in drawn
    assert ["lyon", "left"] in [line.split()[:2] for line in drawn.splitlines()]
    assert ["oslo", "revoked"] in [line.split()[:2] for line in drawn.splitlines()]


def test_a_reader_of_status_that_goes_away_early_is_no_error():
    machines = [{"site": f"machine-{i}"} for i in range(5_000)]  # more than a pipe holds
    program = (
        "import peer.commands.status as status\nfrom peer.cli import main\n"
        f"status.ask_one = lambda *_: {status_of(machines)!r}\nraise SystemExit(main(['status']))"
    )
    command = f"{sys.executable} - | head -n 1; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", command], input=program, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr, done.stdout.count("\n")) == (0, "", 1)
