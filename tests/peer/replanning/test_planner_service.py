"""The planner service and its link to the source, over real TLS; the batch is a small process without Spark."""

import json
import os
import socket
import sys
from contextlib import aclosing, asynccontextmanager

import pytest
import trio

from peer.client import Client
from peer.daemon import planner_desk
from peer.daemon.control import serve_control
from peer.daemon.controls import peer_controls, source_controls
from peer.daemon.planner_link import fetch_snapshot, hand_in
from peer.daemon.questions import NoAnswer
from peer.errors import CommandError
from peer.home import answers
from peer.replanning import planning
from peer.replanning.due import due
from peer.replanning.errors import NothingToPlan, PlanFailed
from peer.replanning.planning import PlanOptions, plan_once
from peer.replanning.service import PLANNER_SOCKET, PlannerService, PlannerSettings
from tests.peer.daemon.network import live_network
from xmlmatch import Pattern

EVERYBODY_BY_THE_SOURCE = """
import csv, sys, pyarrow, pyarrow.parquet
folder, out = sys.argv[1:]
print("solve: 0 s", file=sys.stderr)
rows = [dict(subscription=one["subscription"], site=one["site"], pattern=one["pattern"], how="source", inputs=[],
             alternatives=[]) for one in csv.DictReader(open(folder + "/subscriptions.csv"))]
kind = pyarrow.list_(pyarrow.struct({"subscription": pyarrow.string(), "site": pyarrow.string()}))
ways = pyarrow.list_(pyarrow.struct({"subscriptions": pyarrow.list_(pyarrow.string()),
                                     "sites": pyarrow.list_(pyarrow.string())}))
text = pyarrow.string()
schema = pyarrow.schema({"subscription": text, "site": text, "pattern": text, "how": text, "inputs": kind,
                         "alternatives": ways})
import os; os.makedirs(out)
pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows, schema), out + "/plan.parquet")
"""
LOOK_S = 0.05


@pytest.fixture
def batch(monkeypatch):
    """Let a script stand in for Spark; it can be replaced."""
    chosen = [EVERYBODY_BY_THE_SOURCE]

    def command(found, folder, out, options):
        return [sys.executable, "-c", chosen[0], str(folder), str(out)]

    monkeypatch.setattr(planning, "plan_command", command)
    return chosen


@asynccontextmanager
async def planned_network(folder, roles=("subscriber", "planner")):
    """A source and a machine with two subscriptions and these roles, each with its control socket."""
    async with live_network(folder) as network, trio.open_nursery() as nursery:
        peer = await network.start_peer("brain", roles)
        await peer.connected.wait()
        await nursery.start(serve_control, folder / "brain", peer_controls(peer))
        await nursery.start(serve_control, folder / "source", source_controls(network.source))
        for text in ("//a{cont}", "//b{val}"):
            await peer.subscribe(Pattern.parse(text))
        await network.source.publish("source", "d", "k", b"<r><a><b>1</b></a></r>")
        yield network, peer
        nursery.cancel_scope.cancel()


async def until(condition):
    with trio.fail_after(30):
        while not condition():
            await trio.sleep(0.02)


def silent(stage, what):
    """Nobody wants to hear about stages."""


async def test_a_snapshot_and_a_proposal_travel_in_parts(tmp_path, monkeypatch):
    for module in ("peer.daemon.planner_desk", "peer.daemon.planner_link"):
        monkeypatch.setattr(f"{module}.PART_BYTES", 100)
    async with planned_network(tmp_path) as (network, peer):
        found = await fetch_snapshot(peer.ask_source, 5)
        wanted = network.source.catalog.snapshot(5)
        assert found["subscriptions"] == wanted["subscriptions"]
        assert (len(found["documents"]), found["epoch"]) == (1, 0)
        rows = [
            {
                "subscription": name,
                "site": site,
                "pattern": text,
                "how": "source",
                "inputs": [],
                "alternatives": [],
            }
            for name, text, site, _ in found["subscriptions"]
        ]
        tried = await hand_in(peer.ask_source, 0, rows, is_dry=True)
        assert (tried["taken"], network.source.catalog.steering.epoch) == (2, 0)
        done = await hand_in(peer.ask_source, 0, rows, is_dry=False)
        assert (done["epoch"], done["taken"]) == (1, 2)
        assert "stale" in await hand_in(peer.ask_source, 0, rows, is_dry=False)
        assert network.source.status()["last_plan"]["subscriptions"] == 2
        assert network.source.catalog.plan_state()["churn"] == 0


