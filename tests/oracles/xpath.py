"""Patterns as XPath, for lxml (one returning node) and Saxon (several)."""

import re
from decimal import Decimal

from lxml import etree

from xmlmatch import Axis

# Where the engines read numbers otherwise than the pattern language does; the tests name these cases.
_LXML_DIFFERS = re.compile(r"\s*-?(\d+\.?\d*|\.\d+)[eE][+-]?\s*")
_SAXON_DIFFERS = re.compile(r"\s*(\+.*|-?INF)\s*", re.DOTALL)
_MANY_DIGITS = re.compile(r"\d{16}")


def lxml_agrees(value):
    """Say whether lxml reads a value as the pattern language does."""
    return not (_LXML_DIFFERS.fullmatch(value) or _MANY_DIGITS.search(value))


def saxon_agrees(value):
    """Say whether Saxon reads a value as the pattern language does."""
    return not (_SAXON_DIFFERS.fullmatch(value) or _MANY_DIGITS.search(value))


class Translator:
    """Spells the parts of one pattern; ``prefixes`` maps the prefixes it made up to URIs."""

    def __init__(self, pattern):
        self.pattern = pattern
        self.prefixes = {}

    def path_to(self, wanted):
        """Spell the pattern as a path that selects what the node ``wanted`` takes."""
        path = self._path(wanted)
        return "".join(self._step(i) + self.conditions(i, skip=set(path)) for i in path)

    def _path(self, node):
        path = []
        while node >= 0:
            path.append(node)
            node = self.pattern.nodes[node].parent
        return path[::-1]

    def _step(self, i):
        return ("//" if self.pattern.nodes[i].axis is Axis.DESCENDANT else "/") + self._label(i)

    def _label(self, i):
        label = self.pattern.nodes[i].label
        at, name = ("@", label[1:]) if label.startswith("@") else ("", label)
        if not name.startswith("{"):
            return at + name
        uri, local = name[1:].split("}")
        known = {known_uri: prefix for prefix, known_uri in self.prefixes.items()}
        prefix = known.get(uri, f"n{len(self.prefixes)}")
        self.prefixes[prefix] = uri
        return f"{at}{prefix}:{local}"

    def conditions(self, i, skip):
        """Spell the predicates of a node: its value's, and a branch for each child that is not in ``skip``."""
        words = [f"[. {p.operator.value} {_constant(p.constant)}]" for p in self.pattern.nodes[i].predicates]
        for child, node in enumerate(self.pattern.nodes):
            if node.parent == i and child not in skip:
                words.append(f"[.{self._step(child)}{self.conditions(child, skip)}]")
        return "".join(words)

    def loop(self, columns):
        """Spell a ``for`` over every node on the way to ``columns``; each result joins their paths by ``|``."""
        ways = sorted({i for column in columns for i in self._path(column)})
        clauses = []
        for i in ways:
            parent = self.pattern.nodes[i].parent
            above = "" if parent < 0 else f"$v{parent}"
            clauses.append(f"$v{i} in {above}{self._step(i)}{self.conditions(i, skip=set(ways))}")
        paths = ", ".join(f"path($v{i})" for i in columns)
        return f"for {', '.join(clauses)} return string-join(({paths}), '|')"


def _constant(constant):
    if isinstance(constant, str):
        quote = '"' if "'" in constant else "'"
        return f"{quote}{constant}{quote}"
    return format(Decimal(repr(constant)), "f")


def lxml_numbers(pattern, nodes):
    """Return the node numbers that lxml selects for the only returning node."""
    translator = Translator(pattern)
    text = translator.path_to(pattern.returning[0])
    found = etree.XPath(text, namespaces=translator.prefixes)(nodes[0].holder.getroottree())
    number_of = {(node.holder, node.label): pre for pre, node in enumerate(nodes)}
    return sorted(number_of[_place(item)] for item in found)


def _place(item):
    if isinstance(item, str):  # lxml gives an attribute's value, which knows where it stands
        return item.getparent(), f"@{item.attrname}"
    return item, item.tag


def paths(nodes):
    """Spell each node as XPath's ``path()`` does, mapped to its number."""
    spelled = []
    seen = {}
    for node in nodes:
        at, name = ("", node.label) if node.is_element else ("@", node.label[1:])
        name = f"Q{name}" if name.startswith("{") else name if at else f"Q{{}}{name}"
        above = spelled[node.parent] if node.parent >= 0 else ""
        place = f"{above}/{at}{name}"
        if node.is_element:
            seen[place] = seen.get(place, 0) + 1
            place += f"[{seen[place]}]"
        spelled.append(place)
    return {place: pre for pre, place in enumerate(spelled)}


class Saxon:
    """Saxon's XPath 3.1 in 1.0-compatible mode."""

    def __init__(self):
        from saxonche import PySaxonProcessor

        self._processor = PySaxonProcessor(license=False)

    def rows(self, pattern, text, nodes):
        """Return the distinct rows of a pattern as tuples of node numbers, sorted."""
        evaluator = self._processor.new_xpath_processor()
        evaluator.set_language_version("3.1")
        evaluator.set_backwards_compatible(True)
        evaluator.set_context(xdm_item=self._processor.parse_xml(xml_text=text))
        translator = Translator(pattern)
        query = translator.loop(pattern.returning)
        for prefix, uri in translator.prefixes.items():
            evaluator.declare_namespace(prefix, uri)
        found = evaluator.evaluate(query)
        number_of = paths(nodes)
        lines = [] if found is None else [found.item_at(i).string_value for i in range(found.size)]
        return sorted({tuple(number_of[p] for p in line.split("|")) for line in lines})
