"""``distributary webhook``: results posted to a URL."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from peer.arguments import check_number
from peer.home import add_home, ask, ask_one, home_of
from peer.output import emit

if TYPE_CHECKING:
    import argparse

SUMMARY: Final = "Have results posted to a URL as they arrive."
_EPILOG: Final = """\
A POST holds {"subscription": ID, "entries": [...], "complete": NUMBER}, entries as 'distributary results' prints
them, in document order. What is not answered with 2xx within 10 s is posted again, after 1 s, then later and
later, at least every few minutes, until it is; redirects are not followed. Receivers check the header
Distributary-Signature, 't=TIME,v1=HEX': HEX is the HMAC-SHA256 of 'TIME.BODY' under the secret. They may get a
document again after a crash, and know it by its number.

examples:
  distributary webhook add s-0123456789abcdef https://example.org/in     prints the secret, this once
  distributary webhook add s-0123456789abcdef http://localhost:9000/ --since 120 --secret-file secret.txt
  distributary webhook list --json
  distributary webhook remove w-01234567
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the sub-commands."""
    parser.epilog = _EPILOG
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    adding = commands.add_parser("add", help="post what a subscription gets to a URL")
    adding.add_argument("subscription", help="its name")
    adding.add_argument("url", metavar="URL", help="http:// or https:// (certificates are verified)")
    adding.add_argument(
        "--since", type=int, default=0, metavar="N", help="only documents after number N (all it has)"
    )
    adding.add_argument("--secret-file", metavar="FILE", help="a secret to sign with (one is made)")
    listing = commands.add_parser("list", help="list webhooks and how they stand")
    removing = commands.add_parser("remove", help="end a webhook")
    removing.add_argument("webhook", metavar="WEBHOOK", help="its name, as 'webhook list' shows it")
    for one, run in ((adding, _add), (listing, _list), (removing, _remove)):
        one.epilog, one.formatter_class = _EPILOG, parser.formatter_class
        add_home(one)
        one.add_argument("--json", action="store_true", help="print JSON")
        one.set_defaults(run=run)


def _add(arguments: argparse.Namespace) -> int:
    wanted = {"subscription": arguments.subscription, "url": arguments.url}
    wanted["since"] = check_number("--since", arguments.since)
    if arguments.secret_file is not None:
        wanted["secret"] = Path(arguments.secret_file).read_text("utf-8").strip()
    told = ask_one(home_of(arguments), "add_webhook", **wanted)
    if arguments.json:
        emit(told)
    else:
        print(f"{told['webhook']} posts what {told['subscription']} gets after document {told['since']}.")
        if arguments.secret_file is None:
            print(f"Its secret, shown this once: {told['secret']}")
    return 0


def _list(arguments: argparse.Namespace) -> int:
    for one in ask(home_of(arguments), "webhooks"):
        if arguments.json:
            emit(one)
            continue
        why = f" ({one['failures']:,} failures: {one['problem']})" if one["problem"] else ""
        upto = "nothing" if one["upto"] is None else f"up to {one['upto']:,}"
        print(f"{one['webhook']}  {one['subscription']}  {one['url']}  {one['state']}, {upto} delivered{why}")
    return 0


def _remove(arguments: argparse.Namespace) -> int:
    told = ask_one(home_of(arguments), "remove_webhook", webhook=arguments.webhook)
    if arguments.json:
        emit(told)
    else:
        print(f"{told['webhook']} has ended.")
    return 0
