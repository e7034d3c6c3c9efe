"""``make bench-wan``: the Delta paper's WAN run (section 5.5, Figures 7 to 9) for every limit B, in virtual time.

10,000 subscriptions of the wan preset on 50 machines with round trips of 5 to 40 ms, a source limited to 80 feeds
(plans use nine tenths: 72), documents of 10 to 40 KB. For each B the plan of least load as the solver leaves it
(*ILP*, the paper's), with ties broken by latency (*ties*), and after LOGA and the second pass (*best*) are run by
the real host objects; each machine is busy as long as its work takes here, on its own core, and the disk takes
15 ms (``scenarios.simulation.timed``).
Real daemons on real sockets run the same by ``distributary scenario run wan-10k``. *relays*: every machine takes
whole documents too, and matches them. The first document's results are compared with direct matching. The last
line is JSON.
"""

import argparse
import gc
import json
from collections import Counter
from dataclasses import replace
from itertools import combinations

import numpy as np
from rich.console import Console
from rich.table import Table

from overlay.feeds.items import Kind
from peer.hosting.configuration import Configuration, Input
from peer.hosting.relay import resolved
from peer.hosting.results import DOCUMENTS, decode_whole, from_document, whole_link
from peer.steering.weights import LIVE
from planner import Problem, Site, Subscription
from planner.planning import choose_plan, improve_plan
from planner.problem import MOST_FEEDS, hard_limit
from rewriting.candidate_table import find_candidates
from rewriting.pricing import price
from rewriting.statistics import Statistics
from scenarios.auction_documents import auction_documents
from scenarios.hosts.links import Link, Links
from scenarios.presets import wan
from scenarios.scenario_file import SOURCE
from scenarios.simulation.agenda import Agenda
from scenarios.simulation.timed import Timed
from spark_planner.plan_files import plan_table
from xmlmatch import Document, Matcher, Pattern

LIMITS = ("5", "10", "30", "50", "100", "none")
PLANS = ("ILP", "ties", "best")
SETTLING_S = 60.0
LONGEST_S = 600.0


def main():
    """Run and print."""
    arguments = _arguments()
    console = Console()
    patterns = wan(1, arguments.subscriptions).subscriptions
    panel = [Document.parse(body) for body in auction_documents(2, 40)]
    statistics = Statistics.measure([*patterns, DOCUMENTS], panel)
    bodies = list(auction_documents(1, arguments.documents))
    found = {
        "subscriptions": len(patterns),
        "machines": arguments.machines,
        "documents": len(bodies),
        "limits": {},
    }
    for limit in arguments.limits:
        found["limits"][limit] = {}
        for relays in (False, True) if arguments.relays else (False,):
            wanted, names = spread(patterns, arguments.machines, limit, relays=relays)
            found_plans = plans(wanted, names, statistics, arguments.source_feeds, arguments.seconds)
            kept = ("best",) if relays else PLANS
            compared = {("relays" if relays else name): Network(found_plans[name]) for name in kept}
            for network in compared.values():
                network.begin(bodies[0])
            gc.collect()
            gc.disable()  # looking through three networks takes seconds, which one machine would be busy for
            # In turns, for what the machine does besides makes everything slower for a while.
            for body in bodies[1:]:
                for network in compared.values():
                    network.publish(body, arguments.every)
            for name, network in compared.items():
                network.publish(bodies[0], 10 * arguments.every)
                found["limits"][limit][name] = told = network.figures()
                console.print(f"B = {limit}, {name}: {json.dumps(told)}", highlight=False)
            gc.enable()
    _print(found, console)
    print(json.dumps(found))


def spread(patterns, machines, limit, *, relays):
    """Give every machine its subscriptions, and a relay if there are to be any; return both, and the machines."""
    most = None if limit == "none" else int(limit)
    names = [f"h{i:02}" for i in range(machines)]
    wanted = [Subscription(f"s{i}", one, names[i % len(names)], most) for i, one in enumerate(patterns)]
    if relays:
        wanted += [Subscription(f"documents-{name}", DOCUMENTS, name, most) for name in names]
    return wanted, names


def plans(wanted, names, statistics, source_feeds, seconds):
    """Return the plans of least load, with ties as they are and broken, and the one of low latency, as rows."""
    problem = Problem.of(
        wanted, [Site(name, None) for name in names], source_feeds=source_feeds, weights=LIVE,
        statistics=statistics,
    )  # fmt: skip
    table = find_candidates(problem.graph, problem.k, statistics=statistics, link_bytes=problem.weights.link_bytes)
    prices = price(problem.graph, table, statistics, problem.weights)
    chosen = choose_plan(problem, table, prices, seconds)
    solved = plan_table(replace(chosen, configuration=chosen.solved)).to_pylist()
    ties = plan_table(chosen).to_pylist()
    best = plan_table(improve_plan(chosen, seconds)).to_pylist()
    return dict(zip(PLANS, (solved, ties, best), strict=True))


