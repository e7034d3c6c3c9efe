"""``distributary subscribe``: ask for an exact slice of what is published."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from peer.arguments import PATTERN_HELP, add_namespaces, read_pattern
from peer.attributes import check_filter, read_filter
from peer.errors import CommandError
from peer.home import add_home, ask_one, home_of
from peer.output import emit

if TYPE_CHECKING:
    import argparse

    from xmlmatch import Pattern

SUMMARY: Final = "Subscribe to a pattern; prints the subscription's name."
_EPILOG: Final = """\
examples:
  distributary subscribe "//item[@featured]/name{val}"
  distributary subscribe --from earliest @pattern.txt       everything that the source still has
  distributary subscribe --from 120 "//person/name{val}"    the documents after number 120
  distributary subscribe --filter "topic = 'sport' and price < 50" --whole
  distributary subscribe --space market --filter "price < 50 or topic prefix 'sp'"     read it with 'messages'
  distributary tail "$(distributary subscribe '//price[. > 100]{val}')"
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.epilog = _EPILOG
    parser.add_argument("pattern", nargs="?", help=PATTERN_HELP)
    parser.add_argument("--filter", help="instead of a pattern: conditions on the attributes of messages")
    parser.add_argument(
        "--select",
        action="append",
        default=[],
        metavar="NAME",
        help="with --filter: return this too",
    )
    parser.add_argument("--whole", action="store_true", help="with --filter: return the whole message too")
    parser.add_argument(
        "--space", metavar="NAME", help="with --filter: over the content-driven network, in this space"
    )
    add_namespaces(parser)
    add_home(parser)
    parser.add_argument(
        "--from", dest="start", default="now", metavar="now|earliest|N", help="where to begin (now)"
    )
    parser.add_argument("--limit", type=int, metavar="N", help="how many other subscriptions it may feed, planned")
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(arguments: argparse.Namespace) -> int:
    """Subscribe."""
    start = arguments.start
    if start not in ("now", "earliest"):
        if not start.isdecimal():
            raise CommandError(f"--from {start}: expected now, earliest, or the number of a document")
        start = int(start)
    if arguments.limit is not None and arguments.limit < 0:
        raise CommandError(f"--limit {arguments.limit}: a limit is 0 or more")
    if arguments.space is not None:
        return _in_space(arguments)
    pattern = _wanted(arguments)
    if pattern.contradiction:
        raise CommandError(f"this pattern never matches: {pattern.contradiction}")
    # The canonical text needs no prefixes; the order of the columns goes beside it.
    columns = [[node, what.value] for node, what in pattern.selection]
    told = ask_one(
        home_of(arguments), "subscribe", pattern=pattern.text, columns=columns, start=start, limit=arguments.limit
    )
    if arguments.json:
        emit(told)
    else:
        print(told["subscription"])
    return 0


def _in_space(arguments: argparse.Namespace) -> int:
    if arguments.filter is None or arguments.pattern is not None or arguments.select or arguments.whole:
        raise CommandError("--space goes with --filter alone: messages come whole")
    if arguments.start != "now" or arguments.limit is not None:
        raise CommandError("in a space a subscription begins now, and feeds nobody; leave --from and --limit out")
    check_filter(arguments.filter)
    told = ask_one(home_of(arguments), "space_subscribe", space=arguments.space, filter=arguments.filter)
    if arguments.json:
        emit(told)
    else:
        print(told["subscription"])
    return 0


def _wanted(arguments: argparse.Namespace) -> Pattern:
    if (arguments.pattern is None) == (arguments.filter is None):
        raise CommandError("give a pattern, or a filter with --filter")
    if arguments.filter is not None:
        return read_filter(arguments.filter, arguments.select, whole=arguments.whole)
    if arguments.select or arguments.whole:
        raise CommandError("--select and --whole go with --filter; a pattern says itself what it returns")
    return read_pattern(arguments.pattern, arguments.ns)
