"""Numbers: the compiled reader, the Python reader and exact arithmetic agree."""

import math

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.oracles.numbers import to_number
from tests.strategies import VALUES
from xmlmatch import Document, Operator, Predicate
from xmlmatch.numerals import number, scan, spell
from xmlmatch.values import read_numbers, satisfying

DIGITS = st.text("0123456789", max_size=25)
SPACES = st.text(" \t\r\n", max_size=2)
EXPONENTS = st.one_of(
    st.just(""),
    st.builds("{}{}{}".format, st.sampled_from("eE"), st.sampled_from(["", "+", "-"]), st.integers(0, 400)),
)
NUMERALS = st.builds(
    "{}{}{}{}{}{}{}".format,
    SPACES,
    st.sampled_from(["", "-"]),
    DIGITS,
    st.sampled_from(["", "."]),
    DIGITS,
    EXPONENTS,
    SPACES,
)
NEARLY = st.text("0123456789.eE+-_ \t\n\u00a0xN", max_size=12)


def scanned(text):
    """Read a text as documents do: compiled where that is exact, by Python elsewhere."""
    chars = np.frombuffer(text.encode(), np.uint8)
    value, inexact = scan(chars, 0, len(chars))
    return number(text) if inexact else value


def same(left, right):
    return left == right or (math.isnan(left) and math.isnan(right))


@settings(max_examples=600)
@given(st.one_of(NUMERALS, NEARLY, st.sampled_from(VALUES)))
@example("9007199254740993")
@example("123456789012345e22")
@example("123456789012345e-22")
@example("1234567890123456e0")
@example("999999999999999e22")
@example("0." + "0" * 400 + "1e401")
@example("1" + "0" * 400 + "e-400")
@example("2.2250738585072011e-308")
@example("4.9406564584124654e-324")
@example("2.4703282292062327e-324")
@example("2.4703282292062328e-324")
@example("1.7976931348623158e308")
@example("1.7976931348623159e308")
@example("1e-99999999999999999999")
@example("1e99999999999999999999")
@example("0e99999999999999999999")
def test_the_compiled_and_the_python_reader_round_like_an_exact_fraction(text):
    exact = to_number(text)
    assert same(number(text), exact)
    assert same(scanned(text), exact)


def test_an_exponent_that_makes_up_for_a_million_zeros_is_read_exactly():
    text = "0." + "0" * 999_999 + "1e9999999"
    assert scanned(text) == number(text) == math.inf


def test_an_exponent_that_just_cancels_many_zeros_is_read_exactly():
    text = "0." + "0" * 1_999_999 + "1e2000000"
    assert scanned(text) == number(text) == 1.0


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "-",
        ".",
        "+40",
        "4_0",
        "inf",
        "NaN",
        "0x10",
        "4e",
        "4e+",
        "e4",
        "1 2",
        "--1",
        "\u00a040",
        "4,0",
        "\u0664\u0660",
        "40\x0b",
        "40\x0c",
        "4.0.0",
        "4e1.0",
        "\uff14\uff10",
        "1e1e1",
        "Infinity",
        "INF",
    ],
)
def test_what_is_no_numeral_is_nan(text):
    assert math.isnan(number(text))
    assert math.isnan(scanned(text))


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_spelled_number_reads_back_as_itself(value):
    assert number(spell(value)) == value
    assert scanned(spell(value)) == value


def test_infinity_is_spelled_as_a_numeral_of_the_language():
    assert number(spell(math.inf)) == math.inf
    assert number(spell(-math.inf)) == -math.inf


@given(st.lists(st.one_of(NUMERALS, NEARLY), max_size=6))
def test_the_numbers_of_a_document_are_those_of_its_values(texts):
    body = "".join(f"<a>{text.replace(chr(13), '&#13;')}</a>" for text in texts)
    document = Document.parse(f"<r>{body}</r>".encode())
    numbers = np.full(len(document), -1.0)
    read_numbers(document, document.pre, numbers)
    assert all(same(numbers[i + 1], to_number(text)) for i, text in enumerate(texts))


@settings(max_examples=200)
@given(
    st.lists(st.one_of(st.sampled_from(VALUES), NUMERALS), min_size=1, max_size=5),
    st.sampled_from(Operator),
    st.floats(allow_nan=False, allow_infinity=False) | st.sampled_from([40.0, 0.0, 5.0, 0.5]),
)
def test_compiled_numeric_comparison_is_that_of_the_predicate(texts, operator, constant):
    predicate = Predicate(operator, constant)
    body = "".join(f'<a x="{t.translate(ESCAPES)}"/>' for t in texts)
    document = Document.parse(f"<r>{body}</r>".encode())
    attributes = np.arange(2, len(document), 2, dtype=np.int32)
    kept = satisfying(document, attributes, [predicate])
    assert kept.tolist() == [2 + 2 * i for i, text in enumerate(texts) if predicate.holds(text)]


ESCAPES = str.maketrans({"&": "&amp;", "<": "&lt;", '"': "&quot;", "\n": "&#10;", "\t": "&#9;", "\r": "&#13;"})
