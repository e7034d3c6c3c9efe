"""``distributary publish``: hand documents to the source."""

from __future__ import annotations

import base64
import hashlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from peer.errors import CommandError
from peer.home import add_home, ask_one, home_of
from peer.output import emit

if TYPE_CHECKING:
    import argparse

SUMMARY: Final = "Publish documents; each is answered with its number once it is durable."
_EPILOG: Final = """\
The same document under the same name gets the same number again: a command that was cut off can be repeated.
--key KEY makes one publication of several attempts, whatever the name.

examples:
  distributary publish auction.xml
  distributary publish *.xml --json
  producer | distributary publish - --key 2024-06-01T12:00
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.epilog = _EPILOG
    parser.add_argument("documents", nargs="+", metavar="FILE", help="XML documents; - is standard input")
    add_home(parser)
    parser.add_argument("--key", help="what makes it the same publication when it is tried again (one document)")
    parser.add_argument("--json", action="store_true", help="print a JSON object per document")


def run(arguments: argparse.Namespace) -> int:
    """Publish one document after the other."""
    if arguments.key is not None and len(arguments.documents) > 1:
        raise CommandError("--key names one publication; publish one document with it")
    home = home_of(arguments)
    for name in arguments.documents:
        body = sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()
        key = arguments.key or hashlib.sha256(name.encode() + b"\0" + body).hexdigest()
        told = ask_one(home, "publish", name=name, key=key, body=base64.b64encode(body).decode())
        if arguments.json:
            emit({"document": name, **told})
        else:
            print(f"{told['number']}\t{name}" + ("" if told["is_new"] else "\t(published before)"), flush=True)
    return 0
