"""``distributary match``."""

import json
import os
import subprocess
import sys

import pytest


def records(result):
    return [json.loads(line) for line in result.lines]


def test_one_pattern_prints_a_json_object_per_row_in_column_order(run, news):
    result = run("match", "//item[author{val}]/headline{cont,id}", news)
    assert result.status == 0
    assert result.lines[0] == (
        f'{{"document": "{news}", "row": {{"author.val": "A", "headline.cont": '
        '"<headline>Up &amp; <b>away</b></headline>", "headline.id": [6, 1, 2]}}'
    )
    assert [record["row"]["author.val"] for record in records(result)] == ["A", "B"]


def test_columns_come_in_the_order_of_the_text_not_of_the_canonical_form(run, news):
    result = run("match", "//item[topic{val}][author{val}]/@id", news)
    assert list(records(result)[0]["row"]) == ["topic.val", "author.val"]


def test_count_prints_only_how_many_rows_each_document_has(run, news):
    result = run("match", "--count", "//author", news, news)
    assert records(result) == [{"document": str(news), "rows": 2}] * 2


def test_a_pattern_may_come_from_a_file_or_from_standard_input(run, news, tmp_path):
    pattern = tmp_path / "pattern.txt"
    pattern.write_text("//topic{val}[.='ACME']\n")
    wanted = [{"document": str(news), "row": {"topic.val": "ACME"}}]
    assert records(run("match", f"@{pattern}", news)) == wanted
    assert records(run("match", "-", news, stdin=b"//topic{val}[.='ACME']\n")) == wanted


def test_a_document_may_come_from_standard_input(run):
    result = run("match", "//a/@x", "-", stdin=b"<a x='1'/>")
    assert records(result) == [{"document": "-", "row": {"@x.val": "1"}}]


def test_text_beyond_ascii_is_printed_as_it_is(run, news):
    assert "Othér" in run("match", "//topic{val}", news).out


def test_namespaces_are_given_by_prefix(run, tmp_path):
    path = tmp_path / "n.xml"
    path.write_text("<a xmlns='urn:n'><b>1</b></a>")
    result = run("match", "--ns", "p=urn:n", "//p:b{val}", path)
    assert records(result) == [{"document": str(path), "row": {"b.val": "1"}}]


def test_many_patterns_print_line_numbers_and_row_counts_of_those_that_match(run, news, tmp_path):
    patterns = tmp_path / "patterns.txt"
    patterns.write_text("# authors\n//author{val}\n\n//nothing\n//item{id}\n")
    result = run("match", "--patterns", patterns, news)
    assert records(result) == [
        {"document": str(news), "pattern": 2, "rows": 2},
        {"document": str(news), "pattern": 5, "rows": 2},
    ]


def test_check_says_that_lxml_agrees_and_what_it_cannot_express(run, news):
    result = run("match", "--check", "//item[author{val}]/headline{val}", news)
    assert result.status == 0
    assert result.err.count("lxml agrees") == 2
    assert "beyond XPath 1.0" in result.err


def test_check_fails_when_the_answers_differ(run, news, monkeypatch):
    from xmlmatch import xpath

    monkeypatch.setattr(xpath, "to_xpath", lambda pattern, node: xpath.XPath("//topic", {}))
    result = run("match", "--check", "--count", "//author", news)
    assert result.status == 1
    assert "DIFFERS" in result.err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["//item[//x]", "FILE"], "column 8"),
        (["//item", "missing.xml"], "missing.xml: No such file"),
        (["//item"], "at least one document"),
        (["@missing.txt", "FILE"], "missing.txt: No such file"),
        (["--ns", "p", "//p:a", "FILE"], "PREFIX=URI"),
        (["--ns", "xml=urn:x", "//a", "FILE"], "reserved"),
        (["--ns", "p q=urn:x", "//a", "FILE"], "PREFIX=URI"),
        (["--patterns", "/dev/null", "FILE"], "no pattern in it"),
        (["--patterns", "/dev/null"], "at least one document"),
        (["//a", ""], "file name is empty"),
        (["--limit", "1", "//author{val}", "FILE"], "more than 1 rows"),
        (["--limit", "-1", "//author{val}", "FILE"], "--limit -1"),
        (["-", "-"], "@FILE"),
        (["//a", "-", "-"], "once only"),
        (["--patterns", "missing.txt", "FILE"], "missing.txt"),
        (["--check", "--patterns", "FILE", "FILE"], "--check"),
        (["--patterns", "-", "-"], "standard input"),
    ],
)
def test_bad_input_is_one_line_on_standard_error_and_status_2(run, news, words, said):
    result = run("match", *[news if word == "FILE" else word for word in words])
    assert result.status == 2
    assert result.err.count("\n") == 1
    assert said in result.err


