"""``distributary network``: make a network, and let machines in and out."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from peer.errors import CommandError
from peer.home import NoDaemon, add_home, ask, ask_one, home_of
from peer.output import emit

if TYPE_CHECKING:
    import argparse

SUMMARY: Final = "Make a network; let machines in and out; back the source up and restore it."
_EPILOG: Final = """\
examples:
  distributary network init news --home /var/lib/distributary      on the source's machine
  distributary network invite paris --role subscriber              prints a token, good once, for a day
  distributary network join TOKEN --home ~/.distributary           on the machine called paris
  distributary network revoke paris                                cuts it off everywhere
  distributary network leave                                       on paris: hands over, and is a member no more
  distributary network backup /mnt/vault/news-monday               the source's log and keys, while it runs
  distributary network restore /mnt/vault/news-monday --home /var/lib/restored
  distributary network renew-authority                             once in two years, with the root key at hand
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
    revoke.add_argument("--force", action="store_true", help="also a name that the source does not know")
    revoke.set_defaults(run=_revoke)
    leave = commands.add_parser("leave", help="leave the network for good; results stay, subscriptions end")
    leave.add_argument(
        "--wait", type=float, default=60.0, metavar="S", help="how long others may take to take over (60 s)"
    )
    leave.add_argument(
        "--force", action="store_true", help="leave even if the source is away or no daemon runs; revoke it there"
    )
    leave.set_defaults(run=_leave)
    backup = commands.add_parser("backup", help="write the source's log, catalog and keys to a file")
    backup.add_argument("file", help="a file that is not there yet; it will hold every secret of the network")
    backup.set_defaults(run=_backup)
    restore = commands.add_parser("restore", help="make a source from a backup, in a folder of its own (--home)")
    restore.add_argument("file", help="what 'network backup' wrote")
    restore.add_argument(
        "--above", type=int, default=0, metavar="N",
        help="number documents above N, if a machine was refused because it has seen N",
    )  # fmt: skip
    restore.set_defaults(run=_restore)
    renew = commands.add_parser(
        "renew-authority", help="replace the authority's intermediate certificate, which lasts two years"
    )
    renew.set_defaults(run=_renew_authority)
    for one in (init, invite, join, revoke, leave, backup, restore, renew):
        one.epilog, one.formatter_class = _EPILOG, parser.formatter_class
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
    told = ask_one(home_of(arguments), "revoke", site=arguments.site, force=arguments.force)
    if arguments.json:
        emit(told)
    else:
        print(f"{told['site']} is revoked (list {told['list']}).")
    return 0


def _leave(arguments: argparse.Namespace) -> int:
    home = home_of(arguments)
    try:
        *_, told = ask(home, "leave_network", wait=arguments.wait, force=arguments.force)
    except NoDaemon as exc:
        if not arguments.force:
            raise CommandError(f"{exc}; or leave without telling anybody: --force") from None
        told = _leave_stopped(home)
    if arguments.json:
        emit(told)
        return 0
    print(f"This machine has left the network {told['network']}; what it received is still in {home}.")
    if not told["is_source_told"]:
        print(f"The source does not know: run 'distributary network revoke {told['site']}' there.")
    return 0


def _leave_stopped(home: Path) -> dict[str, Any]:
    """Mark the home of a machine whose daemon does not run."""
    from overlay.identity import Credential, IdentityError, Role
    from peer.daemon.resigning import check_not_left, mark_left

    try:
        check_not_left(home)
        member = Credential.load(home / "identity").member
    except IdentityError as exc:
        raise CommandError(str(exc)) from None
    if Role.SOURCE in member.roles:
        raise CommandError(f"{home} is the source's; a network cannot do without it")
    left = mark_left(home, member.network, member.site, is_source_told=False)
    return {"network": left.network, "site": left.site, "at": left.at, "is_source_told": False}


def _backup(arguments: argparse.Namespace) -> int:
    home, file = home_of(arguments), Path(arguments.file).expanduser().absolute()
    try:
        told = ask_one(home, "backup", file=str(file))
    except NoDaemon:
        told = _backup_stopped(home, file)
    if arguments.json:
        emit(told)
        return 0
    print(f"{told['file']}: {told['last']:,} entries of the log and all keys of {told['network']}, as of now.")
    print("Whoever has this file can be the source: keep it as safe as the source itself.")
    if told["has_root_key"]:
        print(f"The root key is in it too: move {home / 'authority' / 'root.key'} offline, and back up again.")
    return 0


def _backup_stopped(home: Path, file: Path) -> dict[str, Any]:
    """Back a source up that does not run."""
    import time

    from overlay.identity import Authority, IdentityError
    from peer.daemon.source_backup import About, secrets_of, write_backup
    from peer.storage.errors import StorageError
    from peer.storage.source_log import SourceLog

    if not (home / "source.sqlite").exists():
        raise CommandError(f"{home} is not the home of a source; name one with --home")
    try:
        about = About(Authority.load(home / "authority").root.network, time.time())
        with SourceLog.open(home / "source.sqlite") as log:
            return write_backup(log, secrets_of(home), file, about)
    except (IdentityError, StorageError) as exc:
        raise CommandError(str(exc)) from None


def _restore(arguments: argparse.Namespace) -> int:
    from overlay.identity import IdentityError
    from peer.daemon.source_backup import restore_home
    from peer.storage.errors import StorageError

    home = home_of(arguments)
    try:
        told = restore_home(Path(arguments.file).expanduser(), home, above=arguments.above)
    except (IdentityError, StorageError) as exc:
        raise CommandError(str(exc)) from None
    if arguments.json:
        emit(told)
        return 0
    print(f"The source of {told['network']} is in {home}, with the log up to {told['kept']:,}.")
    print(f"New documents are numbered from {told['base'] + 1:,} on; what was published after the backup is lost.")
    if told["invitations_forgotten"]:
        print("Tokens that were given before are not good any more: invite again.")
    print(f"Make sure that the old source never runs again. Next: distributary source run --home {home}")
    return 0


def _renew_authority(arguments: argparse.Namespace) -> int:
    from datetime import UTC, datetime

    from overlay.identity import Authority, IdentityError

    home = home_of(arguments)
    try:
        renewed = Authority.load(home / "authority").renew_intermediate(datetime.now(UTC))
    except IdentityError as exc:
        raise CommandError(str(exc)) from None
    ends = renewed.intermediate.certificate.not_valid_after_utc
    if arguments.json:
        emit({"network": renewed.root.network, "ends": f"{ends:%Y-%m-%d}"})
        return 0
    print(f"The authority of {renewed.root.network} is good until {ends:%Y-%m-%d}.")
    print(f"Move {home / 'authority' / 'root.key'} offline again, and restart the source.")
    return 0
