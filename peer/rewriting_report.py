"""``distributary explain rewriting``: the ways to compute a pattern from others, as a person would write them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from peer.output import visible

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rewriting import Rewriting
    from rewriting.execution import Link
    from rewriting.providers import Provision
    from xmlmatch import Pattern, PatternNode

_PAYLOADS: Final = ("IDs", "IDs and values", "IDs and contents")


def node_text(node: PatternNode) -> str:
    """Write one node alone: label, what it returns, its predicates."""
    from xmlmatch.pattern import label_in_text

    returns = "{" + ",".join(r.value for r in node.returns) + "}" if node.returns else ""
    return label_in_text(node.label) + returns + "".join(f"[.{p}]" for p in node.predicates)


def paths(pattern: Pattern) -> list[str]:
    """Write every node, with the labels above it where its own text stands more than once."""
    from xmlmatch.pattern import label_in_text

    alone = [node_text(node) for node in pattern.nodes]
    found = []
    for node, text in zip(pattern.nodes, alone, strict=True):
        above, way = node.parent, text
        while alone.count(text) > 1 and above >= 0:
            way = f"{label_in_text(pattern.nodes[above].label)}/{way}"
            above = pattern.nodes[above].parent
        found.append(visible(way))
    return found


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}"


def _bytes(rewriting: Rewriting, *, reduced: bool = False) -> float:
    return rewriting.plan_cost(reduced=reduced).bytes_sent


def describe(rewriting: Rewriting, place: int, where: Mapping[Pattern, str]) -> Iterator[str]:
    """Write one way as lines."""
    views = len(rewriting.links)
    yield f"{place}. from {views} view{'s' if views > 1 else ''}, {_number(_bytes(rewriting))} bytes per document"
    names = paths(rewriting.query)
    width = max(map(len, names))
    for link in rewriting.links:
        yield f"   {where[link.view]}: {visible(str(link.view))}"
        for p in link.provisions:
            yield f"      {names[p.query_node]:{width}}  <- {_provided(link, p)}"
    reducing = [visible(str(part)) for link in rewriting.links for part, n in link.parts if len(n) > 1]
    less = _bytes(rewriting, reduced=True)
    if reducing and less < _bytes(rewriting):
        yield f"   or {_number(less)} bytes, if senders also reduce: {', '.join(reducing)}"
    united = "unites the lists and reduces" if views > 1 else "reduces"
    yield f"   the receiver {united} them to the pattern's own nodes"


def _provided(link: Link, p: Provision) -> str:
    """Say what a view sends for a query node, and what its sender keeps of it."""
    from xmlmatch.pattern import label_in_text

    wanted = link.query.nodes[p.query_node]
    words = [f"{paths(link.view)[p.view_node]}: {_PAYLOADS[p.payload]}"]
    if p.names:
        words.append("with names")
    kept = [f"named {label_in_text(wanted.label)}"] if p.by_name else []
    kept += [f"with {' and '.join(f'.{q}' for q in wanted.predicates)}"] if p.by_value else []
    if kept:
        words.append(f"only those {' and '.join(kept)}")
    return visible(", ".join(words))


def missing(query: Pattern, views: Sequence[Pattern], where: Mapping[Pattern, str]) -> Iterator[str]:
    """Say of each query node that nothing provides what it lacks."""
    from rewriting import cover
    from rewriting.providers import provision

    covering: dict[int, list[str]] = {n: [] for n in range(len(query.nodes))}
    provided: set[int] = set()
    for view in views:
        for m, nodes in enumerate(cover(view, query)):
            for n in nodes.tolist():
                if where[view] not in covering[n]:
                    covering[n].append(where[view])
                if provision(view, m, query, n) is not None:
                    provided.add(n)
    for n, text in enumerate(paths(query)):
        if n not in provided:
            few = ", ".join(covering[n][:3]) + (", ..." if len(covering[n]) > 3 else "")
            why = (
                f"{few}: what it needs is not returned there"
                if few
                else "no view that embeds in the pattern has it"
            )
            yield f"{text}: {why}"


def as_json(rewriting: Rewriting, where: Mapping[Pattern, str]) -> dict[str, Any]:
    """Return one way as plain values."""
    plans = {name: rewriting.plan_cost(reduced=reduced)._asdict() for name, reduced in _PLANS}
    return {
        "cost_bytes": rewriting.cost / 1000,
        "plans": plans,
        "links": [
            {
                "view": str(link.view),
                "where": where[link.view],
                "provides": [
                    {
                        "query_node": p.query_node,
                        "view_node": p.view_node,
                        "payload": ("id", "val", "cont")[p.payload],
                        "names": p.names,
                        "filter_by_name": p.by_name,
                        "filter_by_value": p.by_value,
                        "bytes": p.cost / 1000,
                    }
                    for p in link.provisions
                ],
            }
            for link in rewriting.links
        ],
    }


_PLANS: Final = (("sender_filters", False), ("sender_reduces", True))
