"""Rewritings: a query computed from views, and its execution on what they send.

A *link* carries, from one view to the query, a list of nodes for each query node that the view provides. The
sender filters each list for its own query node only, by name and by value; a filter meant for one never thins
another's. It may also reduce the part of the query it provides (the second physical plan): a smaller superset,
paid in its own time. The receiver unites what came over all links and reduces once more: what is left is exactly
what the query would match on the document.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from rewriting.candidates import THOROUGH, Effort, candidates, check_options
from rewriting.columns import Columns, nothing
from rewriting.errors import MissingViewError, WrongColumnsError
from rewriting.fragment import DifferentDocuments, Fragment, cut, named, united, valued
from rewriting.fragment_kernels import CONT, NAME, VAL, lacking, select
from rewriting.providers import Feeder, Provision, feeders
from rewriting.statistics import DOCUMENTS, LINK_BYTES, Statistics
from rewriting.table import CONT_LEVEL, VAL_LEVEL
from xmlmatch import Axis, NodeSets, Operator, Pattern, PatternNode, reduce

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from xmlmatch.nodesets import Source


@dataclass(frozen=True)
class Link:
    """From one view to the query: what it provides."""

    view: Pattern
    query: Pattern
    provisions: tuple[Provision, ...]

    @property
    def cost(self) -> int:
        """What it carries, in bytes per thousand documents, estimated."""
        return sum(p.cost for p in self.provisions)

    def send(self, results: NodeSets, *, reduced: bool = False) -> Columns:
        """Make the columns from the view's results; ``reduced``: also reduce the part of the query provided."""
        nodes = results.document
        wanted = {p.view_node for p in self.provisions}
        return self._sent(nodes, {n: nodes.positions(results.sets[n]) for n in wanted}, reduced=reduced)

    def cut(self, whole: Columns) -> Columns:
        """Make the columns from others that hold the view's results: a list for every node of it."""
        return self._sent(whole.nodes, whole.lists) if whole else nothing()

    def _sent(self, nodes: Source, of_view: Mapping[int, NDArray[np.int32]], *, reduced: bool = False) -> Columns:
        lists = {p.query_node: self._filtered(p, of_view, nodes) for p in self.provisions}
        if reduced:
            for part, members in self.parts:
                kept = reduce(part, nodes, [lists[n] for n in members])
                lists |= dict(zip(members, kept, strict=True))
        if any(len(positions) == 0 for positions in lists.values()):
            return nothing()  # a query node without nodes: the document does not match
        return self._columns(nodes, lists)

    def check(self, columns: Columns) -> None:
        """Raise ``WrongColumnsError`` unless the columns hold exactly what this link must carry."""
        nodes = columns.nodes
        if len(columns.lists) != len(self.provisions) or any(
            p.query_node not in columns.lists for p in self.provisions
        ):
            raise WrongColumnsError(str(self.view), "other lists than those it provides")
        flat, ends = _joined([columns.lists[p.query_node] for p in self.provisions])
        place = lacking(flat, ends, self._wants, nodes.label, nodes.vals, nodes.conts)
        if place >= 0:
            n = self.provisions[place].query_node
            raise WrongColumnsError(str(self.view), f"nodes, names or texts missing for query node {n}")

    @cached_property
    def carried(self) -> NDArray[np.int64]:
        """The lists in the order of query nodes: of which query node, of which node of the view, what of it."""
        order = sorted(range(len(self.provisions)), key=lambda i: self.provisions[i].query_node)
        rows = [(self.provisions[i].query_node, self.provisions[i].view_node, self._wants[i]) for i in order]
        return np.array(rows, np.int64).reshape(-1, 3).T.copy()

    @cached_property
    def is_simple(self) -> bool:
        """Whether lists travel as they are, one for a query node."""
        nodes = {p.query_node for p in self.provisions}
        return len(nodes) == len(self.provisions) and not any(p.by_name or p.by_value for p in self.provisions)

    @cached_property
    def _wants(self) -> NDArray[np.uint8]:
        """What travels of the nodes of each provision, as bits."""
        payloads = {VAL_LEVEL: VAL, CONT_LEVEL: CONT}
        return np.array([payloads.get(p.payload, 0) | NAME * p.names for p in self.provisions], np.uint8)

    def _filtered(
        self, p: Provision, of_view: Mapping[int, NDArray[np.int32]], nodes: Source
    ) -> NDArray[np.int32]:
        wanted = self.query.nodes[p.query_node]
        positions = of_view[p.view_node]
        if p.by_name:
            positions = named(nodes, positions, wanted.label)
        if p.by_value:
            positions = valued(nodes, positions, wanted.predicates)
        return positions

    def _columns(self, nodes: Source, lists: dict[int, NDArray[np.int32]]) -> Columns:
        flat, ends = _joined([lists[p.query_node] for p in self.provisions])
        positions, wanted = select(len(nodes), flat, ends, self._wants)
        places = [0, *ends.tolist()]
        own = {p.query_node: flat[places[i] : places[i + 1]] for i, p in enumerate(self.provisions)}
        return Columns(cut(nodes, positions, wanted), own)

    @cached_property
    def parts(self) -> list[tuple[Pattern, list[int]]]:
        """The part of the query provided, as patterns: each node hangs from the nearest one above that is too."""
        provided = sorted(p.query_node for p in self.provisions)
        above = {n: self._nearest(n, set(provided)) for n in provided}
        parts = []
        for root in [n for n in provided if above[n] < 0]:
            members = [root]
            for n in provided:
                if above[n] in members:
                    members.append(n)
            parts.append((self._part(members, above), members))
        return parts

    def _nearest(self, n: int, provided: set[int]) -> int:
        n = self.query.nodes[n].parent
        while n >= 0 and n not in provided:
            n = self.query.nodes[n].parent
        return n

    def _part(self, members: list[int], above: dict[int, int]) -> Pattern:
        nodes = []
        for n in members:
            node = self.query.nodes[n]
            parent = members.index(above[n]) if above[n] >= 0 else -1
            axis = node.axis if above[n] == node.parent else Axis.DESCENDANT
            nodes.append(PatternNode(node.label, axis, parent))
        return Pattern(tuple(nodes), ())


