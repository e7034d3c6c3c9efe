"""``distributary network``: make a network, and let machines in and out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from peer.errors import CommandError
from peer.home import add_home, ask_one, home_of
from peer.output import emit

if TYPE_CHECKING:
    import argparse

SUMMARY: Final = "Make a network; invite, join, revoke machines."
_EPILOG: Final = """\
examples:
  distributary network init news --home /var/lib/distributary      on the source's machine
  distributary network invite paris --role subscriber              prints a token, good once, for a day
  distributary network join TOKEN --home ~/.distributary           on the machine called paris
  distributary network revoke paris                                cuts it off everywhere
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the sub-commands."""
    parser.epilog = _EPILOG
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    init = commands.add_parser("init", help="make a network: its authority, and the source's identity")
    init.add_argument("name", help="the network's name")
    init.set_defaults(run=_init)
    invite = commands.add_parser("invite", help="print a token with which a machine can join once")
    invite.add_argument("site", help="the name the machine will have")
    invite.add_argument(
        "--role", action="append", choices=("subscriber", "publisher", "planner"),
        help="what it may do (default: subscriber); may be repeated",
    )  # fmt: skip
    invite.add_argument("--hours", type=float, default=24.0, help="how long the token is good (24)")
    invite.set_defaults(run=_invite)
    join = commands.add_parser("join", help="join a network with a token")
    join.add_argument("token")
    join.set_defaults(run=_join)
    revoke = commands.add_parser("revoke", help="cut a machine off")
    revoke.add_argument("site")
    revoke.set_defaults(run=_revoke)
    for one in (init, invite, join, revoke):
        add_home(one)
        one.add_argument("--json", action="store_true", help="print one JSON object")


def _init(arguments: argparse.Namespace) -> int:
    from datetime import UTC, datetime

    from overlay.identity import IdentityError, create_network

    home = home_of(arguments)
    try:
        made = create_network(home, arguments.name, datetime.now(UTC))
    except IdentityError as exc:
        raise CommandError(str(exc)) from None
    if arguments.json:
        emit({"network": arguments.name, "home": str(home), "advice": made.advice})
    else:
        print(f"The network {arguments.name} is in {home}.\n{made.advice}.")
        print(f"Next: distributary source run --home {home}")
    return 0


def _invite(arguments: argparse.Namespace) -> int:
    roles = arguments.role or ["subscriber"]
    told = ask_one(home_of(arguments), "invite", site=arguments.site, roles=roles, hours=arguments.hours)
    if arguments.json:
        emit(told)
    else:
        print(told["token"])
    return 0


def _join(arguments: argparse.Namespace) -> int:
    from overlay.identity import IdentityError
    from peer.daemon.enrolling import join

    home = home_of(arguments)
    try:
        credential = join(home, arguments.token)
    except IdentityError as exc:
        raise CommandError(str(exc)) from None
    except OSError as exc:
        raise CommandError(f"the source cannot be reached: {exc}; is it running?") from None
    member = credential.member
    if arguments.json:
        emit(
            {"site": member.site, "network": member.network, "roles": sorted(role.value for role in member.roles)}
        )
    else:
        print(f"This machine is {member.site} in the network {member.network}.")
        print(f"Next: distributary peer run --home {home}")
    return 0


def _revoke(arguments: argparse.Namespace) -> int:
    told = ask_one(home_of(arguments), "revoke", site=arguments.site)
    if arguments.json:
        emit(told)
    else:
        print(f"{told['site']} is revoked (list {told['list']}).")
    return 0
