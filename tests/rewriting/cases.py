"""Small documents and patterns from a seed, dense enough that views embed, cover and match in several ways."""

from xmlmatch import Axis, Column, Operator, PatternNode, Predicate, Return
from xmlmatch.pattern import canonical

LABELS = ("a", "a", "b", "c", "p:b")
VALUES = ("1", "2", " 1", "x", "")
RETURNS = ((), (), (Return.ID,), (Return.VAL,), (Return.VAL,), (Return.CONT,), (Return.VAL, Return.CONT))


def random_document(rng, elements=10):
    """Return the bytes of a document with recursion, attributes, text, comments and a namespace."""
    opened, parts, left = [], [], rng.randint(2, elements)
    while left:
        if len(opened) > 1 and (rng.random() < 0.45 or len(opened) > 5):
            parts.append(f"</{opened.pop()}>")
            continue
        label = rng.choice(LABELS)
        attributes = "".join(f" {name}='{rng.choice(VALUES)}'" for name in ("x", "y") if rng.random() < 0.3)
        declared = "" if opened else " xmlns:p='urn:p'"
        parts.append(f"<{label}{declared}{attributes}>")
        opened.append(label)
        if rng.random() < 0.7:
            parts.append(rng.choice(VALUES) + rng.choice(("", "", "<!--c-->", "&amp;")))
        left -= 1
    parts += [f"</{label}>" for label in reversed(opened)]
    return "".join(parts).encode()


def random_predicates(rng):
    if rng.random() < 0.7:
        return ()
    if rng.random() < 0.2:
        return (Predicate(Operator.GE, float(rng.randint(0, 1))), Predicate(Operator.LE, float(rng.randint(1, 2))))
    operator = rng.choice(list(Operator))
    if rng.random() < 0.4:
        return (Predicate(rng.choice((Operator.EQ, Operator.NE)), rng.choice(VALUES)),)
    return (Predicate(operator, float(rng.randint(0, 2))),)


def random_pattern(rng, nodes=5, returns=RETURNS):
    """Draw a pattern over the documents' names with ``*``, attributes and predicates."""
    built = []
    for i in range(rng.randint(1, nodes)):
        inner = [k for k, node in enumerate(built) if not node.is_attribute]
        parent = rng.choice(inner) if i else -1
        label = rng.choice((*LABELS, "*", "*", *(("@x", "@y") if i else ()))).replace("p:", "{urn:p}")
        what = rng.choice(returns)
        if label.startswith("@"):
            what = tuple(r for r in what if r is not Return.CONT)
        axis = Axis(rng.random() < 0.6)
        built.append(PatternNode(label, axis, parent, random_predicates(rng), what))
    if not any(node.returns for node in built):
        last = built[-1]
        built[-1] = PatternNode(last.label, last.axis, last.parent, last.predicates, (Return.VAL,))
    return canonical(built, [Column(i, what) for i, node in enumerate(built) for what in node.returns])


def view_of(rng, query, nodes=4):
    """Draw a view that is likely to embed in a query: a part of it, loosened."""
    kept = sorted(rng.sample(range(len(query.nodes)), rng.randint(1, min(nodes, len(query.nodes)))))
    built, new = [], {}
    for n in kept:
        node = query.nodes[n]
        above = node.parent
        while above >= 0 and above not in new:
            above = query.nodes[above].parent
        parent = new.get(above, -1 if not built else 0)
        if built and built[parent].is_attribute:
            continue
        direct = above == node.parent and (above >= 0 or not built)
        axis = node.axis if direct and rng.random() < 0.7 else Axis.DESCENDANT
        label = "*" if not node.is_attribute and rng.random() < 0.25 else node.label
        predicates = node.predicates if rng.random() < 0.5 else ()
        what = set(rng.choice(RETURNS)) | (set(node.returns) if rng.random() < 0.8 else set())
        if node.is_attribute:
            what -= {Return.CONT}
        new[n] = len(built)
        built.append(PatternNode(label, axis, parent, predicates, tuple(what)))
    if not any(node.returns for node in built):
        built[0] = PatternNode(built[0].label, built[0].axis, -1, built[0].predicates, (Return.ID,))
    return canonical(built, [Column(i, what) for i, node in enumerate(built) for what in node.returns])


def random_problem(rng, views=8):
    """Return (document bytes, query, views)."""
    query = random_pattern(rng)
    drawn = [view_of(rng, query) if rng.random() < 0.75 else random_pattern(rng, 3) for _ in range(views)]
    return random_document(rng), query, drawn
