"""From options to what the daemons take."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from overlay.wire.connection import Patience
from peer.daemon.peer_daemon import PeerSettings
from peer.daemon.source_state import SourceSettings
from peer.errors import CommandError
from peer.storage.log_values import Retention
from peer.storage.result_values import ResultLimits

if TYPE_CHECKING:
    from peer.options.resolving import Settings

_EVERYWHERE: Final = ("0.0.0.0", "::")


def source_settings(settings: Settings) -> SourceSettings:
    """Return how to run the source."""
    _check_reach(settings)
    usual = Retention()
    return SourceSettings(
        settings["host"], settings["port"], settings["enrolment-port"], settings["feeds"],
        addresses=settings["address"], patience=_patience(settings), away_s=settings["away"],
        retention=Retention(
            settings["keep-bytes"], settings["keep-age"], usual.keys, max(usual.key_age_s, settings["keep-age"])
        ),
    )  # fmt: skip


def peer_settings(settings: Settings) -> PeerSettings:
    """Return how to run a peer."""
    _check_reach(settings)
    usual, kept = ResultLimits(), settings["keep-bytes"]
    return PeerSettings(
        settings["host"], settings["port"], settings["address"], settings["capacity"],
        limits=ResultLimits(kept, settings["keep-age"], max(usual.hard_bytes, 4 * kept)),
        patience=_patience(settings), window=settings["window"], relay=settings["relay"],
    )  # fmt: skip


def _patience(settings: Settings) -> Patience:
    return Patience(settings["timeout"] / 3, settings["timeout"])


def _check_reach(settings: Settings) -> None:
    if settings["host"] in _EVERYWHERE and not settings["address"]:
        where = settings.found["host"].origin
        raise CommandError(
            f"host ({where}): {settings['host']} listens everywhere, but nobody can dial it; say where others "
            f"reach this machine with --address HOST:PORT"
        )
