"""Hypothesis strategies: small documents and patterns that share few names, so that much of it matches."""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import strategies as st

from tests.oracles.documents import numbered
from tests.oracles.numbers import to_number
from xmlmatch import Axis, Column, Operator, Pattern, PatternNode, Predicate, Return

NUMBERS = (" 40 ", "40", "4e1", "4E+1", "-0", "0", ".5", "5.", "1e400", "-1", "1e-400", "\t5\n", "10")
NEAR_NUMBERS = ("NaN", "4_0", "inf", "0x10", "-", ".", "--4", "4 0", "\u00a040", "e1", "\u0664\u0660")
DEVIANT_NUMBERS = ("+40", "INF", "-INF", "4e", "9007199254740993", "12345678901234567890.5", "4E-")
TEXTS = ("", " ", "a", "b", "'", '"', "é", "日本", "\U00010437", "<&>", "]]")
PLAIN_VALUES = NUMBERS + NEAR_NUMBERS + TEXTS
VALUES = PLAIN_VALUES + DEVIANT_NUMBERS

ELEMENTS = ("a", "b", "c", "p:a", "q:a", "r:b")
ATTRIBUTES = ("x", "y", "p:x", "q:x", "xml:lang")
NAMESPACES = {"p": "urn:x", "q": "urn:x", "r": "urn:y"}
_ROOT_DECLARATIONS = "".join(f' xmlns:{prefix}="{uri}"' for prefix, uri in NAMESPACES.items())
_DECLARATIONS = ("",) * 8 + (
    ' xmlns="urn:x"',
    ' xmlns=""',
    ' xmlns:p="urn:y"',
    ' xmlns:s="urn:z&amp;"',
    ' xmlns="urn:y" xmlns:q="urn:z"',
)
_EXTRAS = ("", "", "<!--note-->", "<?go on?>", "<?stop?>", "&#10;", "&amp;", "&lt;", "&#x20;", "\n")


def escaped(text, *, attribute=False):
    """Write text so that any XML parser reads the same characters back."""
    for sign, reference in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ("\r", "&#13;")):
        text = text.replace(sign, reference)
    if attribute:
        for sign, reference in (('"', "&quot;"), ("\n", "&#10;"), ("\t", "&#9;")):
            text = text.replace(sign, reference)
    return text


@dataclass
class _Element:
    up: int
    name: str
    declarations: str
    attributes: list
    before: str
    text: str


def _attributes(values):
    # p: and q: are the same namespace: never both on one element.
    pairs = st.tuples(st.sampled_from(ATTRIBUTES), st.sampled_from(values))
    return st.lists(pairs, max_size=2, unique_by=lambda pair: pair[0].replace("q:", "p:"))


def _texts(values):
    piece = st.one_of(
        st.just(""),
        st.sampled_from(values).map(escaped),
        st.sampled_from(values).map(lambda v: f"<![CDATA[{v}]]>"),
        st.sampled_from(_EXTRAS),
    )
    return st.one_of(piece, st.tuples(piece, piece).map("".join))


def document_texts(values=VALUES, max_elements=9):
    """Draw the text of a document without an XML declaration."""
    element = st.builds(
        _Element,
        up=st.sampled_from((0, 0, 0, 1, 1, 2, 3)),
        name=st.sampled_from(ELEMENTS),
        declarations=st.sampled_from(_DECLARATIONS),
        attributes=_attributes(values),
        before=_texts(values),
        text=_texts(values),
    )
    sizes = st.sampled_from(range(1, max_elements + 1))
    return sizes.flatmap(lambda n: st.lists(element, min_size=n, max_size=n)).map(_written)


def documents(values=VALUES, max_elements=9):
    """Draw the UTF-8 bytes of a document."""
    return document_texts(values, max_elements).map(str.encode)


def _written(elements):
    out = []
    names = []
    for element in elements:
        out += [f"</{names.pop()}>" for _ in range(min(element.up, len(names) - 1))]
        if names:
            out.append(element.before)
        attributes = "".join(f' {name}="{escaped(v, attribute=True)}"' for name, v in element.attributes)
        declarations = element.declarations if names else _ROOT_DECLARATIONS
        out.append(f"<{element.name}{declarations}{attributes}>{element.text}")
        names.append(element.name)
    out += [f"</{name}>" for name in reversed(names)]
    return "".join(out)


# --- patterns ----------------------------------------------------------------------------------------------

_ELEMENT_LABELS = ("a", "b", "c", "*", "p:a", "q:a", "Q{urn:y}b", "Q{urn:x}a", "a", "b")
_ATTRIBUTE_LABELS = ("@x", "@y", "@p:x", "@Q{urn:x}x", "@xml:lang")
_NUMERIC_CONSTANTS = ("40", "0", ".5", "5", "-1", "10", "-0", "39.5", "1e300", "5.")
_XML = "http://www.w3.org/XML/1998/namespace"


