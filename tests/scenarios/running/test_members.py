"""Hosts that leave: where their subscriptions end is taken from their stores, unless that is too early."""

import sqlite3

import pytest

from scenarios.running.members import end_those_who_left
from scenarios.running.story import Left, Story
from scenarios.running.truth import Owed
from xmlmatch import Pattern


def one(name, end):
    return Owed(name, "h00", Pattern.parse("//a{val}"), 2, end)


@pytest.mark.parametrize(
    ("end_number", "end", "wrong"),
    [(9, 9, []), (6, 6, ["s0 at h00, which left after 7, ends with 6"]),
     (None, 7, ["s0 at h00, which left after 7, ends nowhere"])],
)  # fmt: skip
def test_a_subscription_ends_where_the_store_says_but_not_before_it_was_asked_to(tmp_path, end_number, end, wrong):
    store = tmp_path / "results.sqlite"
    with sqlite3.connect(store) as connection:
        connection.execute("CREATE TABLE hosted (id TEXT, end_number INTEGER)")
        connection.execute("INSERT INTO hosted VALUES ('s0', ?)", (end_number,))
    connection.close()
    story = Story(owed={"s0": one("s0", None), "s1": one("s1", 3)}, left={"h00": Left(7, 100.0)})
    assert end_those_who_left(story, {"h00": store}) == wrong
    assert (story.owed["s0"].end, story.owed["s0"].end_known_at) == (end, 100.0)
    assert story.owed["s1"].end == 3
