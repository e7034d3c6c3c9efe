"""``distributary space``: parts of the content-driven network, declared at the source."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from peer.errors import CommandError
from peer.home import add_home, ask, ask_one, home_of
from peer.output import emit

if TYPE_CHECKING:
    import argparse

SUMMARY: Final = "Declare spaces, in which filters are points and messages find them."
_EPILOG: Final = """\
A dimension is an attribute with the kind of its values: price:number:0:1000 with its bounds, topic:ordered for
text that is asked for by its beginning, city:hashed for text that is asked for by equality. Values beyond the
bounds are fine; they are less well spread. Conditions on other attributes are matched where the subscription lies.

examples:
  distributary space create market price:number:0:1000 topic:hashed      at the source
  distributary space list
  distributary space list --json
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.epilog = _EPILOG
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    create = actions.add_parser("create", help="declare a space; the same again changes nothing")
    create.add_argument("name", help="the space's name")
    create.add_argument("dimensions", nargs="+", metavar="ATTRIBUTE:KIND[:LOW:HIGH]", help="what it is made of")
    listed = actions.add_parser("list", help="say how the spaces stand")
    for one in (create, listed):
        one.epilog, one.formatter_class = _EPILOG, parser.formatter_class
        add_home(one)
        one.add_argument("--json", action="store_true", help="print JSON")


def run(arguments: argparse.Namespace) -> int:
    """Declare or list."""
    if arguments.action == "list":
        for one in ask(home_of(arguments), "spaces"):
            if arguments.json:
                emit(one)
            else:
                zones, machines = sum(one["zones"].values()), len(one["zones"])
                print(
                    f"{one['space']}\t{', '.join(one['dimensions'])}\t{one['subscriptions']:,} subscriptions\t"
                    f"{zones:,} zones on {machines:,} machines\t"
                    f"complete up to {one['complete']} of {one['number']}"
                )
        return 0
    space = {"name": arguments.name, "dimensions": [_dimension(text) for text in arguments.dimensions]}
    told = ask_one(home_of(arguments), "space_create", space=space)
    if arguments.json:
        emit(told)
    else:
        print(told["space"] + ("" if told["is_new"] else "\t(declared before)"))
    return 0


def _dimension(text: str) -> dict[str, Any]:
    attribute, *rest = text.split(":")
    match rest:
        case ["number", low, high]:
            try:
                return {"attribute": attribute, "kind": "number", "low": float(low), "high": float(high)}
            except ValueError:
                raise CommandError(f"{text}: bounds are numbers, such as price:number:0:1000") from None
        case ["ordered" | "hashed" as kind]:
            return {"attribute": attribute, "kind": kind}
        case _:
            raise CommandError(f"{text}: expected price:number:LOW:HIGH, topic:ordered or city:hashed")
