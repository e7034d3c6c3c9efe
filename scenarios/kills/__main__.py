"""``make kills``: kill daemons while documents flow, and compare what everybody has with direct matching.

The last line is JSON; the exit status is 1 if anything was wrong.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
from pathlib import Path

from scenarios.commands.progress import progress
from scenarios.kills.soaking import SoakReport, SoakSettings, soak


def main() -> int:
    """Run it as the arguments say."""
    arguments = _arguments()
    settings = SoakSettings(
        arguments.kills, arguments.seed, arguments.peers, arguments.pace, is_warm=not arguments.cold
    )
    folder = Path(tempfile.mkdtemp(prefix="kills-"))
    with progress("kills", settings.kills) as step:
        report = soak(folder, settings, step)
    _show(report)
    if report.wrong:
        print(f"The daemons' files and logs are in {folder}.", file=sys.stderr)
    else:
        shutil.rmtree(folder)
    print(json.dumps(report.as_dict()))
    return 1 if report.wrong else 0


def _show(report: SoakReport) -> None:
    print(
        f"{report.kills} kills among {report.peers} peers and the source, {report.documents:,} documents, "
        f"{report.subscriptions} subscriptions, {report.compared:,} results compared with direct matching, "
        f"{report.seconds:.0f} s: {'nothing lost, nothing twice' if not report.wrong else 'NOT RIGHT'}."
    )
    for what in report.wrong:
        print(f"wrong: {what}", file=sys.stderr)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m scenarios.kills",
        description="Kill daemons with -9 while documents flow, and compare what arrived with direct matching.",
        epilog="example: python -m scenarios.kills --kills 500 --seed 7 --peers 6",
    )
    parser.add_argument("--kills", type=int, default=200, help="how many processes are killed at least (200)")
    parser.add_argument("--seed", type=int, default=1, help="for documents, changes and victims (1)")
    parser.add_argument("--peers", type=int, default=4, help="(4)")
    parser.add_argument("--pace", type=float, default=0.1, metavar="S", help="pause between documents (0.1)")
    parser.add_argument("--cold", action="store_true", help="start daemons as users do, which takes longer")
    found = parser.parse_args()
    if found.kills < 1 or found.peers < 1 or found.pace < 0:
        parser.error("--kills and --peers are at least 1, --pace at least 0")
    return found


if __name__ == "__main__":
    sys.exit(main())
