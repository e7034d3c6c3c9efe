"""A document as a plain list of numbered nodes, read with lxml."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from lxml import etree


@dataclass
class Node:
    """One node; ``holder`` is the lxml element, of an attribute the one it stands on."""

    label: str
    parent: int
    level: int
    value: str
    holder: Any
    size: int = 0

    @property
    def is_element(self) -> bool:
        return not self.label.startswith("@")


def lxml_parser():
    """Return a parser that does what XML asks of one that reads no external files."""
    return etree.XMLParser(attribute_defaults=True, resolve_entities=False, no_network=True, load_dtd=False)


def numbered(data):
    """List the nodes of a document: an element, its attributes as written, then its content."""
    nodes = []
    _append(etree.fromstring(data, lxml_parser()), -1, 0, nodes)
    return nodes


def _append(element, parent, level, nodes):
    pre = len(nodes)
    nodes.append(Node(element.tag, parent, level, string_value(element), element))
    for name, value in element.attrib.items():
        nodes.append(Node(f"@{name}", pre, level + 1, value, element))
    for child in element:
        if isinstance(child.tag, str):  # comments and instructions have a function here
            _append(child, pre, level + 1, nodes)
    nodes[pre].size = len(nodes) - 1 - pre


def string_value(element):
    """Join the text below an element; comments and instructions are none."""
    parts = [element.text or ""]
    for child in element:
        if isinstance(child.tag, str):
            parts.append(string_value(child))
        parts.append(child.tail or "")
    return "".join(parts)


def canonical_xml(text):
    """Return the C14N of a serialised element."""
    return etree.tostring(etree.fromstring(text), method="c14n")


def canonical_subtree(element):
    """Return the C14N of an element as a document of its own, the namespaces in scope included."""
    return canonical_xml(etree.tostring(element, with_tail=False, encoding="unicode"))
