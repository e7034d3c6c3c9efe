"""``distributary explain``: what the system understood, drawn."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from peer.arguments import (
    PATTERN_HELP,
    add_namespaces,
    namespaces,
    parse_pattern,
    read_document,
    read_lines,
    read_pattern,
)
from peer.errors import CommandError
from peer.output import emit, visible

if TYPE_CHECKING:
    from collections.abc import Iterator

    from xmlmatch import Pattern, PatternNode

SUMMARY: Final = "Explain how a pattern is understood, how it can be computed from others, how a plan feeds it."
_EPILOG: Final = """\
examples:
  distributary explain pattern "//item[topic='ACME'][author{val}]/headline{cont}"
  distributary explain pattern @pattern.txt --json
  echo '//p:item[@id]/p:name' | distributary explain pattern - --ns p=urn:shop
  distributary explain rewriting "//item[author]/headline{val}" --views views.txt
  distributary explain plan plan/ s17
"""
_MOST_WAYS: Final = 1000
_REWRITING_EPILOG: Final = """\
FILE has one view (a pattern) per line (- reads standard input); blank lines and lines that begin with # are
left out. The exit status is 1 where the views cannot provide the pattern. Costs are estimates: bytes per
document, as assumed, or as measured on --documents.

examples:
  distributary explain rewriting "//item[author]/headline{val}" --views views.txt
  distributary explain rewriting @pattern.txt --views views.txt --documents a.xml b.xml
  distributary explain rewriting "//item/@id" --views views.txt --most 1 --json
"""

_PLAN_EPILOG: Final = """\
Node numbers are those that 'distributary explain pattern' shows. Utilization is in byte equivalents per document.

