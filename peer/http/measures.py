"""What the daemons tell Prometheus.

Labels are bounded: subscriptions in the order of their names up to the limit of a family, reasons of refusals by
the most frequent. Sums over all subscriptions have no labels, so nothing is lost to the bound but detail.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal

from peer.http.exposition import Family, one
from peer.http.process import process_families
from peer.storage.store_file import files_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from peer.daemon.peer_daemon import PeerDaemon
    from peer.daemon.source_daemon import SourceDaemon
    from peer.http.serving import Server

_MOST_REASONS: Final = 20
_Kind = Literal["counter", "gauge"]


def peer_families(daemon: PeerDaemon, store: Path, server: Server | None) -> list[Family]:
    """Measure a peer."""
    told = daemon.status()
    hosted = list(daemon.host.subscriptions.values())
    return [
        *_of_both(told, store, server),
        *_subscriptions(told["subscriptions"]),
        one("distributary_failovers_total", "counter", "Feeders that failed.", daemon.host.failovers),
        one("distributary_documents_published_total", "counter", "Published from here.", daemon.published),
        one("distributary_webhooks", "gauge", "Webhooks.", len(told["webhooks"])),
        one("distributary_webhooks_failing", "gauge", "Webhooks whose last POST failed.",
            sum(bool(each["problem"]) for each in told["webhooks"])),
        one("distributary_webhook_failures_total", "counter", "POSTs that failed.", daemon.webhooks.failures),
        one("distributary_results_stored_bytes", "gauge", "Results kept.", daemon.store_file.held_bytes),
        one("distributary_commit_queue_changes", "gauge", "Changes not on disk yet.", daemon.uncommitted),
        one("distributary_link_queue_frames", "gauge", "Frames not sent yet.", daemon.links.frames_waiting),
        one("distributary_credit_left_bytes", "gauge", "What receivers let this machine send now.",
            sum(each.outlet.credit_left for each in hosted)),
    ]  # fmt: skip


def source_families(daemon: SourceDaemon, store: Path, server: Server | None) -> list[Family]:
    """Measure the source."""
    told, extent = daemon.status(), daemon.log.extent()
    return [
        *_of_both(told, store, server),
        one("distributary_subscriptions", "gauge", "Subscriptions of the network.", told["subscriptions"]),
        one("distributary_sites", "gauge", "Machines known.", len(told["sites"])),
        one("distributary_feeds_served", "gauge", "Feeds from here to other machines.", told["feeds"]),
        one("distributary_epoch", "gauge", "Full plans put into force.", told["epoch"]),
        one("distributary_documents_numbered_total", "counter", "Documents numbered by this process.",
            daemon.published),
        one("distributary_log_generation", "gauge", "The generation of the log.", extent.generation),
        one("distributary_log_last_number", "gauge", "The highest number given.", extent.last),
        one("distributary_log_lowest_number", "gauge", "Documents up to there are dropped.", extent.lowest),
        one("distributary_log_stored_bytes", "gauge", "Documents kept.", extent.held_bytes),
        one("distributary_commit_queue_changes", "gauge", "Entries not on disk yet.", daemon.uncommitted),
        one("distributary_link_queue_frames", "gauge", "Frames not sent yet.", daemon.links.frames_waiting),
        one("distributary_credit_left_bytes", "gauge", "What receivers let this machine send now.",
            daemon.views.credit_left),
    ]  # fmt: skip


def _of_both(told: Mapping[str, Any], store: Path, server: Server | None) -> list[Family]:
    database, wal = (_size(path) for path in files_of(store)[:2])
    families = [
        Family("distributary_info", "gauge", "Who this is.", [({"site": told["site"], "role": told["role"]}, 1)]),
        one("distributary_connected_sites", "gauge", "Machines connected.", len(told["connected"])),
        one("distributary_sent_bytes_total", "counter", "Sent to other machines.", told["bytes_sent"]),
        one("distributary_saved_bytes_total", "counter", "Named, not sent again.", told["bytes_saved"]),
        one("distributary_received_bytes_total", "counter", "Received from them.", told["bytes_received"]),
        Family("distributary_refusals_total", "counter", "Refused, by reason.", _refusals(told["refused"])),
        one("distributary_database_bytes", "gauge", "The store's file.", database),
        one("distributary_wal_bytes", "gauge", "Its write-ahead log.", wal),
        *process_families(),
    ]  # fmt: skip
    return families if server is None else families + _of_server(server)


def _of_server(server: Server) -> list[Family]:
    answers = [({"status": str(status)}, count) for status, count in sorted(server.answers.items())]
    return [
        Family("distributary_http_answers_total", "counter", "Requests answered.", answers),
        one("distributary_http_connections", "gauge", "Connections now.", server.connections),
        one("distributary_http_streams", "gauge", "Streams now.", server.streams),
    ]


def _subscriptions(found: Sequence[Mapping[str, Any]]) -> list[Family]:
    furthest = max((each["frontier"] for each in found), default=0)
    lags = [furthest - each["committed"] for each in found]

    def each_of(name: str, kind: _Kind, about: str, values: Sequence[float]) -> Family:
        labels = [{"subscription": each["subscription"]} for each in found]
        return Family(f"distributary_subscription_{name}", kind, about, list(zip(labels, values, strict=True)))

    return [
        one("distributary_subscriptions", "gauge", "Subscriptions on this machine.", len(found)),
        one("distributary_subscriptions_waiting", "gauge", "Of these, fed by nobody now.",
            sum(not each["is_live"] for each in found)),
        one("distributary_feeds_served", "gauge", "Feeds given, to this machine's own included.",
            sum(each["feeds"] for each in found)),
        one("distributary_lag_entries", "gauge", "The most that a subscription is behind.", max(lags, default=0)),
        each_of("committed_number", "gauge", "Results are on disk up to there.", [e["committed"] for e in found]),
        each_of("frontier_number", "gauge", "Everything is known up to there.", [e["frontier"] for e in found]),
        each_of("lag_entries", "gauge", "Behind the furthest subscription of this machine.", lags),
        each_of("level", "gauge", "Machines between it and the source.", [e["level"] for e in found]),
    ]  # fmt: skip


def _refusals(refused: Mapping[str, int]) -> list[tuple[dict[str, str], float]]:
    ordered = sorted(refused.items(), key=lambda pair: (-pair[1], pair[0]))
    found: list[tuple[dict[str, str], float]] = [({"reason": text}, n) for text, n in ordered[:_MOST_REASONS]]
    rest = sum(count for _, count in ordered[_MOST_REASONS:])
    return [*found, ({"reason": "other"}, rest)] if rest else found


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0
