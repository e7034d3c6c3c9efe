"""Distributions and values: how often, how long, which number, which words.

Every draw uses `random.Random.random` and IEEE arithmetic alone (no logarithms, no shuffles): those give the
same bits on every platform and Python release.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field
from itertools import accumulate
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias

if TYPE_CHECKING:
    import random
    from collections.abc import Mapping

TYPICAL_POPULATION: Final[Mapping[str, int]] = MappingProxyType(
    {"item": 6, "category": 1, "person": 3, "open_auction": 2}
)
_LEVELS: Final = (0.0, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99, 1.0)


@dataclass(frozen=True, slots=True)
class Quantiles:
    """A distribution given by its value at 0, 5, 10, 20, ... 90, 95, 98, 99 and 100 %, linear in between."""

    points: tuple[float, ...]

    def __post_init__(self) -> None:
        if len(self.points) != len(_LEVELS) or list(self.points) != sorted(self.points):
            raise ValueError(f"needs {len(_LEVELS)} rising points, got {self.points}")

    def draw(self, rng: random.Random) -> float:
        level = rng.random()
        right = bisect_right(_LEVELS, level)
        low, high = _LEVELS[right - 1], _LEVELS[right]
        below, above = self.points[right - 1], self.points[right]
        return below + (above - below) * (level - low) / (high - low)


@dataclass(frozen=True, slots=True)
class Weights:
    """A distribution over 0, 1, 2, ... given by the weight of each."""

    weights: tuple[float, ...]
    _sums: tuple[float, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_sums", tuple(accumulate(self.weights)))

    def draw(self, rng: random.Random) -> int:
        return bisect_right(self._sums, rng.random() * self._sums[-1])


@dataclass(frozen=True, slots=True)
class BySize:
    """A number of children that grows with the document: `per_scale` at XMark scale 1 (about 110 MB)."""

    per_scale: int


@dataclass(frozen=True, slots=True)
class InProse:
    """Any number of children, scattered among words (see `INLINE_GAP_WORDS`)."""


Count: TypeAlias = Weights | Quantiles | BySize | InProse


class Value(Protocol):
    """A distribution of strings."""

    def draw(self, rng: random.Random) -> str:
        """Draw one string."""
        ...


@dataclass(frozen=True, slots=True)
class Choice:
    """One of `options`, equally likely unless `weights` are given."""

    options: tuple[str, ...]
    weights: Weights | None = None

    def draw(self, rng: random.Random) -> str:
        if self.weights is None:
            return self.options[int(rng.random() * len(self.options))]
        return self.options[self.weights.draw(rng)]


@dataclass(frozen=True, slots=True)
class Subset:
    """Some of `options` in their order, each with probability one half; possibly none."""

    options: tuple[str, ...]

    def draw(self, rng: random.Random) -> str:
        return ", ".join(option for option in self.options if rng.random() < 0.5)


@dataclass(frozen=True, slots=True)
class Number:
    """A decimal number: a multiple of `step_cents`, written with two decimals, or with none if `whole`."""

    quantiles: Quantiles
    step_cents: int = 1
    whole: bool = False

    def draw(self, rng: random.Random) -> str:
        if self.whole:
            return str(int(self.quantiles.draw(rng) + 0.5))
        steps = int(self.quantiles.draw(rng) * 100 / self.step_cents + 0.5)
        return decimal_of(steps * self.step_cents)


@dataclass(frozen=True, slots=True)
class Digits:
    """A whole number of [start, stop), padded with zeros to `width`."""

    start: int
    stop: int
    width: int = 0

    def draw(self, rng: random.Random) -> str:
        return str(self.start + int(rng.random() * (self.stop - self.start))).zfill(self.width)


@dataclass(frozen=True, slots=True)
class Joined:
    """Its parts one after the other, each a fixed string or a draw of its own."""

    parts: tuple[str | Value, ...]

    def draw(self, rng: random.Random) -> str:
        return "".join(part if isinstance(part, str) else part.draw(rng) for part in self.parts)


@dataclass(frozen=True, slots=True)
class Correspondent:
    """A person's name, then an e-mail address that has its last word."""

    name: Value
    domain: Value

    def draw(self, rng: random.Random) -> str:
        name = self.name.draw(rng)
        return f"{name} mailto:{name.split()[-1]}@{self.domain.draw(rng)}"


@dataclass(frozen=True, slots=True)
class Words:
    """`before`, then as many blank-terminated words of `VOCABULARY` as `count` draws, then `after`."""

    count: Quantiles | Weights
    before: str = ""
    after: str = ""

    def draw(self, rng: random.Random) -> str:
        return f"{self.before}{draw_words(rng, int(self.count.draw(rng)))}{self.after}"


@dataclass(frozen=True, slots=True)
class Identifier:
    """An id such as ``person3``: the label of the element that carries it, and its number in the document."""

    label: str

    def draw(self, rng: random.Random) -> str:
        return self.draw_among(TYPICAL_POPULATION[self.label], rng)

    def draw_among(self, population: int, rng: random.Random) -> str:
        """Draw one of the ids of a document that has `population` elements of this label."""
        return f"{self.label}{int(rng.random() * population)}"


