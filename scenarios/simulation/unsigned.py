"""Permits that nobody signs: simulated machines do not forge, and signatures are slow. Who may open a feed with
which permit is judged as in the daemons."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from peer.daemon.permits import Permits
from peer.hosting.configuration import decode_untrusted, encode

if TYPE_CHECKING:
    from datetime import datetime

    from peer.hosting.configuration import Configuration


class UnsignedPermits(Permits):
    """See the module's text."""

    def __init__(self) -> None:
        nobody = cast("Any", None)
        super().__init__(nobody, lambda: cast("Any", None))

    @property
    def serial(self) -> int:
        """Of a certificate that there is not."""
        return 1

    def sign(self, configuration: Configuration) -> bytes:
        """Only encode it."""
        return encode(configuration)

    def _open(self, signed: bytes, now: datetime | None) -> Configuration:
        return decode_untrusted(signed)
