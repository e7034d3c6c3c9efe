"""Writes XMark-like auction documents, the same bytes for the same seed on every platform.

Theory of operation. A document is fixed markup around *pieces*: items, categories, edges, people and
auctions, whose numbers follow from the size asked for. Each piece is drawn on its own from
`auction_schema.SCHEMA`, so a long document streams piece by piece. The length of prose varies so widely that
a document of a few dozen pieces would miss its size by a quarter; documents up to `STEERED_BYTES` are
therefore *steered*: pieces picked at random are drawn again, and the new one is kept if it brings the total
nearer, until the total is near enough. In longer documents the deviations cancel out.

Values inside a piece agree where XMark's do: a person's name stands in the e-mail address and the home page,
the current price is the initial price plus all increases, and every item is sold in exactly one auction.
"""

from __future__ import annotations

import io
import random
from dataclasses import dataclass
from math import gcd
from typing import TYPE_CHECKING, BinaryIO, Final

from scenarios.auction_schema import (
    INLINE_GAP_WORDS,
    INLINE_WORDS,
    MAX_INLINE_DEPTH,
    MAX_LIST_DEPTH,
    RESERVE_RATIO,
    ROOT,
    SCHEMA,
    TEXT_WORDS,
    Child,
)
from scenarios.auction_values import BySize, Identifier, InProse, Reference, decimal_of, draw_words

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from scenarios.auction_schema import Attribute, Element
    from scenarios.auction_values import Value

STEERED_BYTES: Final = 1_000_000
TOLERANCE: Final = 0.04
CHUNK_CHARS: Final = 1 << 16

_DECLARATION: Final = '<?xml version="1.0" standalone="yes"?>\n'
_FIXED_BYTES: Final = 350
# What one piece takes on average; the calibration benchmark prints it beside the real figure.
_PIECE_BYTES: Final = {
    "item": 2_900,
    "category": 1_650,
    "edge": 40,
    "person": 430,
    "open_auction": 2_500,
    "closed_auction": 1_650,
}
# Below this size a document has fewer items than there are regions (real ones are never so small).
_ALL_REGIONS_BYTES: Final = 15_000
# Regions from the one that keeps its item longest to the one that loses it first.
_REGIONS_BY_SIZE: Final = ("namerica", "europe", "australia", "asia", "samerica", "africa")
_LEAST_ITEMS: Final = 2
_MOST_REDRAWS_PER_PIECE: Final = 40


@dataclass(frozen=True, slots=True)
class Piece:
    """One element that is drawn on its own, and its number among those of its label."""

    label: str
    number: int


@dataclass(frozen=True, slots=True)
class Population:
    """How many pieces each parent holds, by the parent's label."""

    children: dict[str, int]

    def total(self, label: str) -> int:
        """Count the pieces of one label over all parents."""
        return sum(count for parent, count in self.children.items() if _piece_label(parent) == label)

    def expected_bytes(self) -> int:
        """The size of such a document if every piece is of average size."""
        pieces = (count * _PIECE_BYTES[_piece_label(parent)] for parent, count in self.children.items())
        return _FIXED_BYTES + sum(pieces)


def auction_document(seed: int, *, size_bytes: int = 30_000) -> bytes:
    """Write one document whose size is within a few per cent of `size_bytes`.

    Under about 3 KB the smallest possible document is longer than asked for.
    """
    stream = io.BytesIO()
    write_auction_document(seed, stream, size_bytes=size_bytes)
    return stream.getvalue()


def write_auction_document(seed: int, stream: BinaryIO, *, size_bytes: int) -> None:
    """Write the bytes of `auction_document` to a stream, with about `STEERED_BYTES` of them in memory."""
    if size_bytes <= 0:
        raise ValueError(f"size_bytes must be positive, got {size_bytes}")
    rng = random.Random(seed)
    population = _population_for(_nominal_bytes(size_bytes, rng))
    writer = _PieceWriter(rng, population)
    texts: Iterable[str]
    if size_bytes <= STEERED_BYTES:
        texts = _steered(writer, list(_layout(ROOT, population)), size_bytes)
    else:
        texts = (part if isinstance(part, str) else writer.text_of(part) for part in _layout(ROOT, population))
    for chunk in _chunks(texts):
        stream.write(chunk)


