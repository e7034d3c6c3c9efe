"""What the pattern language refuses: the column, the reason, and whether it is XPath at all."""

import pytest

from xmlmatch import Pattern, PatternError

VALID = "valid XPath, not supported here"
NOT = "not XPath"

# text, column, words that the message must hold
REFUSED = [
    ("", 1, ["starts at the document", "end of the pattern"]),
    (" ", 2, ["starts at the document"]),
    ("a", 1, ["starts at the document", VALID, "'a'"]),
    ("a/b", 1, [VALID]),
    ("/", 2, ["step is missing"]),
    ("//", 3, ["step is missing", NOT]),
    ("//a/", 5, ["step is missing", NOT]),
    ("///a", 3, ["step is missing", NOT, "'/'"]),
    ("//a]", 4, ["path ends here", NOT, "']'"]),
    ("//a b", 5, ["path ends here", NOT]),
    ("//a)", 4, [NOT]),
    ("//a[", 5, [NOT, "end of the pattern"]),
    ("//a[b", 6, [NOT]),
    ("//a[]", 5, [NOT]),
    ("//a[b]]", 7, [NOT]),
    ("//1a", 3, ["not a name", NOT]),
    ("//-a", 3, ["not a name"]),
    ("//a[@]", 6, [NOT]),
    ("//@*", 3, ["@*", VALID, "@name"]),
    ("//a/@*", 5, [VALID]),
    ("//a/text()", 5, ["functions and node tests", VALID, "text("]),
    ("//a/node()", 5, [VALID]),
    ("//a[last()]", 5, ["functions", VALID, "last("]),
    ("//a[position()=1]", 5, ["functions", VALID]),
    ("//a[contains(b,'x')]", 5, ["functions", VALID, "contains("]),
    ("//a[not(b)]", 5, ["functions", VALID, "not("]),
    ("//a[count(b) > 1]", 5, [VALID]),
    ("//a[1]", 5, ["positions", VALID]),
    ("//a['x']", 5, ["constants", VALID]),
    ("//a[5 = b]", 5, ["left", VALID]),
    ("//a['x' = b]", 5, ["left", VALID]),
    ("//a[b or c]", 7, [VALID, "'or'", "and"]),
    ("//a[b | c]", 7, [VALID, "'|'"]),
    ("//a | //b", 5, ["path ends here", VALID, "'|'"]),
    ("//a[b + 1 = 2]", 7, [VALID]),
    ("//a[b = c]", 9, ["constant on its right", VALID, "'c'"]),
    ("//a[. = @x]", 9, ["constant on its right", VALID]),
    ("//a[b = 1 + 1]", 11, [VALID]),
    ("//a[b = -c]", 9, [VALID]),
    ("//a[b < 'x']", 9, ["no order", VALID]),
    ("//a[b >= '5']", 10, ["no order", VALID]),
    ("//a[b == 5]", 8, [NOT]),
    ("//a[b <> 5]", 8, [NOT]),
    ("//a[b = 'x]", 9, [NOT]),
    ("//a[b = ]", 9, [NOT]),
    ("//a[b = 1e999]", 9, ["too large"]),
    ("//a[b = +5]", 9, [VALID]),
    ("//a[b = 4_0]", 10, [NOT]),
    ("//a[b = 0x10]", 10, [NOT]),
    ("//a[b=5.5.5]", 10, [NOT]),
    ("//a[.]", 6, ["dot must be compared", VALID]),
    ("//a[. and b]", 7, ["dot must be compared", VALID]),
    ("//a[..]", 5, ["parent step", VALID]),
    ("//a[../b]", 5, ["parent step", VALID]),
    ("//a/..", 5, [VALID]),
    ("//a/.", 5, [VALID]),
    ("//a/./b", 5, [VALID]),
    ("//a[//c]", 5, ["absolute path", "[.//c]", VALID]),
    ("//a[/c]", 5, ["absolute path", "[c]", VALID]),
    ("//a[b[//c]]", 7, ["absolute path", "[.//c]", VALID]),
    ("//a[b and //c]", 11, ["absolute path", "[.//c]", VALID]),
    ("//a[.//]", 8, [NOT]),
    ("/child::a", 2, ["axes", VALID, "child::"]),
    ("//a/parent::b", 5, ["axes", VALID]),
    ("//a[following-sibling::b]", 5, ["axes", VALID]),
    ("//a[@x and attribute::y]", 12, ["axes", VALID]),
    ("//p:a", 3, ["'p'", "not declared", "--ns p=URI"]),
    ("//a[@p:x='1']", 5, ["'p'", "not declared"]),
    ("//xml:*", 7, ["xml:*", VALID]),
    ("//xml:", 7, [NOT]),
    ("//xml: a", 7, [NOT]),
    ("//a:b:c", 3, ["'a'"]),
    ("//a{}", 5, ["braces", "val, cont, id"]),
    ("//a{text}", 5, ["braces", "val, cont, id", "'text'"]),
    ("//a{val,val}", 9, ["each once"]),
    ("//a{val,}", 9, ["braces"]),
    ("//a{val id}", 9, ["not closed"]),
    ("//a{val", 8, ["not closed"]),
    ("//a{", 5, ["braces"]),
    ("//a{val}{id}", 9, ["already given"]),
    ("//a{val}[b]{id}", 12, ["already given"]),
    ("//a/@x{cont}", 8, ["attribute has no content", "@x{val}"]),
    ("//a[@x{val,cont}]", 12, ["attribute has no content"]),
    ("//a[b='x']{VAL}", 12, ["val, cont, id"]),
    ("//{val}", 3, ["step is missing"]),
    ("//*:a", 4, [VALID]),
    ("//a[b eq 5]", 7, [VALID]),
    ("//a[b]c", 7, [NOT]),
    ("$x", 1, ["starts at the document", VALID]),
    ("(//a)", 1, ["starts at the document", VALID]),
    ("(//a)[1]", 1, [VALID]),
    ("count(//a)", 1, [VALID]),
    ("//a[b=$x]", 7, [VALID]),
    ("//a\x00", 4, [NOT]),
    ("//a\u00a0/b", 4, [NOT]),
    ("//a[.='\ud800']", 8, ["surrogate"]),
    ("//\ud800", 3, ["surrogate"]),
    ("//Q{u\udfff}a", 6, ["surrogate"]),
]


