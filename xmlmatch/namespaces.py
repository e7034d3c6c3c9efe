"""Namespaces: from prefixed names to labels that compare by URI.

A *label* is what patterns compare: ``name``, ``{uri}name``, ``@name`` or ``@{uri}name``. Expat reads without
namespaces (so that serialisation keeps the writer's prefixes); this module resolves them afterwards, once per
distinct pair of scope and name. A document without declarations and colons needs none of it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from xmlmatch.errors import DocumentError
from xmlmatch.kernels import kernel

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

XML_URI: Final = "http://www.w3.org/XML/1998/namespace"
XMLNS_URI: Final = "http://www.w3.org/2000/xmlns/"
_PREDECLARED: Final = {"xml": XML_URI, "": ""}

_START: Final = (
    "A-Z_a-z\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u02ff\u0370-\u037d\u037f-\u1fff\u200c-\u200d\u2070-\u218f"
    "\u2c00-\u2fef\u3001-\ud7ff\uf900-\ufdcf\ufdf0-\ufffd\U00010000-\U000effff"
)
NAME_START: Final = f"[{_START}]"
NCNAME: Final = re.compile(f"[{_START}][{_START}\\-.0-9\u00b7\u0300-\u036f\u203f-\u2040]*")
"""A name without a colon, as XML 1.0 (fifth edition) and Namespaces in XML spell it."""


class Declaration(NamedTuple):
    """One ``xmlns`` attribute: the element it stands on, its prefix ("" for the default) and its URI."""

    element: int
    prefix: str
    uri: str


def label_text(uri: str, local: str, *, attribute: bool = False) -> str:
    """Spell a label.

    >>> label_text("urn:x", "id", attribute=True)
    '@{urn:x}id'
    """
    name = f"{{{uri}}}{local}" if uri else local
    return "@" + name if attribute else name


def check(declaration: Declaration) -> Declaration:
    """Return the declaration if Namespaces in XML 1.0 allows it."""
    _, prefix, uri = declaration
    if prefix == "xmlns" or uri == XMLNS_URI or (prefix == "xml") != (uri == XML_URI):
        raise DocumentError(f"the namespace declaration {prefix!r} = {uri!r} touches a reserved name")
    if prefix and not uri:
        raise DocumentError(f"the prefix {prefix!r} is declared with an empty namespace")
    return declaration


class Scopes:
    """The prefixes in scope at every element that declares some, as a chain towards the root."""

    def __init__(self, declarations: Sequence[Declaration], parent: NDArray[np.int32]) -> None:
        self._own: dict[int, dict[str, str]] = {}
        for element, prefix, uri in declarations:
            self._own.setdefault(element, {})[prefix] = uri
        self._parent = parent
        self._of_node = np.full(len(parent) + 1, -1, dtype=np.int32)  # the last entry: the root has no parent
        if self._own:
            declares = np.zeros(len(parent), dtype=np.bool_)
            declares[list(self._own)] = True
            _inherit(self._of_node, parent, declares)

    @property
    def of_node(self) -> NDArray[np.int32]:
        """The nearest element that declares something, of each node; -1 for none."""
        return self._of_node[:-1]

    def bindings(self, node: int) -> dict[str, str]:
        """Map every prefix in scope at ``node`` to its URI."""
        found: dict[str, str] = {}
        for scope in self._outwards(int(self._of_node[node])):
            found = {**self._own[scope], **found}
        return {**_PREDECLARED, **found}

    def own(self, node: int) -> Mapping[str, str]:
        """Map the prefixes that ``node`` itself declares."""
        return self._own.get(node, {})

    def label(self, scope: int, name: str) -> str:
        """Resolve a name as written (``p:x``, ``@p:x``) in a scope."""
        attribute = name.startswith("@")
        prefix, colon, local = name.removeprefix("@").rpartition(":")
        if colon and not (NCNAME.fullmatch(prefix) and NCNAME.fullmatch(local)):
            raise DocumentError(f"{name!r} is not a name with one prefix")
        if not prefix and attribute:
            return name
        return label_text(self._uri(scope, prefix, name), local, attribute=attribute)

    def _uri(self, scope: int, prefix: str, name: str) -> str:
        for outer in self._outwards(scope):
            if prefix in self._own[outer]:
                return self._own[outer][prefix]
        if prefix not in _PREDECLARED:
            raise DocumentError(f"the prefix {prefix!r} of {name!r} is not declared")
        return _PREDECLARED[prefix]

    def _outwards(self, scope: int) -> Iterator[int]:
        while scope >= 0:
            yield scope
            scope = int(self._of_node[self._parent[scope]])


@kernel
def _inherit(scope: NDArray[np.int32], parent: NDArray[np.int32], declares: NDArray[np.bool_]) -> None:
    """Set every node's scope: itself if it declares, else its parent's."""
    for node in range(len(parent)):
        scope[node] = node if declares[node] else scope[parent[node]]


def resolve(
    name: NDArray[np.int32], names: Sequence[str], parent: NDArray[np.int32], scopes: Scopes
) -> tuple[NDArray[np.int32], list[str]]:
    """Return each node's label id and the labels, resolving every distinct (scope, name) once."""
    # An attribute shares its element's scope, which is what _inherit gave it.
    pairs = scopes.of_node.astype(np.int64) * len(names) + name
    distinct, position = np.unique(pairs, return_inverse=True)
    ids: dict[str, int] = {}
    label_of = np.empty(len(distinct), dtype=np.int32)
    for i, pair in enumerate(distinct.tolist()):
        scope, raw = divmod(pair, len(names))
        label_of[i] = ids.setdefault(scopes.label(scope, names[raw]), len(ids))
    label = label_of[position]
    labels = list(ids)
    _refuse_repeated_attributes(label, labels, parent)
    return label, labels


def _refuse_repeated_attributes(
    label: NDArray[np.int32], labels: Sequence[str], parent: NDArray[np.int32]
) -> None:
    attribute = np.array([text.startswith("@") for text in labels], dtype=np.bool_)
    nodes = np.flatnonzero(attribute[label])
    keys = parent[nodes].astype(np.int64) * len(labels) + label[nodes]
    values, counts = np.unique(keys, return_counts=True)
    if (counts > 1).any():
        repeated = labels[int(values[counts > 1][0]) % len(labels)]
        raise DocumentError(f"the attribute {repeated!r} stands twice on one element")
