"""``distributary match``: patterns against documents, results as JSON lines."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Final

from peer.arguments import (
    PATTERN_HELP,
    add_namespaces,
    namespaces,
    read_document,
    read_lines,
    read_pattern,
    warn_contradiction,
)
from peer.errors import CommandError

if TYPE_CHECKING:
    import argparse

    from xmlmatch import NodeSets, Pattern

SUMMARY: Final = "Match patterns against XML documents and print the rows as JSON lines."
_EPILOG: Final = """\
One pattern prints a line per row: {"document": FILE, "row": {COLUMN: VALUE, ...}}. Columns are named after the
node and what it returns (name.val); an id is [pre, size, level]. With --patterns a line per matching pattern:
{"document": FILE, "pattern": LINE, "rows": N}.

examples:
  distributary match "//person[address/country='United States']/name{val}" auction.xml
  distributary match --count "//item{id}[quantity >= 2]//keyword{val}" a.xml b.xml
  distributary match --check @pattern.txt auction.xml
  distributary match --ns n=urn:news "//n:item/n:title{val}" - < feed.xml
  distributary match --patterns subscriptions.txt *.xml
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.epilog = _EPILOG
    parser.usage = (
        "distributary match [options] PATTERN FILE...\n       distributary match [options] --patterns FILE DOC..."
    )
    parser.add_argument("inputs", nargs="+", metavar="PATTERN FILE", help=f"{PATTERN_HELP}; then documents, - too")
    parser.add_argument(
        "--patterns", metavar="FILE", help="match every pattern of a file, one per line, # for comments"
    )
    parser.add_argument("--count", action="store_true", help="print how many rows each document has, not the rows")
    parser.add_argument("--check", action="store_true", help="compare with lxml where XPath 1.0 can express it")
    parser.add_argument(
        "--limit",
        type=int,
        default=1_000_000,
        metavar="N",
        help="stop with an error beyond N rows (default 1,000,000)",
    )
    add_namespaces(parser)


def run(arguments: argparse.Namespace) -> int:
    """Match and print; 1 if ``--check`` found a difference."""
    if arguments.limit < 0:
        raise CommandError(f"--limit {arguments.limit}: expected a number from 0 up")
    if arguments.patterns is not None:
        return _match_many(arguments)
    if len(arguments.inputs) < 2:
        raise CommandError("a pattern and at least one document are needed; see 'distributary match --help'")
    first, *documents = arguments.inputs
    if first == "-" and "-" in documents:
        raise CommandError("standard input cannot be both the pattern and a document; use @FILE for the pattern")
    return _match_one(read_pattern(first, arguments.ns), documents, arguments)


def _match_one(pattern: Pattern, documents: list[str], arguments: argparse.Namespace) -> int:
    from xmlmatch import match

    status = 0
    for name in documents:
        data, document = read_document(name)
        found = match(pattern, document)
        if arguments.count:
            _print({"document": name, "rows": found.count(arguments.limit)})
        else:
            for row in found.rows(arguments.limit):
                _print({"document": name, "row": dict(zip(pattern.columns, row, strict=True))})
        if arguments.check and not _check(name, data, found):
            status = 1
    return status


def _match_many(arguments: argparse.Namespace) -> int:
    from xmlmatch import Matcher, Pattern, PatternError

    if arguments.check:
        raise CommandError("--check goes with one pattern; leave out --patterns")
    if arguments.patterns == "-" and "-" in arguments.inputs:
        raise CommandError("standard input cannot be both the patterns and a document")
    matcher, line_of = Matcher(), {}
    prefixes = namespaces(arguments.ns)
    for line, text in read_lines(arguments.patterns):
        try:
            pattern = Pattern.parse(text, prefixes)
        except PatternError as exc:
            raise CommandError(f"{arguments.patterns}, line {line}: {exc}") from None
        warn_contradiction(pattern, f"{arguments.patterns}, line {line}: ")
        line_of[matcher.add(pattern)] = line
    for name in arguments.inputs:
        _, document = read_document(name)
        matches = matcher.match(document)
        for key in matches.keys.tolist():
            rows = matcher.node_sets(matches, key).count(arguments.limit)
            _print({"document": name, "pattern": line_of[key], "rows": rows})
    return 0


def _print(record: dict[str, object]) -> None:
    sys.stdout.write(json.dumps(record, ensure_ascii=False) + "\n")


def _check(name: str, data: bytes, found: NodeSets) -> bool:
    """Compare every returning node's set with lxml's answer and say so on standard error."""
    from lxml import etree

    from xmlmatch.xpath import to_xpath

    parser = etree.XMLParser(resolve_entities=False, no_network=True, huge_tree=True, attribute_defaults=True)
    try:
        root = etree.fromstring(data, parser)
    except etree.XMLSyntaxError as exc:
        raise CommandError(f"{name}: lxml cannot read it, so nothing was checked: {exc}") from None
    good = True
    for node in found.pattern.returning:
        path = to_xpath(found.pattern, node)
        theirs = [_string(result) for result in root.getroottree().xpath(path.text, namespaces=path.namespaces)]
        ours = [found.document.val(n) for n in found.sets[node].tolist()]
        same = theirs == ours
        verdict = "agrees" if same else f"DIFFERS, it finds {len(theirs)}"
        print(f"check: {name}: {len(ours)} nodes, lxml {verdict}: {path.text}", file=sys.stderr)
        good = good and same
    if len(found.pattern.returning) > 1:
        print(
            f"check: {name}: the combinations of columns are beyond XPath 1.0; each column was checked",
            file=sys.stderr,
        )
    return good


def _string(result: object) -> str:
    """Return the XPath string value of an lxml result: an attribute's text, or an element."""
    return str(result.xpath("string()")) if hasattr(result, "xpath") else str(result)
