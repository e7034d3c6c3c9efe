"""The planner as a Spark batch: real Spark, two real executors, one of them killed; and bad input."""

import csv
import json
import random
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet
import pytest

from planner.planning import plan
from planner.problem import Problem, Subscription
from rewriting.statistics import Statistics
from scenarios.auction_documents import auction_documents
from scenarios.presets import wan
from xmlmatch import Document

DISTRIBUTARY = Path(sys.executable).with_name("distributary")
TWO_EXECUTORS = "local-cluster[2,1,2048]"


@pytest.fixture(scope="module")
def crowd(tmp_path_factory):
    """400 subscriptions with repeats, on 300 machines, and sample documents."""
    folder = tmp_path_factory.mktemp("crowd")
    (folder / "documents").mkdir()
    data = list(auction_documents(3, 5))
    for i, document in enumerate(data):
        (folder / "documents" / f"{i}.xml").write_bytes(document)
    rng = random.Random(4)
    rows = [
        (f"s{i}", f"m{rng.randrange(300)}", rng.choice([1, 2, 8]), pattern.text)
        for i, pattern in enumerate(wan(2, 400).subscriptions)
    ]
    with (folder / "subscriptions.csv").open("w", newline="") as file:
        csv.writer(file).writerows([("subscription", "site", "limit", "pattern"), *rows])
    return folder


def command(crowd, out, *more):
    return [
        str(DISTRIBUTARY), "plan", "--subscriptions", str(crowd / "subscriptions.csv"), "--documents",
        str(crowd / "documents"), "--out", str(out), "--source-feeds", "200", *more,
    ]  # fmt: skip


def planned_here(crowd):
    """Plan the crowd in this process."""
    from xmlmatch import Pattern

    with (crowd / "subscriptions.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    wanted = [
        Subscription(r["subscription"], Pattern.parse(r["pattern"]), r["site"], int(r["limit"])) for r in rows
    ]
    documents = [Document.parse(p.read_bytes()) for p in sorted((crowd / "documents").glob("*.xml"))]
    known = Statistics.measure([s.pattern for s in wanted], documents)
    return plan(Problem.of(wanted, source_feeds=200, statistics=known))


def test_two_executors_give_what_planning_in_one_process_gives_and_stages_are_used_again(crowd, tmp_path):
    out = tmp_path / "plan"
    done = subprocess.run(
        command(crowd, out, "--master", TWO_EXECUTORS, "--json"), capture_output=True, text=True, check=True
    )
    figures = json.loads(done.stdout)
    here = planned_here(crowd)
    assert figures["outcome"] == here.selection.outcome.value == "optimal"
    assert figures["utilization"]["ilp"] == here.figures["ilp"].utilization
    assert figures["utilization"]["best"] == here.figures["best"].utilization
    assert figures["latency_s"]["best"] == pytest.approx(here.figures["best"].latency / 400)
    checked = subprocess.run(
        [str(DISTRIBUTARY), "check-plan", str(out)], capture_output=True, text=True, check=False
    )
    assert checked.returncode == 0, checked.stdout + checked.stderr
    rows = pyarrow.parquet.read_table(out / "plan.parquet").to_pylist()
    assert [row["subscription"] for row in rows] == here.problem.names
    told = subprocess.run(
        [str(DISTRIBUTARY), "explain", "plan", str(out), "s17"], capture_output=True, text=True, check=True
    )
    assert told.stdout.startswith("s17 at ")
    assert told.stdout.rstrip().endswith("last resort: the source")
    again = subprocess.run(command(crowd, out), capture_output=True, text=True, check=True)
    assert "candidates: as before" in again.stderr
    assert "statistics: as before" in again.stderr


def test_a_corrupted_plan_is_told_from_a_good_one(crowd, tmp_path):
    out = tmp_path / "plan"
    subprocess.run(command(crowd, out), capture_output=True, check=True)
    table = pyarrow.parquet.read_table(out / "plan.parquet")
    how = ["source"] * table.num_rows
    at = table.column_names.index("how")
    empty = pyarrow.array([[]] * table.num_rows, table.schema.field("inputs").type)
    bad = table.set_column(at, "how", pyarrow.array(how))
    bad = bad.set_column(bad.column_names.index("inputs"), "inputs", empty)
    pyarrow.parquet.write_table(bad, out / "plan.parquet")
    checked = subprocess.run(
        [str(DISTRIBUTARY), "check-plan", str(out)], capture_output=True, text=True, check=False
    )
    assert checked.returncode == 1
    assert "fault: " in checked.stdout


