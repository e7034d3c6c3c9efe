"""The pattern language's parser: text to nodes, or a refusal that helps.

Grammar (white space may stand between tokens)::

    pattern   = 1*( axis node )                       axis = "/" / "//"
    node      = label *( returns / predicate )        returns once per node
    label     = name / "p:" name / "Q{uri}" name / "@" the same / "*"
    returns   = "{" what *( "," what ) "}"            what = "val" / "cont" / "id"
    predicate = "[" condition *( "and" condition ) "]"
    condition = "." comparison                        this node's own value
              / [ "./" / ".//" ] node *( axis node ) [ comparison ]
    comparison = ( "=" / "!=" ) ( string / number ) / ( "<" / "<=" / ">" / ">=" ) number
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Final, NoReturn

from xmlmatch.errors import PatternError
from xmlmatch.namespaces import NAME_START, NCNAME, XML_URI, label_text
from xmlmatch.numerals import NUMERAL
from xmlmatch.pattern import ANY, Axis, Column, PatternNode, Return
from xmlmatch.predicates import Operator, Predicate

if TYPE_CHECKING:
    from collections.abc import Mapping

MAX_TEXT: Final = 100_000
MAX_NODES: Final = 4096
# From the root to a leaf. Brackets never nest deeper, in no spelling of the pattern, so this bounds recursion too.
MAX_DEPTH: Final = 100
# Whether a refused text is XPath at all is only looked up for texts of a size people write.
_MAX_CLASSIFIED: Final = 1_000

_NAME: Final = NCNAME
_BRACED: Final = re.compile(rf"Q\{{([^{{}}]*)\}}(?={NAME_START})")
# A label as most are, unless what follows makes it a prefix, an axis, a function or a braced URI.
_PLAIN: Final = re.compile(rf"@?{_NAME.pattern}")
_NOT_PLAIN: Final = re.compile(r"[:(]|(?<=Q)\{")
_SPACE: Final = re.compile(r"[ \t\r\n]*")
_OPERATOR: Final = re.compile(r"!=|<=|>=|=|<|>")
_STRING: Final = re.compile(r"'[^']*'|\"[^\"]*\"")
# What stands at a place, for an error: a name with its parenthesis or axis, a number, or one sign.
_FOUND: Final = re.compile(rf"{_STRING.pattern}|{_NAME.pattern}(::|\()?|::|\.\.|//|!=|<=|>=|[0-9.]+|\S")

STEP: Final = "a name, @name, p:name or *"
CONDITION: Final = "[b/c], [.//c], [@x], [b='v'], [.='v'], [price>=40], joined by and"


def parse(text: str, namespaces: Mapping[str, str]) -> tuple[list[PatternNode], list[Column]]:
    """Return the pattern's nodes, parents before children, and its columns in the order of the text."""
    return _Parser(text, namespaces).pattern()


def check_length(canonical: str, text: str) -> None:
    """Refuse a pattern whose canonical text (URIs written out) could not be read back."""
    if len(canonical) > MAX_TEXT:
        raise PatternError(
            "the canonical form of the pattern is too long",
            text=text,
            column=1,
            found=f"{len(canonical):,} characters",
            supported=f"up to {MAX_TEXT:,} characters",
        )


_RETURNS: Final = {what.value: what for what in Return}


