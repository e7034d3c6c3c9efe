"""From the trie to candidates for very many queries: who feeds whom, with what, at what cost, all compiled.

Views of the same structure (equal but for what they return) end at the same trie node and need one walk; then
each is a query of its own. For each query: the views that embed in it and may feed it, what each provides at what
cost (the twin of ``rewriting.providers``), and the search (``rewriting.search``). Only candidates are kept, never
the edges, of which a million views have hundreds of millions.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rewriting.candidates import NEVER
from rewriting.conditions import NO_CONDITION, implied, is_fixed, pointers_to
from rewriting.kernels import MASK_BITS, kernel, lowest
from rewriting.pool import choose_pool, price
from rewriting.search import rank, search
from rewriting.statistics import KINDS, link_cost
from rewriting.table import ANY_LABEL, CONDITION, FIELDS, ID_LEVEL, LABEL, NEEDS, VAL_LEVEL
from rewriting.trie import (
    Q_ROWS,
    T_DEPTH,
    T_FIELDS,
    T_PLACE,
    T_VIEWS,
    T_VIEWS_END,
    forget_labels,
    pair_embeds,
    query_masks,
    walk,
)
from rewriting.work_area import (
    H_OVERFLOW,
    K_FIELDS,
    K_PROMISE,
    MOST_MEMBERS,
    S_COUNT,
    S_FIELDS,
    S_MEMBERS,
    pointers,
)
from xmlmatch.pointers import bytes_at, int32_at, int64_at

# What a run counts.
EDGES, GIVEN_UP, TOTALS = range(3)


@kernel
def mutual_hits(trie: Any, table: Any, signatures: Any, query: int, hits: Any, found: int, out: Any) -> None:
    """Say for each hit whether the query embeds in those views too; only equal label sets can."""
    nodes, first, attribute, conditions = table
    labels, masks = np.zeros(attribute.size, np.int64), np.zeros((Q_ROWS, MASK_BITS), np.int64)
    at = np.empty(MASK_BITS, np.int64)
    own, size = first[query], first[query + 1] - first[query]
    for i in range(found):
        view = trie[hits[i], T_VIEWS]
        out[i] = signatures[view] == signatures[query]
        if out[i]:
            row, length = first[view], first[view + 1] - first[view]
            query_masks(nodes, row, length, attribute, labels, masks)
            out[i] = pair_embeds(nodes, own, size, nodes, row, conditions, labels, masks, at)
            forget_labels(nodes, row, length, labels)


@kernel
def _offers(
    nodes: Any, conditions: Any, sizes: Any, total: int, view: int, length: int, covers: Any, at: int, query: int,
    offers: Any,
) -> int:  # fmt: skip
    """List what views of one structure offer a query: view node, query node, level it must carry, cost.

    ``view`` and ``query`` are rows of the table. The twin of ``providers.provision``.
    """
    count = 0
    for m in range(length):
        star = nodes[FIELDS * (view + m) + LABEL] == ANY_LABEL
        condition = nodes[FIELDS * (view + m) + CONDITION]
        left = covers[at + m]
        while left != 0:
            row = query + lowest(left)
            needed, asked = nodes[FIELDS * row + NEEDS], nodes[FIELDS * row + CONDITION]
            payload, by_value = needed, False
            if asked != NO_CONDITION:
                by_value = not implied(conditions, condition, asked)
                if needed == VAL_LEVEL and is_fixed(conditions, asked):
                    payload = ID_LEVEL
            names = star and nodes[FIELDS * row + LABEL] == ANY_LABEL
            carried = sizes[total * payload + view + m] if payload > 0 else 0
            own = sizes[total * payload + row] if payload > 0 else 0
            offers[4 * count], offers[4 * count + 1] = m, row - query
            offers[4 * count + 2] = max(needed, VAL_LEVEL if by_value else ID_LEVEL)
            offers[4 * count + 3] = link_cost(
                sizes[view + m], carried, sizes[row], own, by_value, star and not names, names
            )  # fmt: skip
            count += 1
            left &= left - 1
    return count


@kernel
def mark_changes(first: Any, sizes: Any, out: Any) -> None:
    """Say of each view whether its figures differ from those of the one before it."""
    for view in range(1, first.size - 1):
        length = first[view + 1] - first[view]
        out[view] = length != first[view] - first[view - 1]
        for i in range(length):
            for kind in range(KINDS):
                if not out[view] and sizes[kind, first[view] + i] != sizes[kind, first[view - 1] + i]:
                    out[view] = True


@kernel
def _feeders(
    trie: Any, views: Any, sizes: Any, total: int, conditions: Any, query: int, hits: Any, found: int, covers: Any,
    mutual: Any, slots: Any, costs: Any, offers: Any, totals: Any,
) -> int:  # fmt: skip
    """List the views that may feed a query and what they ask; return how many. All arrays are pointers."""
    nodes, first, carried, changes, order = views
    size = first[query + 1] - first[query]
    count, at = 0, 0
    for i in range(found):
        row = T_FIELDS * hits[i]
        length, start = (trie[row + T_PLACE] & T_DEPTH) + 1, trie[row + T_VIEWS]
        offered, offering = 0, False
        for view in range(start, trie[row + T_VIEWS_END]):
            if view == query:
                offering = offering and not changes[view]
                continue
            totals[EDGES] += 1
            if mutual[i] and order[view] > order[query]:
                totals[GIVEN_UP] += 1
                offering = offering and not changes[view]
                continue
            # Views of one structure have the same node sets, so one offer does, unless only some were measured.
            if not offering or changes[view]:
                offering = True
                offered = _offers(
                    nodes, conditions, sizes, total, first[view], length, covers, at, first[query], offers
                )  # fmt: skip
            to, useful = count * size, False
            for n in range(size):
                costs[to + n] = NEVER
            for k in range(offered):
                if carried[first[view] + offers[4 * k]] >= offers[4 * k + 2]:
                    n = to + offers[4 * k + 1]
                    costs[n] = min(costs[n], offers[4 * k + 3])
                    useful = True
            if useful:
                slots[count] = view
                count += 1
        at += length
    return count


@kernel
def tie_hash(query: int, view: int) -> Any:
    """``candidates.tie_hash``, on unsigned numbers."""
    mix = np.uint64(0x9E3779B97F4A7C15)
    x = np.uint64(query) + np.uint64(view) * mix
    x = (x ^ x >> np.uint64(31)) * mix
    x = (x ^ x >> np.uint64(29)) * mix
    return np.int64(x >> np.uint64(1))


@kernel
def write_sets(work: Any, chosen: Any, kept: int, slots: Any, out: Any, written: int) -> None:
    """Copy ranked candidates to the output."""
    sets, keys, pool = work[1], work[2], work[8]
    costs, members = out
    for i in range(kept):
        row = S_FIELDS * chosen[i]
        costs[written + i] = keys[K_FIELDS * chosen[i] + K_PROMISE]
        count = sets[row + S_COUNT]
        for k in range(MOST_MEMBERS):
            members[written + i, k] = slots[pool[sets[row + S_MEMBERS + k]]] if k < count else -1


@kernel
def find_sets(work: Any, costs: Any, size: int, ties: Any, count: int, options: Any, chosen: Any) -> int:
    """Search and rank; return how many candidates are in ``chosen``, -1 where it must be done the slow way."""
    link, pool, expansions, width, enough, most = options
    choose_pool(work, costs, size, ties, count, link, pool)
    search(work, expansions, width, enough)
    if work[0][H_OVERFLOW]:
        return -1
    return rank(work, most, (most + 2) // 3, int64_at(chosen.ctypes.data))


@kernel
def run(
    trie: Any, below: Any, table: Any, carried: Any, changes: Any, sizes: Any, order: Any, signatures: Any,
    hashes: Any, terminals: Any, options: Any, area: Any, totals: Any, counts: Any, out: Any,
) -> int:  # fmt: skip
    """Find the candidates of every view that ends at one of ``terminals``; return how many there are.

    Per query in the order of places: ``counts`` says how many, or -1 where it must be done the slow way. ``out``
    gets costs and members, one candidate after the other.
    """
    nodes, first, attribute, arrays = table
    link, most = options[0], options[5]
    conditions, work = pointers_to(arrays), pointers(area)
    labels, masks = np.zeros(attribute.size, np.int64), np.zeros((Q_ROWS, MASK_BITS), np.int64)
    hits, mutual = np.empty(first.size, np.int64), np.empty(first.size, np.int64)
    covers = np.empty(8 * first.size, np.int64)
    slots, ties, costs = np.empty(256, np.int64), np.empty(256, np.int64), np.empty(4096, np.int64)
    chosen, offers = np.empty(most, np.int64), np.empty(4 * MASK_BITS * MASK_BITS, np.int64)
    at_trie, at_sizes = int32_at(trie.ctypes.data), int64_at(sizes.ctypes.data)
    views = (
        int32_at(nodes.ctypes.data), int64_at(first.ctypes.data), bytes_at(carried.ctypes.data),
        bytes_at(changes.ctypes.data),
        int64_at(order.ctypes.data),
    )  # fmt: skip
    queries, written = 0, 0
    for t in terminals:
        query = trie[t, T_VIEWS]
        size = first[query + 1] - first[query]
        query_masks(nodes, first[query], size, attribute, labels, masks)
        found, needed = walk(trie, below, nodes, first[query], conditions, labels, masks, hits, covers)
        if needed > covers.size:
            covers = np.empty(2 * needed, np.int64)
            found, needed = walk(trie, below, nodes, first[query], conditions, labels, masks, hits, covers)
        forget_labels(nodes, first[query], size, labels)
        mutual_hits(trie, (nodes, first, attribute, conditions), signatures, query, hits, found, mutual)
        reached = 0
        for i in range(found):
            reached += trie[hits[i], T_VIEWS_END] - trie[hits[i], T_VIEWS]
        if reached > slots.size:
            slots, ties = np.empty(2 * reached, np.int64), np.empty(2 * reached, np.int64)
        if reached * size > costs.size:
            costs = np.empty(2 * reached * size, np.int64)
        at_costs, at_slots = int64_at(costs.ctypes.data), int64_at(slots.ctypes.data)
        for query in range(trie[t, T_VIEWS], trie[t, T_VIEWS_END]):
            count = _feeders(
                at_trie, views, at_sizes, sizes.shape[1], conditions, query, int64_at(hits.ctypes.data), found,
                int64_at(covers.ctypes.data), int64_at(mutual.ctypes.data), at_slots, at_costs,
                int64_at(offers.ctypes.data), int64_at(totals.ctypes.data),
            )  # fmt: skip
            counts[queries] = 0
            if count > 0 and price(at_costs, size, count, link, work[7]):
                for i in range(count):
                    ties[i] = tie_hash(hashes[query], hashes[slots[i]])
                kept = find_sets(work, at_costs, size, int64_at(ties.ctypes.data), count, options, chosen)
                counts[queries] = kept
                if kept > 0:
                    write_sets(work, chosen, kept, slots, out, written)
                    written += kept
            queries += 1
    return written
