"""Matcher: many patterns at once give what match() gives for each, while patterns come and go."""

import random
import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from scenarios.auction_documents import auction_document
from scenarios.subscriptions import Shape, random_pattern
from tests.oracles.comparison import plain_rows, plain_sets
from tests.random_cases import random_case
from tests.strategies import cases, patterns
from xmlmatch import Document, Matcher, MatchLimitError, Pattern, PatternError, match

SHAPE = Shape(
    sizes=(1, 2, 3, 3, 2, 1),
    descendant=0.5,
    branch=0.5,
    attribute=0.3,
    any_label=0.2,
    predicates=(2, 2, 1),
    extra_return=0.4,
)


def assert_agrees(matcher, expected, document):
    """Compare all answers of a matcher with match(), given what each key stands for."""
    matches = matcher.match(document)
    direct = {key: match(pattern, document) for key, pattern in expected.items()}
    assert matches.keys.tolist() == sorted(key for key, sets in direct.items() if sets)
    for key in matches.keys.tolist():
        found = matcher.node_sets(matches, key)
        assert plain_sets(found) == plain_sets(direct[key]), expected[key].text
        assert found.pattern.selection == expected[key].selection
    return matches


def assert_empty(matcher):
    """Check that nothing of any pattern is left."""
    store, bodies = matcher._store, matcher._bodies
    tables = (store.labels, store.predicates, store._atoms, store._subs)
    assert [table.live for table in tables] == [0, 0, 0, 0]
    assert store.numeric_labels == {}
    assert store._equal_of_label == {}
    assert store._text_live == 0
    assert (store.label_longest == -1).all()
    assert (store.equal.head == -1).all()
    assert (bodies.edges == -1).all()
    assert len(matcher) == 0
    assert matcher.sub_patterns == 0


@settings(max_examples=150)
@given(cases(), st.lists(patterns(), max_size=8))
def test_many_patterns_give_what_match_gives_for_each(case, others):
    text, drawn = case
    wanted = [drawn.pattern, *others, drawn.pattern]
    assert_agrees(Matcher(wanted), dict(enumerate(wanted)), Document.parse(text.encode()))


def near(rng, pattern):
    """Change one thing about a pattern's text, or nothing."""
    text = pattern.text
    swaps = [("//", "/"), ("{id}", "{val}"), ("=", "!="), ("'", '"'), ("[", "[.//"), ("40", "4"), ("a", "b")]
    old, new = rng.choice(swaps)
    at = [i for i in range(len(text)) if text.startswith(old, i)]
    if at and rng.random() < 0.8:
        i = rng.choice(at)
        text = text[:i] + new + text[i + len(old) :]
    try:
        return Pattern.parse(text)
    except PatternError:
        return pattern


@pytest.mark.parametrize("seed", range(6))
def test_equal_and_nearly_equal_patterns_are_kept_apart(seed):
    rng = random.Random(seed)
    drawn = [random_case(rng) for _ in range(12)]
    basis = [d.pattern for _, d in drawn]
    wanted = [near(rng, rng.choice(basis)) for _ in range(300)]
    matcher = Matcher(wanted)
    for text, _ in drawn:
        assert_agrees(matcher, dict(enumerate(wanted)), Document.parse(text.encode()))


@pytest.mark.parametrize("seed", range(3))
def test_churn_of_many_patterns_never_changes_the_answers_and_frees_everything(seed):
    rng = random.Random(seed)
    drawn = [random_case(rng) for _ in range(40)]
    pool = [near(rng, rng.choice(drawn)[1].pattern) for _ in range(200)]
    documents = [Document.parse(text.encode()) for text, _ in drawn]
    matcher, live = Matcher(), {}
    for _ in range(60):
        for _ in range(rng.randrange(30)):
            pattern = rng.choice(pool)
            live[matcher.add(pattern)] = pattern
        for key in rng.sample(sorted(live), rng.randrange(len(live) + 1)):
            matcher.remove(key)
            del live[key]
        assert len(matcher) == len(live)
        assert sorted(matcher) == sorted(live)
        assert_agrees(matcher, live, rng.choice(documents))
    for key in rng.sample(sorted(live), len(live)):
        matcher.remove(key)
    assert_empty(matcher)


