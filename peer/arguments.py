"""Arguments that several commands read alike: patterns, namespaces, files."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from peer.errors import CommandError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from xmlmatch import Document, Pattern

PATTERN_HELP = "a pattern; @FILE reads it from a file and - from standard input, away from the shell's quotes"


def add_namespaces(parser: argparse.ArgumentParser) -> None:
    """Declare ``--ns``."""
    parser.add_argument(
        "--ns", action="append", default=[], metavar="PREFIX=URI", help="a namespace prefix the pattern uses"
    )


def namespaces(pairs: Sequence[str]) -> dict[str, str]:
    """Read ``PREFIX=URI`` pairs."""
    found = {}
    for pair in pairs:
        prefix, equals, uri = pair.partition("=")
        if not (prefix and equals and uri):
            raise CommandError(f"--ns {pair}: expected PREFIX=URI, such as --ns p=urn:example")
        found[prefix] = uri
    return found


def read_pattern(argument: str, pairs: Sequence[str]) -> Pattern:
    """Parse a pattern argument and warn on standard error if it can never match."""
    from xmlmatch import Pattern

    text = argument
    if argument == "-":
        text = _decoded(sys.stdin.buffer.read(), "standard input")
    elif argument.startswith("@"):
        text = _decoded(Path(argument[1:]).read_bytes(), argument[1:])
    pattern = Pattern.parse(text.strip(), namespaces(pairs))
    warn_contradiction(pattern)
    return pattern


def warn_contradiction(pattern: Pattern, where: str = "") -> None:
    """Say on standard error why a pattern can never match, if so."""
    if pattern.contradiction:
        print(
            f"distributary: warning: {where}this pattern never matches: {pattern.contradiction}", file=sys.stderr
        )


def read_document(name: str) -> tuple[bytes, Document]:
    """Read and parse a document; ``-`` is standard input."""
    from xmlmatch import Document, DocumentError

    data = sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()
    try:
        return data, Document.parse(data)
    except DocumentError as exc:
        raise CommandError(f"{name}: {exc}") from None


def read_lines(name: str) -> list[tuple[int, str]]:
    """Read a file of one entry per line with line numbers from 1; blank lines and ``#`` comments are left out."""
    text = _decoded(sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes(), name)
    lines = [(i, line.strip()) for i, line in enumerate(text.split("\n"), start=1)]
    return [(i, line) for i, line in lines if line and not line.startswith("#")]


def _decoded(raw: bytes, name: str) -> str:
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as exc:
        raise CommandError(f"{name}: not UTF-8 at byte {exc.start}; patterns are UTF-8 text") from None
