"""The DHT's keys: replaced at revocation, the previous one accepted for a while."""

import pytest

from overlay.identity import DhtKey, DhtKeys
from overlay.identity.dht_keys import DHT_GRACE, fresh_dht_key
from tests.overlay.identity.networks import MINUTE, NOW

FIRST = DhtKeys(fresh_dht_key(1))


def test_keys_are_random_and_secret():
    assert len(FIRST.current.secret) == 32
    assert fresh_dht_key(1) != FIRST.current
    assert repr(FIRST.current) == "DhtKey(number=1)"


def test_after_a_rotation_the_previous_key_is_accepted_for_the_grace_time():
    keys = FIRST.rotated(NOW)
    assert keys.current.number == 2
    assert keys.accepted(2, NOW) == keys.current
    assert keys.accepted(1, NOW + DHT_GRACE - MINUTE) == FIRST.current
    assert keys.accepted(1, NOW + DHT_GRACE) is None
    assert keys.accepted(3, NOW) is None
    assert FIRST.accepted(2, NOW) is None


def test_only_the_last_two_keys_are_kept():
    keys = FIRST.rotated(NOW).rotated(NOW)
    assert keys.accepted(1, NOW) is None
    assert keys.accepted(2, NOW) is not None


def test_a_key_that_is_not_newer_changes_nothing():
    keys = FIRST.rotated(NOW)
    assert keys.succeeded_by(FIRST.current, NOW) is keys
    assert keys.succeeded_by(fresh_dht_key(2), NOW) is keys
    assert keys.succeeded_by(fresh_dht_key(9), NOW).current.number == 9


@pytest.mark.parametrize(("number", "size"), [(0, 32), (1, 31), (-1, 32)])
def test_a_key_of_another_shape_is_refused(number, size):
    with pytest.raises(ValueError, match="a DHT key has"):
        DhtKey(number, bytes(size))
