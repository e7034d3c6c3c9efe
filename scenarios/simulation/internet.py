"""An Internet-like network of routers, and machines at some of them: the setting of the papers' experiments.

Degrees follow a power law (preferential attachment). Shortest paths between the machines' routers are counted
once, by breadth-first search over arrays. A hop takes the same time everywhere.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Final

import numpy as np

from scenarios.hosts.links import Link

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

ROUTERS: Final = 20_000
LINKS_EACH: Final = 2
HOP_MS: Final = 4.0


class Internet:
    """Machines at routers of their own, drawn from a seed; ``hops[i, j]``: routers between two machines, by index.

    >>> net = Internet(["a", "b", "c"], routers=50, seed=1)
    >>> net.hops.diagonal().tolist(), bool((net.hops == net.hops.T).all())
    ([0, 0, 0], True)
    """

    def __init__(self, machines: Sequence[str], *, routers: int = ROUTERS, seed: int = 1) -> None:
        if len(machines) > routers:
            raise ValueError(f"{len(machines)} machines need as many routers, not {routers}")
        import networkx  # type: ignore[import-untyped]  # it ships no types

        graph = networkx.barabasi_albert_graph(routers, LINKS_EACH, seed=seed)
        self.places = random.Random(seed).sample(range(routers), len(machines))
        self.index = {name: i for i, name in enumerate(machines)}
        edges = np.array(graph.edges(), dtype=np.int64)
        both = np.concatenate([edges, edges[:, ::-1]])
        both = both[np.argsort(both[:, 0], kind="stable")]
        offsets = np.searchsorted(both[:, 0], np.arange(routers + 1))
        distances = [_distances(offsets, both[:, 1], place)[self.places] for place in self.places]
        self.hops: NDArray[np.int64] = np.array(distances)
        self.degrees: NDArray[np.int64] = np.diff(offsets)
        self._links = {int(n): Link(rtt_ms=2 * HOP_MS * int(n)) for n in np.unique(self.hops)}

    def hops_between(self, one: str, other: str) -> int:
        """Return how many links of the Internet lie between two machines."""
        return int(self.hops[self.index[one], self.index[other]])

    def between(self, one: str, other: str) -> Link:
        """Return what lies between two machines."""
        return self._links[self.hops_between(one, other)]


def _distances(offsets: NDArray[np.int64], targets: NDArray[np.int64], start: int) -> NDArray[np.int64]:
    """Return how far every router is from one."""
    distance = np.full(len(offsets) - 1, -1, dtype=np.int64)
    distance[start] = 0
    frontier, far = np.array([start]), 0
    while len(frontier):
        far += 1
        counts = offsets[frontier + 1] - offsets[frontier]
        begins = np.repeat(offsets[frontier] - np.concatenate(([0], np.cumsum(counts)[:-1])), counts)
        reached = targets[begins + np.arange(counts.sum())]
        frontier = np.unique(reached[distance[reached] < 0])
        distance[frontier] = far
    return distance