def auction_documents(
    seed: int, count: int, *, min_bytes: int = 10_000, max_bytes: int = 40_000
) -> Iterator[bytes]:
    """Write `count` documents whose sizes are spread evenly over [min_bytes, max_bytes)."""
    rng = random.Random(seed)
    for _ in range(count):
        size_bytes = min_bytes + int(rng.random() * (max_bytes - min_bytes))
        yield auction_document(int(rng.random() * (1 << 53)), size_bytes=size_bytes)


def _piece_label(parent: str) -> str:
    return SCHEMA[parent].children[0].label


def _nominal_bytes(size_bytes: int, rng: random.Random) -> float:
    """Draw the size that the numbers of pieces are planned for.

    Real documents of one size differ in how much of it is structure and how much is long prose; the less a
    document holds, the more so.
    """
    spread = min(1.0, 30_000 / size_bytes)
    return size_bytes * (1 + spread * (0.5 * rng.random() - 0.36))


def _population_for(nominal_bytes: float) -> Population:
    """Find the XMark scale whose expected size is nearest below, by bisection, and count its pieces."""
    if nominal_bytes < _ALL_REGIONS_BYTES:
        return _small_population(nominal_bytes)
    low, high = 0.0, nominal_bytes / 50_000_000
    for _ in range(40):
        middle = (low + high) / 2
        if _population_at(middle).expected_bytes() <= nominal_bytes:
            low = middle
        else:
            high = middle
    return _population_at(low)


def _population_at(scale: float) -> Population:
    children = {
        parent: max(1, int(child.count.per_scale * scale + 0.5))
        for parent, element in SCHEMA.items()
        for child in element.children
        if isinstance(child.count, BySize)
    }
    items = sum(children[region] for region in _REGIONS_BY_SIZE)
    children["closed_auctions"] = max(1, items - children["open_auctions"])
    return Population(children)


def _small_population(nominal_bytes: float) -> Population:
    children = dict(_population_at(0.0).children)
    items = max(_LEAST_ITEMS, int(len(_REGIONS_BY_SIZE) * nominal_bytes / _ALL_REGIONS_BYTES + 0.5))
    for region in _REGIONS_BY_SIZE[items:]:
        children[region] = 0
    children["closed_auctions"] = min(items, len(_REGIONS_BY_SIZE)) - children["open_auctions"]
    return Population(children)


def _layout(label: str, population: Population) -> Iterator[str | Piece]:
    """Walk the upper part of the schema: markup as strings, and the pieces to draw in between."""
    yield f"{_DECLARATION if label == ROOT else ''}<{label}>\n"
    # Items are numbered through all regions, so a region starts where the ones before it end.
    regions = [child.label for child in SCHEMA["regions"].children]
    before = regions[: regions.index(label)] if label in regions else []
    first = sum(population.children[region] for region in before)
    for child in SCHEMA[label].children:
        if isinstance(child.count, BySize):
            for number in range(first, first + population.children[label]):
                yield Piece(child.label, number)
        else:
            yield from _layout(child.label, population)
    yield f"</{label}>\n"


def _steered(writer: _PieceWriter, parts: list[str | Piece], size_bytes: int) -> list[str]:
    """Draw every piece, then draw some again until the size is right or the attempts are used up."""
    texts = [part if isinstance(part, str) else writer.text_of(part) for part in parts]
    pieces = [(place, part) for place, part in enumerate(parts) if isinstance(part, Piece)]
    excess = sum(map(len, texts)) - size_bytes
    for _ in range(_MOST_REDRAWS_PER_PIECE * len(pieces)):
        if abs(excess) <= TOLERANCE * size_bytes:
            break
        place, piece = pieces[int(writer.rng.random() * len(pieces))]
        text = writer.text_of(piece)
        new_excess = excess + len(text) - len(texts[place])
        if abs(new_excess) < abs(excess):
            texts[place], excess = text, new_excess
    return texts


def _chunks(texts: Iterable[str]) -> Iterator[bytes]:
    """Join short texts into chunks of about `CHUNK_CHARS`."""
    waiting: list[str] = []
    length = 0
    for text in texts:
        waiting.append(text)
        length += len(text)
        if length >= CHUNK_CHARS:
            yield "".join(waiting).encode()
            waiting, length = [], 0
    yield "".join(waiting).encode()


