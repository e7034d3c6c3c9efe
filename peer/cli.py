"""``distributary``: finds its commands by name, runs one, and turns bad input into one line.

Commands are entry points of the group ``distributary.commands``; each is imported only when it is run or when
the overview is asked for. Exit status: 0 done, 1 a check failed, 2 bad input, 130 interrupted.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
from importlib.metadata import entry_points, version
from typing import TYPE_CHECKING, Any, Final, NoReturn, Protocol, cast

from peer.errors import CommandError
from rewriting.errors import RewritingError
from xmlmatch.errors import XmlMatchError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from importlib.metadata import EntryPoint

_GROUP: Final = "distributary.commands"
_INTERRUPTED: Final = 130
_EPILOG: Final = """\
examples:
  distributary demo
  distributary explain pattern "//item[@featured]/name{val}"
  distributary match "//person/name{val}" auction.xml
  distributary match --help
"""


class Command(Protocol):
    """What a command module offers."""

    SUMMARY: str

    def configure(self, parser: argparse.ArgumentParser) -> None:
        """Declare the arguments, and examples in the epilog."""

    # And ``run(arguments) -> int``, unless ``configure`` sets one for each of its sub-commands.


class _Parser(argparse.ArgumentParser):
    """Says in one line what is wrong and where help is."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message}; see '{self.prog} --help'\n")

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Refuse what is left over here, where it is known whose help to name, not in the parser of all."""
        found, left = super().parse_known_args(args, namespace)
        if left:
            self.error(f"unrecognized arguments: {' '.join(left)}")
        return found, left


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return the exit status."""
    words = list(sys.argv[1:] if argv is None else argv)
    if sys.stdout is None:
        return _refuse("standard output is closed")
    try:
        arguments = _parse(words)
        status = cast("int", arguments.run(arguments))
        sys.stdout.flush()  # or a reader that has gone is noticed when nobody can handle it any more
    except (Exception, KeyboardInterrupt, BaseExceptionGroup) as exc:
        found = _status_of(exc)
        if found is None:
            raise
        if found == _INTERRUPTED and argv is None:
            # The process ends now: all that another Ctrl-C could do is to make it say so with a traceback.
            signal.signal(signal.SIGINT, signal.SIG_IGN)
        return found
    return status


def _status_of(exc: BaseException) -> int | None:
    """Say what is wrong in one line, and return the exit status; None if it is a bug, which is shown whole."""
    if _is_interrupt(exc):
        return _INTERRUPTED
    while isinstance(exc, BaseExceptionGroup) and len(exc.exceptions) == 1:
        exc = exc.exceptions[0]  # of the nursery it came from
    match exc:
        case CommandError() | RewritingError() | XmlMatchError():
            return _refuse(str(exc))
        case BrokenPipeError():
            # The reader (head, less) has gone: nothing is left to say, also not by Python at exit.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return 0
        case UnicodeEncodeError():
            return _refuse(f"this terminal cannot show {exc.object[exc.start]!a}; set PYTHONIOENCODING=utf-8")
        case OSError():
            return _refuse(f"{exc.filename}: {exc.strerror}" if exc.filename else str(exc))
    return None


def _is_interrupt(exc: BaseException | None) -> bool:
    """Say whether a user's Ctrl-C is behind an error: nurseries wrap it, and imports turn it into their own."""
    if isinstance(exc, BaseExceptionGroup):
        return any(_is_interrupt(one) for one in exc.exceptions)
    return exc is not None and (
        isinstance(exc, KeyboardInterrupt) or _is_interrupt(exc.__cause__ or exc.__context__)
    )


def _refuse(message: str) -> int:
    print(f"distributary: {' '.join(message.split())}", file=sys.stderr)
    return 2


def _parse(words: list[str]) -> argparse.Namespace:
    found = _commands()
    chosen = next((word for word in words if not word.startswith("-")), None)
    # A known command is all that must be loaded; anything else needs the overview.
    return _parser([found[chosen]] if chosen in found else list(found.values())).parse_args(words)


def whole_parser() -> argparse.ArgumentParser:
    """Return the parser with all commands."""
    return _parser(list(_commands().values()))


def _commands() -> dict[str, EntryPoint]:
    return {entry.name: entry for entry in sorted(entry_points(group=_GROUP), key=lambda entry: entry.name)}


def _parser(entries: Sequence[EntryPoint]) -> argparse.ArgumentParser:
    parser = _Parser(
        prog="distributary",
        description="Publish/subscribe in which subscribers feed each other.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"distributary {version('distributary')}")
    subparsers = parser.add_subparsers(metavar="COMMAND", required=True, parser_class=_Parser)
    for entry in entries:
        _add(subparsers, entry)
    return parser


def _add(subparsers: argparse._SubParsersAction[_Parser], entry: EntryPoint) -> None:
    command = cast("Command", entry.load())
    parser = subparsers.add_parser(
        entry.name,
        help=command.SUMMARY,
        description=command.SUMMARY,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.set_defaults(run=getattr(command, "run", None))
    command.configure(parser)


if __name__ == "__main__":
    sys.exit(main())
