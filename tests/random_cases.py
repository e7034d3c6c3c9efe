"""The cases of ``strategies.py`` from a seed: many more of them in the same time, and denser."""

from tests.strategies import (
    _DECLARATIONS,
    _EXTRAS,
    ELEMENTS,
    NUMBERS,
    VALUES,
    _conditions_of,
    _Element,
    _Gene,
    _grown,
    _written,
    escaped,
)

_WHATS = (["id"], ["val"], ["cont"], ["val", "id"])


def random_case(rng, *, elements=8, nodes=5):
    """Return (text of a document, ``Drawn``): few names, so that most patterns match in several ways."""
    names = rng.sample(ELEMENTS, rng.choice((1, 2, 2, 3)))
    text = _written([_element(rng, names) for _ in range(rng.randint(2, elements))])
    genes = [_gene(rng) for _ in range(rng.randint(1, nodes))]
    return _grown((text, genes))


def _element(rng, names):
    return _Element(
        up=rng.choice((0, 0, 1, 1, 2)),
        name=rng.choice(names),
        declarations=rng.choice(_DECLARATIONS) if rng.random() < 0.2 else "",
        attributes=[(name, _value(rng)) for name in ("x", "y", "p:x") if rng.random() < 0.25],
        before=rng.choice(_EXTRAS) if rng.random() < 0.2 else "",
        text=escaped(_value(rng)) if rng.random() < 0.5 else "",
    )


def _value(rng):
    return rng.choice(NUMBERS if rng.random() < 0.6 else VALUES)


def _gene(rng):
    return _Gene(
        parent=rng.randrange(12),
        target=rng.randrange(60),
        descendant=rng.random() < 0.6,
        label=rng.randrange(16),
        truths=[rng.randrange(8)] if rng.random() < 0.2 else [],
        false=[rng.choice(_conditions_of(VALUES))] if rng.random() < 0.06 else [],
        returns=list(rng.choice(_WHATS)) if rng.random() < 0.5 else [],
        inline=rng.random() < 0.5,
        late=rng.random() < 0.3,
        spaced=rng.random() < 0.1,
    )