def _joined(lists: Sequence[NDArray[np.int32]]) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """Put lists behind each other; also return where each ends."""
    return np.concatenate(lists), np.array(list(accumulate(map(len, lists))))


class PlanCost(NamedTuple):
    """What a physical plan costs per document, estimated: bytes sent, nodes handled at either end."""

    bytes_sent: float
    sender_nodes: float
    receiver_nodes: float


@dataclass(frozen=True)
class Rewriting:
    """How to compute ``query`` from views; ``cost`` in bytes per thousand documents, links included."""

    query: Pattern
    links: tuple[Link, ...]
    cost: int

    @property
    def views(self) -> tuple[Pattern, ...]:
        """The views it takes."""
        return tuple(link.view for link in self.links)

    def plan_cost(self, *, reduced: bool = False) -> PlanCost:
        """Estimate a physical plan: senders only filter, or also reduce the parts they provide.

        Where a sender has several connected nodes of the query, reducing is taken to get it half-way from what
        it would send to what the query keeps.
        """
        sent, handled, rows = self.cost - sum(link.cost for link in self.links), 0, 0
        for link in self.links:
            connected = {n for _, members in link.parts if len(members) > 1 for n in members}
            for p in link.provisions:
                half = reduced and p.query_node in connected
                sent += (p.cost + p.least) // 2 if half else p.cost
                rows += (p.rows + p.least_rows) // 2 if half else p.rows
                handled += p.view_rows + (2 * p.rows if half else 0)
        return PlanCost(sent / DOCUMENTS, handled / DOCUMENTS, 2 * rows / DOCUMENTS)

    def execute(self, results: Mapping[Pattern, NodeSets], *, reduced: bool = False) -> NodeSets:
        """Compute the query's node sets from its views' results, all of the same document.

        ``reduced``: senders reduce their parts first; the result is the same.

        >>> from rewriting import rewritings
        >>> from xmlmatch import Document, Pattern, match
        >>> document = Document.parse(b"<a><b>1</b><c><b>2</b></c></a>")
        >>> views = [Pattern.parse("//b{val}"), Pattern.parse("//c")]
        >>> rewriting = next(rewritings(Pattern.parse("//c/b{val}"), views))
        >>> list(rewriting.execute({view: match(view, document) for view in rewriting.views}).rows())
        [('2',)]
        """
        missing = [view for view in self.views if view not in results]
        if missing:
            raise MissingViewError(str(missing[0]))
        for view in self.views:
            if results[view].pattern != view:
                raise WrongColumnsError(str(view), f"these are results of {results[view].pattern}")
        return self.receive([link.send(results[link.view], reduced=reduced) for link in self.links])

    def receive(self, columns: Sequence[Columns]) -> NodeSets:
        """Unite the columns of all links for one document, reduce, and keep what the query keeps."""
        if len(columns) != len(self.links):
            raise ValueError(f"{len(self.links)} links, but columns of {len(columns)}")
        if not all(columns):
            return NodeSets(self.query, nothing().nodes, tuple(np.empty(0, np.int32) for _ in self.query.nodes))
        for link, got in zip(self.links, columns, strict=True):
            link.check(got)
        try:
            forest, at = united([c.nodes for c in columns])
        except DifferentDocuments as exc:
            view = str(self.links[exc.number].view)
            raise WrongColumnsError(view, "its nodes are not those of the other links' document") from None
        lists: list[NDArray[np.int32]] = [np.empty(0, np.int32) for _ in self.query.nodes]
        for link, got, own in zip(self.links, columns, at, strict=True):
            for p in link.provisions:
                lists[p.query_node] = own[got.lists[p.query_node]]
        kept = reduce(self.query, forest, lists)
        return NodeSets(self.query, self._own(forest, kept), tuple(forest.pre[positions] for positions in kept))

    def _own(self, forest: Fragment, kept: Sequence[NDArray[np.int32]]) -> Fragment:
        """Keep the query's nodes, and note the values that its own predicates fix."""
        vals, payload = forest.vals, forest.payload
        if self._fixed:
            vals, parts, end = vals.copy(), [payload], len(payload)
            for n, text in self._fixed:
                vals[:, kept[n]] = [[end], [end + len(text)]]
                parts.append(text)
                end += len(text)
            payload = np.concatenate(parts)
        flat, ends = _joined(kept)
        own, _ = select(len(forest), flat, ends, self._nothing_more)
        return Fragment(
            forest.pre[own], forest.span[own], forest.level[own], forest.label[own], forest.labels,
            np.take(vals, own, axis=1), np.take(forest.conts, own, axis=1), payload,
        )  # fmt: skip

    @cached_property
    def as_arrays(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], bytes]:
        """What the links carry, behind each other, and where each ends; the query nodes whose value is fixed, and
        where that begins and ends; those values."""
        carried = np.concatenate([link.carried for link in self.links], axis=1)
        last = np.array(list(accumulate(len(link.provisions) for link in self.links)))
        ends = list(accumulate(len(text) for _, text in self._fixed))
        fixed = [(n, end - len(text), end) for (n, text), end in zip(self._fixed, ends, strict=True)]
        texts = b"".join(text.tobytes() for _, text in self._fixed)
        return carried, last, np.array(fixed, np.int64).reshape(-1, 3).T.copy(), texts

    @cached_property
    def _nothing_more(self) -> NDArray[np.uint8]:
        return np.zeros(len(self.query.nodes), np.uint8)

    @cached_property
    def _fixed(self) -> list[tuple[int, NDArray[np.uint8]]]:
        """The query nodes whose value a predicate fixes, and that value."""
        return [
            (n, np.frombuffer(p.constant.encode(), np.uint8))
            for n, node in enumerate(self.query.nodes)
            for p in node.predicates
            if p.operator is Operator.EQ and isinstance(p.constant, str)
        ]


