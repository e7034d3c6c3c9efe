"""Execution: whatever the rewriting, the result is what matching the query on the document gives."""

import random
from itertools import pairwise

import pytest

from rewriting import Rewriting, rewritings
from rewriting.columns import decode_untrusted, encode
from rewriting.errors import MissingViewError, WrongColumnsError
from scenarios.auction_documents import auction_document
from scenarios.presets import TABLE2
from scenarios.subscriptions import random_pattern as auction_pattern
from tests.oracles.documents import numbered
from tests.oracles.embeddings import node_sets, rows
from tests.rewriting.cases import random_document, random_pattern, random_problem, view_of
from xmlmatch import Document, Limits, Pattern, match


def lists(sets):
    return [nodes.tolist() for nodes in sets]


def received(rewriting, results, *, reduced=False):
    """Execute a rewriting through encoded columns."""
    sent = [encode(link.send(results[link.view], reduced=reduced)) for link in rewriting.links]
    return rewriting.receive([decode_untrusted(data) for data in sent])


def check(rewriting, document, results):
    """Compare every way to run a rewriting with matching the query directly; return whether it matched."""
    wanted = match(rewriting.query, document)
    ways = [rewriting.execute(results, reduced=reduced) for reduced in (False, True)]
    ways += [received(rewriting, results, reduced=reduced) for reduced in (False, True)]
    for found in ways:
        assert lists(found.sets) == lists(wanted.sets), str(rewriting)
        assert list(found.rows()) == list(wanted.rows()), str(rewriting)
    return bool(wanted)


@pytest.mark.parametrize("part", range(4))
def test_every_rewriting_gives_what_direct_matching_gives(part):
    matched = several = 0
    for seed in range(part * 150, part * 150 + 150):
        rng = random.Random(seed)
        data, query, views = random_problem(rng)
        documents = [Document.parse(data), Document.parse(random_document(rng))]
        for rewriting in rewritings(query, views, 8):
            several += len(rewriting.views) > 1
            for document in documents:
                results = {view: match(view, document) for view in rewriting.views}
                matched += check(rewriting, document, results)
    assert matched > 100
    assert several > 100


def test_results_are_those_of_brute_force():
    matched = 0
    for seed in range(250):
        rng = random.Random(1_000 + seed)
        data, query, views = random_problem(rng, 6)
        if len(query.nodes) > 4:
            continue
        document, nodes = Document.parse(data), numbered(data)
        for rewriting in rewritings(query, views, 4):
            found = rewriting.execute({view: match(view, document) for view in rewriting.views})
            assert lists(found.sets) == node_sets(query, nodes)
            ids = [tuple(v.pre for v in row) for row in id_rows(found)]
            assert ids == rows(query, nodes)
            matched += bool(found)
    assert matched > 50


def id_rows(found):
    from xmlmatch import Column, NodeSets, Return

    columns = tuple(Column(n, Return.ID) for n in found.pattern.returning)
    return NodeSets(Pattern(found.pattern.nodes, columns), found.document, found.sets).rows()


def test_auction_documents_and_subscriptions():
    rng = random.Random(3)
    documents = [Document.parse(auction_document(seed, size_bytes=6_000)) for seed in range(4)]
    matched = done = 0
    while done < 150:
        query = auction_pattern(rng, TABLE2)
        views = [view_of(rng, query, 6) for _ in range(8)]
        for rewriting in rewritings(query, views, 3):
            done += 1
            for document in documents:
                results = {view: match(view, document) for view in rewriting.views}
                matched += check(rewriting, document, results)
    assert matched > 50


@pytest.mark.parametrize("seed", range(40))
def test_chains_of_five_rewritings_lose_nothing(seed):
    rng = random.Random(seed)
    documents = [Document.parse(random_document(rng, 14)) for _ in range(4)]
    chain = chained(rng)
    assert len(chain) == 5
    for document in documents:
        known = {view: match(view, document) for rewriting in chain[:1] for view in rewriting.views}
        for rewriting in chain:
            check(rewriting, document, known)
            known = {rewriting.query: received(rewriting, known), **known}


def chained(rng):
    """Make rewritings, each of which takes the query of the one before (and what that took)."""
    while True:
        queries = [random_pattern(rng, 5)]
        for _ in range(5):
            queries.append(view_of(rng, queries[-1], 5))
        queries.reverse()
        extra = [view_of(rng, queries[-1], 3) for _ in range(3)]
        chain = []
        for before, query in pairwise(queries):
            pool = [before, *(extra if not chain else chain[0].views)]
            able = [r for r in rewritings(query, pool, 5) if before in r.views]
            if not able:
                break
            chain.append(rng.choice(able))
        known = set(chain[0].views) if chain else set()
        if len(chain) == 5 and all(
            set(r.views) <= known | {before} for r, before in zip(chain, queries, strict=False)
        ):
            return chain


def test_shared_columns_with_different_filters_do_not_thin_each_other():
    document = Document.parse(b"<a><b>1</b><b>2</b><b>3</b></a>")
    query = Pattern.parse("//a[b{val}[.>=2]]/b{id}[.<=1]")
    rewriting = next(rewritings(query, [Pattern.parse("//a/b{val}")]))
    assert check(rewriting, document, {view: match(view, document) for view in rewriting.views})


def test_a_value_is_read_from_content_that_came_alone():
    data = b"<a xmlns:p='urn:p'><p:b k='&lt;'>x<!--c--><c>&amp;y</c>\r\n&#13;<?pi z?></p:b></a>"
    document = Document.parse(data)
    ns = {"p": "urn:p"}
    view = Pattern.parse("//p:b{cont}", ns)
    rewriting = next(rewritings(Pattern.parse("//p:b{val}[.!='z']", ns), [view]))
    assert check(rewriting, document, {view: match(view, document)})


def test_a_missing_view_is_named():
    rewriting = next(rewritings(Pattern.parse("//a/b{val}"), [Pattern.parse("//a/b{cont}")]))
    with pytest.raises(MissingViewError, match=r"//a/b\{cont\}"):
        rewriting.execute({})


def test_a_document_that_does_not_match_gives_no_rows():
    view = Pattern.parse("//a/b{cont}")
    rewriting: Rewriting = next(rewritings(Pattern.parse("//a/b{val}"), [view]))
    found = rewriting.execute({view: match(view, Document.parse(b"<c/>"))})
    assert (bool(found), list(found.rows()), found.count()) == (False, [], 0)


def test_a_deep_document_is_read_from_content_too():
    document = Document.parse(b"<a>" * 300 + b"x" + b"</a>" * 300, Limits(max_depth=2000))
    view = Pattern.parse("//a{val,cont}")
    rewriting = next(rewritings(Pattern.parse("//a{val}[.!='2']"), [view]))
    found = rewriting.execute({view: match(view, document)})
    again = next(rewritings(Pattern.parse("//a{val}[.='x']"), [rewriting.query])).execute({rewriting.query: found})
    assert list(again.rows()) == [("x",)] * 300


def test_results_of_another_pattern_are_refused():
    document = Document.parse(b"<a><b>1</b></a>")
    view, other = Pattern.parse("//a/b{cont}"), Pattern.parse("//b{val}")
    rewriting = next(rewritings(Pattern.parse("//a/b{val}"), [view]))
    with pytest.raises(WrongColumnsError, match=r"//b\{val\}"):
        rewriting.execute({view: match(other, document)})
    with pytest.raises(ValueError, match="1 links"):
        rewriting.receive([])