@dataclass
class Step:
    """A node of a pattern being drawn; ``parent`` counts among the steps drawn before."""

    parent: int
    axis: Axis
    label: str
    conditions: list
    returns: list
    inline: bool
    """The last child goes on behind this step; otherwise it stands in brackets."""
    late: bool
    """The braces stand behind the brackets."""
    spaced: bool
    children: list = field(default_factory=list)


@dataclass(frozen=True)
class Drawn:
    """A pattern's text, and what it says by construction: nodes and columns in the order of the text."""

    text: str
    raw: Pattern

    @property
    def pattern(self):
        return Pattern.parse(self.text, NAMESPACES)


def _conditions_of(values):
    """List (operator, constant) pairs: a string by = and !=, a number by all."""
    strings = [_quoted(value) for value in values if not ("'" in value and '"' in value)]
    return [(operator, string) for operator in ("=", "!=") for string in strings] + [
        (operator, number) for operator in ("=", "!=", "<", "<=", ">", ">=") for number in _NUMERIC_CONSTANTS
    ]


def _conditions(values):
    return st.lists(st.sampled_from(_conditions_of(values)), max_size=2)


def _quoted(value):
    return f'"{value}"' if "'" in value else f"'{value}'"


_RETURNS = st.one_of(
    st.just([]), st.just([]), st.lists(st.sampled_from(("val", "id", "cont")), min_size=1, max_size=3, unique=True)
)


def drawn_patterns(values=VALUES, max_nodes=5):
    """Draw patterns together with their meaning."""
    step = st.builds(
        Step,
        parent=st.integers(0, max_nodes),
        axis=st.sampled_from(Axis),
        label=st.sampled_from(_ELEMENT_LABELS * 2 + _ATTRIBUTE_LABELS),
        conditions=st.one_of(st.just([]), st.just([]), _conditions(values)),
        returns=_RETURNS,
        inline=st.booleans(),
        late=st.booleans(),
        spaced=st.booleans(),
    )
    return st.lists(step, min_size=1, max_size=max_nodes).map(_drawn)


def patterns(values=VALUES, max_nodes=5):
    """Draw patterns as ``Pattern.parse`` makes them."""
    return drawn_patterns(values, max_nodes).map(lambda drawn: drawn.pattern)


def _first_return_only(drawn):
    kept = drawn.raw.selection[0].node
    nodes = [n._replace(returns=n.returns if i == kept else ()) for i, n in enumerate(drawn.raw.nodes)]
    selection = tuple(column for column in drawn.raw.selection if column.node == kept)
    raw = Pattern(tuple(nodes), selection)
    return Drawn(str(raw), raw)


def _drawn(steps):
    """Give every step a parent that can have children, then write the text."""
    for i, step in enumerate(steps):
        above = step.parent % i if i else -1
        if above >= 0 and steps[above].label.startswith("@"):
            above = steps[above].parent
        step.parent = above
        if step.label.startswith("@"):
            step.returns = [what for what in step.returns if what != "cont"]
            if above < 0:
                step.axis = Axis.DESCENDANT
        if above >= 0:
            steps[above].children.append(step)
        elif i:
            steps[0].children.append(step)
            step.parent = 0
    writer = _Writer(any(step.returns for step in steps))
    text = writer.path(steps[0], -1, outside=True)
    return Drawn(text, writer.finished())


class _Writer:
    """Writes a pattern's text and, on the way, its nodes in the order of the text."""

    def __init__(self, returns_anything):
        self.returns_anything = returns_anything
        self.nodes = []
        self.selection = []
        self.last_outside = 0

    def path(self, step, parent, *, outside):
        return ("//" if step.axis else "/") + self.step(step, parent, outside=outside)

    def step(self, step, parent, *, outside):
        index = len(self.nodes)
        if outside:
            self.last_outside = index
        predicates = tuple(_predicate(*condition) for condition in step.conditions)
        returns = tuple(Return(what) for what in step.returns)
        self.nodes.append(PatternNode(_label(step.label), step.axis, parent, predicates, returns))
        parts = [step.label]
        if not step.late:
            parts.append(self.braces(step, index))
        gap = " " if step.spaced else ""
        parts += [f"[{gap}.{gap}{operator}{gap}{constant}{gap}]" for operator, constant in step.conditions]
        inline = bool(step.children) and (step.inline or not self.returns_anything)
        bracketed = step.children[:-1] if inline else step.children
        for child in bracketed:
            parts.append(f"[{gap}{self.branch(child, index)}{gap}]")
        if step.late:
            parts.append(self.braces(step, index))
        if inline:
            parts.append(self.path(step.children[-1], index, outside=outside))
        return "".join(parts)

    def branch(self, child, index):
        if child.axis is Axis.DESCENDANT:
            return f".//{self.step(child, index, outside=False)}"
        return self.step(child, index, outside=False)

    def braces(self, step, index):
        if not step.returns:
            return ""
        self.selection += [Column(index, Return(what)) for what in step.returns]
        return "{" + ",".join(step.returns) + "}"

    def finished(self):
        if not self.selection:
            last = self.nodes[self.last_outside]
            what = Return.VAL if last.is_attribute else Return.CONT
            self.nodes[self.last_outside] = last._replace(returns=(what,))
            self.selection = [Column(self.last_outside, what)]
        return Pattern(tuple(self.nodes), tuple(self.selection))


