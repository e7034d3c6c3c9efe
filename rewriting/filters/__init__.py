"""Attribute filters and messages: values shared by planned feeds and the content-driven network.

``filter`` holds key-value subscriptions and their patterns, ``message`` what they match. Regions come with the
content-driven network.

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

from rewriting.filters.errors import FilterError, MessageError
from rewriting.filters.filter import Condition, Filter
from rewriting.filters.message import message_document

__all__ = ["Condition", "Filter", "FilterError", "MessageError", "message_document"]
