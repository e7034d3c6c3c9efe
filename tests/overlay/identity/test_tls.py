"""Real handshakes: members reach each other, and nobody else does."""

import ssl
from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from overlay.identity import NotPermitted, Role, Untrusted
from overlay.identity.issuing import Issuer, make_site
from overlay.identity.keys import fresh_key, public_bytes, save_key
from overlay.identity.tls import enrolment_client_context
from tests.overlay.identity.links import Link
from tests.overlay.identity.networks import DAY, Net

TODAY = datetime.now(UTC)  # OpenSSL reads the system's clock


@pytest.fixture(scope="module")
def today(tmp_path_factory):
    return Net(tmp_path_factory.mktemp("today"), now=TODAY)


@pytest.fixture(scope="module")
def b(today):
    return today.join("b")


def bare_client(**settings):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    for name, value in settings.items():
        setattr(context, name, value)
    return context


def test_members_reach_each_other_and_know_who_the_other_is(today, b):
    link = Link(b.client_context(), today.source.server_context())
    assert link.client.version() == "TLSv1.3"
    assert b.peer(link.leaf_seen_by_client(), TODAY, today.revocations) == today.source.member
    assert today.source.peer(link.leaf_seen_by_server(), TODAY, today.revocations) == b.member


def test_a_subscriber_at_the_end_of_a_link_is_not_the_source(today, b):
    c = today.join("c")
    link = Link(c.client_context(), b.server_context())
    with pytest.raises(NotPermitted, match="role source"):
        c.peer(link.leaf_seen_by_client(), TODAY, today.revocations).require(Role.SOURCE)


def test_the_revoked_are_told_apart_after_the_handshake(today, b):
    link = Link(b.client_context(), today.source.server_context())
    revoked = today.revocations.extended(today.authority.intermediate, TODAY, dht_key=2, sites=["b"])
    with pytest.raises(NotPermitted, match="it is revoked"):
        today.source.peer(link.leaf_seen_by_server(), TODAY, revoked)


def test_members_under_two_intermediates_reach_each_other(tmp_path):
    net = Net(tmp_path, now=TODAY)
    old = net.join("old")
    net.authority = net.authority.renew_intermediate(TODAY)
    new = net.join("new")
    for client, server in ((old, new), (new, old)):
        link = Link(client.client_context(), server.server_context())
        assert client.peer(link.leaf_seen_by_client(), TODAY, net.revocations) == server.member


def test_a_client_without_a_certificate_is_refused(today):
    with pytest.raises(ssl.SSLError, match="PEER_DID_NOT_RETURN_A_CERTIFICATE"):
        Link(bare_client(), today.source.server_context())


@pytest.mark.parametrize("name", ["other", "meteo"])
def test_a_certificate_of_another_network_is_refused_at_both_ends(today, b, tmp_path, name):
    stranger = Net(tmp_path, name, TODAY).join("b")
    unverified = stranger.client_context()
    unverified.verify_mode = ssl.CERT_NONE
    with pytest.raises(ssl.SSLCertVerificationError):
        Link(unverified, today.source.server_context())
    with pytest.raises(ssl.SSLCertVerificationError):
        Link(b.client_context(), stranger.server_context())


@pytest.mark.parametrize(("offset", "why"), [(-60 * DAY, "expired"), (2 * DAY, "not yet valid")])
def test_a_certificate_outside_its_time_is_refused_at_both_ends(tmp_path, offset, why):
    net = Net(tmp_path, now=TODAY - 90 * DAY)
    good, bad = net.join("good", now=TODAY), net.join("bad", now=TODAY + offset)
    with pytest.raises(ssl.SSLCertVerificationError, match=why):
        Link(bad.client_context(), good.server_context())
    with pytest.raises(ssl.SSLCertVerificationError, match=why):
        Link(good.client_context(), bad.server_context())


def test_a_site_cannot_issue_a_certificate_that_tls_accepts(today, b, tmp_path):
    key = fresh_key()
    issuer = Issuer(x509.load_der_x509_certificate(b.signer.chain[0]), b.signer.key)
    said = {"network": "meteo", "site": "source", "roles": {Role.SOURCE}, "since": 0}
    chain = [*make_site(public_bytes(key), issuer, TODAY, **said), b.signer.chain[1]]
    save_key(tmp_path / "key.pem", key)
    pem = b"".join(x509.load_der_x509_certificate(der).public_bytes(Encoding.PEM) for der in chain)
    (tmp_path / "chain.pem").write_bytes(pem)
    context = bare_client()
    context.load_cert_chain(tmp_path / "chain.pem", tmp_path / "key.pem")
    with pytest.raises(ssl.SSLCertVerificationError):
        Link(context, today.source.server_context())


def test_certificates_are_checked_strictly_at_both_ends(b):
    for context in (b.client_context(), b.server_context()):
        assert context.verify_flags & ssl.VERIFY_X509_STRICT
        assert context.verify_mode is ssl.CERT_REQUIRED
        assert len(context.get_ca_certs()) == 1


def old_version(context):
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    return context


def test_tls_1_2_is_refused_at_both_ends(today, b):
    refusal = "UNSUPPORTED_PROTOCOL|ALERT_PROTOCOL_VERSION|NO_PROTOCOLS_AVAILABLE|WRONG_VERSION"
    for server in (today.source.server_context(), today.source.enrolment_context()):
        with pytest.raises(ssl.SSLError, match=refusal):
            Link(old_version(b.client_context()), server)
    for client in (b.client_context(), enrolment_client_context()):
        with pytest.raises(ssl.SSLError, match=refusal):
            Link(client, old_version(today.source.server_context()))


def test_no_session_can_be_resumed(today, b):
    for client, server in (
        (b.client_context(), today.source.server_context()),
        (enrolment_client_context(), today.source.enrolment_context()),
    ):
        link = Link(client, server)
        assert not link.client.session.has_ticket
        assert client.session_stats()["hits"] == 0
        assert server.num_tickets == 0


def test_a_leaf_that_has_ended_meanwhile_is_refused(today, b):
    with pytest.raises(Untrusted, match="it ended"):
        today.source.peer(b.signer.chain[0], TODAY + timedelta(days=31), today.revocations)
