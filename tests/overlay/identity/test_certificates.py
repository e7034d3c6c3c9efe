"""Chains that prove who a site is, and every way in which they do not."""

from datetime import timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID, ObjectIdentifier
from hypothesis import example, given
from hypothesis import strategies as st

from overlay.identity import BadName, Role, Root, Signer, Untrusted, verify_chain
from overlay.identity.certificates import member_of_tls_peer, verify_intermediate
from overlay.identity.issuing import Issuer, make_intermediate, make_site
from overlay.identity.keys import fresh_key, public_bytes
from tests.overlay.identity.networks import DAY, MINUTE, NOW, MemoryNet

NET = MemoryNet()
KEY = fresh_key()
CHAIN = NET.chain(KEY, "node-7", [Role.PUBLISHER, Role.SUBSCRIBER], since=3)


def forged(
    net=NET, *, key=KEY, names=("b",), uris=None, extensions=(), san=True, usage=True, ca=False, end=NOW + DAY
):
    """A certificate that the intermediate signed although it is not as it should be."""
    uris = ["distributary:network:meteo", "distributary:since:0"] if uris is None else uris
    builder = (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name) for name in names]))
        .issuer_name(net.intermediate.certificate.subject)
        .public_key(key.public_key())
        .serial_number(7)
        .not_valid_before(NOW)
        .not_valid_after(end)
        .add_extension(x509.BasicConstraints(ca=ca, path_length=None), critical=True)
    )
    if san:
        names = x509.SubjectAlternativeName([x509.UniformResourceIdentifier(uri) for uri in uris])
        builder = builder.add_extension(names, critical=False)
    usages = [x509.oid.ExtendedKeyUsageOID.SERVER_AUTH, x509.oid.ExtendedKeyUsageOID.CLIENT_AUTH]
    builder = builder.add_extension(x509.ExtendedKeyUsage(usages if usage else usages[:1]), critical=False)
    for extension in extensions:
        builder = builder.add_extension(extension, critical=True)
    return builder.sign(net.intermediate.key, None).public_bytes(Encoding.DER), net.intermediate.der


def test_a_chain_tells_who_a_site_is():
    member = verify_chain(CHAIN, NET.root, NOW)
    assert (member.network, member.site, member.since) == ("meteo", "node-7", 3)
    assert member.roles == {Role.PUBLISHER, Role.SUBSCRIBER}
    assert member.public_key == public_bytes(KEY)
    assert member.not_after == NOW.replace(microsecond=0) + 30 * DAY
    assert member.not_before == NOW.replace(microsecond=0) - 5 * MINUTE
    assert member_of_tls_peer(CHAIN[0], NET.root, NOW) == member


def test_what_a_certificate_says_is_in_its_alternative_names():
    certificate = x509.load_der_x509_certificate(CHAIN[0])
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.UniformResourceIdentifier) == [
        "distributary:network:meteo",
        "distributary:role:publisher",
        "distributary:role:subscriber",
        "distributary:since:3",
    ]


def test_serial_numbers_differ_and_are_long():
    serials = {verify_chain(NET.chain(KEY), NET.root, NOW).serial for _ in range(8)}
    assert len(serials) == 8
    assert max(serials) > 1 << 120


def test_lifetimes_are_as_said():
    def lifetime(certificate):
        return certificate.not_valid_after_utc - certificate.not_valid_before_utc - 5 * MINUTE

    assert lifetime(NET.root.certificate) == 3650 * DAY
    assert lifetime(NET.intermediate.certificate) == 730 * DAY


def test_no_certificate_outlasts_its_issuer():
    late = NOW + 729 * DAY
    member = verify_chain(NET.chain(KEY, now=late), NET.root, late)
    assert member.not_after == NET.intermediate.certificate.not_valid_after_utc
    intermediate = make_intermediate(KEY.public_key(), NET.root_issuer, "meteo", NOW + 3600 * DAY)
    assert intermediate.not_valid_after_utc == NET.root.certificate.not_valid_after_utc


def test_clocks_may_differ_a_little():
    for offset in (-9 * MINUTE, 30 * DAY + 4 * MINUTE):
        verify_chain(CHAIN, NET.root, NOW + offset)


@pytest.mark.parametrize(
    ("offset", "reason"),
    [
        (-11 * MINUTE, "it is valid from .* compare the machines' clocks"),
        (30 * DAY + 5 * MINUTE, "it ended on 2030-06-16"),
        (timedelta(days=4000), "root certificate: it ended"),
        (timedelta(days=800), "intermediate certificate: it ended"),
    ],
)
def test_a_chain_outside_its_time_is_refused(offset, reason):
    with pytest.raises(Untrusted, match=reason):
        verify_chain(CHAIN, NET.root, NOW + offset)


def test_a_site_that_outlives_its_intermediate_is_refused_with_it():
    chain = forged(end=NOW + 1000 * DAY)
    verify_chain(chain, NET.root, NOW)
    with pytest.raises(Untrusted, match="intermediate certificate: it ended"):
        verify_chain(chain, NET.root, NOW + 800 * DAY)


@pytest.mark.parametrize("name", ["meteo", "other"])
def test_a_chain_of_another_authority_is_refused_even_under_the_same_name(name):
    with pytest.raises(Untrusted, match="not issued by this network's authority"):
        verify_chain(MemoryNet(name).chain(KEY), NET.root, NOW)


def test_a_site_of_another_intermediate_is_refused():
    other = MemoryNet()
    with pytest.raises(Untrusted, match="not issued by"):
        verify_chain((other.chain(KEY)[0], CHAIN[1]), NET.root, NOW)


