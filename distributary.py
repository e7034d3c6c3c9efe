"""The public API of distributary, under one name.

>>> from distributary import Document, Pattern, match
>>> document = Document.parse(b"<news><item><topic>rivers</topic></item></news>")
>>> list(match(Pattern.parse("//item[topic='rivers']{id}"), document).rows())
[(NodeId(pre=1, size=1, level=1),)]
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from peer.client import Client
    from rewriting import (
        EmbeddingGraph,
        Rewriting,
        RewritingError,
        Statistics,
        cover,
        embeds,
        find_candidates,
        rewritings,
        unrewritable,
    )
    from xmlmatch import (
        Document,
        DocumentError,
        Limits,
        Matcher,
        Matches,
        MatchLimitError,
        NodeId,
        NodeSets,
        Pattern,
        PatternError,
        RowLimitError,
        XmlMatchError,
        match,
    )

__all__ = [
    "Client",
    "Document",
    "DocumentError",
    "EmbeddingGraph",
    "Limits",
    "MatchLimitError",
    "Matcher",
    "Matches",
    "NodeId",
    "NodeSets",
    "Pattern",
    "PatternError",
    "Rewriting",
    "RewritingError",
    "RowLimitError",
    "Statistics",
    "XmlMatchError",
    "cover",
    "embeds",
    "find_candidates",
    "match",
    "rewritings",
    "unrewritable",
]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'distributary' has no attribute {name!r}")
    if name == "Client":
        from peer.client import Client

        return Client
    import rewriting
    import xmlmatch

    return getattr(rewriting if name in rewriting.__all__ else xmlmatch, name)
