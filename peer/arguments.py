"""Arguments that several commands read alike: patterns, namespaces, files."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from peer.errors import CommandError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from xmlmatch import Document, Pattern

PATTERN_HELP = "a pattern; @FILE reads it from a file and - from standard input, away from the shell's quotes"


_MOST: Final = (1 << 63) - 1


def check_number(what: str, number: int, least: int = 0) -> int:
    """Return a number that a document can have, or refuse it; ``what`` says where it stands."""
    if not least <= number <= _MOST:
        raise CommandError(
            f"{what} {number}: a document's number is {least} or more, and what 'publish' has answered"
        )
    return number


def add_namespaces(parser: argparse.ArgumentParser) -> None:
    """Declare ``--ns``."""
    parser.add_argument(
        "--ns", action="append", default=[], metavar="PREFIX=URI", help="a namespace prefix the pattern uses"
    )


def namespaces(pairs: Sequence[str]) -> dict[str, str]:
    """Read ``PREFIX=URI`` pairs."""
    from xmlmatch.namespaces import NCNAME

    found = {}
    for pair in pairs:
        prefix, equals, uri = pair.partition("=")
        if not (equals and uri and NCNAME.fullmatch(prefix)):
            raise CommandError(f"--ns {pair}: expected PREFIX=URI, such as --ns p=urn:example")
        if prefix.lower().startswith("xml"):
            raise CommandError(f"--ns {pair}: prefixes that begin with xml are reserved; choose another")
        found[prefix] = uri
    return found


def read_pattern(argument: str, pairs: Sequence[str]) -> Pattern:
    """Parse a pattern argument and warn on standard error if it can never match."""
    if argument == "-":
        return parse_pattern(_decoded(_read("-"), "standard input"), namespaces(pairs), "standard input: ")
    if argument.startswith("@"):
        name = argument[1:]
        return parse_pattern(_decoded(_read(name), name), namespaces(pairs), f"{name}: ")
    return parse_pattern(argument, namespaces(pairs), "")


def parse_pattern(text: str, prefixes: dict[str, str], where: str) -> Pattern:
    """Parse a pattern; errors and warnings say where it stands."""
    from xmlmatch import Pattern, PatternError

    try:
        pattern = Pattern.parse(text, prefixes)
    except PatternError as exc:
        raise CommandError(f"{where}{exc}") from None
    if pattern.contradiction:
        print(
            f"distributary: warning: {where}this pattern never matches: {pattern.contradiction}", file=sys.stderr
        )
    return pattern


def read_document(name: str) -> tuple[bytes, Document]:
    """Read and parse a document; ``-`` is standard input."""
    from xmlmatch import Document, DocumentError

    data = _read(name)
    try:
        return data, Document.parse(data)
    except DocumentError as exc:
        raise CommandError(f"{name}: {exc}") from None


def read_lines(name: str) -> list[tuple[int, str]]:
    """Read a file of one entry per line with line numbers from 1; blank lines and ``#`` comments are left out."""
    lines = enumerate(re.split(r"\r\n|\r|\n", _decoded(_read(name), name)), start=1)
    return [(i, line) for i, line in lines if line.strip() and not line.lstrip().startswith("#")]


def _read(name: str) -> bytes:
    if name == "-":
        if sys.stdin is None:
            raise CommandError("standard input is closed; name a file")
        return sys.stdin.buffer.read()
    if not name:
        raise CommandError("a file name is empty")
    return Path(name).read_bytes()


def _decoded(raw: bytes, name: str) -> str:
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as exc:
        raise CommandError(f"{name}: not UTF-8 at byte {exc.start}; patterns are UTF-8 text") from None