class Network:
    """A plan, run in virtual time."""

    def __init__(self, rows):
        self._texts = {row["subscription"]: row["pattern"] for row in rows}
        configurations = [self._configuration(row) for row in rows]
        self._agenda, links = Agenda(1), Links()
        for pair in combinations([SOURCE, *sorted({one.site for one in configurations})], 2):
            links.put(*pair, Link(self._agenda.rng.uniform(5.0, 40.0)))
        self._timed, self._due = Timed(self._agenda, links), {}
        self._timed.install(configurations)
        self._agenda.run(SETTLING_S)
        self._hosted = [one for peer in self._timed.peers.values() for one in peer.host.subscriptions.values()]
        self._astray = sum(
            one.feeding.current is None or one.feeding.current.place != 0
            for one in self._hosted
            if one.configuration.choices
        )

    def _configuration(self, row):
        inputs = tuple(
            Input(one["subscription"], one["site"], self._texts[one["subscription"]]) for one in row["inputs"]
        )
        most = MOST_FEEDS if row["limit"] is None else hard_limit(row["limit"])
        choices = (inputs,) if inputs else ()
        return Configuration(row["subscription"], row["site"], row["pattern"], 1, 1, 1, 0, most, choices)

    def begin(self, body):
        """Publish the first document, which finds everything cold, and compare what comes of it."""
        _everywhere(self._timed, self._timed.publish(body), len(self._hosted))
        self._wrong = _wrong(self._timed, body, self._texts)
        self._timed.safe.clear()

    def publish(self, body, seconds):
        """Publish a document, and let some time pass."""
        self._due[self._timed.publish(body)] = self._agenda.now
        self._timed.made.clear()
        self._agenda.run(self._agenda.now + seconds)

    def figures(self):
        """Return what was measured."""
        return _figures(self._timed, self._hosted, self._due) | {"wrong": self._wrong, "astray": self._astray}


def _everywhere(timed, number, subscriptions):
    """Let time pass until a document is with all subscriptions; what is missing after a while counts as wrong."""
    end = timed.agenda.now + LONGEST_S
    while timed.agenda.now < end and len({name for name, upto, _ in timed.safe if upto >= number}) < subscriptions:
        timed.agenda.run(timed.agenda.now + 1.0)


def _figures(timed, hosted, due):
    views, last = {}, dict.fromkeys(due, 0.0)
    for name, upto, at in timed.safe:
        if upto in due and not name.startswith("documents-"):
            views.setdefault(name, []).append(at - due[upto])
            last[upto] = max(last[upto], at - due[upto])
    levels = Counter(one.feeding.level for one in hosted if not one.is_relay)
    per_view = np.array([np.mean(one) for one in views.values()])
    per_document = np.array(list(last.values()))
    share = len(timed.source.views) / len(hosted)
    return {
        "levels": max(levels), "by_level": [levels[n] for n in range(1, max(levels) + 1)],
        "source_feeds": len(timed.source.views), "source_share": round(share, 5),
        "view_s": _three(per_view), "delivery_s": _three(per_document),
        "busy_s": round(sum(peer.busy_s for peer in timed.peers.values()), 1),
    }  # fmt: skip


def _three(values):
    return {
        "avg": round(float(values.mean()), 4),
        "min": round(float(values.min()), 4),
        "max": round(float(values.max()), 4),
    }


def _wrong(timed, body, texts):
    """Count the results of the first document that are not what direct matching gives, or are missing."""
    document, distinct = Document.parse(body), {text: Pattern.parse(text) for text in set(texts.values())}
    matcher, links = Matcher(list(distinct.values())), [whole_link(one) for one in distinct.values()]
    matches = matcher.match(document)
    right = {
        links[key].view.text: from_document(links[key], matches, place, document)
        for place, key in enumerate(matches.keys.tolist())
    }
    documents = {machine: item for machine, name, item in timed.made if name.startswith("documents-")}
    found, wrong = set(), 0
    for machine, name, item in timed.made:
        text = texts[name]
        if item.kind is Kind.REFERENCE:
            item = resolved(distinct[text], documents[machine])
        wrong += name in found or item is None or not _same(distinct[text], item.data, right.get(text))
        found.add(name)
    return wrong + sum(text in right and name not in found for name, text in texts.items())


def _same(pattern, data, right):
    """Say whether results are right; those of a rewriting may be written otherwise."""
    if right is None or data == right:
        return data == right
    return list(decode_whole(pattern, data).rows()) == list(decode_whole(pattern, right).rows())


def _print(found, console):
    title = (
        f"{found['subscriptions']:,} subscriptions on {found['machines']} machines, {found['documents']} documents"
    )
    table = Table(title=title, title_justify="left")
    for heading in (
        "B",
        "plan",
        "levels",
        "source feeds",
        "view s: avg, min, max",
        "delivery s: avg, min, max",
        "wrong",
    ):
        table.add_column(heading, justify="left" if heading in ("B", "plan") else "right")
    for limit, row in found["limits"].items():
        for name, told in row.items():
            table.add_row(
                limit, name, str(told["levels"]), f"{told['source_feeds']} ({told['source_share']:.2%})",
                ", ".join(f"{told['view_s'][key]:.2f}" for key in ("avg", "min", "max")),
                ", ".join(f"{told['delivery_s'][key]:.2f}" for key in ("avg", "min", "max")), str(told["wrong"]),
            )  # fmt: skip
    console.print(table)


def _arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--subscriptions", type=int, default=10_000, help="how many (10,000)")
    parser.add_argument("--machines", type=int, default=50, help="on how many machines (50)")
    parser.add_argument(
        "--documents", type=int, default=21, help="how many are published; the first only warms (21)"
    )
    parser.add_argument("--every", type=float, default=2.0, help="seconds between documents (2)")
    parser.add_argument(
        "--source-feeds", type=int, default=80, help="the source's limit; plans use 9/10 of it (80)"
    )
    parser.add_argument("--limits", nargs="+", default=LIMITS, help="values of B")
    parser.add_argument(
        "--seconds", type=float, default=120.0, help="for choosing, and for improving, a plan (120)"
    )
    parser.add_argument("--relays", action="store_true", help="also with a relay on every machine")
    return parser.parse_args()


if __name__ == "__main__":
    main()
