"""What an HTTP connection may cost."""

from __future__ import annotations

from dataclasses import dataclass

from peer.publication import MOST_BYTES


@dataclass(frozen=True, slots=True)
class HttpLimits:
    """Bounds of the server; each turned up costs memory, or patience with those who never finish.

    ``head_bytes``: a request's first line and headers. ``body_bytes``: a document. ``bodies``: how many are in
    memory at once. ``connections``: how many at once; more are turned away. ``streams``: how many may last.
    ``idle_s``: between requests. ``head_s``, ``body_s``: from the first byte to the last, so that sending slowly
    does not hold a connection. ``write_s``: how long a client may leave what it is sent unread. ``beat_s``: how
    long a stream is silent at most.
    """

    head_bytes: int = 16 << 10
    body_bytes: int = MOST_BYTES
    bodies: int = 4
    connections: int = 64
    streams: int = 32
    idle_s: float = 30.0
    head_s: float = 10.0
    body_s: float = 60.0
    write_s: float = 60.0
    beat_s: float = 15.0
