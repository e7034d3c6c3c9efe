"""Prometheus' text: names, escapes, numbers, and the bound on samples."""

import math

import pytest

from peer.http.exposition import MOST_SAMPLES, Family, exposition, one


@pytest.mark.parametrize(
    ("value", "text"),
    [(3, "3"), (0.25, "0.25"), (math.inf, "+Inf"), (-math.inf, "-Inf"), (math.nan, "NaN"), (1e30, "1e+30")],
)
def test_a_number_is_written_as_prometheus_reads_it(value, text):
    assert exposition([one("a", "gauge", "h", value)]).splitlines()[-1] == f"a {text}"


def test_what_could_end_a_line_or_a_label_is_escaped():
    text = exposition([Family("a", "gauge", "x\\y\nz", [({"l": '\\"\n\ud800é'}, 1)])])
    assert text == '# HELP a x\\\\y\\nz\n# TYPE a gauge\na{l="\\\\\\"\\n?é"} 1\n'


@pytest.mark.parametrize(
    ("name", "kind"), [("a-b", "gauge"), ("1a", "gauge"), ("a", "counter"), ("a_total", "gauge")]
)
def test_a_name_against_the_conventions_is_refused(name, kind):
    with pytest.raises(ValueError, match="not a name"):
        one(name, kind, "h", 1)


def test_a_label_that_is_reserved_is_refused():
    with pytest.raises(ValueError, match="label"):
        Family("a", "gauge", "h", [({"__name__": "x"}, 1)])


def test_samples_beyond_the_limit_are_counted_not_written():
    samples = [({"n": str(n)}, n) for n in range(MOST_SAMPLES + 7)]
    lines = exposition([Family("a", "gauge", "h", samples)]).splitlines()
    assert sum(line.startswith("a{") for line in lines) == MOST_SAMPLES
    assert lines[-1] == 'distributary_omitted_samples{family="a"} 7'
