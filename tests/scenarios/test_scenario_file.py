"""Scenario files: what is wrong is said before anything starts; what ships is right."""

from itertools import islice

import pytest

from peer.cli import main
from scenarios.commands.scenario import _shipped
from scenarios.running.cast import cast_of, endless_documents, links_of
from scenarios.scenario_file import BadScenario, parse_scenario
from scenarios.timeline import timeline

GOOD = "title = 'x'\n[subscriptions]\ncount = 4\n"


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ("[hosts]\ncount = 0", r"\$\.hosts\.count"),
        ("[hosts]\nnumber = 3", "unknown field `number`"),
        ("[links]\nrtt_ms = [40, 5]", "the least comes first"),
        ("[links]\nloss = 1.0", r"\$\.links\.loss"),
        ("[[faults]]\nat = 1", "one thing happens at a time, and this says nothing"),
        ("[[faults]]\nat = 1\nkill = ['h00']\nheal = true", "this says kill, heal"),
        ("[[faults]]\nat = 1\nkill = ['h77']", r"faults\[0\]\.kill: there is no host h77; there are h00, h01"),
        ("[[subscriptions.listed]]\nhost = 'h00'\npattern = '//a['", r"listed\[0\]\.pattern: column 5"),
        ("[[links.between]]\nhosts = ['h00', 'nobody']", r"links\.between\[0\]\.hosts"),
        ("[[links.between]]\nhosts = ['h00', 'h00']", r"links\.between\[0\]\.hosts: h00 is said twice"),
        ("[[faults]]\nat = 1\nheal = true\nseconds = 2", r"faults\[0\]\.seconds: heal is not undone"),
        ("[[faults]]\nat = 1\nsubscribe = 1\nseconds = 2", r"faults\[0\]\.seconds: subscribe is not undone"),
        ("[[faults]]\nat = 1\nkill = ['h00', 'h00']", r"faults\[0\]\.kill: h00 is said twice"),
        ("[[faults]]\nat = 1\nstart = ['largest-feeder']", r"faults\[0\]\.start: largest-feeder is one that runs"),
        (
            "[[faults]]\nat = 1\nkill = ['largest-feeder', 'largest-feeder']",
            r"faults\[0\]\.kill: largest-feeder is said twice",
        ),
        (
            "[[faults]]\nat = 4\nkill = ['h01']\n[[faults]]\nat = 1\nkill = ['h01']\nseconds = 5",
            r"faults\[0\]\.kill: at 4 s h01 is away since 1 s \(faults\[1\]\)",
        ),
        (
            "[[faults]]\nat = 1\nkill = ['h01']\n[[faults]]\nat = 2\nfreeze = ['h01']",
            r"faults\[1\]\.freeze: at 2 s h01 is away since 1 s",
        ),
        (
            "[[faults]]\nat = 1\nfreeze = ['h01']\n[[faults]]\nat = 2\nstop = ['h01']",
            r"faults\[1\]\.stop: at 2 s h01 is frozen since 1 s",
        ),
        ("[[faults]]\nat = 1\nfreeze = ['source']", r"faults\[0\]\.freeze: the source is frozen for good"),
        ("[[faults]]\nat = 1\nleave = ['source']", r"faults\[0\]\.leave: a network cannot do without its source"),
        (
            "[[faults]]\nat = 1\nkill = ['h04']\n[[faults]]\nat = 2\njoin = 1",
            r"faults\[0\]\.kill: at 1 s h04 is not there yet",
        ),
        (
            "[[faults]]\nat = 1\nleave = ['h02']\n[[faults]]\nat = 2\nstart = ['h02']\n"
            "[[faults]]\nat = 3\nkill = ['h02']",
            r"faults\[2\]\.kill: at 3 s h02 is gone since 1 s",
        ),
        ("[documents]\nrate = 'fast'", r"matching regex '\^full\$' - at `\$\.documents\.rate`"),
        ("[documents]\nrate = 0", r"\$\.documents\.rate"),
        ("[documents]\nrate = 'full'", r"documents\.seconds: say for how long"),
        ("[documents]\nrate = 'full'\nseconds = 0", r"\$\.documents\.seconds"),
        (
            "[documents]\nrate = 'full'\nseconds = 9\ncount = 3",
            r"documents\.count: at rate = \"full\" the network",
        ),
        ("[documents]\nrate = 'full'\nseconds = 9\nahead = 0", r"\$\.documents\.ahead"),
        ("[documents]\nseconds = 9", r"documents\.seconds: it goes with rate = \"full\""),
        ("[documents]\nrate = 2\nahead = 9", r"documents\.ahead: it goes with rate = \"full\""),
        (
            "[documents]\nrate = 'full'\nseconds = 9\n[[faults]]\nat = 8\nkill = ['source']",
            r"faults\[0\]\.kill: the source is away for good",
        ),
        ("nonsense", "after a key"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(more, said):
    with pytest.raises(BadScenario, match=said) as caught:
        parse_scenario(GOOD + more, "my.toml")
    assert str(caught.value).startswith("my.toml: ")
    assert "\n" not in str(caught.value)


def test_what_was_undone_can_be_done_again():
    faults = [
        "at = 1\nkill = ['h01']\nseconds = 1", "at = 3\nstop = ['h01']", "at = 4\nstart = ['h01']",
        "at = 5\nfreeze = ['h01']", "at = 6\nkill = ['h01', 'largest-feeder']\nseconds = 1",
        "at = 8\nkill = ['source', 'h01']\nseconds = 1", "at = 50\nkill = ['source']",
    ]  # fmt: skip
    found = parse_scenario(GOOD + "".join(f"[[faults]]\n{one}\n" for one in faults), "x")
    assert len(found.faults) >= len(faults)


def test_a_scenario_without_subscriptions_is_none():
    with pytest.raises(BadScenario, match="say a count"):
        parse_scenario("title = 'x'", "x")


@pytest.mark.parametrize("name", sorted(_shipped()))
def test_what_ships_is_right(name):
    scenario = parse_scenario(_shipped()[name], name)
    assert scenario.title == name
    assert scenario.about.endswith(".")
    part = scenario.documents
    last = part.last_s if part.per_s is None else part.known / part.per_s
    assert all(event.at <= last for event in timeline(scenario))


def test_the_biggest_feeder_dies_at_full_load_which_goes_on_when_it_is_back():
    scenario = parse_scenario(_shipped()["biggest-feeder-dies"], "x")
    assert scenario.documents.rate == "full"
    kills = [fault for fault in scenario.faults if fault.kill == ["largest-feeder"]]
    assert len(kills) == len(scenario.faults) > 0
    assert all(0 < one.at < one.at + one.seconds < scenario.documents.last_s for one in kills)


def test_the_documents_of_a_full_load_are_others_than_those_before_it():
    text = GOOD + "[plan]\n[documents]\nrate = 'full'\nseconds = 9\nwarm = 2"
    scenario = parse_scenario(text, "x")
    cast = cast_of(scenario)
    more = list(islice(endless_documents(scenario), 30))
    assert cast.documents == []
    assert len({*cast.warm, *cast.sample, *more}) == 2 + 5 + 30


@pytest.mark.parametrize("name", sorted(_shipped()))
def test_what_ships_passes_its_check(name, capsys):
    assert main(["scenario", "check", name]) == 0
    assert "nothing is wrong with it" in capsys.readouterr().out


@pytest.mark.parametrize("limit", ["5", "10", "30", "50", "100", "none"])
def test_the_wan_run_can_be_had_with_every_limit_of_the_paper(limit, capsys):
    change = f"subscriptions.limit={limit}"
    assert main(["scenario", "check", "wan-10k", "--set", change]) == 0
    part = parse_scenario(_shipped()["wan-10k"], "wan-10k", [change]).subscriptions
    assert part.most_feeds() == (None if limit == "none" else int(limit))


def test_a_subscription_has_the_limit_of_all_or_its_own_or_none():
    listed = "".join(
        f"[[subscriptions.listed]]\nhost = 'h00'\npattern = '//a{{val}}'\n{limit}\n"
        for limit in ("", "limit = 7", "limit = 'none'")
    )
    for limit, expected in ((3, [3, 7, None]), ("'none'", [None, 7, None])):
        found = parse_scenario(f"title = 'x'\n[subscriptions]\nlimit = {limit}\n{listed}", "x")
        assert [wish.limit for wish in cast_of(found).first] == expected
    with pytest.raises(BadScenario, match=r"\$\.subscriptions\.limit"):
        parse_scenario("title = 'x'\n[subscriptions]\ncount = 1\nlimit = 'many'", "x")


def test_the_wan_run_expects_what_is_its_goal():
    found = parse_scenario(_shipped()["wan-10k"], "wan-10k")
    assert (found.expect.latency_s_at_most, found.expect.delivery_s_at_most) == (0.8, 1.2)
    assert found.documents.rate == 2


def test_the_same_seed_draws_the_same_and_another_does_not():
    one, two = (parse_scenario(f"seed = {n}\n{GOOD}[links]\nrtt_ms = [5, 40]", "x") for n in (1, 2))
    assert cast_of(one) == cast_of(one)
    assert links_of(one) == links_of(one)
    assert links_of(one) != links_of(two)
    assert cast_of(one).documents != cast_of(two).documents
    assert all(5 <= link.rtt_ms <= 40 for link in links_of(one)[1].values())
    assert len(links_of(one)[1]) == 5 * 4 // 2


def test_what_is_undone_comes_after_what_it_undoes():
    text = GOOD + "[[faults]]\nat = 4\nfreeze = ['h01']\nseconds = 2\n[[faults]]\nat = 1\nunsubscribe = 2"
    events = timeline(parse_scenario(text, "x"))
    assert [(e.at, e.do) for e in events] == [(1.0, "unsubscribe"), (4.0, "freeze"), (6.0, "thaw")]
    assert events[2].undoes == events[1].number


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("hosts.count", "expected KEY=VALUE"),
        ("=3", "expected KEY=VALUE"),
        ("hosts..count=3", "expected KEY=VALUE"),
        ("hosts.count=few", "Expected `int`, got `str`"),
        ("hosts.cout=3", "unknown field `cout`"),
        ("title.of=3", "title is no table"),
        ("replans.at=3", "replans is no table"),
    ],
)
def test_a_change_that_is_none_is_refused(change, said):
    text = "title = 'x'\nreplans = [{at = 1.0}]\n[subscriptions]\ncount = 1\n"
    with pytest.raises(BadScenario, match=said):
        parse_scenario(text, "x.toml", [change])


def test_changes_are_values_of_toml_or_texts():
    text = "title = 'x'\n[subscriptions]\ncount = 1\n"
    changes = ["links.rtt_ms=[5, 40]", "hosts.relay=never", 'about="a = b"', "replans=[{at=3.0, latency=false}]"]
    found = parse_scenario(text, "x.toml", changes)
    assert (found.links.range_ms, found.hosts.relay, found.about) == ((5, 40), "never", "a = b")
    assert [(one.at, one.latency) for one in found.replans] == [(3.0, False)]
