"""Plans drawn at random, as the planner might propose them: they need not be good, only tell who feeds whom."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rewriting import EmbeddingGraph, rewritings
from xmlmatch import Pattern

if TYPE_CHECKING:
    import random


def proposal(subscriptions: list[list[Any]], rng: random.Random) -> list[dict[str, Any]]:
    """Draw a feed for every subscription: the source, an equal one that came before, or a rewriting. What the
    order or the limits rule out, the source refuses by itself."""
    parsed = {text: Pattern.parse(text) for _, text, _, _ in subscriptions}
    graph = EmbeddingGraph.build(list(parsed.values()))
    by_text: dict[str, list[tuple[str, str]]] = {}
    for name, text, site, _ in subscriptions:
        by_text.setdefault(text, []).append((name, site))
    rows = []
    for name, text, site, _ in subscriptions:
        own = parsed[text]
        able = {graph.pattern(n) for n in graph.feeders_of(graph.number(own)).tolist()}
        ways: list[tuple[str, list[str]]] = [("source", [])]
        if by_text[text][0][0] != name:
            ways.append(("copy", [text]))
        ways += [
            ("rewriting", [view.text for view in found.views])
            for found in rewritings(own, sorted(able, key=str), 4)
        ]
        how, views = rng.choice(ways[1:] or ways)
        inputs = [rng.choice(by_text[view]) for view in views]
        if how == "copy":
            inputs = [by_text[text][0]]
            how = "local" if inputs[0][1] == site else how
        rows.append({
            "subscription": name, "site": site, "pattern": text, "how": how, "alternatives": [],
            "inputs": [{"subscription": one, "site": where} for one, where in inputs],
        })  # fmt: skip
    return rows
