"""``python -m xmlmatch.warm``: compile every kernel into Numba's cache, so that first use is quick."""

from __future__ import annotations

from xmlmatch import Document, Matcher, Pattern, match

_DOCUMENT = (
    b"<a xmlns:p='u'><!--c--><b k='1'>x<c>1</c><c> 2 </c></b><b>y<a><b><c>1234567890123456789</c></b></a></b></a>"
)
_PATTERNS = ("//a[b{id}]//c{val}", "//b[@k='1']//c[.>=2]{val,cont}", "/a{cont}", "//*[c{val}][c='1']")


def warm() -> None:
    """Run each compiled function once on something small."""
    document = Document.parse(_DOCUMENT)
    patterns = [Pattern.parse(text) for text in _PATTERNS]
    matcher = Matcher(patterns)
    matches = matcher.match(document)
    for key, pattern in enumerate(patterns):
        direct = match(pattern, document)
        list(direct.rows())
        if direct:
            matcher.node_sets(matches, key).count()


if __name__ == "__main__":
    warm()
