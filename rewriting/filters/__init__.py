"""Attribute filters and messages: values shared by planned feeds and the content-driven network.

``values`` says what a value means, ``condition`` what can be asked of one, ``filter`` holds key-value
subscriptions and their patterns, ``disjunction`` several of them joined by ``or``, ``message`` what they match;
``space`` makes points of filters and regions of messages, ``region`` holds the geometry. Start at ``filter``, then
``space``.

>>> from rewriting.filters import Filter, message_document
>>> from xmlmatch import match
>>> sport, england = Filter.parse("topic='sport'", whole=True), Filter.parse("location='England'")
>>> both = Filter.parse("topic='sport' and location='England'", whole=True)
>>> from rewriting import rewritings
>>> rewriting = next(rewritings(both.pattern(), [sport.pattern(), england.pattern()]))
>>> document = message_document({"topic": "sport", "location": "England", "title": "Rowing"})
>>> results = {view: match(view, document) for view in rewriting.views}
>>> list(rewriting.execute(results).rows())
[('<message location="England" title="Rowing" topic="sport"/>', 'England', 'sport')]
"""

from rewriting.filters.condition import Condition, OneOf, Prefix, Test
from rewriting.filters.disjunction import Disjunction
from rewriting.filters.errors import FilterError, MessageError, RegionError, SpaceError
from rewriting.filters.filter import Filter
from rewriting.filters.message import message_bytes, message_document
from rewriting.filters.region import Box, Point, Quadrants, Rectangle, Region, above, below
from rewriting.filters.space import Dimension, Kind, Space
from rewriting.filters.values import Value, number_of, text_of
from xmlmatch.predicates import Operator, Predicate

__all__ = [
    "Box",
    "Condition",
    "Dimension",
    "Disjunction",
    "Filter",
    "FilterError",
    "Kind",
    "MessageError",
    "OneOf",
    "Operator",
    "Point",
    "Predicate",
    "Prefix",
    "Quadrants",
    "Rectangle",
    "Region",
    "RegionError",
    "Space",
    "SpaceError",
    "Test",
    "Value",
    "above",
    "below",
    "message_bytes",
    "message_document",
    "number_of",
    "text_of",
]
