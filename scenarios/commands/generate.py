"""``distributary generate``: documents and subscriptions from a seed."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from peer.errors import CommandError
from scenarios.commands.progress import progress
from scenarios.commands.seed import seed

if TYPE_CHECKING:
    from scenarios.presets import Workload

SUMMARY: Final = "Generate XMark-like documents, or subscriptions over them, from a seed."
_EPILOG: Final = """\
examples:
  distributary generate documents --count 20 --dir documents
  distributary generate documents --count 1 --bytes 100000000 --dir big
  distributary generate patterns --preset table2 --count 10000 > views.txt
  distributary generate patterns --preset wan --count 10000 --seed 7 > subscriptions.txt
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.epilog = _EPILOG
    kinds = parser.add_subparsers(metavar="WHAT", required=True)
    raw = argparse.RawDescriptionHelpFormatter
    documents = kinds.add_parser(
        "documents", help="auction documents", description="Write documents to a folder.", epilog=_EPILOG,
        formatter_class=raw,
    )  # fmt: skip
    documents.add_argument("--dir", required=True, metavar="DIR", help="where to write; made if it is missing")
    documents.add_argument(
        "--bytes", type=int, metavar="N", help="about this size each (default: 10,000 to 40,000)"
    )
    documents.set_defaults(run=_documents)
    patterns = kinds.add_parser(
        "patterns", help="subscriptions", description="Print subscriptions, one per line.", epilog=_EPILOG,
        formatter_class=raw,
    )  # fmt: skip
    patterns.add_argument("--preset", choices=("table2", "wan"), default="table2", help="which workload")
    patterns.set_defaults(run=_patterns)
    for kind in (documents, patterns):
        kind.add_argument("--count", type=int, default=10, metavar="N", help="how many (default 10)")
        kind.add_argument("--seed", type=int, default=1, metavar="N", help="the same seed gives the same output")


def _positive(value: int, name: str) -> int:
    if value < 1:
        raise CommandError(f"{name} {value}: expected a number from 1 up")
    return value


def _documents(arguments: argparse.Namespace) -> int:
    from scenarios.auction_documents import auction_documents, write_auction_document

    count = _positive(arguments.count, "--count")
    size = _positive(arguments.bytes, "--bytes") if arguments.bytes is not None else None
    if not arguments.dir:
        raise CommandError("--dir: expected the name of a folder")
    folder = Path(arguments.dir)
    folder.mkdir(parents=True, exist_ok=True)
    small = auction_documents(seed(arguments.seed), count)
    with progress("writing documents", count) as tick:
        for i in range(count):
            with (folder / f"auction-{arguments.seed}-{i:04}.xml").open("wb") as stream:
                if size is None:
                    stream.write(next(small))
                else:
                    write_auction_document(arguments.seed * 1_000_003 + i, stream, size_bytes=size)
            tick()
    return 0


def _patterns(arguments: argparse.Namespace) -> int:
    from scenarios.presets import PRESETS

    count = _positive(arguments.count, "--count")
    with progress("drawing patterns", None) as tick:
        try:
            workload = PRESETS[arguments.preset](seed(arguments.seed), count, tick)
        except ValueError as exc:
            raise CommandError(f"--count {count}: {exc}") from None
    for pattern in workload.subscriptions:
        sys.stdout.write(f"{pattern}\n")
    sys.stdout.flush()
    _report(workload, arguments.preset)
    return 0


def _report(workload: Workload, preset: str) -> None:
    """Say on standard error what was drawn; for ``wan`` also how many patterns no other can feed."""
    words = [
        f"{len(workload.subscriptions):,} subscriptions, {len(workload.distinct):,} distinct",
        f"{workload.nodes:.2f} nodes, {workload.predicates:.2f} predicates, {workload.returns:.2f} returns each",
    ]
    if preset == "wan":
        from rewriting import unrewritable

        with progress("checking who can feed whom", len(workload.distinct)) as tick:
            words.append(f"{len(unrewritable(workload.distinct, tick))} cannot be rewritten from others")
    print("; ".join(words), file=sys.stderr)
