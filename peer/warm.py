"""Loads the compiled code that a daemon needs, before it says that it is ready: not at its first document."""

from __future__ import annotations

from peer.hosting.results import Joining, cut_results, decode_whole, from_document, read_cut_untrusted, whole_link
from xmlmatch import Document, Matcher, Pattern

_DOCUMENT = b"<r><a x='1'><b>1</b><c>t</c></a><a><b>2.5</b></a></r>"


def warm_peer() -> None:
    """Match, encode, cut, join and decode once."""
    views = Pattern.parse("//a{cont}"), Pattern.parse("//b{val}")
    query = Pattern.parse("//a{val}[b{val} >= 1]")
    document = Document.parse(_DOCUMENT)
    matches = Matcher([*views, Pattern.parse("//b[.='1']{val}")]).match(document)
    whole = [from_document(whole_link(view), matches, place, document) for place, view in enumerate(views)]
    joining = Joining(query, views)
    links = [read_cut_untrusted(view, query, cut) for view, cut in zip(views, joining.cuts(), strict=True)]
    sent = [cut_results(link, data) for link, data in zip(links, whole, strict=True)]
    list(decode_whole(query, joining.join(sent)).rows())


def warm_source() -> None:
    """Also place a few subscriptions."""
    from peer.steering.steering import Steering

    warm_peer()
    steering = Steering("source", None)
    for i, text in enumerate(("//a{cont}", "//a[b]{cont}", "//a{cont}[b{val}]")):
        steering.add_site(f"m{i}", None)
        steering.add(f"s{i}", text, f"m{i}", 2, 0)
    steering.withdraw("s0")
