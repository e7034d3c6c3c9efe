"""What can go wrong in the DHT: by our fault, by another member's, or by the world's."""

from __future__ import annotations


class DhtError(Exception):
    """Base of this package's errors; the message is one line, fit to be shown to a user as it is."""


class MalformedRecord(DhtError):
    """Bytes that are no record; the only exception out of ``decode_record_untrusted``."""

    def __init__(self, why: str) -> None:
        super().__init__(f"not a record: {why}")
        self.why = why


class MalformedMessage(DhtError):
    """Bytes that are no message; the only exception out of ``decode_message_untrusted``."""

    def __init__(self, why: str) -> None:
        super().__init__(f"not a message: {why}")
        self.why = why


class LocalBadRecord(DhtError):
    """A record of our own that no member would take."""

    def __init__(self, where: str, why: str) -> None:
        super().__init__(f"{where}: {why}")
        self.where = where
        self.why = why


class LocalTooMany(DhtError):
    """More of something than the settings allow."""

    def __init__(self, what: str, limit: int) -> None:
        super().__init__(f"more than {limit} {what}")
        self.what = what
        self.limit = limit


class RemoteCorruptValue(DhtError):
    """The pieces of a large value do not make the value that its manifest names."""

    def __init__(self, why: str) -> None:
        super().__init__(f"corrupt value: {why}")
        self.why = why


class BrokenEndpoint(DhtError):
    """The node's UDP socket is gone."""

    def __init__(self, reason: BaseException | None) -> None:
        super().__init__(f"the DHT's socket was closed: {reason}")
        self.reason = reason