def test_a_document_that_is_not_well_formed_is_named_with_the_place(run, tmp_path):
    path = tmp_path / "bad.xml"
    path.write_text("<a>\n<b></a>")
    result = run("match", "//a", path)
    assert result.status == 2
    assert "bad.xml: line 2, column" in result.err


def test_a_bad_line_of_a_pattern_file_is_named(run, news, tmp_path):
    patterns = tmp_path / "p.txt"
    patterns.write_text("//a\n//b[1]\n")
    result = run("match", "--patterns", patterns, news)
    assert result.status == 2
    assert "p.txt, line 2: column 5" in result.err


def test_a_pattern_file_that_is_not_utf8_is_refused(run, news, tmp_path):
    patterns = tmp_path / "p.txt"
    patterns.write_bytes(b"//a\n//\xff\n")
    assert "not UTF-8 at byte 6" in run("match", "--patterns", patterns, news).err


def test_a_pattern_that_never_matches_is_accepted_with_a_warning(run, news):
    result = run("match", "--count", "//author[.='1'][.='2']", news)
    assert result.status == 0
    assert "warning: this pattern never matches: no value of author" in result.err
    assert records(result) == [{"document": str(news), "rows": 0}]


@pytest.mark.parametrize("price", ["0.09", "0.99", "123.45", "1e3"])
def test_check_agrees_on_ordinary_prices(run, tmp_path, price):
    path = tmp_path / "p.xml"
    path.write_text(f"<r><price>{price}</price></r>")
    assert run("match", "--check", f"//price[.={price}]{{val}}", path).status == 0


def test_check_knows_the_numbers_that_lxml_reads_differently(run, tmp_path):
    path = tmp_path / "p.xml"
    path.write_text("<r><price>4e</price></r>")
    result = run("match", "--check", "//price[.>=3]{val}", path)
    assert result.status == 0
    assert "lxml reads the number '4e'" in result.err


def test_a_record_stays_one_line_whatever_the_text(run, tmp_path):
    path = tmp_path / "p.xml"
    path.write_text("<r>a\u2028b\u0085c\nd</r>", encoding="utf-8")
    result = run("match", "/r{val}", path)
    assert len(result.lines) == 1
    assert records(result)[0]["row"]["r.val"] == "a\u2028b\u0085c\nd"


def test_line_ends_of_every_system_separate_patterns(run, news, tmp_path):
    patterns = tmp_path / "p.txt"
    patterns.write_bytes(b"//author\r//topic\r\n//item\n")
    assert [record["pattern"] for record in records(run("match", "--patterns", patterns, news))] == [1, 2, 3]


def test_a_column_counts_from_the_start_of_the_line(run, news, tmp_path):
    patterns = tmp_path / "p.txt"
    patterns.write_text("   //a[1]\n")
    assert "line 1: column 8" in run("match", "--patterns", patterns, news).err


def test_a_row_limit_names_document_and_pattern(run, news, tmp_path):
    patterns = tmp_path / "p.txt"
    patterns.write_text("//topic\n//item[author{val}]/author{val}\n")
    result = run("match", "--limit", "3", "--patterns", patterns, news)
    assert result.status == 2
    assert f"{news}, pattern of line 2: more than 3 rows; allow more with --limit" in result.err


def test_text_that_the_terminal_lacks_is_escaped(news):
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    command = [sys.executable, "-m", "peer.cli", "match", "//topic{val}", str(news)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    assert json.loads(done.stdout.splitlines()[1])["row"] == {"topic.val": "Oth\u00e9r"}


@pytest.mark.parametrize(
    ("redirection", "said"), [(">&-", "standard output is closed"), ("<&-", "input is closed")]
)
def test_a_closed_stream_is_one_line(news, redirection, said):
    command = f"{sys.executable} -m peer.cli match - {news} {redirection}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert said in done.stderr
    assert done.stderr.count("\n") == 1
