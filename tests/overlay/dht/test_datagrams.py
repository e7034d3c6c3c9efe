"""Only members of the network make datagrams that open, and each opens once."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from overlay.dht.datagrams import MOST_DATAGRAM, OVERHEAD, KeyRing, NetworkKey, Opened, Refusal, Seal
from overlay.dht.replay import WIDTH, ReplayWindows

NOW = 1_700_000_000.0
OLD, NEW, OTHER = (NetworkKey.of(bytes([i]) * 32) for i in range(3))


def seal_of(key=OLD, instance=b"sender.."):
    return Seal(KeyRing(key), instance)


def receiver(key=OLD):
    return seal_of(key, b"receiver")


@given(st.binary(max_size=300))
def test_what_is_sealed_opens_to_the_same_payload(payload):
    assert receiver().open_untrusted(seal_of().seal(payload, now=NOW), now=NOW) == Opened(payload, OLD)


@given(st.binary(max_size=MOST_DATAGRAM + 10))
def test_random_bytes_never_open(data):
    assert isinstance(receiver().open_untrusted(data, now=NOW), Refusal)


@given(st.binary(max_size=60), st.data())
def test_a_datagram_with_any_bit_changed_does_not_open(payload, data):
    datagram = bytearray(seal_of().seal(payload, now=NOW))
    at = data.draw(st.integers(0, len(datagram) - 1))
    datagram[at] ^= 1 << data.draw(st.integers(0, 7))
    assert isinstance(receiver().open_untrusted(bytes(datagram), now=NOW), Refusal)


def test_each_refusal_has_its_reason():
    datagram = seal_of().seal(b"x", now=NOW)
    reasons = {
        Refusal.MALFORMED: receiver().open_untrusted(datagram[: OVERHEAD - 1], now=NOW),
        Refusal.WRONG_KEY: receiver(OTHER).open_untrusted(datagram, now=NOW),
        Refusal.FORGED: receiver().open_untrusted(datagram[:-1] + bytes([datagram[-1] ^ 1]), now=NOW),
        Refusal.STALE: receiver().open_untrusted(datagram, now=NOW + 301),
        Refusal.REPLAYED: seal_of().open_untrusted(datagram, now=NOW),
    }
    assert {reason: reason for reason in reasons} == reasons


def test_a_datagram_of_another_version_is_malformed():
    datagram = seal_of().seal(b"x", now=NOW)
    assert receiver().open_untrusted(b"\x02" + datagram[1:], now=NOW) is Refusal.MALFORMED


def test_a_datagram_opens_once():
    to = receiver()
    datagram = seal_of().seal(b"x", now=NOW)
    assert to.open_untrusted(datagram, now=NOW) == Opened(b"x", OLD)
    assert to.open_untrusted(datagram, now=NOW) is Refusal.REPLAYED


def test_a_forged_datagram_does_not_use_up_the_number_of_a_true_one():
    to = receiver()
    datagram = seal_of().seal(b"x", now=NOW)
    forged = datagram[:-1] + bytes([datagram[-1] ^ 1])
    assert to.open_untrusted(forged, now=NOW) is Refusal.FORGED
    assert to.open_untrusted(datagram, now=NOW) == Opened(b"x", OLD)


def test_a_sender_that_starts_again_is_heard():
    to = receiver()
    first, second = seal_of(instance=b"instance"), seal_of(instance=b"restart.")
    datagrams = [seal.seal(b"x", now=NOW) for seal in (first, first, second)]
    assert [type(to.open_untrusted(datagram, now=NOW)) for datagram in datagrams] == [Opened] * 3


def test_a_payload_that_makes_too_large_a_datagram_is_not_sealed():
    seal = seal_of()
    assert len(seal.seal(bytes(MOST_DATAGRAM - OVERHEAD), now=NOW)) == MOST_DATAGRAM
    with pytest.raises(ValueError, match="payload"):
        seal.seal(bytes(MOST_DATAGRAM - OVERHEAD + 1), now=NOW)


@pytest.mark.parametrize("secret", [b"", b"x" * 15, b"x" * 65])
def test_a_key_of_a_bad_size_is_refused(secret):
    with pytest.raises(ValueError, match="DHT key"):
        NetworkKey.of(secret)


def test_a_key_does_not_show_in_its_text():
    assert "secret" not in repr(KeyRing(NetworkKey.of(b"secret" * 4)))


def test_an_instance_id_of_a_bad_size_is_refused():
    with pytest.raises(ValueError, match="instance"):
        Seal(KeyRing(OLD), b"short")


def test_after_a_rotation_both_keys_open_until_the_grace_time_ends():
    to = receiver()
    to.keys = to.keys.rotated(NEW, now=NOW, grace_s=10)
    by_old, by_new = seal_of(OLD, b"old....."), seal_of(NEW, b"new.....")
    for now in (NOW, NOW + 9.9):
        assert to.open_untrusted(by_old.seal(b"o", now=now), now=now) == Opened(b"o", OLD)
        assert to.open_untrusted(by_new.seal(b"n", now=now), now=now) == Opened(b"n", NEW)
    later = NOW + 10
    assert to.open_untrusted(by_old.seal(b"o", now=later), now=later) is Refusal.WRONG_KEY
    assert to.open_untrusted(by_new.seal(b"n", now=later), now=later) == Opened(b"n", NEW)


def test_rotating_to_the_key_in_use_does_not_lengthen_the_grace_time():
    keys = KeyRing(OLD).rotated(NEW, now=NOW, grace_s=10)
    assert keys.rotated(NEW, now=NOW + 5, grace_s=10) is keys


@given(st.lists(st.integers(0, 3 * WIDTH), max_size=200))
def test_windows_agree_with_remembering_everything(numbers):
    windows, seen, highest = ReplayWindows(), set(), -WIDTH
    for number in numbers:
        assert windows.takes(b"a", number) == (number not in seen and number > highest - WIDTH)
        seen.add(number)
        highest = max(highest, number)


def test_windows_are_kept_for_a_bounded_number_of_senders():
    windows = ReplayWindows(most=10)
    for i in range(1000):
        assert windows.takes(i.to_bytes(8, "big"), 2**64 - 1)
    assert windows.senders == 10


def test_a_sender_still_heard_of_is_not_forgotten():
    windows = ReplayWindows(most=3)
    for i in range(100):
        windows.takes(b"steady", i)
        windows.takes(bytes([i]), 1)
    assert not windows.takes(b"steady", 99)


def test_a_retired_key_opens_nothing_after_the_grace_time_until_another_comes():
    ring = KeyRing(OLD).retired(now=NOW, grace_s=10)
    assert [ring.accepted(NOW + 9), ring.accepted(NOW + 10)] == [[OLD], []]
    assert ring.retired(now=NOW + 5, grace_s=10) == ring
    assert ring.settled().accepted(NOW) == []
    newer = ring.rotated(NEW, now=NOW + 5, grace_s=10)
    assert [newer.accepted(NOW + 9), newer.accepted(NOW + 10)] == [[NEW, OLD], [NEW]]


def test_what_is_settled_does_not_come_back_when_a_clock_is_set_back():
    ring = KeyRing(OLD).rotated(NEW, now=NOW, grace_s=10)
    assert ring.settled().accepted(NOW) == [NEW]
