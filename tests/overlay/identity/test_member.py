"""Names, roles and addresses that are taken, and those that are not."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from overlay.identity import Address, BadName, NotPermitted, Role
from overlay.identity.address import MOST_ADDRESSES, parse_addresses
from overlay.identity.member import check_name, roles_named
from tests.overlay.identity.networks import NOW


@pytest.mark.parametrize("name", ["a", "node-7.example_A", "7", "x" * 64])
def test_a_plain_name_is_taken(name):
    assert check_name("site", name) == name


@pytest.mark.parametrize("name", ["", "x" * 65, ".hidden", "..", "-rf", "a/b", "a b", "ä", "a\n", "a\0", "७"])
def test_a_name_that_could_mean_something_else_is_refused(name):
    with pytest.raises(BadName, match="a name has 1 to 64 letters"):
        check_name("site", name)


def test_roles_are_named_as_in_certificates():
    assert roles_named(["source", "planner"]) == {Role.SOURCE, Role.PLANNER}
    with pytest.raises(BadName, match="roles are source, publisher, subscriber, planner"):
        roles_named(["admin"])
    with pytest.raises(BadName, match="at least one role"):
        roles_named([])


@pytest.mark.parametrize("text", ["a.example:1", "10.0.0.7:65535", "[::1]:7400", "[fe80::1.2.3.4]:80"])
def test_an_address_is_read_and_written_alike(text):
    assert str(Address.parse(text)) == text


@pytest.mark.parametrize(
    "text", ["", "a", "a:", ":1", "a:0", "a:65536", "a:-1", "a b:1", "::1:80", "[]:1", "a:1\n", "a:१"]
)
def test_what_is_no_address_is_refused(text):
    with pytest.raises(BadName, match="host:port"):
        Address.parse(text)


def test_only_some_addresses_are_kept():
    with pytest.raises(BadName, match="at most 8"):
        parse_addresses(["a:1"] * (MOST_ADDRESSES + 1))


@given(st.text())
def test_a_message_about_a_name_is_one_line(text):
    with pytest.raises(BadName) as refused:
        Address.parse(text + ":")
    assert len(str(refused.value).splitlines()) == 1


def test_a_member_has_the_roles_of_its_certificate_only(net):
    member = net.signer("b", [Role.PUBLISHER]).member
    member.require(Role.PUBLISHER)
    member.check_time(NOW)
    with pytest.raises(NotPermitted, match="site b: its certificate does not give it the role source"):
        member.require(Role.SOURCE)
