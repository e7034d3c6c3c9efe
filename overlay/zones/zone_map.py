"""Who owns which zone: a map that grows by versions, and what it takes to go from one to the next.

Theory of operation. The catalog alone changes the map, one version at a time. A change splits zones, or grants
them; a grant carries the version it was made in as its *fencing number*, so of two owners that both believe in
their grant the higher number is right. Machines keep copies, which may lag behind. Whoever acts on a message must
know the map at least as the message's publisher did (the message is stamped with the version): an owner that has
lost its zone while it was cut off does not have that version, asks for it, and finds that it owns nothing any
more.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from overlay.zones.errors import NoSuchZone, StaleGrant
from overlay.zones.tree import Split, ZoneTree

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

MAX_ZONES: Final = 1 << 17
"""How many zones a space may have: every machine keeps the whole map."""


class Grant(NamedTuple):
    """Who owns a zone, and since which version of the map."""

    owner: str
    fence: int


class Change(NamedTuple):
    """One step of the map, from the version before ``version``: splits first, then grants."""

    version: int
    splits: tuple[tuple[str, int, float], ...] = ()
    grants: tuple[tuple[str, str], ...] = ()
    """Zones and their new owners."""


class ZoneMap:
    """The zones of a space and their owners, as of a version.

    >>> known = ZoneMap(2)
    >>> known.apply(Change(1, (), (("", "a"),)))
    >>> known.apply(Change(2, (("", 0, 5.0),), (("0", "a"), ("1", "b"))))
    >>> known.owner("1"), known.grants["1"].fence, known.version, known.owned_by("a")
    ('b', 2, 2, ['0'])
    """

    def __init__(self, axes: int) -> None:
        self.tree = ZoneTree(axes)
        self.version = 0
        self.grants: dict[str, Grant] = {}
        self._zones: dict[str, set[str]] = {}

    def apply(self, change: Change) -> None:
        """Take one step; one that was taken already changes nothing, one that leaves some out is refused."""
        if change.version <= self.version:
            return
        if change.version != self.version + 1:
            raise StaleGrant(f"version {change.version} does not follow on {self.version}")
        for prefix, axis, value in change.splits:
            self.tree.split(prefix, Split(axis, value))
            grant = self.grants.pop(prefix, None)
            if grant is not None:  # both halves stay with the owner, unless the change says otherwise
                self._zones[grant.owner].discard(prefix)
                self.give(prefix + "0", grant)
                self.give(prefix + "1", grant)
        for prefix, name in change.grants:
            if not self.tree.is_leaf(prefix):
                raise NoSuchZone(prefix)
            self.give(prefix, Grant(name, change.version))
        self.version = change.version

    def give(self, prefix: str, grant: Grant) -> None:
        """Note who owns a zone."""
        before = self.grants.get(prefix)
        if before is not None:
            self._zones[before.owner].discard(prefix)
        self.grants[prefix] = grant
        self._zones.setdefault(grant.owner, set()).add(prefix)

    def become(self, other: ZoneMap) -> None:
        """Become what another map is, if that is newer."""
        if other.version > self.version:
            self.tree, self.version, self.grants, self._zones = (
                other.tree,
                other.version,
                other.grants,
                other._zones,
            )

    def owner(self, prefix: str) -> str | None:
        """Return who owns a zone."""
        grant = self.grants.get(prefix)
        return None if grant is None else grant.owner

    def owned_by(self, owner: str) -> list[str]:
        """List a machine's zones."""
        return sorted(self._zones.get(owner, ()))

    def owners(self) -> dict[str, list[str]]:
        """List the zones of every machine that has some."""
        return {owner: sorted(zones) for owner, zones in self._zones.items() if zones}


class History(NamedTuple):
    """The map at the catalog: with all its steps, so that others can catch up from wherever they are."""

    now: ZoneMap
    steps: list[Change]

    @classmethod
    def begin(cls, axes: int) -> History:
        """Return a space that nobody owns yet."""
        return cls(ZoneMap(axes), [])

    def change(self, splits: Mapping[str, Split] | None = None, grants: Mapping[str, str] | None = None) -> Change:
        """Make the next step, and return it."""
        cuts = tuple((prefix, at.axis, at.value) for prefix, at in (splits or {}).items())
        step = Change(self.now.version + 1, cuts, tuple(sorted((grants or {}).items())))
        if len(self.now.grants) + len(cuts) > MAX_ZONES:
            raise StaleGrant(f"a space has up to {MAX_ZONES:,} zones")
        self.now.apply(step)
        self.steps.append(step)
        return step

    def since(self, version: int, most: int = 1000) -> Iterator[Change]:
        """List steps after a version, the next ones first."""
        yield from self.steps[version : version + most]
