"""The schema of XMark-like auction documents, as one table that documents and patterns are both drawn from.

`SCHEMA` says for each element which children it has and how many, which attributes, and how its value is
distributed.  `scenarios.auction_documents` writes documents from it; a pattern generator walks it with
`child_labels`, `attribute_labels`, `carries_value` and `is_numeric`, and takes its constants from
`sample_value`, so that a value predicate sometimes holds.

The table follows XMark's ``auction.dtd`` in structure, names and order.  Where documents made by XMark's own
generator differ from that DTD, the table follows the documents:

* the elements ``income``, ``status`` and ``amount`` are declared but never used, so they are absent here;
* ``annotation``, the ``description`` in it and ``@income`` are optional in the DTD but always present;
* ``listitem`` may be empty or long in the DTD; it always holds exactly one ``text`` or one ``parlist``;
* ``bold``, ``keyword`` and ``emph`` nest in each other without end in the DTD; in documents none is a child
  of its own kind, and at most `MAX_INLINE_DEPTH` nest; lists nest at most `MAX_LIST_DEPTH` deep;
* ``payment`` and ``shipping`` may be empty, and names of items and categories end in a blank.

On purpose unlike XMark: references are drawn over all ids of their kind (XMark's small documents never use
the last one), and e-mail addresses and home pages stand in the reserved domain ``example``.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from scenarios.auction_values import (
    BySize,
    Choice,
    Correspondent,
    Count,
    Digits,
    Identifier,
    InProse,
    Joined,
    Number,
    Quantiles,
    Reference,
    Subset,
    Value,
    Weights,
    Words,
    split,
)

if TYPE_CHECKING:
    import random
    from collections.abc import Mapping

ROOT: Final = "site"
MAX_LIST_DEPTH: Final = 2
MAX_INLINE_DEPTH: Final = 2


_ONE: Final = Weights((0, 1))


@dataclass(frozen=True, slots=True)
class Child:
    """A kind of child: its label, how many, and its value where that depends on the parent."""

    label: str
    count: Count = _ONE
    value: Value | None = None


@dataclass(frozen=True, slots=True)
class Attribute:
    """An attribute, its value, and the share of elements that carry it."""

    name: str
    value: Value
    share: float = 1.0


@dataclass(frozen=True, slots=True)
class Element:
    """What an element holds: children in document order, attributes, and a value if it is a leaf.

    With `alternatives` it holds exactly one of its children, drawn by these weights; with `mixed`, words and
    children, and `value` is then the distribution of its text where no child stands in it.
    """

    children: tuple[Child, ...] = ()
    attributes: tuple[Attribute, ...] = ()
    value: Value | None = None
    alternatives: Weights | None = None
    mixed: bool = False


# fmt: off
TEXT_WORDS: Final = Quantiles((1, 6, 12, 23, 37, 51, 68, 91, 120, 160, 224, 287, 364, 418, 743))
INLINE_WORDS: Final = Quantiles((1, 1, 1.5, 2.5, 3.5, 4.5, 5.5, 6.5, 8.5, 11.5, 16.5, 21.5, 28, 33, 67))
# Plain words between two inline elements; measured as plain words per inline element, which is 45.
INLINE_GAP_WORDS: Final = Quantiles((0, 1, 4, 10, 16, 23, 31, 41, 54, 72, 104, 135, 176, 207, 300))
# A reserve price is this many times the initial price.
RESERVE_RATIO: Final = Quantiles((
    1.2, 1.38, 1.49, 1.72, 2.09, 2.6, 3.02, 3.29, 4.07, 5.24, 7.82, 8.88, 9.4, 11, 18))

_PRICE: Final = Number(Quantiles((0.1, 3, 8.5, 21, 35, 48, 68, 90, 120, 157, 216, 268, 365, 477, 1234)))
_CURRENT: Final = Number(Quantiles((3.5, 17, 41, 68, 104, 137, 161, 195, 217, 263, 368, 454, 489, 606, 645)))
_RESERVE: Final = Number(Quantiles((
    0.4, 17, 47, 89, 116, 140, 183, 255, 313, 461, 831, 1634, 2705, 3174, 3231)))
_INCREASE: Final = Number(
    Quantiles((1.5, 1.5, 1.5, 3, 5, 7.5, 10.5, 14.5, 18.5, 25.5, 36, 46.5, 60, 69, 134)), step_cents=150)
_INCOME: Final = Number(Quantiles((
    9876, 9876, 9876, 12_500, 22_000, 31_000, 39_000, 46_500, 55_500, 66_500, 79_500, 89_000, 95_500, 98_000,
    103_000)))
_AGE: Final = Number(Quantiles((18, 18, 18, 18, 19.5, 22, 25, 28, 31, 38, 45, 49, 59, 62, 71)), whole=True)
_ZIPCODE: Final = Number(Quantiles((3, 5, 7, 10, 13, 16, 19.5, 22, 24, 27, 33, 35, 38, 38, 39)), whole=True)

_FIRST_NAME: Final = Choice(split("""
Ada Amir Anna Bruno Carla Chen Clara Dana Diego Edda Elif Emil Farah Felix Freya Greta Hana Hugo Ines Ivan
Jana Jorge Karim Katya Lars Leila Lena Luca Maja Marco Maya Mei Milan Nadia Nils Nora Olga Omar Oscar Paula
Pedro Priya Rafael Rosa Samir Sara Selma Stefan Tara Theo Tomas Ursula Vera Victor Wanda Xavier Yara Yusuf
Zora Zoltan
"""))
_LAST_NAME: Final = Joined((
    Choice(split("Al Bar Bel Cal Cor Dal El Far Gar Hal Har Kel Lan Mar Mor Nor Pel Ros Sal Tor Wil")),
    Choice(split("berg brook burn dale den field ford grove ham holm land ley mont ness stad ton vik"))))
_HOST: Final = Choice(split("ash elm fir ivy oak yew fern moss reed sage pine rush"))
_DOMAIN: Final = Joined((_HOST, ".example"))
_FULL_NAME: Final = Joined((_FIRST_NAME, " ", _LAST_NAME))
_EMAIL: Final = Joined(("mailto:", _LAST_NAME, "@", _DOMAIN))
_CITY: Final = Choice(split("""
Accra Amman Athens Austin Bogota Boston Cairo Chicago Cork Dakar Dallas Delhi Denver Dublin Geneva Hanoi
Havana Houston Jakarta Lagos Lima Lisbon London Lyon Madrid Manila Miami Milan Montreal Nairobi Nashville
Oslo Paris Perth Phoenix Prague Quito Rabat Riga Rome Seattle Seoul Sofia Sydney Tampa Tokyo Toronto Tucson
Vienna Warsaw
"""))
_ABROAD: Final = split(
    "Albania,Argentina,Australia,Austria,Bangladesh,Belgium,Bolivia,Botswana,Brazil,Bulgaria,Canada,Chile,"
    "Colombia,Croatia,Denmark,Ecuador,Egypt,Estonia,Finland,France,Germany,Ghana,Greece,Hungary,Iceland,"
    "India,Indonesia,Ireland,Israel,Italy,Jamaica,Japan,Kenya,Latvia,Malaysia,Mexico,Morocco,Nepal,"
    "New Zealand,Nigeria,Norway,Panama,Peru,Poland,Portugal,Senegal,Spain,Sri Lanka,Sweden,Switzerland,"
    "Thailand,Tunisia,Turkey,Uruguay,Vietnam", ",")
_COUNTRY: Final = Choice(("United States", *_ABROAD), Weights((195, *[1] * len(_ABROAD))))
_PROVINCE: Final = Choice(split(
    "Alabama,Alaska,Arizona,California,Colorado,Florida,Georgia,Hawaii,Idaho,Illinois,Indiana,Iowa,Kansas,"
    "Kentucky,Louisiana,Maine,Maryland,Minnesota,Montana,Nebraska,Nevada,New Hampshire,New Mexico,"
    "North Carolina,Ohio,Oklahoma,Oregon,South Carolina,Tennessee,Texas,Utah,Vermont,Wyoming", ","))
_DATE: Final = Joined((Digits(1, 13, 2), "/", Digits(1, 29, 2), "/", Digits(1998, 2002)))
_FOUR: Final = Digits(1000, 10_000)
_CORRESPONDENT: Final = Correspondent(_FULL_NAME, _DOMAIN)
_TITLE: Final = Words(Weights((0, 27, 22, 26, 25)))
_PERSON: Final = Reference("person")
_TRADER: Final = Reference("person", central=True)
_INLINE: Final = Words(INLINE_WORDS, before=" ")
_YES_NO: Final = Choice(("Yes", "No"))
# fmt: on


def _leaf(value: Value) -> Element:
    return Element(value=value)


def _maybe(label: str, share: float) -> Child:
    return Child(label, Weights((1 - share, share)))


def _refers(name: str, value: Value) -> Element:
    return Element(attributes=(Attribute(name, value),))


def _inline(*labels: str) -> Element:
    return Element(tuple(Child(label, InProse()) for label in labels), value=_INLINE, mixed=True)


def _all(labels: str) -> tuple[Child, ...]:
    return tuple(Child(label) for label in labels.split())


# fmt: off
SCHEMA: Final[Mapping[str, Element]] = MappingProxyType({
    "site": Element(_all("regions categories catgraph people open_auctions closed_auctions")),
    "regions": Element(_all("africa asia australia europe namerica samerica")),
    "africa": Element((Child("item", BySize(550)),)),
    "asia": Element((Child("item", BySize(2_000)),)),
    "australia": Element((Child("item", BySize(2_200)),)),
    "europe": Element((Child("item", BySize(6_000)),)),
    "namerica": Element((Child("item", BySize(10_000)),)),
    "samerica": Element((Child("item", BySize(1_000)),)),
    "categories": Element((Child("category", BySize(1_000)),)),
    "catgraph": Element((Child("edge", BySize(1_000)),)),
    "people": Element((Child("person", BySize(25_500)),)),
    "open_auctions": Element((Child("open_auction", BySize(12_000)),)),
    "closed_auctions": Element((Child("closed_auction", BySize(9_750)),)),

    "item": Element(
        (*_all("location quantity name payment description shipping"),
         Child("incategory", Weights((0, 14, 23, 16, 13, 10, 7, 6, 3, 2, 6))), Child("mailbox")),
        (Attribute("id", Identifier("item")), Attribute("featured", Choice(("yes",)), share=0.07))),
    "location": _leaf(_COUNTRY),
    "quantity": _leaf(Choice(("1", "2", "3"), Weights((924, 72, 4)))),
    "name": _leaf(_TITLE),
    "payment": _leaf(Subset(("Money order", "Creditcard", "Personal Check", "Cash"))),
    "shipping": _leaf(Subset(("Will ship only within country", "Will ship internationally",
                              "Buyer pays fixed shipping charges", "See description for charges"))),
    "incategory": _refers("category", Reference("category")),
    "mailbox": Element((Child("mail", Weights((37, 37, 16, 6, 2, 1, 0.7, 0.3))),)),
    "mail": Element(_all("from to date text")),
    "from": _leaf(_CORRESPONDENT),
    "to": _leaf(_CORRESPONDENT),
    "date": _leaf(_DATE),

    "description": Element(_all("text parlist"), alternatives=Weights((72, 28))),
    "parlist": Element((Child("listitem", Weights((0, 0, 38, 38, 14, 10))),)),
    "listitem": Element(_all("text parlist"), alternatives=Weights((80, 20))),
    "text": Element(tuple(Child(label, InProse()) for label in ("bold", "keyword", "emph")),
                    value=Words(TEXT_WORDS, before="\n", after="\n"), mixed=True),
    "bold": _inline("keyword", "emph"),
    "keyword": _inline("bold", "emph"),
    "emph": _inline("bold", "keyword"),

    "category": Element(_all("name description"), (Attribute("id", Identifier("category")),)),
    "edge": Element(attributes=(
        Attribute("from", Reference("category")), Attribute("to", Reference("category")))),

    "person": Element(
        (Child("name", value=_FULL_NAME), Child("emailaddress"), _maybe("phone", 0.45),
         _maybe("address", 0.51), _maybe("homepage", 0.48), _maybe("creditcard", 0.53),
         _maybe("profile", 0.5), _maybe("watches", 0.52)),
        (Attribute("id", Identifier("person")),)),
    "emailaddress": _leaf(_EMAIL),
    "phone": _leaf(Joined(("+", Choice(("0", "33", "49", "65", "158"), Weights((74, 8, 7, 6, 5))), " (",
                           Digits(10, 1000), ") ", Digits(1_000_000, 100_000_000)))),
    "address": Element((*_all("street city country"), _maybe("province", 0.58), Child("zipcode"))),
    "street": _leaf(Joined((Digits(1, 101), " ", _LAST_NAME, " St"))),
    "city": _leaf(_CITY),
    "country": _leaf(_COUNTRY),
    "province": _leaf(_PROVINCE),
    "zipcode": _leaf(_ZIPCODE),
    "homepage": _leaf(Joined(("http://www.", _DOMAIN, "/~", _LAST_NAME))),
    "creditcard": _leaf(Joined((_FOUR, " ", _FOUR, " ", _FOUR, " ", _FOUR))),
    "profile": Element(
        (Child("interest", Quantiles((0, 0, 0, 1, 1.2, 1.8, 2.3, 3, 3.8, 5, 7, 9, 11, 13, 15))),
         _maybe("education", 0.45), _maybe("gender", 0.52), Child("business"), _maybe("age", 0.48)),
        (Attribute("income", _INCOME),)),
    "interest": _refers("category", Reference("category")),
    "education": _leaf(Choice(("High School", "College", "Graduate School", "Other"))),
    "gender": _leaf(Choice(("male", "female"))),
    "business": _leaf(_YES_NO),
    "age": _leaf(_AGE),
    "watches": Element((
        Child("watch", Quantiles((0, 0, 1, 1.6, 2.1, 2.8, 3.4, 4.2, 5.2, 6.5, 8.5, 10.5, 14, 17, 20))),)),
    "watch": _refers("open_auction", Reference("open_auction")),

    "open_auction": Element(
        (Child("initial"), _maybe("reserve", 0.56),
         Child("bidder", Quantiles((0, 0, 0.9, 1.6, 2.2, 3.1, 4, 5.5, 7.2, 9.2, 12, 17, 22, 24, 29))),
         Child("current"), _maybe("privacy", 0.46),
         *_all("itemref seller annotation quantity type interval")),
        (Attribute("id", Identifier("open_auction")),)),
    "initial": _leaf(_PRICE),
    "reserve": _leaf(_RESERVE),
    "bidder": Element(_all("date time personref increase")),
    "time": _leaf(Joined((Digits(0, 24, 2), ":", Digits(0, 60, 2), ":", Digits(0, 60, 2)))),
    "personref": _refers("person", _PERSON),
    "increase": _leaf(_INCREASE),
    "current": _leaf(_CURRENT),
    "privacy": _leaf(_YES_NO),
    "itemref": _refers("item", Reference("item")),
    "seller": _refers("person", _TRADER),
    "annotation": Element(_all("author description happiness")),
    "author": _refers("person", _PERSON),
    "happiness": _leaf(Choice(
        split("1 2 3 4 5 6 7 8 9 10"), Weights((9, 10, 12, 12, 11, 10, 12, 9, 8, 8)))),
    "type": _leaf(Choice(
        ("Featured", "Regular", "Featured, Dutch", "Regular, Dutch"), Weights((50, 44, 3, 3)))),
    "interval": Element(_all("start end")),
    "start": _leaf(_DATE),
    "end": _leaf(_DATE),

    "closed_auction": Element(_all("seller buyer itemref price date quantity type annotation")),
    "buyer": _refers("person", _TRADER),
    "price": _leaf(_PRICE),
})
# fmt: on


def child_labels(label: str) -> tuple[str, ...]:
    """Name the elements that may be children of `label`, in document order.

    >>> child_labels("mail")
    ('from', 'to', 'date', 'text')
    """
    return tuple(child.label for child in SCHEMA[label].children)


def attribute_labels(label: str) -> tuple[str, ...]:
    """Name the attributes of `label`, each with its ``@``.

    >>> attribute_labels("item")
    ('@id', '@featured')
    """
    return tuple(f"@{attribute.name}" for attribute in SCHEMA[label].attributes)


def carries_value(label: str) -> bool:
    """Say whether `sample_value` knows `label`: an attribute, a leaf, or an element with words in it."""
    return bool(_values_of(label, None))


def is_numeric(label: str) -> bool:
    """Say whether `label` always holds a number, so that ``<`` and ``>=`` make sense."""
    values = _values_of(label, None)
    return bool(values) and all(map(_holds_numbers, values))


def sample_value(label: str, rng: random.Random, *, parent: str | None = None) -> str:
    """Draw a value of `label` (``price`` or ``@person``) as documents hold it, blanks included.

    `parent` is the element that holds it; without one, a label that means several things (``name``, ``@id``)
    draws from any of them.  Ids are those of a document of about 30 KB.  Raises `KeyError` for a label
    without values.
    """
    values = _values_of(label, parent)
    if not values:
        raise KeyError(label)
    return values[int(rng.random() * len(values))].draw(rng)


@cache
def _values_of(label: str, parent: str | None) -> tuple[Value, ...]:
    """The distinct distributions of a label under `parent`, or under any element."""
    found: dict[Value, None] = {}
    for owner, element in SCHEMA.items():
        if parent in (None, owner):
            found |= {a.value: None for a in element.attributes if f"@{a.name}" == label}
            for child in element.children:
                value = child.value or SCHEMA[child.label].value
                if child.label == label and value is not None:
                    found[value] = None
    return tuple(found)


def _holds_numbers(value: Value) -> bool:
    return isinstance(value, Number) or (
        isinstance(value, Choice) and all(option.isdigit() for option in value.options)
    )
