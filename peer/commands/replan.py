"""``distributary replan``: a full plan over all subscriptions, as a Spark batch, put into force by the source."""

from __future__ import annotations

import base64
import csv
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from peer.errors import CommandError
from peer.home import add_home, ask_one, home_of
from peer.output import emit

if TYPE_CHECKING:
    import argparse

SUMMARY: Final = "Plan anew who feeds whom, over all subscriptions, and put it into force (run it at the source)."
_EPILOG: Final = """\
Takes a snapshot of the catalog and a sample of documents, runs 'distributary plan' on them, and hands the result
to the source, which checks every feed, keeps what has changed meanwhile, and signs it as a new epoch. Nothing
stops while it happens: each subscription moves when its new feeds have caught up.

examples:
  distributary replan
  distributary replan --keep plans/today --master spark://host:7077
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.epilog = _EPILOG
    add_home(parser)
    parser.add_argument("--documents", type=int, default=40, metavar="N", help="how many documents to sample (40)")
    parser.add_argument("--keep", metavar="DIR", help="keep the plan and its report in a folder")
    parser.add_argument("--master", default="local[*]", metavar="URL", help="the Spark master (local[*])")
    parser.add_argument("--time-limit", type=float, metavar="S", help="seconds for solving and improving, each")
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(arguments: argparse.Namespace) -> int:
    """Snapshot, plan, adopt."""
    home = home_of(arguments)
    found = ask_one(home, "snapshot", documents=arguments.documents)
    if not found["subscriptions"]:
        raise CommandError("nobody is subscribed yet; there is nothing to plan")
    if not found["documents"]:
        raise CommandError("nothing was published yet; publish a few documents, for a plan needs a sample")
    with tempfile.TemporaryDirectory(prefix="distributary-replan-") as scratch:
        folder = Path(scratch)
        _write(found, folder)
        out = Path(arguments.keep) if arguments.keep else folder / "plan"
        _plan(arguments, found, folder, out)
        told = ask_one(home, "adopt", base_epoch=found["epoch"], rows=_rows(out))
    if arguments.json:
        emit(told)
        return 0
    print(f"Epoch {told['epoch']}: {told['changed']:,} subscriptions are fed otherwise.")
    print(f"The source feeds {told['source_feeds']:,}; it fed {told['source_feeds_before']:,}.")
    for name, reason in list(told["refused"].items())[:10]:
        print(f"not taken: {name}: {reason}")
    return 0


def _write(found: dict[str, Any], folder: Path) -> None:
    """Write the snapshot as the files that 'distributary plan' reads."""
    with open(folder / "subscriptions.csv", "w", newline="", encoding="utf-8") as file:
        table = csv.writer(file)
        table.writerow(["subscription", "site", "limit", "pattern"])
        for name, pattern, site, limit in found["subscriptions"]:
            table.writerow([name, site, "" if limit is None else limit, pattern])
    with open(folder / "sites.csv", "w", newline="", encoding="utf-8") as file:
        table = csv.writer(file)
        table.writerow(["site", "limit"])
        for name, limit in found["sites"]:
            table.writerow([name, "" if limit is None else limit])
    (folder / "documents").mkdir()
    for i, body in enumerate(found["documents"]):
        (folder / "documents" / f"{i:05}.xml").write_bytes(base64.b64decode(body))


def _plan(arguments: argparse.Namespace, found: dict[str, Any], folder: Path, out: Path) -> None:
    command = [
        sys.executable, "-m", "peer", "plan", "--subscriptions", str(folder / "subscriptions.csv"), "--sites",
        str(folder / "sites.csv"), "--documents", str(folder / "documents"), "--out", str(out), "--max-feeds",
        "none", "--master", arguments.master, "--json",
    ]  # fmt: skip
    if found["source_feeds"] is not None:
        command += ["--source-feeds", str(found["source_feeds"])]
    if arguments.time_limit is not None:
        command += ["--time-limit", str(arguments.time_limit)]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=False)
    if done.returncode:
        raise CommandError("the plan could not be made; what stands above says why, and nothing has changed")


def _rows(out: Path) -> list[dict[str, Any]]:
    try:
        import pyarrow.parquet
    except ModuleNotFoundError:
        raise CommandError("replanning needs more packages: pip install 'distributary[planner]'") from None
    wanted = ["subscription", "site", "pattern", "how", "inputs", "alternatives"]
    rows = pyarrow.parquet.read_table(out / "plan.parquet", columns=wanted).to_pylist()
    return [json.loads(json.dumps(row)) for row in rows]
