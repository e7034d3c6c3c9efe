"""Handing a relay's documents out to those whom it feeds on its machine, without frames.

Whoever stands where the relay stood, and is fed by it alone, is taken along: it is referred to what the relay has
just got, for frames with results would take ten times as long. Whoever was taken along once goes on in *company*
with the others, and is not touched until something else happens to it. The rest is fed as by anybody else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from overlay.feeds.items import Kind
from peer.hosting.company import Company, Member
from peer.storage.result_values import Followers

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from overlay.feeds.items import Item
    from peer.hosting.attempt import Attempt
    from peer.hosting.feeding import Feeding
    from peer.hosting.hosted import Hosted


class HandedOut(NamedTuple):
    """What is to be stored, which is bounded by the relay's window: of documents, who follows; whatever else the
    relay has got, for each by itself. ``taken``: all who were taken along one by one. ``company``: those who are
    taken along as one from now on."""

    parts: list[tuple[str, list[Item], int]]
    followers: Followers | None
    taken: list[Hosted]
    company: Company | None


def hand_out(
    relay: Hosted, items: Sequence[Item], after: int, upto: int, *, company: Company | None,
    feeds: Mapping[int, tuple[Feeding, Attempt, int]], subscriptions: Mapping[str, Hosted],
) -> HandedOut:  # fmt: skip
    """Take those along who stand where the relay stood, to where it is now."""
    matched = relay.outlet.references(items, relay.name)
    is_plain = all(item.kind is Kind.RESULTS for item in items) and all(
        next(iter(found.values())).kind is Kind.REFERENCE for found in matched if found
    )
    if company is not None and not (is_plain and company.is_at(relay, after)):
        company.part()
        company = None
    generation = relay.configuration.generation
    parts: list[tuple[str, list[Item], int]] = []
    along: list[Member] = []
    taken: list[Hosted] = []
    for member in _in_step(relay, after, upto, feeds, subscriptions):
        hosted, _, pattern = member
        found = [one[pattern] for one in matched if pattern in one]
        hosted.outlet.history.add(found, upto)
        taken.append(hosted)
        if is_plain and hosted.configuration.generation == generation:
            along.append(member)
        else:
            parts.append((hosted.name, found, upto))
    flags = [bytes([member.pattern in one for member in along]) for one in matched]
    beside = [member.hosted.name for member in along]
    names: Sequence[str] = beside
    if company is not None:
        flags = [one + other for one, other in zip(company.go_on(matched, upto), flags, strict=True)]
        names = company.names(beside)
    joining = [member for member in along if member.may_join]
    if joining:
        company = _joined_by(company, relay, joining, upto)
    return HandedOut(parts, Followers(names, flags) if names else None, taken, company)


def _joined_by(company: Company | None, relay: Hosted, joining: Sequence[Member], upto: int) -> Company:
    """Return a company of those who are in one already, and some others."""
    before: Sequence[Member] = ()
    if company is not None:
        before = company.members
        company.part()
    return Company(relay, [*before, *joining], upto)


def _in_step(
    relay: Hosted, after: int, upto: int, feeds: Mapping[int, tuple[Feeding, Attempt, int]],
    subscriptions: Mapping[str, Hosted],
) -> Iterator[Member]:  # fmt: skip
    """Yield those whom the relay feeds here, and who stand where it stood, moved to where it is."""
    for pattern, serving in relay.outlet.relayed_at(after):
        known = feeds.get(serving.feed)
        if known is None or not known[0].is_at(after, known[1]):
            continue
        hosted = subscriptions.get(known[0].configuration.subscription)
        if hosted is not None and not hosted.is_draining:
            serving.cursor = upto
            known[0].handed(upto)
            yield Member(hosted, serving, pattern)