class _Parser:
    def __init__(self, text: str, namespaces: Mapping[str, str]) -> None:
        self.text = text
        self.namespaces = {"xml": XML_URI, **namespaces}
        self.at = 0
        self.depth: list[int] = []
        self.nodes: list[PatternNode] = []
        self.selection: list[Column] = []

    # --- grammar -------------------------------------------------------------------------------------

    def pattern(self) -> tuple[list[PatternNode], list[Column]]:
        if len(self.text) > MAX_TEXT:
            self.at = MAX_TEXT
            self.refuse("the pattern is too long", f"up to {MAX_TEXT:,} characters", ours=True)
        if not self.text.isascii() and (lone := re.search("[\ud800-\udfff]", self.text)):
            self.at = lone.start()
            self.refuse("a lone surrogate is no character", "text that UTF-8 can write", ours=True)
        self.space()
        if not self.text.startswith("/", self.at):
            self.refuse("a pattern starts at the document", "a path that begins with / or //")
        last = self.path(-1)
        self.space()
        if self.at < len(self.text):
            self.refuse("the path ends here", "/, //, [predicate] or {val,cont,id}")
        if not self.selection:
            what = Return.VAL if self.nodes[last].label.startswith("@") else Return.CONT
            self.give(last, what)
        return self.nodes, self.selection

    def path(self, parent: int) -> int:
        """Read ``1*( axis node )`` and return the index of the last node."""
        while True:
            axis = self.axis()
            if axis is None:
                return parent
            parent = self.node(axis, parent)

    def axis(self) -> Axis | None:
        self.space()
        if self.take("//"):
            return Axis.DESCENDANT
        return Axis.CHILD if self.take("/") else None

    def node(self, axis: Axis, parent: int) -> int:
        self.space()
        start = self.at
        label = self.label()
        index = len(self.nodes)
        depth = self.depth[parent] + 1 if parent >= 0 else 1
        if depth > MAX_DEPTH or index == MAX_NODES:
            self.at = start
            self.refuse(
                "the pattern is too large", f"{MAX_NODES:,} nodes, {MAX_DEPTH} from the root to a leaf", ours=True
            )
        self.nodes.append(PatternNode(label, axis, parent))
        self.depth.append(depth)
        while True:
            self.space()
            sign = self.text[self.at : self.at + 1]
            if sign == "{":
                self.returns(index)
            elif sign == "[":
                self.predicate(index)
            else:
                return index

    def label(self) -> str:
        start = self.at
        plain = _PLAIN.match(self.text, start)
        if plain is not None and _NOT_PLAIN.match(self.text, plain.end()) is None:
            self.at = plain.end()
            return plain[0]
        attribute = self.take("@")
        if attribute:
            self.space()
        if self.take("*"):
            if attribute:
                self.at = start
                self.refuse("@* is not supported", "@name")
            return ANY
        uri = self.braced_uri()
        name = self.name(STEP)
        if uri is None and self.text.startswith(":", self.at) and not self.text.startswith("::", self.at):
            uri = self.prefix_uri(name, start)
            name = self.name("a name after the prefix")
        if self.text.startswith(("::", "("), self.at):
            kind = "axes" if self.text.startswith("::", self.at) else "functions and node tests"
            self.at = start
            self.refuse(f"{kind} are not supported", STEP)
        return label_text(uri or "", name, attribute=attribute)

    def braced_uri(self) -> str | None:
        found = _BRACED.match(self.text, self.at)
        if found is None:
            return None
        self.at = found.end()
        return found[1]

    def prefix_uri(self, prefix: str, start: int) -> str:
        self.at += 1
        if self.text.startswith("*", self.at):
            self.refuse(f"{prefix}:* is not supported", "p:name, or * for any element")
        if prefix not in self.namespaces:
            self.at = start
            self.refuse(
                f"the prefix {prefix!r} is not declared",
                f"--ns {prefix}=URI, or namespaces= in Python",
                ours=True,
            )
        uri = self.namespaces[prefix]
        if "{" in uri or "}" in uri:
            self.at = start
            self.refuse(f"the namespace of {prefix!r} has a brace", "URIs without { and }", ours=True)
        return uri

    def name(self, supported: str) -> str:
        found = _NAME.match(self.text, self.at)
        if found is None:
            self.refuse("a step is missing or is not a name", supported)
        self.at = found.end()
        return found[0]

    def returns(self, index: int) -> None:
        node = self.nodes[index]
        if node.returns:
            self.refuse("what this node returns is already given", "one pair of braces per node", ours=True)
        self.at += 1
        while True:
            self.space()
            start = self.at
            found = _NAME.match(self.text, self.at)
            what = _RETURNS.get(found[0]) if found else None
            if found is None or what is None or what in node.returns:
                self.refuse("braces hold what is returned, each once", "val, cont, id", ours=True)
            if what is Return.CONT and node.label.startswith("@"):
                self.refuse("an attribute has no content", f"{node.label}{{val}} or {{id}}", ours=True)
            self.at = start + len(found[0])
            node = self.give(index, what)
            self.space()
            if self.take("}"):
                return
            if not self.take(","):
                self.refuse("the braces are not closed", ", or }", ours=True)

    def give(self, index: int, what: Return) -> PatternNode:
        """Let a node return something, as the next column."""
        node = self.nodes[index]
        node = self.nodes[index] = node._replace(returns=(*node.returns, what))
        self.selection.append(Column(index, what))
        return node

    def predicate(self, index: int) -> None:
        self.at += 1
        while True:
            self.condition(index)
            self.space()
            if self.take("]"):
                return
            if not self.word("and"):
                closed = self.at < len(self.text)
                reason = "the predicate goes on with something else" if closed else "the predicate is not closed"
                self.refuse(reason, f"] or and; {CONDITION}")

    def condition(self, index: int) -> None:
        self.space()
        start = self.at
        if self.text.startswith("/", self.at):
            path = "//" if self.text.startswith("//", self.at) else "/"
            hint = "[.//c] for a descendant" if path == "//" else "[c] for a child"
            self.refuse(f"{path} at the start of a predicate is an absolute path in XPath", f"write {hint}")
        if self.text.startswith("..", self.at):
            self.refuse("the parent step is not supported", CONDITION)
        if self.take("."):
            axis = self.axis()
            if axis is None:
                if not self.comparison(index):
                    self.refuse("a dot must be compared, or lead to a path", "[.='v'], [.>=40] or [.//c]")
                return
            last = self.path(self.node(axis, index))
        else:
            self.refuse_values(start)
            last = self.path(self.node(Axis.CHILD, index))
        self.comparison(last)

    def refuse_values(self, start: int) -> None:
        """Refuse a condition that begins with a constant: a position, or a comparison the other way round."""
        found = NUMERAL.match(self.text, start) or _STRING.match(self.text, start)
        if found is None:
            return
        end = self.text.find("]", start)
        reversed_ = _OPERATOR.search(self.text, found.end(), end if end >= 0 else len(self.text))
        reason = (
            "the constant stands on the left" if reversed_ else "positions and bare constants are not supported"
        )
        self.refuse(reason, f"path, operator, constant: {CONDITION}")

    def comparison(self, index: int) -> bool:
        """Read an optional comparison onto a node; say whether there was one."""
        self.space()
        found = _OPERATOR.match(self.text, self.at)
        if found is None:
            return False
        self.at = found.end()
        self.space()
        operator = Operator(found[0])
        if string := _STRING.match(self.text, self.at):
            if operator not in (Operator.EQ, Operator.NE):
                self.refuse(
                    f"a quoted constant has no order for {found[0]}", "= and != with a string, or a number"
                )
            constant: str | float = string[0][1:-1]
            self.at = string.end()
        elif numeral := NUMERAL.match(self.text, self.at):
            constant = float(numeral[0]) + 0.0  # -0 is 0
            if not math.isfinite(constant):
                self.refuse("the number is too large", "numbers up to 1.7e308")
            self.at = numeral.end()
        else:
            self.refuse(
                "a comparison needs a constant on its right",
                "'text', \"text\" or a number such as 40 or -2.5",
            )
        node = self.nodes[index]
        self.nodes[index] = node._replace(predicates=(*node.predicates, Predicate(operator, constant)))
        return True

    # --- tokens --------------------------------------------------------------------------------------

    def space(self) -> None:
        if self.text[self.at : self.at + 1] > " ":
            return  # most often there is none, and looking is quicker than matching
        found = _SPACE.match(self.text, self.at)
        self.at = found.end() if found else self.at

    def take(self, token: str) -> bool:
        if self.text.startswith(token, self.at):
            self.at += len(token)
            return True
        return False

    def word(self, word: str) -> bool:
        found = _NAME.match(self.text, self.at)
        if found is None or found[0] != word:
            return False
        self.at = found.end()
        return True

    def refuse(self, reason: str, supported: str, *, ours: bool = False) -> NoReturn:
        """Raise the error; ``ours``: the fault lies in what we add to XPath, so XPath has no say."""
        token = _FOUND.match(self.text, self.at)
        found = repr(token[0][:30] if token else self.text[self.at : self.at + 1])
        if self.at >= len(self.text):
            found = "the end of the pattern"
        raise PatternError(
            reason if ours else f"{reason} ({_standing(self.text, self.namespaces)})",
            text=self.text,
            column=self.at + 1,
            found=found,
            supported=supported,
        )


def _standing(text: str, namespaces: Mapping[str, str]) -> str:
    """Tell "valid XPath, not supported here" from "not XPath", with our braces left out."""
    if len(text) > _MAX_CLASSIFIED or text.count("[") + text.count("(") > MAX_DEPTH:
        return "too long to say whether it is XPath"
    if re.search(r"[^\S \t\r\n]", _STRING.sub("", text)):
        return "not XPath"  # elementpath takes other spaces for white space
    from elementpath import ElementPathError, XPath2Parser
    from elementpath.tdop import Parser

    plain = re.sub(r"\{[^{}]*\}", lambda found: " " * len(found[0]), _BRACED.sub("", text))
    prefixes = dict.fromkeys(re.findall(rf"({_NAME.pattern}):(?!:)", plain), "urn:any")
    try:
        # The base class only parses; XPath2Parser.parse would also evaluate constants, for ever if need be.
        Parser.parse(XPath2Parser(namespaces={**prefixes, **namespaces}, compatibility_mode=True), plain)
    except (ElementPathError, ValueError, TypeError, OverflowError, RecursionError):
        return "not XPath"
    return "valid XPath, not supported here"
