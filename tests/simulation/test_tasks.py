"""Coroutines in virtual time: they wait for promises, take turns, and end with their process."""

import pytest

from scenarios.simulation.tasks import Promise, Tasks, Turn, at_once


async def note(told, name, turn, promise):
    async with turn:
        told.append(f"{name} begins")
        told.append(await promise)
        told.append(await at_once(str.upper, name))


def test_who_comes_first_has_the_turn_until_what_it_waits_for_is_there():
    told, tasks, turn, promises = [], Tasks(), Turn(), [Promise(), Promise(), Promise()]
    for name, promise in zip("abc", promises, strict=True):
        tasks.start(note(told, name, turn, promise))
    promises[1].keep(2)
    assert told == ["a begins"]
    promises[0].keep(1)
    assert told == ["a begins", 1, "A", "b begins", 2, "B", "c begins"]
    promises[2].keep(3)
    assert told[-2:] == [3, "C"]


def test_nothing_of_a_process_goes_on_once_it_has_ended():
    told, tasks, turn, promise = [], Tasks(), Turn(), Promise()
    tasks.start(note(told, "a", turn, promise))
    tasks.start(note(told, "b", turn, promise))
    tasks.end()
    promise.keep(1)
    assert told == ["a begins"]


def test_an_error_is_told_to_who_waits_and_one_that_nobody_handles_is_not_swallowed():
    told, tasks, promise = [], Tasks(), Promise()

    async def careful():
        try:
            await promise
        except KeyError as exc:
            told.append(f"no {exc.args[0]}")

    async def careless():
        await promise

    tasks.start(careful())
    tasks.start(careless())
    with pytest.raises(KeyError):
        promise.fail(KeyError("answer"))
    assert told == ["no answer"]