@pytest.mark.parametrize(("text", "column", "words"), REFUSED, ids=[repr(text) for text, *_ in REFUSED])
def test_what_is_not_supported_is_refused_with_column_and_reason(text, column, words):
    with pytest.raises(PatternError) as caught:
        Pattern.parse(text)
    message = str(caught.value)
    assert [word for word in words if word not in message] == [], message
    assert caught.value.column == column, message
    assert message.startswith(f"column {column}: ")
    assert "\n" not in message
    assert caught.value.text == text


def test_the_parts_of_the_message_can_be_read_alone():
    with pytest.raises(PatternError) as caught:
        Pattern.parse("//a[not(b)]")
    error = caught.value
    assert error.found == "'not('"
    assert "functions" in error.reason
    assert error.supported == "a name, @name, p:name or *"


def test_a_namespace_with_a_brace_is_refused():
    with pytest.raises(PatternError, match="brace"):
        Pattern.parse("//p:a", {"p": "u}v"})


def test_a_prefix_that_is_declared_is_not_refused():
    assert str(Pattern.parse("//p:a", {"p": "u"})) == "//Q{u}a{cont}"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("/" + "a" * 100_001, "too long"),
        ("//" + "a" * 99_998, "too long"),
        ("/a" * 101, "too large"),
        ("//a" + "[b" * 100 + "]" * 100, "too large"),
        ("//a" + "".join(f"[b{i}]" for i in range(4096)), "too large"),
    ],
)
def test_a_pattern_beyond_the_limits_is_refused(text, words):
    with pytest.raises(PatternError, match=words):
        Pattern.parse(text)


def test_a_pattern_whose_namespaces_make_it_too_long_is_refused():
    with pytest.raises(PatternError, match="too long"):
        Pattern.parse("//p:a" * 50, {"p": "u" * 5000})


@pytest.mark.parametrize(
    "text",
    [
        "/a" * 100,
        "//a" + "[b" * 99 + "]" * 99,
        "//a" + "".join(f"[b{i}]" for i in range(4095)),
        "//a[.='" + "x" * 90_000 + "']",
        "//" + "a" * 99_992,
    ],
    ids=["steps", "brackets", "branches", "constant", "name"],
)
def test_a_pattern_just_within_the_limits_reads_back(text):
    pattern = Pattern.parse(text)
    assert Pattern.parse(str(pattern)) == pattern


@pytest.mark.parametrize(
    "text",
    [
        "//a[count(1 to 100000000000)]",
        "count(1 to 100000000000)",
        "matches('" + "a" * 60 + "!', '^(a+)+$')",
        "//a[" + "(" * 90 + "b" + ")" * 90 + "]",
        "//a[" + "-" * 900 + "1]",
        "//a[" + "not(" * 90 + "b" + ")" * 90 + "]",
        "//a" + "[b" * 60_000,
        "[" * 100_000,
        "/" * 100_000,
        "//a{" * 20_000,
        "//a[.='" * 10_000,
        "//a[" + "b and " * 15_000,
        "'" * 999,
        "//a[1" + "0" * 90_000 + "=b]",
        "//a[b=" + "1" * 90_000 + "]",
        "//a[" + "5=" * 300 + "b]",
        "//a" + "[5]" * 300,
    ],
)
@pytest.mark.timeout(30)
def test_a_hostile_pattern_is_refused_and_not_for_ever(text):
    with pytest.raises(PatternError):
        Pattern.parse(text)
