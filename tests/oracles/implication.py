"""Implication by trying representative values: the obvious twin of ``rewriting.conditions``."""

from xmlmatch.predicates import representatives


def implies_by_representatives(stronger, weaker):
    values = representatives([*stronger, *weaker])
    return all(all(p.holds(value) for p in weaker) for value in values if all(p.holds(value) for p in stronger))
