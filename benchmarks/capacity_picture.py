"""What a network carries, as a picture: documents per second by subscriptions, and delivery times by rate."""

from spark_planner.charts import WIDTH, Line, linear_axis, plot

HEIGHT = 270
STYLE = (
    "text{fill:#5a6b74;font:12px system-ui,sans-serif}.fill{fill:currentColor}.stroke,.grid,.base{fill:none}"
    ".stroke{stroke:currentColor;stroke-width:2}.grid{stroke:#dde4e6}.base{stroke:#5a6b74}.best{color:#0b7a75}"
    ".ties{color:#2f7fc4}.chart{overflow:visible}"
)


def picture(found):
    """Draw what ``benchmarks.capacity`` found."""
    steps = [(int(count), one["documents_per_s"]) for count, one in found["steps"].items()]
    most = steps[-1][1]
    rates = [(float(share) * most, one) for share, one in found["rates"].items()]
    carried = plot(
        "What the network carries",
        linear_axis("subscriptions", 0, steps[-1][0], most=5),
        linear_axis("documents/s that reach everybody", 0, max(rate for _, rate in steps), rounded=True),
        lines=[Line(steps, "best")],
    )
    times = {name: [(rate, one[f"delivery_{name}_s"]) for rate, one in rates] for name in ("p50", "p99")}
    longest = max(seconds for points in times.values() for _, seconds in points)
    delivered = plot(
        "How long a document takes",
        linear_axis(f"documents/s, with {steps[-1][0]:,} subscriptions", 0, rates[-1][0]),
        linear_axis("seconds until it is everywhere: half of them, and 99 % (blue)", 0, longest, rounded=True),
        lines=[Line(times["p50"], "best"), Line(times["p99"], "ties")],
    )
    inner = (
        one.replace("<svg ", f'<svg x="{i * WIDTH}" width="{WIDTH}" ', 1)
        for i, one in enumerate((carried, delivered))
    )
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {2 * WIDTH} {HEIGHT}" role="img">'
    return f"{head}<style>{STYLE}</style>{''.join(inner)}</svg>\n"
