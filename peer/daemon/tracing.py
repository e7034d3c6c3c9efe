"""Why a subscription got a document, or did not: the way its results took, and where they became empty.

The source knows the document, the catalog, and so what the result must be; every machine on the way says what it
has, and from whom it came. The source asks them, one after the other, up the way to itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import trio

from peer.daemon.entries import whole_entry
from peer.daemon.questions import NoAnswer
from peer.hosting.results import decode_whole
from peer.narrowing import narrowed
from peer.storage.result_values import Kind
from xmlmatch import Document, Pattern, match
from xmlmatch.errors import XmlMatchError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from peer.hosting.hosted import Hosted
    from peer.storage.log_values import CatalogEntry
    from peer.storage.result_store import ResultStore
    from peer.storage.source_log import SourceLog

    Ask = Callable[[str, str, Any], Awaitable[Any]]

_MOST_STEPS: Final = 64
_MOST_ROWS: Final = 1_000_000


def traced_here(store: ResultStore, hosted: Hosted | None, name: str, number: int) -> dict[str, Any]:
    """Say what this machine has of a document for a subscription, and by whom it came."""
    known = store.hosted(name)
    if known is None:
        return {"state": "unknown"}
    inputs = None if hosted is None else hosted.feeding.inputs_of(number)
    came_by = None if inputs is None else [[one.subscription, one.site] for one in inputs]
    about = {"frontier": known.frontier.upto, "came_by": came_by}
    if number <= known.start:
        return about | {"state": "not owed", "start": known.start}
    if number > known.frontier.upto:
        return about | {"state": "awaited"}
    found = store.entries(name, number - 1, number, 1)
    if not found:
        return about | {"state": "empty", "rows": 0, "bytes": 0}
    pattern = Pattern.parse(known.pattern)
    entry = whole_entry(pattern, found[0])
    if entry.kind is Kind.BATCH:
        rows = decode_whole(pattern, entry.data).count(_MOST_ROWS)
        return about | {"state": "results", "rows": rows, "bytes": len(entry.data)}
    states = {Kind.ERROR: "error", Kind.GAP: "gap", Kind.TRIMMED: "trimmed"}
    return about | {"state": states[entry.kind], "why": entry.data.decode() if entry.kind is Kind.ERROR else ""}


class Tracing:
    """The source's side: what should have come, and the way it took."""

    def __init__(self, log: SourceLog, ask: Ask) -> None:
        self._log, self._ask = log, ask

    async def trace(self, number: int, name: str, *, of: str | None = None) -> dict[str, Any]:
        """Trace a document to a subscription (``of``: a machine's own); ``NoAnswer`` if there is no such thing."""
        entry = self._subscription(name)
        if of not in (None, entry.site):
            raise NoAnswer(f"{name} is not a subscription of {of}; ask there, or at the source")
        about, expected = await trio.to_thread.run_sync(self._expected, number, entry)
        is_owed = entry.start < number and (entry.end is None or number <= entry.end)
        return {
            "document": about,
            "subscription": {
                "subscription": name, "site": entry.site, "pattern": entry.pattern, "start": entry.start,
                "end": entry.end,
            },
            "is_owed": is_owed,
            "expected": expected,
            "path": await self._path(number, name, entry.site) if is_owed else [],
        }  # fmt: skip

    def _subscription(self, name: str) -> CatalogEntry:
        for entry in (*self._log.subscriptions(), *self._log.ended()):
            if entry.id == name:
                return entry
        if name.startswith("c-"):
            raise NoAnswer(f"{name} is a subscription in a space, and those are not traced; 'messages' reads it")
        raise NoAnswer(f"there is no subscription {name}; on its machine 'distributary subscriptions' lists them")

    def _expected(self, number: int, entry: CatalogEntry) -> tuple[dict[str, Any], dict[str, Any] | None]:
        """Return what is known of a document, and what direct matching gives; None if the document is gone."""
        extent = self._log.extent()
        if not 0 < number <= extent.last:
            raise NoAnswer(f"there is no document {number:,}; the last entry of the log is {extent.last:,}")
        found = self._log.document(number)
        if found is None:
            if self._log.documents(number - 1, number, 1):
                return {"number": number, "is_kept": False}, None
            raise NoAnswer(f"entry {number:,} of the log is no document: a subscription came or went there")
        about = {
            "number": number, "is_kept": True, "name": found.name, "publisher": found.publisher, "at": found.at,
            "bytes": len(found.body),
        }  # fmt: skip
        return about, _matched(entry.pattern, found.body)

    async def _path(self, number: int, name: str, site: str) -> list[dict[str, Any]]:
        """Ask up the way, each subscription once: what it has, and from whom it came."""
        steps: dict[str, dict[str, Any]] = {}
        waiting = [(name, site)]
        while waiting and len(steps) < _MOST_STEPS:
            name, site = waiting.pop()
            if name in steps:
                continue
            try:
                found = await self._ask(site, "trace", {"subscription": name, "document": number})
                step = {"state": str(found["state"]), "came_by": found.get("came_by")} | found
                waiting += [(str(one), str(where)) for one, where in step["came_by"] or []]
            except (NoAnswer, KeyError, TypeError, ValueError) as exc:
                step = {"state": "no answer", "why": str(exc), "came_by": None}
            steps[name] = {"subscription": name, "site": site} | step
        return list(steps.values())


def _matched(text: str, body: bytes) -> dict[str, Any]:
    pattern = Pattern.parse(text)
    try:
        document = Document.parse(body)
        rows = match(pattern, document).count(_MOST_ROWS)
    except XmlMatchError as exc:
        return {"error": str(exc)}
    reason = narrowed(pattern, document)
    return {"rows": rows, "why": None if reason is None else reason.told()}
