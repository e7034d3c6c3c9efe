"""The figures of a run: what was delivered, how fast, at which level, by whom; and what did not hold."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from peer.hosting.results import DOCUMENTS
from scenarios.running.faults import LEFT_OUT
from scenarios.scenario_file import LARGEST, SOURCE

if TYPE_CHECKING:
    from collections.abc import Iterable

    from scenarios.running.story import Happened, Story
    from scenarios.running.truth import Truth, Verdict
    from scenarios.scenario_file import Expected, Scenario

_QUANTILES: Final = (0.5, 0.9, 0.99)
_CURVE: Final = np.linspace(0, 1, 41)


def figures_of(
    scenario: Scenario, hosts: str, story: Story, verdict: Verdict, truth: Truth, cpu_s: float | None = None
) -> dict[str, Any]:
    """Return all that a report shows, as plain values."""
    levels = {name: one["level"] for name, one in story.standing.items() if name in story.owed}
    due = {one.number: one.due for one in story.documents}
    slowest: dict[int, float] = {}
    for times in verdict.times.values():
        for number, seconds in times.items():
            slowest[number] = max(slowest.get(number, 0.0), seconds)
    by_level: dict[int, list[float]] = {}
    for name, times in verdict.times.items():
        by_level.setdefault(levels.get(name, 0), []).extend(times.values())
    feeds = story.hosts.get(SOURCE, {}).get("feeds", 0)
    found = {
        "scenario": scenario.title, "about": scenario.about, "seed": scenario.seed, "hosts": hosts,
        "host_count": len(scenario.everybody), "subscriptions": len(story.owed),
        "distinct": len({one.pattern.text for one in story.owed.values()}), "documents": len(story.documents),
        "rate": scenario.documents.rate, "load": _load(story), "is_complete": story.is_complete,
        "broke_off": story.broke_off,
        "expected": verdict.expected, "delivered": verdict.delivered, "wrong": verdict.wrong,
        "early": verdict.early, "gaps": verdict.gaps, "errors": verdict.errors,
        "delivery_s": spread(slowest.values()),
        "view_latency_s": spread(sum(own.values()) / len(own) for own in verdict.times.values() if own),
        "level_latency_s": {str(level): spread(by_level[level]) for level in sorted(by_level)},
        "delivery_curve_s": curve(slowest.values()),
        "level_curves_s": {str(level): curve(by_level[level]) for level in sorted(by_level)},
        "levels": {str(level): count for level, count in _counted(levels.values())},
        "source_feeds": feeds, "source_share": round(feeds / max(len(story.owed), 1), 5),
        "relays": sum(one["pattern"] == DOCUMENTS.text for one in story.standing.values()),
        "failovers": sum(one.failovers for one in story.counted.values()),
        "bytes_sent": {name: one.bytes_sent for name, one in sorted(story.counted.items())},
        "direct_bytes": int(sum(truth.bytes[truth.place(one.pattern)] for one in story.owed.values())),
        "deliveries": [
            [round(due[number] - story.began, 3), round(seconds, 4)] for number, seconds in sorted(slowest.items())
        ],
        "happened": [[one.at, one.what, one.outcome] for one in story.happened],
        "spans": [*_loaded(scenario, story), *spans(story.happened, story.plans)], "plans": story.plans,
        "packets": story.packets, "seconds": story.seconds, "machines": _machines(story),
        "cpu_s": cpu_s,
    }  # fmt: skip
    found["violations"] = [*_broken(story), *verdict.violations, *failures(scenario.expect, story)]
    found["violations"] += unmet(scenario.expect, found)
    return found


def _load(story: Story) -> dict[str, float]:
    """Say how many documents were published in how long, and how much of that they waited for room."""
    count, seconds = sum(not one.is_warm for one in story.documents), story.published_s
    told = {"seconds": seconds, "per_s": max(count - 1, 0) / seconds if seconds else 0.0}
    return {"documents": count, **{name: round(value, 2) for name, value in told.items()},
            "held_back": round(story.held_back_s / seconds, 3) if seconds else 0.0}  # fmt: skip


def _loaded(scenario: Scenario, story: Story) -> list[tuple[float, float | None, str]]:
    """Say from when to when there was full load, if it was asked for."""
    if scenario.documents.per_s is not None:
        return []
    load = _load(story)
    return [(0.0, load["seconds"], f"full load: {load['documents']:,} documents, {load['per_s']:.1f}/s")]


def _broken(story: Story) -> list[str]:
    """List what kept the run from being what it should."""
    found = [f"{name} has ended by itself" for name in story.fallen]
    return [*found, f"the run broke off: {story.broke_off}"] if story.broke_off else found


def failures(expected: Expected, story: Story) -> list[str]:
    """List what was to happen and did not, unless that is expected."""
    found = [f"{one.what} at {one.at:g} s {one.outcome}" for one in story.happened if one.has_failed]
    for plan in story.plans:
        when = "before the first document" if plan["at"] < 0 else f"at {plan['at']:g} s"
        found += [f"the plan {when} failed: {plan['failed'].strip()}"] if "failed" in plan else []
    return found if len(found) > expected.failures_at_most else []


def spread(values: Iterable[float]) -> dict[str, float]:
    """Return least, average, quantiles and most.

    >>> spread([1.0, 3.0])
    {'count': 2, 'min': 1.0, 'avg': 2.0, 'p50': 2.0, 'p90': 2.8, 'p99': 2.98, 'max': 3.0}
    """
    found = np.fromiter(values, np.float64)
    if not len(found):
        return {"count": 0}
    quantiles = np.quantile(found, _QUANTILES)
    named = {f"p{100 * q:g}": float(value) for q, value in zip(_QUANTILES, quantiles, strict=True)}
    told = {"min": float(found.min()), "avg": float(found.mean())} | named | {"max": float(found.max())}
    return {"count": len(found)} | {name: round(value, 4) for name, value in told.items()}


def curve(values: Iterable[float]) -> list[float]:
    """Return the quantiles from the least to the most, in steps of 2.5 %; nothing of nothing.

    >>> curve([1.0, 3.0])[::20]
    [1.0, 2.0, 3.0]
    """
    found = np.fromiter(values, np.float64)
    return [round(float(value), 4) for value in np.quantile(found, _CURVE)] if len(found) else []


def spans(happened: Iterable[Happened], plans: Iterable[dict[str, Any]]) -> list[tuple[float, float | None, str]]:
    """List what happened from when to when, whom it hit by name; what was not undone has no end."""
    found: dict[int, tuple[float, float | None, str]] = {}
    for one in happened:
        if one.undoes is not None and one.undoes in found:
            begin, _, text = found[one.undoes]
            found[one.undoes] = begin, one.at, text
            continue
        hit = LARGEST if one.has_failed or one.outcome.startswith(LEFT_OUT) else one.outcome
        does_last = one.what.partition(" ")[0] in ("kill", "stop", "freeze", "cut", "loss", "rtt_ms")
        found[one.event] = one.at, None if does_last else one.at, one.what.replace(LARGEST, hit)
    for plan in plans:
        same = [event for event, (at, _, _) in found.items() if at == plan["at"]]
        for event in same:
            at, _, text = found[event]
            found[event] = at, round(at + plan["seconds"], 2), f"{text}, {plan['seconds']:g} s"
    return list(found.values())


def unmet(expected: Expected, found: dict[str, Any]) -> list[str]:
    """List what was expected and is not so."""
    wrong = [] if found["is_complete"] else ["not everybody was complete in time"]
    if found["errors"]:
        wrong.append(f"{found['errors']} documents could not be processed")
    limits = [
        ("source_feeds_at_most", found["source_feeds"], 1), ("source_share_at_most", found["source_share"], 1),
        ("failovers_at_least", found["failovers"], -1), ("failovers_at_most", found["failovers"], 1),
        ("gaps_at_most", found["gaps"], 1),
        ("delivery_s_at_most", found["delivery_s"].get("avg", 0.0), 1),
        ("latency_s_at_most", found["view_latency_s"].get("avg", 0.0), 1),
    ]  # fmt: skip
    for name, value, sign in limits:
        limit = getattr(expected, name)
        if limit is not None and sign * value > sign * limit:
            wrong.append(f"expected {name.replace('_', ' ')} {limit:g}, and it is {value:g}")
    return wrong


def _counted(levels: Iterable[int]) -> list[tuple[int, int]]:
    found = np.bincount(np.fromiter(levels, np.int64, -1)) if levels else np.zeros(0, np.int64)
    return [(level, int(count)) for level, count in enumerate(found) if count]


def _machines(story: Story) -> list[list[Any]]:
    """List which machine feeds which, and by how many feeds, at the end."""
    places = {name: one["host"] for name, one in story.standing.items()}
    feeds: dict[tuple[str, str], int] = {}
    for one in story.standing.values():
        for feeder in one["fed_by"]:
            pair = places.get(feeder, SOURCE), one["host"]
            if pair[0] != pair[1]:
                feeds[pair] = feeds.get(pair, 0) + 1
    return [[a, b, count] for (a, b), count in sorted(feeds.items())]
