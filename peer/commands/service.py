"""``distributary service``: units with which systemd runs the daemons of this machine."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from peer.output import emit
from peer.systemd import DAEMONS, unit, unit_name

if TYPE_CHECKING:
    import argparse

SUMMARY: Final = "Print a systemd unit that runs a daemon as a hardened service of this machine."
_EPILOG: Final = """\
Nothing is installed: the unit is printed, with the path of this program. docs/operations.md says what it does.

examples:
  distributary service --print peer | sudo tee /etc/systemd/system/distributary-peer.service
  sudo systemctl daemon-reload && sudo systemctl enable --now distributary-peer
  distributary service --print source --json
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.epilog = _EPILOG
    parser.add_argument("--print", required=True, choices=DAEMONS, dest="daemon", help="which daemon's unit")
    parser.add_argument("--executable", metavar="PATH", help="the program to run (default: this one)")
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(arguments: argparse.Namespace) -> int:
    """Print."""
    text = unit(arguments.daemon, arguments.executable or _this_program())
    if arguments.json:
        emit({"name": unit_name(arguments.daemon), "unit": text})
    else:
        sys.stdout.write(text)
    return 0


def _this_program() -> str:
    beside = Path(sys.executable).with_name("distributary")
    return str(beside) if beside.exists() else shutil.which("distributary") or sys.argv[0]
