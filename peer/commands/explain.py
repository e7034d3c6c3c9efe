"""``distributary explain``: what the system understood, drawn."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any, Final

from peer.arguments import PATTERN_HELP, add_namespaces, read_pattern
from peer.output import emit, visible

if TYPE_CHECKING:
    from collections.abc import Iterator

    from xmlmatch import Pattern, PatternNode

SUMMARY: Final = "Explain how a pattern is understood."
_EPILOG: Final = """\
examples:
  distributary explain pattern "//item[topic='ACME'][author{val}]/headline{cont}"
  distributary explain pattern @pattern.txt --json
  echo '//p:item[@id]/p:name' | distributary explain pattern - --ns p=urn:shop
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
