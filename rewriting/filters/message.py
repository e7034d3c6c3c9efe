"""Messages: flat sets of attributes and values, which travel as documents do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rewriting.filters.errors import MessageError
from rewriting.filters.filter import MESSAGE, NAME_RULE, is_name
from rewriting.filters.values import text_of
from xmlmatch import Document, DocumentError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rewriting.filters.values import Value

MAX_ATTRIBUTES: Final = 256
_ESCAPED: Final = str.maketrans(
    {"&": "&amp;", "<": "&lt;", '"': "&quot;", "\t": "&#9;", "\n": "&#10;", "\r": "&#13;"}
)


def message_document(attributes: Mapping[str, Value]) -> Document:
    """Turn a message into the document that patterns of filters match.

    >>> document = message_document({"topic": "sport", "price": "12"})
    >>> [document.label_of(node) for node in range(len(document))]
    ['message', '@price', '@topic']
    """
    return _read(_written(attributes))


def message_bytes(attributes: Mapping[str, Value]) -> bytes:
    """Write a message as the document that is published.

    >>> message_bytes({"topic": "sport", "price": 12})
    b'<message price="12" topic="sport"/>'
    """
    text = _written(attributes)
    _read(text)
    return text.encode()


def _written(attributes: Mapping[str, Value]) -> str:
    if len(attributes) > MAX_ATTRIBUTES:
        raise MessageError(f"a message has up to {MAX_ATTRIBUTES} attributes, not {len(attributes)}")
    for name in attributes:
        if not is_name(name):
            raise MessageError(f"{name!r} is no attribute name; {NAME_RULE}")
    words = "".join(
        f' {name}="{text_of(value).translate(_ESCAPED)}"' for name, value in sorted(attributes.items())
    )
    return f"<{MESSAGE}{words}/>"


def _read(text: str) -> Document:
    try:
        return Document.parse(text.encode())
    except (DocumentError, UnicodeEncodeError) as exc:
        raise MessageError(f"a value cannot be written: {exc}") from exc
