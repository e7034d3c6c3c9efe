"""Handing a relay's documents out to those whom it feeds on its machine, without frames.

Whoever stands where the relay stood, and is fed by it alone, is taken along: it is referred to what the relay has
just got, for frames with results would take ten times as long. The rest is fed as by anybody else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from overlay.feeds.items import Kind
from peer.storage.result_values import Followers

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from overlay.feeds.items import Item
    from peer.hosting.attempt import Attempt
    from peer.hosting.feeding import Feeding
    from peer.hosting.hosted import Hosted


class HandedOut(NamedTuple):
    """What is to be stored, which is bounded by the relay's window: of documents, who follows; whatever else the
    relay has got, for each by itself. ``taken``: all who were taken along."""

    parts: list[tuple[str, list[Item], int]]
    followers: Followers | None
    taken: list[Hosted]


def hand_out(
    relay: Hosted, items: Sequence[Item], after: int, upto: int, *,
    feeds: Mapping[int, tuple[Feeding, Attempt, int]], subscriptions: Mapping[str, Hosted],
) -> HandedOut:  # fmt: skip
    """Take those along who stand where the relay stood, to where it is now."""
    matched = relay.outlet.references(items, relay.name)
    is_plain = all(item.kind is Kind.RESULTS for item in items) and all(
        next(iter(found.values())).kind is Kind.REFERENCE for found in matched if found
    )
    generation = relay.configuration.generation
    parts: list[tuple[str, list[Item], int]] = []
    names: list[str] = []
    taken: list[Hosted] = []
    flags = [bytearray() for _ in items]
    both = list(zip(flags, matched, strict=True))
    for hosted, pattern in _in_step(relay, after, upto, feeds, subscriptions):
        found = [one[pattern] for one in matched if pattern in one]
        hosted.outlet.history.add(found, upto)
        taken.append(hosted)
        if is_plain and hosted.configuration.generation == generation:
            names.append(hosted.name)
            for flag, one in both:
                flag.append(pattern in one)
        else:
            parts.append((hosted.name, found, upto))
    return HandedOut(parts, Followers(names, [bytes(flag) for flag in flags]) if names else None, taken)


def _in_step(
    relay: Hosted, after: int, upto: int, feeds: Mapping[int, tuple[Feeding, Attempt, int]],
    subscriptions: Mapping[str, Hosted],
) -> Iterator[tuple[Hosted, str]]:  # fmt: skip
    """Yield those whom the relay feeds here, and who stand where it stood, moved to where it is; and their
    patterns."""
    for pattern, serving in relay.outlet.relayed_at(after):
        known = feeds.get(serving.feed)
        if known is None or not known[0].is_at(after, known[1]):
            continue
        hosted = subscriptions.get(known[0].configuration.subscription)
        if hosted is not None and not hosted.is_draining:
            serving.cursor = upto
            known[0].handed(upto)
            yield hosted, pattern
