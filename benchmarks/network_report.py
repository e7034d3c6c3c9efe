"""What ``benchmarks.network`` has found: ratios to the rivals, a table for people, and the goals beside."""

from rich.console import Console
from rich.table import Table

GOALS = {
    "source_bytes": ("source bytes, of direct", 0.05),
    "source_cpu": ("source CPU, of direct", 0.05),
    "total_cpu_to_nats_matching": ("total CPU, of nats where hosts only match", 1.0),
    "total_cpu_to_nats_documents": ("total CPU, of nats where hosts store documents and who matches", 1.0),
    "at_once_cpu_to_nats_matching": ("the same where hosts only match, documents at once", 1.0),
    "at_once_cpu_to_nats_documents": ("the same where hosts store documents, documents at once", 1.0),
    "total_cpu_to_nats": ("total CPU, of nats where hosts store all results written out", 1.0),
    "delivery_p50_s": ("delivery p50, s", 0.3),
    "idle_mb": ("idle peer, MB", 160),
    "start_s": ("peer start, s", 2.5),
}


def ratios(found):
    """Compare per document, for the rivals may have had fewer."""

    def each(name, what):
        return found[name][what] / found[name]["documents"]

    answer = {
        "source_bytes": each("network", "source_mb_out") / each("direct", "source_mb_out"),
        "source_cpu": each("network", "source_cpu_s") / each("direct", "source_cpu_s"),
        "total_cpu_to_direct": each("network", "total_cpu_s") / each("direct", "total_cpu_s"),
    }
    if found["nats"]:
        answer["total_cpu_to_nats"] = each("network", "total_cpu_s") / each("nats", "total_cpu_s")
        answer["total_cpu_to_nats_documents"] = each("network", "total_cpu_s") / each(
            "nats_documents", "total_cpu_s"
        )
        answer["total_cpu_to_nats_matching"] = each("network", "total_cpu_s") / each("nats", "matching_cpu_s")
        at_once = each("network", "at_once_cpu_s")
        answer["at_once_cpu_to_nats_documents"] = at_once / each("nats_documents", "at_once_cpu_s")
        answer["at_once_cpu_to_nats_matching"] = at_once / each("nats_documents", "at_once_matching_cpu_s")
    return {name: round(value, 4) for name, value in answer.items()}


def show(found):
    console = Console(highlight=False)
    title = f"{found['subscriptions']:,} subscriptions ({found['distinct']:,} distinct) on {found['peers']} peers"
    table = Table(title=f"{title}, at {found['rate']} documents/s", title_justify="left")
    for heading in ("", "network", "source alone", "nats, results", "nats, documents"):
        table.add_column(heading, justify="right" if heading else "left")
    rows = {
        "documents": "documents", "documents/s at once": "documents_per_s", "delivery p50, s": "delivery_p50_s",
        "delivery p99, s": "delivery_p99_s", "view latency, s": "view_latency_s", "source feeds": "source_feeds",
        "source CPU, s": "source_cpu_s", "source MB out": "source_mb_out", "all MB out": "total_mb_out",
        "all CPU, s": "total_cpu_s", "all CPU at once, s": "at_once_cpu_s",
        "CPU ms per batch": "cpu_ms_per_batch", "watching CPU, s": "watching_cpu_s",
        "cores others took": "others_cores",
    }  # fmt: skip
    for text, key in rows.items():
        sides = ("network", "direct", "nats", "nats_documents")
        table.add_row(text, *(f"{(found[side] or {}).get(key, '-')}" for side in sides))
    console.print(table)
    values = found["ratios"] | found["network"] | found["peer"]
    for key, (text, goal) in GOALS.items():
        if key not in values:
            console.print(f"{text}: not measured, {found['note']}")
        else:
            met = "met" if values[key] <= goal else "NOT met"
            console.print(f"{text}: {values[key]:g} (goal {goal:g}: {met})")
    checked = found["checked"]
    console.print(
        f"Of {checked['subscriptions'] * checked['documents']:,} results compared ({checked['rows']:,} rows) "
        f"{checked['wrong']} are wrong. Idle, all daemons take {found['idle_cores']} cores. "
        f"Full plan: {found.get('replan', 'none')}"
    )
