"""Why a subscription got a document, or did not, asked of real daemons."""

import pytest
import trio

from peer.commands.trace import lines, verdict
from peer.daemon.questions import NoAnswer
from tests.peer.daemon.network import live_network, rows
from xmlmatch import Pattern

FULL, BARE = b"<r><a><b>7</b></a></r>", b"<r><a><b>1</b></a></r>"


async def fed_in_a_row(network):
    """Make two subscriptions, and return them when the first feeds the second."""
    one, two = await network.start_peer("p1"), await network.start_peer("p2")
    for peer in (one, two):
        await peer.connected.wait()
    first = (await one.subscribe(Pattern.parse("//a/b{val}")))["subscription"]
    second = (await two.subscribe(Pattern.parse("//a/b[.>5]{val}")))["subscription"]
    with trio.fail_after(30):
        while (standing := two.status()["subscriptions"][0])["fed_by"] != [first] or not standing["is_live"]:
            await trio.sleep(0.02)
    return one, two, first, second


async def test_the_way_of_a_document_and_where_it_became_empty(tmp_path):
    async with live_network(tmp_path) as network:
        one, two, first, second = await fed_in_a_row(network)
        numbers = [(await network.source.publish("source", name, name, name_body))["number"]
                   for name, name_body in (("full", FULL), ("bare", BARE))]  # fmt: skip
        await rows(two, second, max(numbers))

        got = await two.trace(numbers[0], second)
        assert verdict(got) == "it has all 1 rows"
        assert [(step["subscription"], step["site"], step["state"]) for step in got["path"]] == [
            (second, "p2", "results"),
            (first, "p1", "results"),
        ]
        assert got["path"][1]["came_by"] == []

        empty = await two.trace(numbers[1], second)
        assert verdict(empty) == "nothing in it matches"
        assert [step["state"] for step in empty["path"]] == ["empty", "results"]
        assert empty["expected"]["why"]["lack"] == "value"
        drawn = "\n".join(lines(empty | {"verdict": verdict(empty)}))
        assert "with b>5 none is left" in drawn
        assert drawn.endswith("from the source")

        early = (await network.source.publish("source", "early", "early", FULL))["number"]
        late = (await two.subscribe(Pattern.parse("//b{val}")))["subscription"]
        assert verdict(await two.trace(early, late)).startswith("not owed: the subscription wants documents after")
        with pytest.raises(NoAnswer, match="not a subscription of p1"):
            await one.trace(numbers[0], second)
        with pytest.raises(NoAnswer, match="no document 1,000"):
            await two.trace(1000, second)
        assert (await network.source.tracing.trace(numbers[0], first))["path"][0]["rows"] == 1


async def test_a_machine_that_is_away_is_a_step_without_an_answer(tmp_path):
    async with live_network(tmp_path) as network:
        _, two, first, second = await fed_in_a_row(network)
        number = (await network.source.publish("source", "full", "full", FULL))["number"]
        await rows(two, second, number)
        await network.stop("p1")
        with trio.fail_after(20):
            while "p1" in network.source.links.sites:
                await trio.sleep(0.05)
        found = await two.trace(number, second)
        assert verdict(found) == "it has all 1 rows"
        assert {step["subscription"]: step["state"] for step in found["path"]} == {
            second: "results", first: "no answer",
        }  # fmt: skip