@pytest.mark.parametrize("chain", [(), CHAIN[:1], (*CHAIN, NET.root.der)])
def test_a_chain_of_another_length_is_refused(chain):
    with pytest.raises(Untrusted, match="a site sends its own and one more"):
        verify_chain(chain, NET.root, NOW)


def test_a_site_cannot_issue():
    issuer = Issuer(x509.load_der_x509_certificate(CHAIN[0]), KEY)
    said = {"network": "meteo", "site": "c", "roles": {Role.SOURCE}, "since": 0}
    with pytest.raises(Untrusted):
        verify_chain(make_site(public_bytes(KEY), issuer, NOW, **said), NET.root, NOW)


def test_an_authority_is_no_site():
    with pytest.raises(Untrusted, match="an authority's, not a site's"):
        verify_chain(forged(ca=True), NET.root, NOW)
    with pytest.raises(Untrusted):
        member_of_tls_peer(NET.intermediate.der, NET.root, NOW)


def test_a_site_is_no_intermediate_and_no_root():
    direct = make_site(
        public_bytes(KEY), NET.root_issuer, NOW, network="meteo", site="c", roles={Role.SOURCE}, since=0
    )  # fmt: skip
    with pytest.raises(Untrusted, match="may not issue"):
        verify_intermediate(direct[0], NET.root)
    with pytest.raises(Untrusted, match="not issued by"):
        Root.from_der(CHAIN[0])
    with pytest.raises(Untrusted, match="not issued by"):
        Root.from_der(NET.intermediate.der)


def test_an_intermediate_of_another_network_under_the_same_root_is_refused():
    other = make_intermediate(KEY.public_key(), NET.root_issuer, "other", NOW)
    with pytest.raises(Untrusted, match="not of the network meteo"):
        verify_intermediate(other.public_bytes(Encoding.DER), NET.root)


META = "distributary:network:meteo"
ZERO = "distributary:since:0"


@pytest.mark.parametrize(
    ("how", "reason"),
    [
        ({"uris": ["distributary:network:other", ZERO]}, "not of the network meteo"),
        ({"uris": [ZERO]}, "does not name one network"),
        ({"uris": [META, META, ZERO]}, "does not name one network"),
        ({"uris": ["distributary:network:a b", ZERO]}, "a name has"),
        ({"uris": [META]}, "since when"),
        ({"uris": [META, ZERO, ZERO]}, "since when"),
        ({"uris": [META, "distributary:since:-1"]}, "since when"),
        ({"uris": [META, "distributary:since:" + "9" * 17]}, "since when"),
        ({"san": False}, "cannot be read"),
        ({"usage": False}, "not for both ends"),
        ({"names": ()}, "one name"),
        ({"names": ("a", "b")}, "one name"),
        ({"names": ("../a",)}, "a name has"),
        ({"key": generate_private_key(SECP256R1())}, "Ed25519"),
        ({"extensions": [x509.UnrecognizedExtension(ObjectIdentifier("1.2.3.4"), b"")]}, "depends on 1.2.3.4"),
    ],
)
def test_a_certificate_that_is_not_as_it_should_be_is_refused_though_signed(how, reason):
    with pytest.raises(Untrusted, match=reason):
        verify_chain(forged(**how), NET.root, NOW)


def test_roles_unknown_here_grant_nothing():
    chain = forged(
        uris=[META, ZERO, "distributary:role:planner", "distributary:role:emperor", "https://x.example"]
    )
    assert verify_chain(chain, NET.root, NOW).roles == {Role.PLANNER}


def test_a_root_with_another_kind_of_key_is_refused():
    key = generate_private_key(SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "root")])
    builder = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
    builder = builder.serial_number(1).not_valid_before(NOW).not_valid_after(NOW + DAY)
    with pytest.raises(Untrusted, match="not an Ed25519 key"):
        Root.from_der(builder.sign(key, SHA256()).public_bytes(Encoding.DER))


def test_a_certificate_too_large_is_not_read():
    with pytest.raises(Untrusted, match="at most 2,048"):
        verify_chain((bytes(2049), CHAIN[1]), NET.root, NOW)


@given(st.sampled_from([0, 1]), st.integers(0, 8 * 400 - 1))
@example(0, 127)  # the serial number becomes negative
@example(1, 127)
def test_no_bit_of_a_chain_may_change(which, bit):
    chain = [bytearray(der) for der in CHAIN]
    chain[which][bit // 8] ^= 1 << bit % 8
    with pytest.raises(Untrusted):
        verify_chain([bytes(der) for der in chain], NET.root, NOW)


@given(st.lists(st.binary(max_size=200), min_size=2, max_size=2))
def test_random_bytes_are_no_chain(chain):
    with pytest.raises(Untrusted):
        verify_chain(chain, NET.root, NOW)
    with pytest.raises(Untrusted):
        Root.from_der(chain[0])
    with pytest.raises(Untrusted):
        member_of_tls_peer(chain[0], NET.root, NOW)


def test_certificates_are_made_for_good_names_and_times_only():
    for other, error in [
        ({"site": "a b"}, BadName),
        ({"roles": ()}, BadName),
        ({"since": -1}, ValueError),
        ({"now": NOW.replace(tzinfo=None)}, (TypeError, ValueError)),
    ]:
        with pytest.raises(error):
            NET.chain(KEY, **other)
    with pytest.raises(ValueError, match="time zone"):
        MemoryNet(now=NOW.replace(tzinfo=None))


def test_a_signer_holds_the_key_of_its_chain():
    assert Signer.of(KEY, CHAIN, NET.root).member.site == "node-7"
    with pytest.raises(Untrusted, match="not for the key"):
        Signer.of(fresh_key(), CHAIN, NET.root)
    assert "PrivateKey" not in repr(Signer.of(KEY, CHAIN, NET.root))
