"""Random spaces, filters, messages and regions for content-driven networks."""

from rewriting.filters import Dimension, Quadrants, Rectangle, Space

PRICES = Space("prices", (Dimension("price", low=0, high=100),))
PAIRS = Space("pairs", (Dimension("price", low=0, high=100), Dimension("size", low=0, high=10)))
TOPICS = ("sport", "news", "art")


def a_filter(rng, space):
    conditions = []
    for dimension in space.dimensions:
        if rng.random() < 0.85:
            low = rng.uniform(dimension.low, dimension.high)
            high = low + rng.expovariate(4) * (dimension.high - dimension.low)
            conditions += [f"{dimension.attribute} >= {low:.3f}", f"{dimension.attribute} <= {high:.3f}"]
    if rng.random() < 0.4 or not conditions:
        conditions.append(f"topic = '{rng.choice(TOPICS)}'")
    if rng.random() < 0.1:
        return f"{' and '.join(conditions)} or {a_filter(rng, space)}"
    return " and ".join(conditions)


def a_point(rng, space):
    point = []
    for dimension in space.dimensions:
        low = rng.uniform(dimension.low, dimension.high)
        point += (low, rng.uniform(low, dimension.high))
    return tuple(point)


def a_message(rng, space):
    message = {"topic": rng.choice(TOPICS)}
    for dimension in space.dimensions:
        if rng.random() < 0.95:
            message[dimension.attribute] = f"{rng.uniform(dimension.low, dimension.high):.3f}"
    return message


def a_region(rng, space):
    """Draw what a message covers, if not what its attributes say: None most of the time."""
    kind = rng.random()
    if kind < 0.7:
        return None
    if kind < 0.8:
        inner = a_point(rng, space)
        outer = [x - 30 if i % 2 == 0 else x + 30 for i, x in enumerate(inner)]
        return Rectangle.north_west(inner, outer)
    if kind < 0.9:
        return Quadrants(tuple(a_point(rng, space) for _ in range(rng.randint(1, 5))))
    low = rng.uniform(0, 80)
    return Rectangle.span(space.axes, rng.randrange(space.axes), low, low + 15)
