"""Asking the source while it is away: what the user is told at the end."""

from types import SimpleNamespace

import pytest
import trio

from peer.daemon.asking_source import AskingSource
from peer.daemon.questions import NoAnswer, NotConnected, Unreachable


def asking(failures, *, connected=None, check=lambda: None):
    """A way to a source that fails like this."""

    async def ask(site, what, body, *, patience_s):
        raise failures.pop(0)

    event = connected or trio.Event()
    return AskingSource(
        "source", SimpleNamespace(ask=ask), SimpleNamespace(check_not_revoked=check), lambda: event
    )


async def test_it_ends_after_half_a_minute_and_says_that_nothing_was_changed(autojump_clock):
    begun = trio.current_time()
    with pytest.raises(Unreachable, match=r"nothing was changed; try again when the source is back"):
        await asking([NotConnected("source is not connected")] * 3).ask("subscribe", {})
    assert 29 < trio.current_time() - begun < 31


async def test_what_was_sent_and_not_answered_may_have_been_done(autojump_clock):
    failures = [Unreachable("the connection to source broke"), NotConnected("not connected"), NotConnected("no")]
    with pytest.raises(Unreachable, match="it may have been done all the same"):
        await asking(failures).ask("subscribe", {})


async def test_who_is_told_that_it_is_revoked_while_it_waits_does_not_wait_any_longer(autojump_clock):
    begun = trio.current_time()

    def check():
        if trio.current_time() - begun > 2:
            raise NoAnswer("revoked")

    with pytest.raises(NoAnswer, match="revoked"):
        await asking([], check=check).ask("subscribe", {})
    assert trio.current_time() - begun < 3
