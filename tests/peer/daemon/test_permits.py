"""Permits: who may open a feed with which signed configuration."""

from datetime import UTC, datetime, timedelta

import pytest

from overlay.identity import Untrusted, create_network, first_list
from overlay.wire.frames import Open
from peer.daemon.permits import Permits
from peer.hosting.configuration import Configuration, Input


@pytest.fixture
def permits(tmp_path):
    made = create_network(tmp_path, "test", datetime.now(UTC))
    nobody = first_list("test", made.authority.intermediate, dht_key=1)
    return Permits(made.credential, lambda: nobody)


def configuration(epoch=1, revision=1, site="p1", generation=1):
    choices = ((Input("up", "p9", "//a{val}"),),)
    return Configuration("s", site, "//a{val}", generation, epoch, revision, 0, 3, choices)


def asked(permits, *, downstream="s", query="//a{val}", upstream="up", **fields):
    return Open(1, upstream, downstream, query, b"", permits.sign(configuration(**fields)), 1, 0, 100)


def test_a_permit_holds_for_its_own_site_and_subscription(permits):
    assert permits.forbids("p1", asked(permits)) == ""
    assert "another" in permits.forbids("p2", asked(permits))
    assert "another" in permits.forbids("p1", asked(permits, downstream="t"))
    assert "another" in permits.forbids("p1", asked(permits, query="//b{val}"))


def test_it_names_whom_it_may_read(permits):
    assert permits.names(asked(permits), "p9") == ""
    assert "does not name" in permits.names(asked(permits), "p8")
    assert "does not name" in permits.names(asked(permits, upstream="other"), "p9")


def test_an_old_one_is_refused_once_a_newer_has_been_seen(permits):
    old, new = asked(permits, revision=1), asked(permits, revision=2)
    assert permits.forbids("p1", old) == ""
    assert permits.forbids("p1", new) == ""
    assert permits.forbids("p1", new) == ""
    assert "newer" in permits.forbids("p1", old)


def test_the_epoch_before_counts_and_older_ones_do_not(permits):
    permits.open(permits.sign(configuration(epoch=3)))
    assert permits.epoch == 3
    assert permits.forbids("p1", asked(permits, epoch=2)) == ""
    assert "epoch 1" in permits.forbids("p1", asked(permits, epoch=1))


@pytest.mark.parametrize("data", [b"", b"rubbish", b"\x93\x01\x02\x03"])
def test_what_the_source_has_not_signed_is_no_permit(permits, data):
    frame = Open(1, "up", "s", "//a{val}", b"", data, 1, 0, 100)
    assert permits.forbids("p1", frame)


def test_a_new_generation_counts_epochs_anew_and_ends_the_permits_of_the_old_one(permits):
    assert permits.forbids("p1", asked(permits, epoch=7)) == ""
    assert permits.forbids("p1", asked(permits, epoch=2, generation=5)) == ""
    assert permits.forbids("p1", asked(permits, epoch=7)) == (
        "the permit is of generation 1 of the log; it is 5 now"
    )


def test_what_is_kept_is_opened_after_its_signers_certificate_has_ended(tmp_path):
    made = create_network(tmp_path, "test", datetime.now(UTC) - timedelta(days=40))
    nobody = first_list("test", made.authority.intermediate, dht_key=1)
    permits = Permits(made.credential, lambda: nobody)
    signed = permits.sign(configuration())
    assert permits.open_kept(signed) == configuration()
    with pytest.raises(Untrusted, match="ended"):
        permits.open(signed)
