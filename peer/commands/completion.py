"""``distributary completion``: scripts that complete commands in a shell."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Final

from peer.completion import SHELLS, script
from peer.errors import CommandError
from peer.home import add_home, ask, home_of

if TYPE_CHECKING:
    import argparse

SUMMARY: Final = "Print a script that completes commands, options and subscriptions in bash, zsh or fish."
_EPILOG: Final = """\
examples:
  eval "$(distributary completion bash)"                       in ~/.bashrc
  eval "$(distributary completion zsh)"                        in ~/.zshrc, after compinit
  distributary completion fish > ~/.config/fish/completions/distributary.fish
  distributary completion names                                the subscriptions here, for scripts
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.epilog = _EPILOG
    parser.add_argument("what", nargs="?", choices=(*SHELLS, "names"), help="the shell; or 'names'")
    add_home(parser)


def run(arguments: argparse.Namespace) -> int:
    """Print."""
    if arguments.what is None:
        raise CommandError(f'name your shell, one of {", ".join(SHELLS)}: eval "$(distributary completion bash)"')
    if arguments.what == "names":
        try:
            home = home_of(arguments)
            asked = ("subscriptions", "subscriptions_in_spaces")
            names = [one["subscription"] for what in asked for one in ask(home, what)]
        except CommandError:
            names = []  # no daemon, nothing to complete
        sys.stdout.writelines(f"{name}\n" for name in names)
        return 0
    from peer.cli import whole_parser

    sys.stdout.write(script(arguments.what, whole_parser()))
    return 0
