"""``match --check``: the same question put to lxml, column by column."""

from __future__ import annotations

import math
import sys
from typing import TYPE_CHECKING, Any

from peer.errors import CommandError

if TYPE_CHECKING:
    from xmlmatch import NodeSets


def agrees_with_lxml(name: str, data: bytes, found: NodeSets) -> bool:
    """Compare every returning node's set with lxml's answer and say so on standard error."""
    from xmlmatch.xpath import to_xpath

    root = _tree(name, data)
    good = True
    for node in found.pattern.returning:
        path = to_xpath(found.pattern, node)
        theirs = [_string(result) for result in root.getroottree().xpath(path.text, namespaces=path.namespaces)]
        ours = [found.document.val(n) for n in found.sets[node].tolist()]
        same = theirs == ours
        verdict = "agrees" if same else f"DIFFERS, it finds {len(theirs)}"
        _say(f"{name}: {len(ours)} nodes, lxml {verdict}: {path.text}")
        good = good and same
    if len(found.pattern.returning) > 1:
        _say(f"{name}: the combinations of columns are beyond XPath 1.0; each column was checked")
    if not good and (numeral := _misread(root, found)) is not None:
        _say(
            f"{name}: lxml reads the number {numeral!r} of this document differently (docs/patterns.md): no fault"
        )
        return True
    return good


def _tree(name: str, data: bytes) -> Any:
    from lxml import etree

    parser = etree.XMLParser(resolve_entities=False, no_network=True, huge_tree=True, attribute_defaults=True)
    try:
        return etree.fromstring(data, parser)
    except etree.XMLSyntaxError as exc:
        raise CommandError(f"{name}: lxml cannot read it, so nothing was checked: {exc}") from None


def _string(result: Any) -> str:
    """Return the XPath string value of an lxml result: an attribute's text, or an element."""
    return str(result.xpath("string()")) if hasattr(result, "xpath") else str(result)


def _misread(root: Any, found: NodeSets) -> str | None:
    """Return a value that a numeric predicate compares and that lxml reads as another number, if there is one."""
    from xmlmatch.numerals import number

    document = found.document
    labels = {n.label for n in found.pattern.nodes if any(not isinstance(p.constant, str) for p in n.predicates)}
    for node in range(len(document)):
        if document.label_of(node) in labels or ("*" in labels and not document.label_of(node).startswith("@")):
            value = document.val(node)
            ours, theirs = number(value), float(root.xpath("number($value)", value=value))
            if ours != theirs and not (math.isnan(ours) and math.isnan(theirs)):
                return value
    return None


def _say(text: str) -> None:
    print(f"check: {' '.join(text.split())}", file=sys.stderr)
