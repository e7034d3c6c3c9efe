"""``distributary explain``."""

import json


def test_a_pattern_is_drawn_as_a_tree_with_its_canonical_text_and_columns(run):
    result = run("explain", "pattern", "//item[topic='ACME'][author{val}]/headline{cont}")
    assert result.lines == [
        "document",
        "└── //item",
        "    ├── /author -> val",
        "    ├── /headline -> cont",
        "    └── /topic [.='ACME']",
        "canonical: //item[author{val}][topic='ACME']/headline{cont}",
        "columns:   author.val, headline.cont",
    ]


def test_json_describes_the_same_pattern(run):
    told = json.loads(run("explain", "pattern", "//p:a[@x=1]", "--ns", "p=urn:n", "--json").out)
    assert told["canonical"] == "//Q{urn:n}a{cont}[@x=1]"
    assert told["columns"] == ["a.cont"]
    assert told["never_matches"] is None
    assert [node["label"] for node in told["nodes"]] == ["{urn:n}a", "@x"]


def test_a_pattern_from_standard_input_needs_no_quoting(run):
    assert "canonical: //a{cont}[.='it\"s']" in run("explain", "pattern", "-", stdin=b"//a[.='it\"s']\n").out


def test_a_refusal_names_column_finding_and_what_is_supported(run):
    result = run("explain", "pattern", "//a[b or c]")
    assert result.status == 2
    assert "column 7" in result.err
    assert "found 'or'" in result.err
    assert "valid XPath, not supported" in result.err


def test_a_long_or_odd_constant_is_drawn_whole_on_its_line(run):
    constant = "a rather long constant " * 10 + "\n and a line end"
    result = run("explain", "pattern", f"//a[b='{constant}']/c{{val}}")
    assert len(result.lines) == 6
    assert "\\n and a line end" in result.lines[2]