examples:
  distributary explain plan plan/ s17
  distributary explain plan plan/ s17 --json
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.epilog = _EPILOG
    kinds = parser.add_subparsers(metavar="WHAT", required=True)
    pattern = kinds.add_parser(
        "pattern",
        help="draw a pattern as a tree",
        description="Draw a pattern as a tree, with its canonical text and its columns.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    pattern.add_argument("pattern", metavar="PATTERN", help=PATTERN_HELP)
    pattern.add_argument("--json", action="store_true", help="print one JSON object instead of a drawing")
    add_namespaces(pattern)
    pattern.set_defaults(run=_explain_pattern)
    rewriting = kinds.add_parser(
        "rewriting",
        help="list the ways to compute a pattern from others",
        description="List the ways to compute a pattern from other subscriptions, the cheapest first.",
        epilog=_REWRITING_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    rewriting.add_argument("pattern", metavar="PATTERN", help=PATTERN_HELP)
    rewriting.add_argument("--views", required=True, metavar="FILE", help="the views, one pattern per line")
    rewriting.add_argument("--most", type=_positive, default=5, metavar="N", help="how many ways to list (5)")
    rewriting.add_argument(
        "--documents", nargs="+", default=[], metavar="FILE", help="documents to measure sizes on"
    )
    rewriting.add_argument("--json", action="store_true", help="print one JSON object instead of text")
    add_namespaces(rewriting)
    rewriting.set_defaults(run=_explain_rewriting)
    plan = kinds.add_parser(
        "plan",
        help="say how a subscription is fed in a plan",
        description="Say how a plan feeds a subscription, and what that falls back to, with costs.",
        epilog=_PLAN_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    plan.add_argument("folder", type=Path, metavar="DIR", help="what 'distributary plan' wrote")
    plan.add_argument("subscription", metavar="SUBSCRIPTION", help="its name")
    plan.add_argument("--json", action="store_true", help="print the plan's row as one JSON object")
    plan.set_defaults(run=_explain_plan)


def _positive(text: str) -> int:
    number = int(text) if text.isdecimal() else 0
    if not 1 <= number <= _MOST_WAYS:
        raise argparse.ArgumentTypeError(f"{text} is not a whole number from 1 to {_MOST_WAYS:,}")
    return number


def _explain_pattern(arguments: argparse.Namespace) -> int:
    pattern = read_pattern(arguments.pattern, arguments.ns)
    if arguments.json:
        emit(_as_json(pattern))
        return 0
    for line in _drawing(pattern):
        print(line)
    print(f"canonical: {visible(str(pattern))}")
    print(f"columns:   {', '.join(pattern.columns)}")
    return 0


def _explain_plan(arguments: argparse.Namespace) -> int:
    from peer.plan_report import read_row, told

    row = read_row(arguments.folder, arguments.subscription)
    if arguments.json:
        emit(row)
        return 0
    for line in told(row):
        print(line)
    return 0


def _explain_rewriting(arguments: argparse.Namespace) -> int:
    from itertools import islice

    from peer import rewriting_report
    from rewriting import embeds, rewritings
    from rewriting.statistics import Statistics

    if [arguments.pattern, arguments.views, *arguments.documents].count("-") > 1:
        raise CommandError("only one of the pattern, --views and --documents can be - (standard input)")
    query = read_pattern(arguments.pattern, arguments.ns)
    prefixes = namespaces(arguments.ns)
    where: dict[Pattern, str] = {}
    for line, text in read_lines(arguments.views):
        view = parse_pattern(text, prefixes, f"{arguments.views}:{line}: ")
        where.setdefault(view, f"{arguments.views}:{line}")
    documents = [read_document(name)[1] for name in arguments.documents]
    known = Statistics.measure([query, *where], documents) if documents else Statistics()
    # A third of k may share an input: asking for more and cutting shows all the ways there are.
    found = list(islice(rewritings(query, where, 3 * arguments.most, statistics=known), arguments.most))
    able = sum(embeds(view, query) for view in where)
    lacking = [] if found else list(rewriting_report.missing(query, list(where), where))
    if arguments.json:
        emit(
            {
                "query": str(query),
                "nodes": rewriting_report.paths(query),
                "views": len(where),
                "embed": able,
                "measured": bool(documents),
                "rewritings": [rewriting_report.as_json(rewriting, where) for rewriting in found],
                "missing": lacking,
            }
        )
        return 0 if found else 1
    print(visible(str(query)))
    views = f"{len(where):,} distinct view{'' if len(where) == 1 else 's'}"
    print(f"{views}, {able:,} of which embed in it; sizes {'measured' if documents else 'assumed'}")
    if not found:
        print("cannot be computed from them; nothing provides")
        print("\n".join(f"   {line}" for line in lacking))
        return 1
    for place, rewriting in enumerate(found, start=1):
        print()
        print("\n".join(rewriting_report.describe(rewriting, place, where)))
    return 0


def _drawing(pattern: Pattern) -> Iterator[str]:
    """Draw the tree, a line per node; a node's bars go on while its ancestors have children to come."""
    from xmlmatch.pattern import children_of

    children = children_of(pattern.nodes)
    yield "document"
    indent = {-1: ""}
    for i, node in enumerate(pattern.nodes):
        last = i == 0 or children[node.parent][-1] == i
        before = indent[node.parent]
        indent[i] = before + ("    " if last else "│   ")
        yield f"{before}{'└── ' if last else '├── '}{visible(_line(node))}"


def _line(node: PatternNode) -> str:
    """Describe a node: axis, label, conditions, what it returns."""
    from xmlmatch.pattern import label_in_text

    words = [("//" if node.axis else "/") + label_in_text(node.label)]
    words += [f"[.{p}]" for p in node.predicates]
    if node.returns:
        words.append("-> " + ", ".join(r.value for r in node.returns))
    return " ".join(words)


def _as_json(pattern: Pattern) -> dict[str, Any]:
    return {
        "canonical": str(pattern),
        "columns": list(pattern.columns),
        "never_matches": pattern.contradiction,
        "nodes": [
            {
                "label": node.label,
                "axis": "//" if node.axis else "/",
                "parent": node.parent,
                "predicates": [str(p) for p in node.predicates],
                "returns": [r.value for r in node.returns],
            }
            for node in pattern.nodes
        ],
    }
