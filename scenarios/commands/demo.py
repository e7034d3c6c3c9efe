"""``distributary demo``: the main job as far as it exists, on this machine, in seconds."""

from __future__ import annotations

import io
import sys
import time
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Final

from peer.errors import CommandError
from peer.output import emit, terminal_width
from scenarios.commands.feeding import feed
from scenarios.commands.progress import progress
from scenarios.commands.seed import seed

if TYPE_CHECKING:
    import argparse

    from scenarios.live_demo import LiveSummary
    from xmlmatch import Document, Matcher

SUMMARY: Final = (
    "Show what distributary does: matching, computing from each other, and a live network of processes."
)
_EPILOG: Final = """\
examples:
  distributary demo
  distributary demo --offline                 a few seconds, no daemons
  distributary demo --documents 200 --subscriptions 10000
  distributary demo --json
"""
_SHOWN: Final = (
    ("buyers abroad", "//person[name{val}]/address[country != 'United States']/country{val}"),
    ("fierce bidding", "//open_auction[@id{val}][bidder/increase >= 30]/current{val}"),
    ("featured items", "//item[@featured]/name{val}"),
    ("bold words in mail", "//mail[from{val}]//bold{val}"),
    ("happy sales", "//closed_auction[annotation/happiness >= 8]/price{val}"),
    ("rich and curious", "//profile[@income >= 60000][interest/@category{val}]/education{val}"),
)


@dataclass(frozen=True, slots=True)
class Line:
    """One subscription of the table."""

    subscriber: str
    pattern: str
    documents: int
    rows: int
    example: str


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.epilog = _EPILOG
    parser.add_argument("--documents", type=int, default=50, metavar="N", help="how many documents (default 50)")
    parser.add_argument(
        "--subscriptions",
        type=int,
        default=1000,
        metavar="N",
        help="how many further subscriptions (default 1,000)",
    )
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="the same seed gives the same stream")
    parser.add_argument("--offline", action="store_true", help="only match and compute; start no daemons")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of a table")


def run(arguments: argparse.Namespace) -> int:
    """Generate, match, and show."""
    from scenarios.presets import wan
    from xmlmatch import Document, Matcher, Pattern

    if arguments.documents < 1 or arguments.subscriptions < 1:
        raise CommandError("--documents and --subscriptions take numbers from 1 up")
    from scenarios.auction_documents import auction_documents

    with progress("publishing documents", arguments.documents) as tick:
        documents = []
        for data in auction_documents(arguments.seed, arguments.documents):
            documents.append(Document.parse(data))
            tick()
    with progress("drawing subscriptions", None) as tick:
        try:
            crowd = wan(seed(arguments.seed), arguments.subscriptions, tick).subscriptions
        except ValueError as exc:
            raise CommandError(f"--subscriptions {arguments.subscriptions}: {exc}") from None
    matcher = Matcher(Pattern.parse(text) for _, text in _SHOWN)
    for pattern in crowd:
        matcher.add(pattern)
    lines, deliveries, cpu_s = _match(matcher, documents)
    with progress("finding who can feed whom", None):
        feeding = feed(crowd, documents)
    live = None if arguments.offline else _live(arguments.seed)
    if arguments.json:
        summary = {"documents": len(documents), "subscriptions": len(matcher), "deliveries": deliveries}
        emit(
            {
                **summary,
                "cpu_s": round(cpu_s, 4),
                "shown": [asdict(line) for line in lines],
                "feeding": asdict(feeding),
                "live": None if live is None else asdict(live),
            }
        )
    else:
        _show(lines, len(documents), len(matcher), deliveries, cpu_s)
        print(feeding)
        if live is not None:
            print(live)
        print("Next: distributary network --help, distributary subscribe --help, distributary match --help")
    return 0 if feeding.checked == feeding.equal and (live is None or live.is_exact) else 1


def _live(number: int) -> LiveSummary:
    """Run the live part; each step is named on standard error."""
    from scenarios.live_demo import live_demo

    with progress("a network of processes", None) as tick:

        def told(step: str) -> None:
            tick()
            print(f"{step} ...", file=sys.stderr)

        return live_demo(seed(number), told)


def _match(matcher: Matcher, documents: list[Document]) -> tuple[list[Line], int, float]:
    """Match every document; return the table, how many (document, subscription) pairs matched, and CPU seconds."""
    matcher.match(documents[0])  # the first call may load compiled code
    hits = [0] * len(_SHOWN)
    rows: list[list[tuple[object, ...]]] = [[] for _ in _SHOWN]
    deliveries, cpu_s = 0, 0.0
    for document in documents:
        start = time.process_time()
        matches = matcher.match(document)
        cpu_s += time.process_time() - start
        deliveries += len(matches)
        for key in matches.keys[matches.keys < len(_SHOWN)].tolist():
            hits[key] += 1
            rows[key] += matcher.node_sets(matches, key).rows()
    lines = [
        Line(name, text, hits[i], len(rows[i]), ", ".join(map(str, rows[i][0])) if rows[i] else "")
        for i, (name, text) in enumerate(_SHOWN)
    ]
    return lines, deliveries, cpu_s


def _show(lines: list[Line], documents: int, subscriptions: int, deliveries: int, cpu_s: float) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table

    text = io.StringIO()  # printed in one go: Rich would turn a reader that has gone away into an error
    console = Console(file=text, highlight=False, force_terminal=sys.stdout.isatty(), width=terminal_width())
    title = "Six of the subscriptions, matched against the stream"
    table = Table(title=title, title_justify="left", box=SIMPLE_HEAD, row_styles=("", "dim"))
    table.add_column("subscriber", max_width=14)
    table.add_column("pattern", overflow="fold", ratio=1)
    table.add_column("docs", justify="right")
    table.add_column("rows", justify="right")
    table.add_column("for example", overflow="fold", max_width=20)
    for line in lines:
        table.add_row(line.subscriber, line.pattern, str(line.documents), str(line.rows), line.example)
    console.print(table, markup=False)
    console.print(
        f"{subscriptions:,} subscriptions x {documents:,} documents: {deliveries:,} matches with complete node "
        f"sets in {cpu_s:.3f} CPU seconds ({1000 * cpu_s / documents:.2f} ms per document).",
        markup=False,
    )
    print(text.getvalue(), end="")
