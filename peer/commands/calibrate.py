"""``distributary calibrate``: how many feeds this machine bears."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from peer.errors import CommandError
from peer.home import add_home, home_of
from peer.output import emit

if TYPE_CHECKING:
    import argparse

SUMMARY: Final = "Measure how many feeds to other machines this one bears, and suggest a capacity."
_EPILOG: Final = """\
For a few seconds, results of a typical document are cut, encrypted and sent over loopback, as for feeds. What one
costs gives the feeds that fit into a share of one core at a rate of documents; give your own rate, and the uplink
if it is narrow. --save writes the capacity into the file that 'distributary peer run' reads.

examples:
  distributary calibrate
  distributary calibrate --rate 20 --uplink 50 --save
  distributary calibrate --seconds 2 --json
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.epilog = _EPILOG
    add_home(parser)
    parser.add_argument("--seconds", type=float, default=5.0, metavar="S", help="how long to measure (5)")
    parser.add_argument("--rate", type=float, default=5.0, metavar="R", help="documents per second (5)")
    parser.add_argument(
        "--share", type=float, default=0.5, metavar="X", help="of one core, and of the uplink (0.5)"
    )
    parser.add_argument("--uplink", type=float, metavar="MBIT", help="what the machine may send, in Mbit/s")
    parser.add_argument("--config", metavar="FILE", help="the file to save to (default: the one in the home)")
    parser.add_argument("--save", action="store_true", help="write the capacity into the configuration file")
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(arguments: argparse.Namespace) -> int:
    """Measure, suggest, save."""
    _check(arguments)
    from peer.calibration import calibrate
    from peer.options.file import NAME, save
    from peer.progress_bar import progress_bar

    with progress_bar("sending", arguments.seconds) as advance:
        found = calibrate(arguments.seconds, advance)
    capacity = found.capacity(arguments.rate, arguments.share, arguments.uplink)
    told = found.told() | {"rate": arguments.rate, "share": arguments.share, "capacity": capacity, "saved": None}
    if arguments.save:
        path = Path(arguments.config).expanduser() if arguments.config else home_of(arguments) / NAME
        path.parent.mkdir(parents=True, exist_ok=True)
        save(path, "capacity", str(capacity))
        told["saved"] = str(path)
    if arguments.json:
        emit(told)
    else:
        _show(told)
    return 0


def _check(arguments: argparse.Namespace) -> None:
    for name, low, high in (
        ("seconds", 0.1, 600),
        ("rate", 0.001, 100_000),
        ("share", 0.01, 1),
        ("uplink", 0.01, 1e6),
    ):
        value = getattr(arguments, name)
        if value is not None and not low <= value <= high:
            raise CommandError(f"--{name} {value}: expected a number from {low} to {high:,}")


def _show(told: dict[str, Any]) -> None:
    print(f"{told['batches']:,} batches of {told['batch_bytes']:,} bytes in {told['seconds']:.1f} s:")
    print(f"  {told['bytes_per_second'] / 1e6:,.1f} MB/s over TLS")
    print(f"  {told['cpu_ms']:.3f} ms of a core per feed and document, {told['cut_ms']:.3f} of it for cutting")
    print(f"At {told['rate']:g} documents/s and {told['share']:.0%} of a core: --capacity {told['capacity']:,}")
    if told["saved"]:
        print(f"Written to {told['saved']}; it holds from the next start of the daemon.")
