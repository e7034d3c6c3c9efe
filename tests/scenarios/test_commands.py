"""``distributary demo`` and ``distributary generate``."""

import json

import pytest

from peer.cli import main
from xmlmatch import Document, Pattern


def test_the_demo_shows_a_table_and_what_it_cost(capsys):
    assert main(["demo", "--offline", "--documents", "5", "--subscriptions", "30"]) == 0
    out = capsys.readouterr().out
    assert "featured items" in out
    assert "36 subscriptions x 5 documents" in out


def test_the_demo_computes_results_from_each_other(capsys):
    assert main(["demo", "--offline", "--documents", "3", "--subscriptions", "60", "--json"]) == 0
    feeding = json.loads(capsys.readouterr().out)["feeding"]
    assert feeding["rewritable"] > 0
    assert feeding["checked"] == feeding["equal"] > 0


def test_the_demo_as_json_counts_what_direct_matching_counts(capsys):
    from scenarios.auction_documents import auction_documents
    from xmlmatch import match

    assert main(["demo", "--offline", "--documents", "5", "--subscriptions", "30", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    documents = [Document.parse(data) for data in auction_documents(1, 5)]
    for line in told["shown"]:
        counts = [match(Pattern.parse(line["pattern"]), document).count() for document in documents]
        assert (line["rows"], line["documents"]) == (sum(counts), sum(count > 0 for count in counts))
    assert sum(line["rows"] for line in told["shown"]) > 0


def test_generated_documents_are_written_and_well_formed(tmp_path, capsys):
    assert main(["generate", "documents", "--count", "3", "--dir", str(tmp_path / "new")]) == 0
    paths = sorted((tmp_path / "new").iterdir())
    assert len(paths) == 3
    assert all(len(Document.parse(path.read_bytes())) > 50 for path in paths)


def test_documents_of_a_given_size_are_written(tmp_path):
    assert main(["generate", "documents", "--count", "1", "--bytes", "200000", "--dir", str(tmp_path)]) == 0
    [path] = tmp_path.iterdir()
    assert 170_000 < path.stat().st_size < 230_000


@pytest.mark.parametrize("preset", ["table2", "wan"])
def test_generated_patterns_parse_and_the_same_seed_gives_the_same(preset, capsys):
    texts = []
    for _ in range(2):
        assert main(["generate", "patterns", "--preset", preset, "--count", "40", "--seed", "3"]) == 0
        texts.append(capsys.readouterr().out)
    assert texts[0] == texts[1]
    assert all(str(Pattern.parse(line)) == line for line in texts[0].splitlines())
    assert len(texts[0].splitlines()) == 40


def test_the_wan_preset_prints_how_many_cannot_be_rewritten(capsys):
    assert main(["generate", "patterns", "--preset", "wan", "--count", "40"]) == 0
    assert "cannot be rewritten from others" in capsys.readouterr().err


@pytest.mark.parametrize("words", [["documents", "--dir", "d", "--count", "0"], ["patterns", "--count", "-3"]])
def test_a_count_below_one_is_refused(words, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["generate", *words]) == 2
    assert "--count" in capsys.readouterr().err