def rewritings(
    query: Pattern,
    views: Iterable[Pattern],
    k: int = 30,
    *,
    statistics: Statistics | None = None,
    link_bytes: int = LINK_BYTES,
    effort: Effort = THOROUGH,
) -> Iterator[Rewriting]:
    """Find up to ``k`` ways to compute the query from the views, the cheapest first; stop whenever you like.

    All that one round of the effort finds come in the order of cost; what later rounds find comes after.

    The views may be any patterns; which of them may feed the query in a network is for the feeding order to say
    (``EmbeddingGraph.feeders_of``). Costs follow ``statistics``, or assumptions where nothing was measured.

    >>> from xmlmatch import Pattern
    >>> views = [Pattern.parse(text) for text in ["//b{val}", "//a[c]", "//a//b", "//a[b]{val}"]]
    >>> for rewriting in rewritings(Pattern.parse("//a[c]/b{val}"), views):
    ...     print([str(view) for view in rewriting.views])
    ['//a{cont}[c]', '//a//b{cont}']
    ['//b{val}', '//a{cont}[c]']
    """
    check_options(k, link_bytes)
    able = feeders(query, views, statistics)
    return (
        Rewriting(query, links_of(query, [able[v] for v in candidate.members]), candidate.cost)
        for candidate in candidates(query, able, k, effort=effort, link_bytes=link_bytes)
    )


def links_of(query: Pattern, chosen: Sequence[Feeder]) -> tuple[Link, ...]:
    """Give every query node to its cheapest provider."""
    shares: list[list[Provision]] = [[] for _ in chosen]
    for n in range(len(query.nodes)):
        able = [(f.provisions[n].cost, i) for i, f in enumerate(chosen) if n in f.provisions]
        i = min(able)[1]
        shares[i].append(chosen[i].provisions[n])
    return tuple(Link(f.view, query, tuple(share)) for f, share in zip(chosen, shares, strict=True))