@dataclass(frozen=True, slots=True)
class Reference(Identifier):
    """The id of some element of `label`; the ids in the middle are likelier if `central`, as with sellers."""

    central: bool = False

    def draw_among(self, population: int, rng: random.Random) -> str:
        if not self.central:
            return f"{self.label}{int(rng.random() * population)}"
        return f"{self.label}{int((rng.random() + rng.random() + rng.random()) / 3 * population)}"


def decimal_of(cents: int) -> str:
    """Write an amount of money with two decimals.

    >>> decimal_of(1205)
    '12.05'
    """
    return f"{cents // 100}.{cents % 100:02d}"


def draw_words(rng: random.Random, count: int) -> str:
    """Draw words, each followed by a blank; the square makes the vocabulary's first words frequent."""
    uniform, size = rng.random, len(VOCABULARY)
    levels = [uniform() for _ in range(count)]
    return "".join([_BLANK_TERMINATED[int(level * level * size)] for level in levels])


def split(text: str, separator: str | None = None) -> tuple[str, ...]:
    return tuple(text.split(separator))


# Written for this table; the order decides how frequent a word is.
# fmt: off
VOCABULARY: Final = split("""
old oak red cup garden silver lantern window copper harbour quiet morning velvet kettle winter painted pocket
bridge market ribbon candle wooden leather summer travel basket orange button mirror hammer carpet pepper
island feather bottle yellow corner walnut engine marble anchor saddle pencil blanket pillow rocket bracelet
necklace drawer cabinet cushion teapot barrel hinge handle sandal jacket collar sleeve apron scarf helmet
shield banner trumpet fiddle guitar piano organ whistle drum bugle record album poster stamp medal coin token
ticket postcard letter envelope journal ledger atlas globe compass camera lens tripod shutter printer ink
paper folder binder scissors needle thread fabric cotton linen woollen satin denim canvas quilt curtain
hanger dresser mantel chimney shovel bucket ladder wrench pliers chisel mallet furnace boiler piston valve
bearing axle wheel pedal bicycle scooter wagon trolley railway station signal tunnel canal ferry rudder
paddle canoe raft beacon pebble seashell coral meadow orchard hedge forest clearing valley canyon glacier
summit ridge boulder gravel granite quartz amber jasper emerald sapphire crystal diamond pearl ivory chestnut
maple cedar willow birch poplar holly clover thistle parsley mustard ginger vanilla saffron almond raisin
apricot cherry peach plum quince melon lemon tomato pumpkin carrot spinach lettuce cabbage barley wheat
biscuit pastry pudding honey syrup butter cheese coffee cocoa cider vinegar chicken turkey goose heron falcon
sparrow robin swallow parrot peacock rabbit badger beaver otter squirrel donkey lamb kitten lizard salmon
trout herring lobster beetle cricket spider ancient antique modern vintage classic rare common curious
delicate sturdy heavy light narrow broad shallow deep gentle rough smooth polished rusty faded bright gloomy
misty cloudy sunny stormy frozen molten hollow solid brittle supple tender bitter sweet salty fresh stale
crisp humble noble modest proud eager patient careful clumsy clever cheerful solemn earnest honest loyal
brave timid lively sleepy weary hungry thirsty lonely friendly polite wealthy famous foreign native local
distant nearby central northern southern eastern western upper lower inner outer double triple single entire
complete broken repaired original matching electric manual magnetic digital musical magical seasonal annual
weekly daily constant sudden regular gather carry deliver collect arrange assemble adjust balance borrow
capture choose clean climb combine compare connect consider cover create decorate describe design display
divide embrace encourage enjoy examine exchange expand explore fasten finish follow forget furnish glisten
glitter grind harvest imagine improve include inspect invite invent knit listen manage measure mend mention
notice observe offer perform plant polish prepare preserve promise protect publish purchase question receive
recover reflect remember remove repair replace restore return reveal scatter search select settle sketch
sparkle stitch stretch stroll supply swing tangle tighten tumble uncover unfold vanish wander whisper wonder
wrap afternoon evening midnight sunrise sunset weekend autumn yesterday tomorrow century decade minute moment
season holiday birthday festival carnival parade picnic banquet breakfast supper kitchen balcony courtyard
stable cottage castle tower fortress palace temple chapel library museum theatre gallery workshop factory
bakery hospital college village district county province country stranger traveller merchant carpenter
gardener shepherd sailor captain pilot soldier general minister mayor lawyer doctor teacher student scholar
author poet painter musician dancer actor partner cousin uncle daughter children family people crowd company
council society number quantity quality colour pattern texture surface border margin centre circle square
triangle spiral journey voyage passage chapter sentence language puzzle legend story rumour secret answer
reason method theory practice habit custom manner temper courage wisdom patience kindness laughter silence
echo shadow thunder lightning rainbow breeze current ripple torrent fountain dwelling furniture ornament
bargain auction discount receipt payment fortune treasure beneath between beyond during toward without
although because however perhaps rather seldom always almost
""")
# fmt: on
_BLANK_TERMINATED: Final = tuple(f"{word} " for word in VOCABULARY)
