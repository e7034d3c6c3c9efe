"""``distributary publish``: hand documents to the source."""

from __future__ import annotations

import base64
import sys
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from peer.attributes import read_attributes, read_message
from peer.errors import CommandError, TryAgain
from peer.home import Conversation, add_home, ask_one, home_of
from peer.output import emit, visible
from peer.publication import MOST_BYTES, key_of, shown_name, too_large

if TYPE_CHECKING:
    import argparse

MESSAGE: Final = "message"
SUMMARY: Final = "Publish documents; each is answered with its number once it is durable."
_EPILOG: Final = """\
What this machine publishes again under the same name (as it is typed; - for standard input) with the same content
gets the same number again: a command that was cut off can be repeated. A message (--attributes) is new each time.
--key KEY makes one publication of several attempts, whatever the name, and two of equal documents.

With --watch files of a folder are published in the order of their names, once they are complete: moved there, or
unchanged for a while. They go to DIR/.published, with their number before the name, or to DIR/.refused, with the
reason beside them. Names that begin with a dot or end with .tmp, .part or ~ are left alone. If the daemon or the
source is away, it waits for them; after a crash nothing is published twice.

examples:
  distributary publish auction.xml
  distributary publish *.xml --json
  distributary publish --watch /var/spool/news
  distributary publish --attributes topic=sport price=12 "title=Rowing on the lake"
  distributary publish --space market --attributes topic=sport price=12 photo="$(base64 a.png)" --payload photo
  producer | distributary publish - --key 2024-06-01T12:00
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.epilog = _EPILOG
    parser.add_argument("documents", nargs="*", metavar="FILE", help="XML documents; - is standard input")
    parser.add_argument("--watch", metavar="DIR", help="publish what appears in a folder, until interrupted")
    parser.add_argument(
        "--settle", type=float, default=2.0, metavar="SECONDS",
        help="with --watch: a file that has not changed for so long is complete (2)",
    )  # fmt: skip
    parser.add_argument("--leave", action="store_true", help="with --watch: leave published files where they are")
    parser.add_argument(
        "--attributes",
        nargs="+",
        metavar="NAME=VALUE",
        help="publish a message with these attributes",
    )
    parser.add_argument("--space", metavar="NAME", help="with --attributes: over the content-driven network")
    parser.add_argument(
        "--payload", action="append", default=[], metavar="NAME", help="with --space: this attribute is bulky"
    )
    add_home(parser)
    parser.add_argument("--key", help="what makes it the same publication when it is tried again (one document)")
    parser.add_argument("--json", action="store_true", help="print a JSON object per document")


def run(arguments: argparse.Namespace) -> int:
    """Publish one document after the other."""
    if arguments.space is not None and arguments.attributes is None:
        raise CommandError("--space is for messages; give one with --attributes, or leave --space out")
    if arguments.payload and arguments.space is None:
        raise CommandError("--payload is for messages in a space; name it with --space")
    if arguments.watch is not None:
        return _watch(arguments)
    if arguments.leave:
        raise CommandError("--leave is for files of a folder; name it with --watch")
    if arguments.attributes is not None:
        return _message(arguments)
    if not arguments.documents:
        raise CommandError(
            "name documents to publish, or a folder with --watch; see 'distributary publish --help'"
        )
    if arguments.key is not None and len(arguments.documents) > 1:
        raise CommandError("--key names one publication; publish one document with it")
    return _documents(arguments)


def _documents(arguments: argparse.Namespace) -> int:
    """Publish what can be; what is refused is told, and the rest goes on. Status 2 if anything was refused."""
    status, waiting = 0, list(arguments.documents)
    with Conversation(home_of(arguments)) as source:
        while waiting:
            name = waiting[0]
            try:
                body = _read(name)
                key, shown = arguments.key or key_of(name, body), shown_name(name)
                told = source.one("publish", name=shown, key=key, body=base64.b64encode(body).decode())
            except TryAgain as exc:
                more = f" and {len(waiting) - 10:,} more" if len(waiting) > 10 else ""
                raise TryAgain(f"{exc}; not published: {', '.join(map(visible, waiting[:10]))}{more}") from None
            except CommandError as exc:
                print(f"distributary: {visible(' '.join(str(exc).split()))}", file=sys.stderr, flush=True)
                status = 2
            else:
                _say(told, shown, as_json=arguments.json)
            waiting.pop(0)
    return status


def _read(name: str) -> bytes:
    """Read a document; ``CommandError`` if it cannot be, or is too large for anybody to take."""
    try:
        if name == "-":
            body = sys.stdin.buffer.read()
        else:
            with open(name, "rb") as file:
                body = file.read(MOST_BYTES + 1)
    except OSError as exc:
        raise CommandError(f"{name}: {exc.strerror}") from None
    if problem := too_large(name, len(body)):
        raise CommandError(problem)
    return body


def _say(told: dict[str, Any], name: str, *, as_json: bool) -> None:
    if as_json:
        emit({"document": name, **told})
    else:
        print(f"{told['number']}\t{name}" + ("" if told["is_new"] else "\t(published before)"), flush=True)


def _message(arguments: argparse.Namespace) -> int:
    if arguments.documents:
        raise CommandError("--attributes makes one message; publish documents by themselves")
    body = read_message(arguments.attributes)
    key = arguments.key or uuid.uuid4().hex  # two messages may well be equal
    if arguments.space is None:
        told = ask_one(home_of(arguments), "publish", name=MESSAGE, key=key, body=base64.b64encode(body).decode())
    else:
        attributes = read_attributes(arguments.attributes)
        for name in arguments.payload:
            if name not in attributes:
                raise CommandError(
                    f"--payload {name}: the message has no such attribute; give it with --attributes"
                )
        fields = {"attributes": attributes, "payload": arguments.payload}
        told = ask_one(home_of(arguments), "space_publish", space=arguments.space, key=key, **fields)
    _say(told, MESSAGE, as_json=arguments.json)
    return 0


def _watch(arguments: argparse.Namespace) -> int:
    if arguments.documents or arguments.attributes or arguments.key is not None:
        raise CommandError("--watch publishes what is in the folder; name neither documents nor a key with it")
    if not arguments.settle >= 0:
        raise CommandError(f"--settle {arguments.settle}: expected a number of seconds")
    from peer.watching import watch

    settings = {"settle_s": arguments.settle, "leaves": arguments.leave, "as_json": arguments.json}
    watch(home_of(arguments), Path(arguments.watch), **settings)
    return 0
