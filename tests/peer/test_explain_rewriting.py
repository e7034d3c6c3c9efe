"""``distributary explain rewriting`` as a user sees it."""

import json

import pytest

VIEWS = """\
# what others subscribe to

//item{cont}
//item[author{val}]
//*[headline{val}]
//@id{val}
"""


@pytest.fixture
def views(tmp_path):
    path = tmp_path / "views.txt"
    path.write_text(VIEWS)
    return str(path)


def test_a_way_says_what_travels_and_what_is_filtered_where(run, views):
    done = run("explain", "rewriting", "//item[author='Poe'][@id]/headline{val}", "--views", views)
    assert done.status == 0
    assert "1. from 3 views" in done.out
    assert f"{views}:4: //item/author{{val}}" in done.out
    assert "author[.='Poe']  <- author{val}: IDs, only those with .='Poe'" in done.out
    assert "<- *: IDs, only those named item" in done.out
    assert "headline{val}    <- headline{val}: IDs and values" in done.out
    assert "if senders also reduce: //item/headline" in done.out or "//item[headline]" in done.out
    assert "the receiver unites the lists and reduces them" in done.out


def test_json_has_every_provider(run, views):
    done = run("explain", "rewriting", "//item[@id]", "--views", views, "--json")
    told = json.loads(done.out)
    assert told["query"] == "//item{cont}[@id]"
    (first, *_) = told["rewritings"]
    provided = [p["query_node"] for link in first["links"] for p in link["provides"]]
    assert sorted(provided) == [0, 1]
    assert set(first["plans"]) == {"sender_filters", "sender_reduces"}
    assert first["plans"]["sender_filters"]["bytes_sent"] == first["cost_bytes"]


def test_what_lacks_a_provider_is_named(run, views):
    done = run("explain", "rewriting", "//item[date]/author{cont}", "--views", views)
    assert done.status == 1
    assert "date: no view that embeds in the pattern has it" in done.out
    assert f"author{{cont}}: {views}:4: what it needs is not returned there" in done.out


def test_sizes_can_be_measured(run, views, tmp_path):
    document = tmp_path / "news.xml"
    document.write_text("<news><item id='1'><author>Poe</author><headline>Rain</headline></item></news>")
    done = run("explain", "rewriting", "//item/headline{val}", "--views", views, "--documents", str(document))
    assert done.status == 0
    assert "sizes measured" in done.out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["//item", "--views", "nowhere.txt"], "nowhere.txt"),
        (["//item[", "--views", "-"], "column"),
        (["//item", "--views", "VIEWS", "--most", "0"], "from 1 to 1,000"),
        (["//item", "--views", "VIEWS", "--most", "abc"], "abc is not a whole number"),
        (["//item", "--views", "VIEWS", "--most", "9" * 30], "from 1 to 1,000"),
        (["-", "--views", "-"], "only one of"),
        (["//item"], "--views"),
    ],
)
def test_bad_input_is_one_line_and_status_2(run, views, arguments, words):
    done = run("explain", "rewriting", *(views if a == "VIEWS" else a for a in arguments))
    assert done.status == 2
    assert words in done.err


def test_a_wrong_view_names_its_line(run, tmp_path):
    path = tmp_path / "views.txt"
    path.write_text("//a\n//b[\n")
    done = run("explain", "rewriting", "//a", "--views", str(path))
    assert done.status == 2
    assert f"{path}:2:" in done.err


def test_help_shows_examples(run):
    done = run("explain", "rewriting", "--help")
    assert "examples:" in done.out
    assert "--views views.txt" in done.out


def test_no_views_at_all(run, tmp_path):
    path = tmp_path / "views.txt"
    path.write_text("# nothing\n\n")
    done = run("explain", "rewriting", "//a", "--views", path, "--json")
    told = json.loads(done.out)
    assert (done.status, told["views"], told["rewritings"]) == (1, 0, [])
    assert told["missing"] == ["a{cont}: no view that embeds in the pattern has it"]


def test_views_from_standard_input_and_namespaces(run):
    done = run(
        "explain", "rewriting", "//p:a/@x", "--views", "-", "--ns", "p=urn:p", stdin=b"//p:a/@x\n//p:a/@x\n"
    )
    assert done.status == 0
    assert "1 distinct view, 1 of which" in done.out


def test_nodes_with_one_text_are_told_apart_by_their_paths(run, tmp_path):
    path = tmp_path / "views.txt"
    path.write_text("//c{val}\n//a[b]\n//d\n")
    done = run("explain", "rewriting", "//a[b/c{val}]/d/c{val}", "--views", path)
    assert "a/b/c{val}" in done.out
    assert "a/d/c{val}" in done.out


def test_few_ways_are_the_first_of_many(run, tmp_path):
    path = tmp_path / "views.txt"
    path.write_text("//a{val}\n" + "".join(f"//a[.//b{{val}}[.>={n}]]\n" for n in range(9)))
    ways = {}
    for most in ("3", "6"):
        done = run("explain", "rewriting", "//a{val}//b{val}[.>=100]", "--views", path, "--most", most, "--json")
        ways[most] = [w["cost_bytes"] for w in json.loads(done.out)["rewritings"]]
    assert len(ways["3"]) == 3
    assert len(ways["6"]) == 6
    assert ways["6"][:3] == ways["3"]
