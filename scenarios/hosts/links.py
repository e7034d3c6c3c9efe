"""What lies between hosts: round trips, bandwidth, loss, and who is cut off from whom.

A link is a pair of hosts, the same in both directions. What is not said of a pair holds of all.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


@dataclass(frozen=True, slots=True)
class Link:
    """``rtt_ms``: the round trip; ``jitter_ms``: up to so much more, each way; ``mbit``: bandwidth each way (none:
    without limit); ``loss``: the share of packets that vanish."""

    rtt_ms: float = 0.0
    jitter_ms: float = 0.0
    mbit: float | None = None
    loss: float = 0.0

    def __post_init__(self) -> None:
        if (
            self.rtt_ms < 0
            or self.jitter_ms < 0
            or not 0 <= self.loss < 1
            or (self.mbit is not None and self.mbit <= 0)
        ):
            raise ValueError(
                "a link has a round trip and a jitter from 0, a loss from 0 to below 1, and some bandwidth"
            )


@dataclass(slots=True)
class Links:
    """The links of some hosts; changed while they are in use."""

    common: Link = field(default_factory=Link)
    _of_pairs: dict[frozenset[str], Link] = field(default_factory=dict)
    _cut: set[frozenset[str]] = field(default_factory=set)

    def put(self, one: str, other: str, link: Link) -> None:
        """Say what lies between two hosts."""
        self._of_pairs[frozenset((one, other))] = link

    def put_all(self, link: Link) -> None:
        """Say what lies between all hosts; what was said of pairs is forgotten."""
        self.common = link
        self._of_pairs.clear()

    def cut(self, some: Iterable[str], others: Iterable[str]) -> None:
        """Let nothing pass between some hosts and others."""
        rest = list(others)
        self._cut |= {frozenset((a, b)) for a in some for b in rest if a != b}

    def heal(self) -> None:
        """Let everything pass again."""
        self._cut.clear()

    def shape(
        self,
        common: Link,
        pairs: Mapping[tuple[str, str], Link],
        cuts: Iterable[tuple[Iterable[str], Iterable[str]]] = (),
    ) -> None:
        """Say what lies between all hosts, what between pairs, and between whom nothing passes; what was said
        before is forgotten."""
        self.put_all(common)
        for pair, link in pairs.items():
            self.put(*pair, link)
        self.heal()
        for some, others in cuts:
            self.cut(some, others)

    def between(self, one: str, other: str) -> Link | None:
        """Return what lies between two hosts; None if they are cut off from each other.

        >>> links = Links()
        >>> links.shape(Link(rtt_ms=20), {("a", "b"): Link(rtt_ms=5)})
        >>> links.between("b", "a").rtt_ms, links.between("a", "c").rtt_ms
        (5, 20)
        >>> links.shape(Link(rtt_ms=20), {}, [(["a"], ["b", "c"])])
        >>> links.between("a", "c"), links.between("b", "c") is None
        (None, False)
        """
        pair = frozenset((one, other))
        return None if pair in self._cut else self._of_pairs.get(pair, self.common)