class _PieceWriter:
    """Draws pieces one by one; what it remembers of a piece serves only the values that must agree in it."""

    def __init__(self, rng: random.Random, population: Population) -> None:
        self.rng = rng
        self._totals = {label: population.total(label) for label in _PIECE_BYTES}
        self._stride = _coprime_stride(self._totals["item"], rng)
        self._piece = Piece("", 0)
        self._out: list[str] = []
        self._last_name = ""
        self._domain = ""
        self._price_cents = 0

    def text_of(self, piece: Piece) -> str:
        """Draw one piece, with its number in its id."""
        self._piece = piece
        self._out = []
        self._write(Child(piece.label), list_depth=0)
        return "".join(self._out)

    def _write(self, child: Child, list_depth: int) -> None:
        label, element = child.label, SCHEMA[child.label]
        tag = label + self._attributes(label, element) if element.attributes else label
        if element.mixed:
            self._out.append(f"<{tag}>\n")
            self._write_prose(label, int(TEXT_WORDS.draw(self.rng)), depth=0)
            self._out.append(f"\n</{label}>\n")
        elif element.value is not None:
            self._out.append(f"<{tag}>{self._value(label, child.value or element.value)}</{label}>\n")
        elif not element.children:
            self._out.append(f"<{tag}/>\n")
        else:
            self._out.append(f"<{tag}>\n")
            self._write_children(element, list_depth + (label == "parlist"))
            self._out.append(f"</{label}>\n")

    def _write_children(self, element: Element, list_depth: int) -> None:
        if element.alternatives is not None:
            # The first alternative is the plain one; it is all that is left at the deepest level.
            drawn = element.alternatives.draw(self.rng)
            self._write(element.children[drawn if list_depth < MAX_LIST_DEPTH else 0], list_depth)
            return
        for child in element.children:
            if isinstance(child.count, (BySize, InProse)):
                raise AssertionError(f"{child.label} is not a part of a piece")
            for _ in range(int(child.count.draw(self.rng))):
                self._write(child, list_depth)

    def _write_prose(self, label: str, words: int, depth: int) -> None:
        """Write words, with inline elements among them that take their words from the same number."""
        while words > 0:
            plain = int(INLINE_GAP_WORDS.draw(self.rng)) if depth < MAX_INLINE_DEPTH else words
            self._out.append(draw_words(self.rng, min(plain, words)))
            words -= plain
            if words > 0:
                span = min(words, int(INLINE_WORDS.draw(self.rng)))
                kinds = SCHEMA[label].children
                kind = kinds[int(self.rng.random() * len(kinds))].label
                self._out.append(f"<{kind}> ")
                self._write_prose(kind, span, depth + 1)
                self._out.append(f"</{kind}> ")
                words -= span

    def _attributes(self, label: str, element: Element) -> str:
        return "".join(
            f' {attribute.name}="{self._attribute_value(label, attribute)}"'
            for attribute in element.attributes
            if attribute.share == 1.0 or self.rng.random() < attribute.share
        )

    def _attribute_value(self, label: str, attribute: Attribute) -> str:
        match attribute.value:
            case Reference() if label == "itemref":
                return f"item{self._item_for_sale()}"
            case Reference(label=target) as reference:
                return reference.draw_among(self._totals[target], self.rng)
            case Identifier(label=own):
                return f"{own}{self._piece.number}"
            case value:
                return value.draw(self.rng)

    def _item_for_sale(self) -> int:
        """Give each auction an item of its own: steps of a coprime stride reach every item once."""
        closed = self._piece.label == "closed_auction"
        auction = self._piece.number + (self._totals["open_auction"] if closed else 0)
        return auction * self._stride % self._totals["item"]

    def _value(self, label: str, value: Value) -> str:
        """Draw a leaf's value, or derive it from what was drawn before it in the same piece."""
        match label:
            case "reserve":
                return decimal_of(int(self._price_cents * RESERVE_RATIO.draw(self.rng)))
            case "current":
                return decimal_of(self._price_cents)
            case "homepage":
                return f"http://www.{self._domain}/~{self._last_name}"
        text = value.draw(self.rng)
        match label:
            case "name":
                self._last_name = text.split()[-1]
            case "emailaddress":
                self._domain = text.partition("@")[2]
                return f"mailto:{self._last_name}@{self._domain}"
            case "initial":
                self._price_cents = int(text.replace(".", ""))
            case "increase":
                self._price_cents += int(text.replace(".", ""))
        return text


def _coprime_stride(items: int, rng: random.Random) -> int:
    """Draw a step of [1, items] that has no divisor in common with `items`."""
    while True:
        stride = 1 + int(rng.random() * items)
        if gcd(stride, items) == 1:
            return stride
