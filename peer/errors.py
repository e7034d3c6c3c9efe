"""What the command line tells a user in one line."""

from __future__ import annotations


class CommandError(Exception):
    """Bad input to a command: the message says what, where, and what to do. Exit status 2."""


class TryAgain(CommandError):
    """Nothing is wrong with what was asked: the daemon, or the source, cannot be reached just now, or has no
    room on its disk."""
