"""Matching of events against very many filters (Fabret et al.): which subscriptions does a message satisfy?

Start at ``matcher``: one interface, with an engine for the algorithm. ``vocabulary`` gives names numbers and
writes messages and filters as arrays (``batch``, ``codes``), ``predicate_index`` holds each distinct predicate
once and finds those an event satisfies. From these, engines find conjunctions: ``counting``; ``clustering``, that
is propagation; ``static`` and ``dynamic``, which choose tables for it (``greedy``). Kernels are in modules of
their own. ``pending`` gathers single changes, ``ownership`` knows the rows of subscriptions, ``explaining`` says
why something does not match.
"""

from overlay.matching.algorithms import ALGORITHMS
from overlay.matching.batch import Batch
from overlay.matching.errors import BadBatch, MatcherFull, MatchingError, UnknownSubscription, WrongType
from overlay.matching.explaining import Explanation, Failure
from overlay.matching.matcher import Matcher
from overlay.matching.vocabulary import Event, ValueType

__all__ = [
    "ALGORITHMS",
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