class Churn(RuleBasedStateMachine):
    """Patterns come and go; after each step the matcher answers as match() does."""

    @initialize(drawn=st.lists(cases(max_nodes=4), min_size=3, max_size=3))
    def start(self, drawn):
        self.pool = [d.pattern for _, d in drawn]
        self.documents = [Document.parse(text.encode()) for text, _ in drawn]
        self.matcher = Matcher()
        self.live = {}

    @rule(which=st.integers(0, 2))
    def add_known(self, which):
        self.live[self.matcher.add(self.pool[which])] = self.pool[which]

    @rule(pattern=patterns(max_nodes=3))
    def add_new(self, pattern):
        self.live[self.matcher.add(pattern)] = pattern

    @rule(which=st.integers(0, 50))
    def remove(self, which):
        if self.live:
            key = sorted(self.live)[which % len(self.live)]
            self.matcher.remove(key)
            del self.live[key]

    @rule(which=st.integers(0, 2))
    def match_all(self, which):
        assert_agrees(self.matcher, self.live, self.documents[which])

    @invariant()
    def patterns_are_remembered(self):
        for key, pattern in getattr(self, "live", {}).items():
            known = self.matcher.pattern(key)
            assert (known, known.selection) == (pattern, pattern.selection)

    def teardown(self):
        for key in sorted(getattr(self, "live", {})):
            self.matcher.remove(key)
        if hasattr(self, "matcher"):
            assert_empty(self.matcher)


Churn.TestCase.settings = settings(max_examples=30, stateful_step_count=25)
TestChurn = Churn.TestCase


def test_thousands_of_auction_patterns_match_as_each_does_alone():
    rng = random.Random(11)
    wanted = [random_pattern(rng, SHAPE) for _ in range(1500)]
    matcher = Matcher(wanted)
    for seed in range(2):
        document = Document.parse(auction_document(seed, size_bytes=12_000))
        assert len(assert_agrees(matcher, dict(enumerate(wanted)), document)) > 100


def test_rows_through_a_matcher_are_those_of_match():
    pattern = Pattern.parse("//a[@x{val}][b{val}]/c{cont}")
    document = Document.parse(b"<r><a x='1'><b>2</b><c>3</c></a><a x='4'><b/><c/><c>5</c></a></r>")
    matcher = Matcher([Pattern.parse("//zzz"), pattern])
    found = matcher.node_sets(matcher.match(document), 1)
    assert list(found.rows()) == list(match(pattern, document).rows())
    assert plain_rows(found) == plain_rows(match(pattern, document))


def test_column_orders_of_equal_patterns_stay_their_own():
    first = Pattern.parse("//a[b{val}][c{val}]")
    second = Pattern.parse("//a[c{val}][b{val}]")
    assert first == second
    matcher = Matcher([first, second])
    matches = matcher.match(Document.parse(b"<a><b>1</b><c>2</c></a>"))
    assert list(matcher.node_sets(matches, 0).rows()) == [("1", "2")]
    assert list(matcher.node_sets(matches, 1).rows()) == [("2", "1")]


def test_patterns_that_differ_only_in_what_they_return_share_their_sub_patterns():
    matcher = Matcher([Pattern.parse("//a[b]/c{val}"), Pattern.parse("//a[b{id}]/c{cont}")])
    assert matcher.sub_patterns == 3


def test_the_empty_matcher_answers_nothing():
    assert len(Matcher().match(Document.parse(b"<a/>"))) == 0


@pytest.mark.parametrize("key", [-1, 1, 99])
def test_an_unknown_key_is_a_key_error(key):
    matcher = Matcher([Pattern.parse("//a")])
    matches = matcher.match(Document.parse(b"<a/>"))
    with pytest.raises(KeyError):
        matcher.remove(key)
    with pytest.raises(KeyError):
        matcher.pattern(key)
    with pytest.raises(KeyError):
        matcher.node_sets(matches, key)


def test_a_key_cannot_be_removed_twice():
    matcher = Matcher([Pattern.parse("//a")])
    matcher.remove(0)
    with pytest.raises(KeyError):
        matcher.remove(0)
    assert_empty(matcher)


def test_node_sets_of_an_earlier_answer_never_belong_to_a_later_pattern():
    matcher = Matcher([Pattern.parse("//a[b{val}]")])
    matches = matcher.match(Document.parse(b"<a><b>1</b></a>"))
    matcher.remove(0)
    matcher.add(Pattern.parse("//c/d/e{val}"))
    try:
        found = matcher.node_sets(matches, 0)
    except KeyError:
        return
    assert found.pattern == Pattern.parse("//a[b{val}]")


