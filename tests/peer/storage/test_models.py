"""Both stores do what plain dicts do, through any sequence of calls, restarts included."""

import tempfile
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from peer.storage import (
    Begin,
    Cursor,
    Drain,
    DropCursor,
    End,
    Entry,
    Frontier,
    Kind,
    NewDocument,
    NewSubscription,
    Refused,
    ResultLimits,
    Results,
    ResultStore,
    Retention,
    SourceLog,
    Start,
    Withdrawal,
)
from tests.oracles.stores_model import LogModel, ResultModel, flattened, told

SEQUENCES = settings(max_examples=100, stateful_step_count=25)
NAMES = st.sampled_from("abc")
BODIES = st.sampled_from([b"", b"x", b"y" * 100, b"z" * 400])


class Stored(RuleBasedStateMachine):
    """A store in a folder of its own, a clock, and restarts."""

    def __init__(self):
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.path = Path(self.folder.name) / "store.db"
        self.now = 1000.0
        self.open()

    def open(self):
        self.store = self.opened()
        # The disk is not what is tested here, and waiting for it is most of the time.
        self.store._database._writer.execute("PRAGMA synchronous = OFF")

    @rule()
    def reopen(self):
        self.store.close()
        self.open()

    @rule(seconds=st.sampled_from([1, 30, 60]))
    def wait(self, seconds):
        self.now += seconds

    @rule()
    def trim(self):
        self.store.trim(self.now)
        self.model.trim(self.now, self.limits)

    def teardown(self):
        self.store.close()
        self.folder.cleanup()


documents = st.builds(NewDocument, NAMES, st.sampled_from("1234567"), st.just("n"), BODIES)
subscriptions = st.builds(
    NewSubscription,
    NAMES,
    st.sampled_from(["//a", "//b"]),
    st.just(b"c"),
    st.just("here"),
    st.sampled_from([None, 3]),
    st.sampled_from([Start.NOW, Start.EARLIEST, -1, 0, 3, 12]),
)
new_entries = st.one_of(documents, documents, documents, subscriptions, st.builds(Withdrawal, NAMES))


class LogAgainstModel(Stored):
    limits = Retention(document_bytes=1500, document_age_s=100, keys=3, key_age_s=150)

    def __init__(self):
        self.model = LogModel()
        super().__init__()

    def opened(self):
        return SourceLog.open(self.path, limits=self.limits, clock=lambda: self.now)

    @rule(entries=st.lists(new_entries, max_size=8))
    def append(self, entries):
        outcomes = [Refused if isinstance(o, Refused) else o for o in self.store.append(entries)]
        assert outcomes == self.model.append(entries, self.now)

    @rule(skipped=st.integers(-3, 4))
    def begin_generation(self, skipped):
        above = self.model.last + skipped
        self.model.begin_generation(above)
        assert self.store.begin_generation(above).generation == self.model.generation

    @rule(after=st.integers(0, 20), upto=st.integers(0, 40), max_bytes=st.sampled_from([0, 200, 600]))
    def read(self, after, upto, max_bytes):
        found, position = {}, after
        while items := self.store.documents(position, upto, max_bytes):
            assert not set(found) & set(flattened(items))
            found.update(flattened(items))
            position = max(flattened(items))
        assert found == self.model.read(after, upto)

    @invariant()
    def holds_the_same(self):
        extent = self.store.extent()
        model = self.model
        assert (extent.generation, extent.lowest, extent.last) == (model.generation, model.lowest, model.last)
        assert extent.held_bytes == model.held()
        assert flattened(self.store.documents(0, model.last, 1 << 40)) == {
            n: item for n, item in model.read(0, model.last).items() if not self.is_told_later(n)
        }
        catalog = self.store.subscriptions() + self.store.ended()
        assert {entry.id: entry for entry in catalog} == model.subscriptions

    def is_told_later(self, number):
        """Behind the last document there may be a hole, told when it is asked for."""
        return bool(self.model.documents) and number > max(self.model.documents)


