"""``distributary trace``: why a subscription got a document, or did not."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from peer.arguments import check_number
from peer.home import add_home, ask_one, home_of
from peer.output import emit, visible

if TYPE_CHECKING:
    import argparse

SUMMARY: Final = "Say why a subscription got a document or did not: the way it took, and where it became empty."
_EPILOG: Final = """\
The number of a document is what 'publish' answers and what 'tail' shows. A subscriber's machine answers for its
own subscriptions, the source's machine for all. Exit status: 0 if what is there is what direct matching gives, or
still under way; 1 if not.

examples:
  distributary trace 18 s-4f0c9a7be1d20356
  distributary trace 18 s-4f0c9a7be1d20356 --json
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.epilog = _EPILOG
    parser.add_argument("document", type=int, help="the number of the document")
    parser.add_argument("subscription", help="the name of the subscription")
    add_home(parser)
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(arguments: argparse.Namespace) -> int:
    """Trace."""
    number = check_number("document", arguments.document, least=1)
    told = ask_one(home_of(arguments), "trace", document=number, subscription=arguments.subscription)
    found = told | {"verdict": verdict(told)}
    if arguments.json:
        emit(found)
    else:
        for line in lines(found):
            print(line)
    return 1 if found["verdict"].startswith("WRONG") else 0


def verdict(told: dict[str, Any]) -> str:
    """Say in a sentence what is the case.

    >>> verdict({"is_owed": True, "expected": {"rows": 0}, "path": [{"state": "empty", "rows": 0}]})
    'nothing in it matches'
    >>> verdict({"is_owed": True, "expected": {"rows": 2}, "path": [{"state": "empty", "rows": 0}]})
    'WRONG: it should have 2 rows and has 0'
    """
    if not told["is_owed"]:
        about = told["subscription"]
        ended = f" and up to {about['end']:,}" if about["end"] is not None else ""
        return f"not owed: the subscription wants documents after {about['start']:,}{ended}"
    here, expected = told["path"][0], told["expected"]
    state = here["state"]
    if state in ("no answer", "unknown"):
        return f"not known: {here.get('why') or 'the machine does not host it'}"
    if state == "awaited":
        return f"under way: the subscription is complete up to {here['frontier']:,}"
    if state in ("gap", "trimmed"):
        why = (
            "nobody had it any more" if state == "gap" else "older results were dropped to keep within the limits"
        )
        return f"{state}: {why}"
    if state == "error":
        return f"error: {here['why']}"
    if expected is None:
        return f"it has {here['rows']:,} rows; the document is not in the log any more"
    if "error" in expected:
        return f"the document cannot be processed: {expected['error']}"
    if expected["rows"] != here["rows"]:
        return f"WRONG: it should have {expected['rows']:,} rows and has {here['rows']:,}"
    return f"it has all {here['rows']:,} rows" if here["rows"] else "nothing in it matches"


def lines(told: dict[str, Any]) -> list[str]:
    """Draw what was told."""
    document, about = told["document"], told["subscription"]
    if document["is_kept"]:
        at = datetime.fromtimestamp(document["at"]).strftime("%Y-%m-%d %H:%M:%S")
        name, size = visible(document["name"]), document["bytes"]
        drawn = [
            f"document {document['number']:,}  {name}, {size:,} bytes, published {at} by {document['publisher']}"
        ]
    else:
        drawn = [f"document {document['number']:,}  is not in the log any more"]
    drawn += [f"{about['subscription']} at {about['site']}  {visible(about['pattern'])}", f"  {told['verdict']}"]
    if told["expected"] and told["expected"].get("why"):
        drawn.append(f"  {visible(told['expected']['why']['sentence'])}")
    steps = {one["subscription"]: one for one in told["path"]}
    if told["path"]:
        drawn += ["the way it took", *_tree(steps, about["subscription"], "  ", set())]
    return drawn


def _tree(steps: dict[str, Any], name: str, margin: str, seen: set[str]) -> list[str]:
    step = steps.get(name)
    if step is None:
        return [f"{margin}{name}  (further up, not asked)"]
    drawn = [f"{margin}{name} at {step['site']}: {visible(_has(step))}"]
    if name in seen:
        return [*drawn, f"{margin}  (its way stands above)"]
    seen.add(name)
    came_by = step.get("came_by")
    if came_by is None:
        if step["state"] in ("results", "empty"):
            drawn.append(f"{margin}  from: not known any more (it came before the daemon was started)")
        return drawn
    if not came_by:
        return [*drawn, f"{margin}  from the source"]
    for one, _ in came_by:
        drawn += _tree(steps, one, margin + "  ", seen)
    return drawn


def _has(step: dict[str, Any]) -> str:
    """Say what a machine has of the document."""
    match step["state"]:
        case "results":
            return f"{step['rows']:,} rows, {step['bytes']:,} bytes"
        case "awaited":
            return f"not there yet (complete up to {step['frontier']:,})"
        case "not owed":
            return f"not owed (begins after {step['start']:,})"
        case other:
            return f"{other} {step.get('why', '')}".strip()
