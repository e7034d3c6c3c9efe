"""A step: the relay of a machine gets one more document with marks, and everybody in its company with it.

That is nearly all that ever happens to a machine with a relay, so it is done in one go here. Whatever is not just
that is left to the long way (``Host``), which comes to the same: nothing is changed before it is certain that it
is a step, and afterwards everything is as if the frame had gone through feed, intake, joining and handing out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from overlay.feeds.items import Item, Kind
from overlay.wire.frames import Marked
from peer.hosting.whole_document import document_in

if TYPE_CHECKING:
    from overlay.wire.frames import Batch
    from peer.hosting.company import Company


class Step(NamedTuple):
    """The document, and a byte for everybody in the company: 1 where it has results."""

    item: Item
    flags: bytes


def step(company: Company, site: str, frame: Batch) -> Step | None:
    """Take a frame in if it is a step, and return that; None, and nothing has changed, if it is not."""
    relay = company.relay
    feeding, outlet, attempt = relay.feeding, relay.outlet, relay.feeding.current
    if not isinstance(frame, Marked) or attempt is None or feeding.trial is not None or relay.is_draining:
        return None
    if len(attempt.feeds) != 1 or attempt.sites[0] != site or attempt.feeds[0].feed != frame.feed:
        return None
    if not (attempt.is_at(frame.after) and feeding.frontier == frame.after and company.is_at(relay, frame.after)):
        return None
    if not attempt.feeds[0].would_take(frame) or outlet.feeds_own or document_in(frame.data) is None:
        return None
    number = frame.number
    item = Item(number, Kind.RESULTS, frame.data, name=frame.name, marks=frame.marks)
    matched = outlet.marked(item, relay.name)
    if matched is None:
        return None
    attempt.feeds[0].take(frame)
    feeding.handed(number)
    outlet.history.add((item,), number)
    relay.unsafe.append((number, attempt, [len(frame.data)]))
    [flags] = company.go_on([matched], number)
    return Step(item, flags)