steps = st.lists(
    st.tuples(
        st.integers(1, 3),
        st.sampled_from([Kind.BATCH, Kind.BATCH, Kind.ERROR, Kind.GAP]),
        BODIES,
        st.integers(0, 2),
    ),
    max_size=6,
)


class ResultsAgainstModel(Stored):
    limits = ResultLimits(kept_bytes=800, kept_age_s=100, hard_bytes=1600)

    def __init__(self):
        self.model = ResultModel()
        super().__init__()

    def opened(self):
        return ResultStore.open(self.path, limits=self.limits, clock=lambda: self.now)

    @rule(name=NAMES, start=st.integers(0, 5))
    def begin(self, name, start):
        if name not in self.model.hosted:
            self.store.commit([Begin(name, "//a", b"c", start, 1)])
            self.model.begin(name, start, 1)

    @rule(
        name=NAMES, back=st.integers(0, 6), steps=steps, ahead=st.integers(0, 3), newer=st.sampled_from([0, 0, 1])
    )
    def results(self, name, back, steps, ahead, newer):
        """Results from somewhat below the frontier on: sent again, and further."""
        if name not in self.model.hosted:
            return
        frontier = self.model.hosted[name].frontier
        number, entries = max(0, frontier.upto - back), []
        for distance, kind, data, length in steps:
            begin, number = number + distance - 1, number + distance + length
            is_gap = kind is Kind.GAP
            entries.append(Entry(number, kind, "n", data, begin if is_gap else None))
        reached = Frontier(frontier.generation + newer, max(number + ahead, frontier.upto))
        self.store.commit([Results(name, entries, reached)])
        self.model.results(name, entries, reached, self.now)

    @rule(name=NAMES, distance=st.integers(-2, 5))
    def drain(self, name, distance):
        if name in self.model.hosted:
            end = self.model.hosted[name].frontier.upto + distance
            self.store.commit([Drain(name, end)])
            self.model.drain(name, end)

    @rule(name=NAMES)
    def end(self, name):
        if name in self.model.hosted:
            self.store.commit([End(name)])
            self.model.finish(name, self.now)

    @rule(name=NAMES, reader=st.sampled_from("xy"), back=st.integers(0, 9))
    def advance(self, name, reader, back):
        if name in self.model.hosted:
            one = self.model.hosted[name]
            upto = max(0, one.frontier.upto - back)
            self.store.commit([Cursor(name, reader, upto)])
            one.cursors[reader] = max(upto, one.cursors.get(reader, 0))

    @rule(name=NAMES, reader=st.sampled_from("xy"))
    def drop_cursor(self, name, reader):
        if name in self.model.hosted:
            self.store.commit([DropCursor(name, reader)])
            self.model.hosted[name].cursors.pop(reader, None)

    @rule(name=NAMES, after=st.integers(0, 20), upto=st.integers(0, 40), max_bytes=st.sampled_from([0, 200, 600]))
    def read(self, name, after, upto, max_bytes):
        if name in self.model.hosted:
            found, position = {}, after
            while entries := self.store.entries(name, position, upto, max_bytes):
                assert not set(found) & set(told(entries))
                found.update(told(entries))
                position = entries[-1].number
            assert found == self.model.read(name, after, upto)

    @invariant()
    def holds_the_same(self):
        hosted = {h.id: h for h in self.store.subscriptions()}
        assert set(hosted) == set(self.model.hosted)
        assert self.store.held_bytes == self.model.held()
        for name, one in self.model.hosted.items():
            found = hosted[name]
            assert (found.frontier, found.lowest) == (one.frontier, one.lowest)
            assert (found.state.value, found.end) == (one.state, one.end)
            assert self.store.cursors(name) == one.cursors
            entries = self.store.entries(name, 0, one.frontier.upto, 1 << 40)
            assert told(entries) == self.model.read(name, 0, one.frontier.upto)


LogAgainstModel.TestCase.settings = SEQUENCES
ResultsAgainstModel.TestCase.settings = SEQUENCES
TestLogAgainstModel = LogAgainstModel.TestCase
TestResultsAgainstModel = ResultsAgainstModel.TestCase
