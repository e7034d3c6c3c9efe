"""Matching of events against very many filters (Fabret et al.): which subscriptions does a message satisfy?

Start at ``matcher``: one interface, with an engine for the algorithm. ``vocabulary`` gives names numbers and
writes messages and filters as arrays (``batch``, ``codes``), ``predicate_index`` holds each distinct predicate
once and finds those an event satisfies, ``counting`` finds the conjunctions from these. ``explaining`` says why
something does not match.
"""

from overlay.matching.batch import Batch
from overlay.matching.errors import BadBatch, MatcherFull, MatchingError, UnknownSubscription, WrongType
from overlay.matching.explaining import Explanation, Failure
from overlay.matching.matcher import Matcher
from overlay.matching.vocabulary import Event, ValueType

__all__ = [
    "BadBatch",
    "Batch",
    "Event",
    "Explanation",
    "Failure",
    "Matcher",
    "MatcherFull",
    "MatchingError",
    "UnknownSubscription",
    "ValueType",
    "WrongType",
]