def test_a_key_that_does_not_match_has_no_node_sets():
    matcher = Matcher([Pattern.parse("//b"), Pattern.parse("//a")])
    matches = matcher.match(Document.parse(b"<a/>"))
    with pytest.raises(KeyError):
        matcher.node_sets(matches, 0)
    assert matches.keys.tolist() == [1]


def many_sets(count):
    """A document of ``count`` chains, and a pattern for each: every answer is a set of its own."""
    body = "".join(f"<g><k>{i}</k><v/><v/></g>" for i in range(count))
    return Document.parse(f"<r>{body}</r>".encode()), [
        Pattern.parse(f"//g[k='{i}']//v{{id}}") for i in range(count)
    ]


def test_a_small_memory_limit_is_an_error_and_leaves_the_matcher_usable():
    document, wanted = many_sets(3000)
    matcher = Matcher(wanted, max_entries=20_000)
    with pytest.raises(MatchLimitError, match="20,000"):
        matcher.match(document)
    small = Document.parse(b"<r><g><k>7</k><v/></g></r>")
    assert matcher.match(small).keys.tolist() == [7]
    with pytest.raises(MatchLimitError):
        matcher.match(document)
    matcher.remove(8)
    assert matcher.match(small).keys.tolist() == [7]


def test_answers_larger_than_the_first_guess_of_memory_are_complete():
    document, wanted = many_sets(3000)
    matches = assert_agrees(Matcher(wanted), dict(enumerate(wanted)), document)
    assert len(matches) == 3000


def test_a_pattern_deeper_than_the_first_stack_matches():
    depth = 99
    document = Document.parse(b"<a>" * depth + b"</a>" * depth)
    wanted = [Pattern.parse("/a" * depth), Pattern.parse("/a" * (depth + 1)), Pattern.parse("//a" * depth)]
    assert_agrees(Matcher(wanted), dict(enumerate(wanted)), document)


def test_more_labels_and_constants_than_the_first_tables_hold_are_found():
    wanted = [Pattern.parse(f"//n{i}[@k='{i}'][.='v{i}'][.!='w']{{id}}") for i in range(700)]
    body = "".join(f"<n{i} k='{i}'>v{i}</n{i}>" for i in range(0, 700, 7))
    matches = assert_agrees(Matcher(wanted), dict(enumerate(wanted)), Document.parse(f"<r>{body}</r>".encode()))
    assert len(matches) == 100


def test_freed_constants_make_room_for_new_ones():
    matcher = Matcher()
    for i in range(400):
        key = matcher.add(Pattern.parse(f"//a[.='{i}{'x' * 100}']"))
        if i % 50:
            matcher.remove(key)
    assert matcher._store._text.size < 40 * 101 * 2
    document = Document.parse(f"<a>350{'x' * 100}</a>".encode())
    assert len(matcher.match(document)) == 1


def test_constants_with_one_hash_are_told_apart():
    # CRC-32 of both is the same; so are their lengths.
    first, second = "plumless", "buckeroo"
    matcher = Matcher([Pattern.parse(f"//a[.='{first}']"), Pattern.parse(f"//a[.='{second}']")])
    matches = matcher.match(Document.parse(f"<r><a>{second}</a><a>{second}</a></r>".encode()))
    assert matches.keys.tolist() == [1]
    assert [s.tolist() for s in matches.sets(0)] == [[1, 2]]


def test_threads_may_match_and_change_at_the_same_time():
    documents = [Document.parse(f"<r><a>{i}</a><b/></r>".encode()) for i in range(4)]
    matcher = Matcher([Pattern.parse(f"//a[.='{i}']{{val}}") for i in range(4)])
    failures = []

    def matching(i):
        answers = [matcher.match(documents[i]).keys for _ in range(60)]
        failures.extend(keys for keys in answers if i not in keys)

    def changing():
        for _ in range(150):
            matcher.remove(matcher.add(Pattern.parse("//b[.='1']")))

    threads = [threading.Thread(target=matching, args=(i,)) for i in range(4)]
    threads.append(threading.Thread(target=changing))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert len(matcher) == 4


def test_sets_of_matches_are_sorted_and_without_repeats():
    document = Document.parse(auction_document(3, size_bytes=10_000))
    rng = random.Random(3)
    matches = Matcher([random_pattern(rng, SHAPE) for _ in range(300)]).match(document)
    for i in range(len(matches)):
        assert all((np.diff(s) > 0).all() for s in matches.sets(i))
