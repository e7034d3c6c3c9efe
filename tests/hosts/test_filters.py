"""Key-value subscriptions from the command line, against daemons as processes."""

import json
import random

from peer.cli import main
from rewriting.filters import Filter
from scenarios.processes import SOURCE, running
from tests.hosts.test_service import until

FILTERS = {"paris": ["topic = 'sport'", "topic = 'sport' and price < 50 and stock != 3"]}


def told(capsys, *words):
    """Run a command, and return what it printed."""
    assert main(list(words)) == 0
    return capsys.readouterr().out


def test_filters_get_the_messages_that_satisfy_them_over_feeds_and_in_a_space(tmp_path, capsys):
    rng = random.Random(3)
    with running(tmp_path) as network:
        network.start_source()
        wanted = {}
        for site, texts in FILTERS.items():
            network.join(site)
            network.start_peer(site)
            for text in texts:
                home = str(network.home(site))
                name = told(capsys, "subscribe", "--filter", text, "--whole", "--home", home).strip()
                wanted[name] = Filter.parse(text), home
        messages = {}
        for _ in range(8):
            message = {"topic": rng.choice(("sport", "art")), "price": str(rng.randint(10, 90))}
            if rng.random() < 0.7:
                message["stock"] = str(rng.randint(0, 4))
            pairs = [f"{name}={value}" for name, value in message.items()]
            out = told(capsys, "publish", "--attributes", *pairs, "--home", str(network.home(SOURCE)), "--json")
            messages[json.loads(out)["number"]] = message
        assert len(messages) == 8, "equal messages are two messages"
        for name, (filtered, home) in wanted.items():

            def results(name=name, home=home):
                lines = map(json.loads, told(capsys, "results", name, "--home", home).splitlines())
                return list(lines)

            until(lambda results=results: results()[-1].get("complete", 0) >= max(messages))
            rows = {one["document"]: one["row"] for one in results() if "row" in one}
            assert rows.keys() == {number for number, one in messages.items() if filtered.matches(one)}
            for number, row in rows.items():
                assert row["message.cont"].startswith("<message ")
                for c in filtered.conditions:
                    assert row[f"@{c.attribute}.val"] == messages[number][c.attribute]
        use_a_space(network, capsys)


def use_a_space(network, capsys):
    """Declare a space, subscribe in it, publish, and read what has come."""
    source, paris = ["--home", str(network.home(SOURCE))], ["--home", str(network.home("paris"))]
    create = ["space", "create", "market", "price:number:0:100", "topic:hashed", *source]
    assert told(capsys, *create).strip() == "market"
    assert "before" in told(capsys, *create)
    assert main(["space", "create", "market", "price:number:0:99", *source]) == 2
    assert "another space" in capsys.readouterr().err
    asked = ["subscribe", "--space", "market", "--filter", "price < 50 or topic = 'sport'", *paris]
    name = told(capsys, *asked).strip()
    assert main(["subscribe", "--space", "nowhere", "--filter", "price < 50", *paris]) == 2
    assert "no space nowhere" in capsys.readouterr().err
    numbers = []
    for pairs in (["price=10"], ["price=90"], ["price=90", "topic=sport", "photo=x"]):
        out = told(capsys, "publish", "--space", "market", "--attributes", *pairs, "--json", *source)
        numbers.append(json.loads(out)["number"])
        if len(numbers) == 1:
            network.kill("paris")  # the owner of all zones, at any moment
    network.start_peer("paris")

    def messages():
        return [json.loads(line) for line in told(capsys, "messages", name, *paris).splitlines()]

    until(lambda: messages()[-1]["complete"] >= numbers[-1])
    found = {one["message"]: one["attributes"] for one in messages()[:-1]}
    assert found == {numbers[0]: {"price": "10"}, numbers[2]: {"price": "90", "topic": "sport", "photo": "x"}}
    (listed,) = map(json.loads, told(capsys, "space", "list", "--json", *source).splitlines())
    assert (listed["subscriptions"], listed["zones"], listed["complete"]) == (1, {"paris": 1}, numbers[-1])
    assert main(["unsubscribe", name, *paris]) == 0


def test_what_is_no_filter_or_message_is_refused(tmp_path, capsys):
    home = ["--home", str(tmp_path)]
    for words, reason in [
        (["subscribe"], "a pattern, or a filter"),
        (["subscribe", "//a{val}", "--filter", "a = 1"], "a pattern, or a filter"),
        (["subscribe", "//a{val}", "--whole"], "go with --filter"),
        (["subscribe", "--filter", "a = "], "--filter: column 5"),
        (["subscribe", "--filter", "a < 1 and a > 2"], "no value of a"),
        (["subscribe", "--filter", "a prefix 'x'"], "has no pattern"),
        (["subscribe", "--space", "s", "--filter", "a < "], "--filter: column 5"),
        (["subscribe", "--space", "s", "--filter", "a < 1", "--whole"], "with --filter alone"),
        (["space", "create", "s", "price:number"], "expected price:number:LOW:HIGH"),
        (["space", "create", "s", "price:number:0:x"], "bounds are numbers"),
        (["messages", "c-1", "--since", "-1"], "0 or more"),
        (["publish", "--attributes", "a"], "expected NAME=VALUE"),
        (["publish", "--attributes", "a=1", "a=2"], "twice"),
        (["publish", "--attributes", "1a=1"], "no attribute name"),
        (["publish", "x.xml", "--attributes", "a=1"], "one message"),
    ]:
        assert main([*words, *home]) == 2
        assert reason in capsys.readouterr().err