async def test_who_has_not_the_role_is_refused_everything(tmp_path):
    async with planned_network(tmp_path, ("subscriber",)) as (network, peer):
        for what in ("plan_state", "snapshot", "snapshot_part", "proposal_part", "adopt"):
            with pytest.raises(NoAnswer, match="planner"):
                await peer.ask_source(what, {"id": "x"})
        with pytest.raises(CommandError, match="planner"):
            await Client(tmp_path / "brain").ask("snapshot")
        with pytest.raises(BaseExceptionGroup) as caught:
            async with PlannerService(tmp_path / "brain", PlannerSettings()).opened():
                pass
        assert caught.group_contains(CommandError, match="--role planner")
        assert network.source.catalog.steering.epoch == 0


async def test_the_desk_keeps_a_bounded_number_of_bounded_parcels(tmp_path, monkeypatch):
    monkeypatch.setattr(planner_desk, "MOST_BYTES", 50)
    async with planned_network(tmp_path) as (_, peer):
        with pytest.raises(NoAnswer, match="50 is the most"):
            await fetch_snapshot(peer.ask_source, 5)
        with pytest.raises(NoAnswer, match="50 bytes are the most"):
            await peer.ask_source("proposal_part", {"id": "x", "at": 0, "data": b"x" * 51})
        await peer.ask_source("proposal_part", {"id": "x", "at": 0, "data": b"x" * 10})
        with pytest.raises(NoAnswer, match="ends at 10"):
            await peer.ask_source("proposal_part", {"id": "x", "at": 11, "data": b"x"})
        with pytest.raises(NoAnswer, match="begin again"):
            await peer.ask_source("adopt", {"id": "y", "base_epoch": 0})
        with pytest.raises(NoAnswer, match="the proposal"):
            await peer.ask_source("adopt", {"id": "x", "base_epoch": 0})
    parcels = {}
    for i in range(10):
        planner_desk._keep(parcels, f"p{i}", planner_desk._Parcel("x", bytearray()))
    assert list(parcels) == ["p6", "p7", "p8", "p9"]


async def test_the_service_plans_when_there_is_no_plan_and_when_subscriptions_come(tmp_path, batch):
    async with planned_network(tmp_path) as (network, peer):
        steering = network.source.catalog.steering
        service = PlannerService(tmp_path / "brain", PlannerSettings(drift=0.5, look_s=LOOK_S))
        async with service.opened():
            await until(lambda: steering.epoch == 1)
            await trio.sleep(4 * LOOK_S)
            assert steering.epoch == 1
            await peer.subscribe(Pattern.parse("//c{val}"))
            await until(lambda: steering.epoch == 2 and not service.is_planning)
            assert service.last["epoch"] == 2


async def test_whoever_asks_hears_the_stages_and_the_outcome(tmp_path, batch):
    async with planned_network(tmp_path) as (network, _):
        settings = PlannerSettings(None, None, LOOK_S)
        async with PlannerService(tmp_path / "source", settings).opened() as service:
            async with aclosing(service.replan({})) as answers:
                events = [one async for one in answers]
            assert [one["stage"] for one in events[:-1]] == ["snapshot", "solve"]
            assert events[-1]["epoch"] == network.source.catalog.steering.epoch == 1


async def test_failures_are_logged_and_the_service_goes_on(tmp_path, batch, caplog):
    caplog.set_level("INFO", "distributary.planner")
    async with planned_network(tmp_path) as (network, _):
        batch[0] = "import sys; sys.exit('no Java here')"
        settings = PlannerSettings(drift=0.5, look_s=LOOK_S)
        async with PlannerService(tmp_path / "brain", settings).opened() as service:
            await until(lambda: len([r for r in caplog.records if r.getMessage() == "not planned"]) >= 2)
            with pytest.raises(NoAnswer, match="no Java here"):
                async with aclosing(service.replan({})) as answers:
                    [one async for one in answers]
            batch[0] = EVERYBODY_BY_THE_SOURCE
            await until(lambda: network.source.catalog.steering.epoch == 1)
    pauses = [r.again_in_s for r in caplog.records if r.getMessage() == "not planned"]
    assert pauses == sorted(pauses)
    assert pauses[1] == 2 * pauses[0]