KILLED = """
import sys, threading, time, os, signal
from pathlib import Path
from spark_planner.batch import Options, run_batch

def at_work():
    "The executors below this process in which a Python worker runs: their first task of ours is under way."
    below, lines = {}, {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
                lines[int(entry.name)] = (entry / "cmdline").read_bytes()
            except OSError:
                continue
            below.setdefault(int(fields[1]), []).append(int(entry.name))
    found, left = [], [os.getpid()]
    while left:
        process = left.pop()
        left += below.get(process, [])
        executor = process != os.getpid() and b"CoarseGrainedExecutorBackend" in lines.get(process, b"")
        if executor and any(b"pyspark" in lines.get(child, b"") for child in below.get(process, [])):
            found.append(process)
    return found

killed = []
def watch():
    while not killed:
        time.sleep(0.02)
        for pid in at_work()[:1]:
            os.kill(pid, signal.SIGKILL)
            killed.append(pid)

threading.Thread(target=watch, daemon=True).start()
folder, out = Path(sys.argv[1]), Path(sys.argv[2])
options = Options(folder / "subscriptions.csv", folder / "documents", out, source_feeds=200, master=sys.argv[3])
done = run_batch(options)
print("killed", len(killed), "utilization", done.plan.figures["ilp"].utilization)
"""


def test_a_killed_executor_only_delays_the_plan(crowd, tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", KILLED, str(crowd), str(tmp_path / "plan"), TWO_EXECUTORS],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    expected = planned_here(crowd).figures["ilp"].utilization
    assert done.stdout.split() == ["killed", "1", "utilization", str(expected)]


def refused(crowd, tmp_path, text, *more, name="bad.csv"):
    """Plan from a bad file; return the one line it is refused with. Nothing may be left behind."""
    (tmp_path / name).write_text(text)
    out = tmp_path / "plan"
    done = subprocess.run(
        [
            str(DISTRIBUTARY), "plan", "--subscriptions", str(tmp_path / name), "--documents",
            str(crowd / "documents"), "--out", str(out), *more,
        ],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 2
    assert not out.exists()
    return done.stderr.splitlines()[-1]


def test_a_pattern_that_does_not_parse_is_named_with_its_row_and_reason(crowd, tmp_path):
    line = refused(crowd, tmp_path, "pattern\n//a\n//a[\n//b\n//c]\n")
    assert "bad.csv: row 2: " in line
    assert "1 more row" in line


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("pattern,limit\n//a,1\n//b,-3\n", "row 2: its limit is -3; limits are 0 or more"),
        ("pattern,limit\n//a,many\n", "column 'limit' has something else than whole numbers"),
        ("pattern\n", "there are no subscriptions in it"),
        ("patern\n//a\n", "there is no column 'patern'"),
        ("subscription,pattern\nx,//a\nx,//b\n", "row 2: subscription x is there already, in row 1"),
        ("subscription,pattern\n,//a\n", "row 1: its subscription is empty"),
    ],
)
def test_bad_rows_are_refused_before_spark_starts(crowd, tmp_path, text, expected):
    assert expected in refused(crowd, tmp_path, text)


def test_an_unknown_site_is_named(crowd, tmp_path):
    (tmp_path / "sites.csv").write_text("site,limit\nhere,3\n")
    line = refused(crowd, tmp_path, "pattern,site\n//a,here\n//b,there\n", "--sites", str(tmp_path / "sites.csv"))
    assert "row 2: there is no site there in " in line


def test_a_negative_limit_of_a_site_is_named(crowd, tmp_path):
    (tmp_path / "sites.csv").write_text("site,limit\nhere,-3\n")
    line = refused(crowd, tmp_path, "pattern,site\n//a,here\n", "--sites", str(tmp_path / "sites.csv"))
    assert "sites.csv: row 1: its limit is -3" in line


def test_no_documents_is_an_error(tmp_path):
    (tmp_path / "empty").mkdir()
    (tmp_path / "subscriptions.txt").write_text("# one\n//a\n")
    done = subprocess.run(
        [
            str(DISTRIBUTARY), "plan", "--subscriptions", str(tmp_path / "subscriptions.txt"), "--documents",
            str(tmp_path / "empty"), "--out", str(tmp_path / "plan"),
        ],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 2
    assert "there are no documents (*.xml) in it" in done.stderr


def test_the_shipped_example_plans(tmp_path):
    root = Path(__file__).resolve().parents[2]
    done = subprocess.run(
        [
            str(DISTRIBUTARY), "plan", "--subscriptions", "examples/subscriptions.csv", "--sites",
            "examples/sites.csv", "--documents", "examples/documents", "--out", str(tmp_path / "plan"),
        ],
        capture_output=True, text=True, check=False, cwd=root,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "10 subscriptions, 8 patterns, 5 sites" in done.stdout
    assert (tmp_path / "plan" / "report.html").stat().st_size > 10_000
