"""What the source does for planners on other machines: snapshots out and proposals in, in parts.

A frame has a limit, a snapshot of a large network is larger. Parts are read from, and put into, a parcel: one of
each kind per planner, a few in all, each with a limit, so that memory stays bounded whatever planners do. Asked
again, everything is answered the same: also a proposal that was adopted.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, Final

import msgspec

from overlay.identity import Role
from peer.daemon.questions import NoAnswer
from peer.daemon.requests import read
from peer.steering.proposal import BadProposal

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from overlay.identity import Member
    from peer.daemon.catalog import Catalog

MOST_BYTES: Final = 256 << 20
PART_BYTES: Final = 1 << 20
_MOST_PLANNERS: Final = 4
_Id = Annotated[str, msgspec.Meta(min_length=1, max_length=64)]
_Data = Annotated[bytes, msgspec.Meta(max_length=PART_BYTES)]
_At = Annotated[int, msgspec.Meta(ge=0, le=MOST_BYTES)]


class AskSnapshot(msgspec.Struct, frozen=True):
    """Make a snapshot, with so many documents."""

    id: _Id
    documents: Annotated[int, msgspec.Meta(ge=0, le=1000)]


class AskPart(msgspec.Struct, frozen=True):
    """Give me the snapshot from here on."""

    id: _Id
    at: _At


class PutPart(msgspec.Struct, frozen=True):
    """Here is more of my proposal."""

    id: _Id
    at: _At
    data: _Data


class Adopt(msgspec.Struct, frozen=True):
    """My proposal is whole: adopt it."""

    id: _Id
    base_epoch: Annotated[int, msgspec.Meta(ge=0, le=1 << 60)]
    dry_run: bool = False


@dataclass(slots=True)
class _Parcel:
    id: str
    data: bytearray
    outcome: Any = None


@dataclass(eq=False)
class PlannerDesk:
    """Answers planners. ``adopt`` takes a proposal over: base epoch, rows, whether it is only a trial."""

    catalog: Catalog
    adopt: Callable[[int, list[dict[str, Any]], bool], Awaitable[dict[str, Any]]]
    _snapshots: dict[str, _Parcel] = field(default_factory=dict)
    _proposals: dict[str, _Parcel] = field(default_factory=dict)

    async def answer(self, member: Member, what: str, body: bytes) -> Any:
        """Answer a planner; ``NotAllowed`` or ``NoAnswer`` if it is none, or asks nonsense."""
        member.require(Role.PLANNER)
        match what:
            case "plan_state":
                return self.catalog.plan_state()
            case "snapshot":
                return self._snapshot(member.site, read(body, AskSnapshot))
            case "snapshot_part":
                asked = read(body, AskPart)
                data = _known(self._snapshots, member.site, asked.id).data
                return bytes(data[asked.at : asked.at + PART_BYTES])
            case "proposal_part":
                return self._put(member.site, read(body, PutPart))
            case _:
                return await self._adopt(member.site, read(body, Adopt))

    def _snapshot(self, site: str, asked: AskSnapshot) -> int:
        data = bytearray(msgspec.msgpack.encode(self.catalog.snapshot(asked.documents)))
        if len(data) > MOST_BYTES:
            raise NoAnswer(
                f"the snapshot has {len(data):,} bytes, and {MOST_BYTES:,} is the most; ask for fewer documents, "
                "or plan at the source"
            )
        _keep(self._snapshots, site, _Parcel(asked.id, data))
        return len(data)

    def _put(self, site: str, part: PutPart) -> int:
        if part.at == 0:
            _keep(self._proposals, site, _Parcel(part.id, bytearray()))
        parcel = _known(self._proposals, site, part.id)
        if part.at > len(parcel.data) or part.at + len(part.data) > MOST_BYTES:
            raise NoAnswer(f"the proposal ends at {len(parcel.data):,}, and {MOST_BYTES:,} bytes are the most")
        parcel.data[part.at :] = part.data
        return len(parcel.data)

    async def _adopt(self, site: str, asked: Adopt) -> Any:
        parcel = _known(self._proposals, site, asked.id)
        if parcel.outcome is None:
            try:
                rows = msgspec.msgpack.decode(bytes(parcel.data), type=list[dict[str, Any]])
                parcel.outcome = await self.adopt(asked.base_epoch, rows, asked.dry_run)
            except (msgspec.MsgspecError, ValueError, RecursionError, BadProposal) as exc:
                raise NoAnswer(f"the proposal: {exc}") from None
            parcel.data = bytearray()
        return parcel.outcome


def _keep(parcels: dict[str, _Parcel], site: str, parcel: _Parcel) -> None:
    parcels.pop(site, None)
    while len(parcels) >= _MOST_PLANNERS:
        del parcels[next(iter(parcels))]
    parcels[site] = parcel


def _known(parcels: dict[str, _Parcel], site: str, name: str) -> _Parcel:
    parcel = parcels.get(site)
    if parcel is None or parcel.id != name:
        raise NoAnswer("the source has forgotten what this is about; begin again")
    return parcel
