"""``distributary config``: which options are in force, and where each comes from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from peer.home import home_of
from peer.options.resolving import add_options, resolve
from peer.options.table import DAEMONS
from peer.output import emit

if TYPE_CHECKING:
    import argparse

SUMMARY: Final = "Show the options of a daemon that are in force, and where each comes from."
_EPILOG: Final = """\
Flags win over the environment (DISTRIBUTARY_PORT), it over the file (distributary.toml in the home, or
--config), and it over the defaults. Nothing is started, and nothing changed.
docs/configuration.md lists all options.

examples:
  distributary config show peer
  distributary config show source --home /var/lib/distributary --json
  distributary config show peer --config new.toml      is it right?
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the sub-commands."""
    parser.epilog = _EPILOG
    show = parser.add_subparsers(metavar="COMMAND", required=True).add_parser("show", help="show what is in force")
    show.epilog, show.formatter_class = _EPILOG, parser.formatter_class
    daemons = show.add_subparsers(metavar="|".join(DAEMONS), required=True)
    for daemon in DAEMONS:
        one = daemons.add_parser(daemon, help=f"the options of 'distributary {daemon} run'")
        one.epilog, one.formatter_class = _EPILOG, parser.formatter_class
        add_options(one, daemon)
        one.add_argument("--json", action="store_true", help="print one JSON object")
        one.set_defaults(run=_show, daemon=daemon)


def _show(arguments: argparse.Namespace) -> int:
    rows = resolve(arguments.daemon, arguments).shown()
    if arguments.json:
        found = {name: {"value": value, "from": origin} for name, value, origin in rows}
        emit({"daemon": arguments.daemon, "home": str(home_of(arguments)), "options": found})
        return 0
    widths = [max(len(row[i]) for row in rows) for i in (0, 1)]
    for name, value, origin in rows:
        print(f"{name:<{widths[0]}}  {value:<{widths[1]}}  {origin}")
    return 0