async def test_a_stale_proposal_is_computed_again_a_few_times(tmp_path, batch, monkeypatch):
    async with planned_network(tmp_path) as (network, _):
        client, stages, others = Client(tmp_path / "source"), [], 1

        async def ask(do, /, **fields):
            nonlocal others
            if do == "adopt" and others:
                others -= 1
                await network.source.adopt(fields["base_epoch"], fields["rows"])
            return await client.ask(do, **fields)

        done = await plan_once(ask, PlanOptions(), lambda stage, _: stages.append(stage))
        assert (done["epoch"], stages.count("stale"), stages.count("snapshot")) == (2, 1, 2)
        others = 10
        monkeypatch.setattr(planning, "_TRIES", 1)
        with pytest.raises(PlanFailed, match="another plan"):
            await plan_once(ask, PlanOptions(), silent)


async def test_a_batch_that_takes_too_long_is_ended(tmp_path, batch):
    batch[0] = f"import os, time; open({str(tmp_path / 'pid')!r}, 'w').write(str(os.getpid())); time.sleep(600)"
    async with planned_network(tmp_path):
        with pytest.raises(PlanFailed, match="took longer"):
            await plan_once(Client(tmp_path / "source").ask, PlanOptions(batch_limit_s=1.0), silent)
    if (tmp_path / "pid").exists():  # it had come that far
        with pytest.raises(ProcessLookupError):
            os.kill(int((tmp_path / "pid").read_text()), 0)


async def test_one_planner_runs_in_a_home_and_one_that_was_killed_does_not_count(tmp_path):
    async with live_network(tmp_path), trio.open_nursery() as nursery:
        home = tmp_path / "source"
        with socket.socket(socket.AF_UNIX) as left:
            left.bind(str(home / PLANNER_SOCKET))
        assert (home / PLANNER_SOCKET).exists()
        assert not answers(home, PLANNER_SOCKET)
        async with PlannerService(home, PlannerSettings()).opened():
            pass
        await nursery.start(serve_control, home, {}, PLANNER_SOCKET)
        with pytest.raises(BaseExceptionGroup) as caught:
            async with PlannerService(home, PlannerSettings()).opened():
                pass
        assert caught.group_contains(CommandError, match="already")
        nursery.cancel_scope.cancel()


async def test_with_nothing_to_plan_nothing_is_planned(tmp_path, batch):
    async with live_network(tmp_path) as network, trio.open_nursery() as nursery:
        await nursery.start(serve_control, tmp_path / "source", source_controls(network.source))
        with pytest.raises(NothingToPlan, match="nobody is subscribed"):
            await plan_once(Client(tmp_path / "source").ask, PlanOptions(), silent)
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize(
    ("change", "every_s", "drift", "is_due"),
    [
        ({}, None, 0.2, False),
        ({"age_s": None}, None, 0.2, True),
        ({"age_s": None}, None, None, False),
        ({"age_s": None, "subscriptions": 0}, 1, 0.2, False),
        ({"age_s": 61.0}, 60, None, True),
        ({"age_s": 59.0, "churn": 100}, 60, None, False),
        ({"churn": 19}, None, 0.2, False),
        ({"churn": 20}, None, 0.2, True),
        ({"feeds": 11}, None, 0.2, False),
        ({"feeds": 12}, None, 0.2, True),
        ({"feeds": 2}, None, 0.2, False),
    ],
)
def test_a_plan_is_due_by_age_churn_or_load(change, every_s, drift, is_due):
    state = {"subscriptions": 100, "age_s": 10.0, "churn": 0, "planned": 100, "feeds": 10, "planned_feeds": 10}
    assert bool(due(state | change, every_s, drift)) == is_due


async def test_the_last_plan_is_known_after_a_restart(tmp_path, batch):
    async with planned_network(tmp_path) as (network, peer):
        await plan_once(Client(tmp_path / "source").ask, PlanOptions(), silent)
        before = network.source.status()["last_plan"]
        await peer.subscribe(Pattern.parse("//c{val}"))
        await network.stop("source")
        await network.start_source()
        assert network.source.status()["last_plan"] == before
        assert network.source.catalog.plan_state()["churn"] == 1
        assert json.dumps(before)