def _label(text):
    at, name = ("@", text[1:]) if text.startswith("@") else ("", text)
    if name.startswith("Q{"):
        return at + name[1:]
    prefix, colon, local = name.rpartition(":")
    if not colon:
        return at + name
    uri = _XML if prefix == "xml" else NAMESPACES[prefix]
    return f"{at}{{{uri}}}{local}"


def _predicate(operator, constant):
    value = constant[1:-1] if constant[0] in "'\"" else float(constant) + 0.0
    return Predicate(Operator(operator), value)


# --- a document with a pattern that probably matches it -----------------------------------------------------


@dataclass
class _Gene:
    """Choices from which one step is made; numbers are taken modulo what there is to choose from."""

    parent: int
    target: int
    descendant: bool
    label: int
    truths: list
    false: list
    returns: list
    inline: bool
    late: bool
    spaced: bool


def cases(values=VALUES, max_elements=8, max_nodes=5):
    """Draw (text of a document, ``Drawn``): the steps follow nodes of the document, with some faults."""
    genes = st.builds(
        _Gene,
        parent=st.integers(0, 11),
        target=st.integers(0, 59),
        descendant=st.booleans(),
        label=st.integers(0, 15),
        truths=st.lists(st.integers(0, 7), max_size=2),
        false=st.one_of(*[st.just([])] * 7, _conditions(values)),
        returns=_RETURNS,
        inline=st.booleans(),
        late=st.booleans(),
        spaced=st.booleans(),
    )
    texts = document_texts(values, max_elements)
    sizes = st.sampled_from(range(1, max_nodes + 1))
    return st.tuples(texts, sizes.flatmap(lambda n: st.lists(genes, min_size=n, max_size=n))).map(_grown)


def single_return_cases(values=VALUES, max_elements=8, max_nodes=5):
    """Draw (text of a document, pattern of which one node returns)."""
    drawn = cases(values, max_elements, max_nodes)
    return drawn.map(lambda case: (case[0], _first_return_only(case[1]).pattern))


def _grown(pair):
    text, genes = pair
    nodes = numbered(text)
    steps, targets = [], []
    for gene in genes:
        able = [i for i, target in enumerate(targets) if nodes[target].size]
        if steps and not able:
            break
        above = able[gene.parent % len(able)] if steps else -1
        target, axis = _target(gene, nodes, targets[above] if steps else -1)
        label = _spelled(gene.label, nodes[target])
        conditions = [truth for k in gene.truths if (truth := _truth(k, nodes[target].value))] + gene.false
        steps.append(Step(above, axis, label, conditions, list(gene.returns), gene.inline, gene.late, gene.spaced))
        targets.append(target)
    return text, _drawn(steps)


def _target(gene, nodes, above):
    """Choose a node below ``above`` (-1: anywhere) and the axis that leads to it."""
    if above < 0:
        inner = [pre for pre, node in enumerate(nodes) if node.size] if gene.target % 7 else []
        inner = inner or range(len(nodes))
        target = inner[gene.target % len(inner)]
        return target, Axis.CHILD if target == 0 and not gene.descendant else Axis.DESCENDANT
    below = range(above + 1, above + nodes[above].size + 1)
    if gene.descendant:
        return below[gene.target % len(below)], Axis.DESCENDANT
    children = [pre for pre in below if nodes[pre].parent == above]
    return children[gene.target % len(children)], Axis.CHILD


def _spelled(choice, node):
    """Spell a node's label in one of its ways; sometimes as ``*``, seldom wrongly."""
    if choice == 15:
        return _ELEMENT_LABELS[node.size % len(_ELEMENT_LABELS)]
    if choice > 10 and node.is_element:
        return "*"
    at, name = ("", node.label) if node.is_element else ("@", node.label[1:])
    if not name.startswith("{"):
        return at + name
    uri, local = name[1:].split("}")
    prefixes = [prefix for prefix, known in NAMESPACES.items() if known == uri]
    return f"{at}{prefixes[choice % len(prefixes)]}:{local}" if choice % 3 and prefixes else f"{at}Q{name}"


def _truth(choice, value):
    """Make a condition that the value satisfies, or None."""
    if choice < 2 and not ("'" in value and '"' in value):
        return "=", _quoted(value)
    if choice == 2:
        return "!=", "'other'"
    number = to_number(value)
    if number != number:
        return ("!=", "40") if choice == 3 else None
    if abs(number) > 1e300:
        return (">" if number > 0 else "<"), "5"
    plain = repr(number)
    return {3: (">=", plain), 4: ("<=", plain), 5: ("=", plain), 6: ("!=", "7"), 7: ("<", "1e301")}.get(choice)
