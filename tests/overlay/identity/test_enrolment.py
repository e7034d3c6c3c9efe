"""Joining: the source proves itself, then the joiner speaks; whoever stands between learns nothing."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from overlay.identity import (
    Application,
    Credential,
    Enrolled,
    Enroller,
    InvitationRefused,
    Invitations,
    Joiner,
    MalformedFrame,
    Refusal,
    Role,
    Send,
    Token,
    Untrusted,
    install,
    invite,
    prepare_key,
)
from overlay.identity.enrolment import Stage, check_enroller
from overlay.identity.enrolment_messages import (
    LARGEST_MESSAGE,
    NONCE_BYTES,
    Answer,
    Hello,
    Proof,
    Refused,
    Request,
    decode_from_joiner_untrusted,
    decode_from_source_untrusted,
    encode,
)
from overlay.identity.keys import fresh_bytes, fresh_key, public_bytes
from overlay.identity.tls import enrolment_client_context
from tests.overlay.identity.links import Link
from tests.overlay.identity.networks import ADDRESS, DAY, NOW, Net

HOUR = timedelta(hours=1)


class Source:
    """The source's side with its invitations, as a driver would run it."""

    def __init__(self, net):
        self.net = net
        self.invitations = Invitations()
        self.saved = []

    def token(self, site="b", roles=(Role.SUBSCRIBER,)):
        number = self.net.revocations.number
        how = {"ttl": HOUR, "root": self.net.root, "addresses": (ADDRESS,), "since": number}
        return Token.parse(invite(self.invitations, site, roles, self.net.now, **how))

    def enroller(self):
        return Enroller(self.net.source.signer, self.net.root, nonce=fresh_bytes(NONCE_BYTES))

    def decide(self, enroller, application):
        try:
            admission = self.invitations.redeem(application.secret, application.public_key, self.net.now)
        except InvitationRefused as exc:
            return enroller.refuse(exc.reason)
        self.saved.append(self.invitations.export())
        chain = self.net.authority.issue(
            application.public_key, admission.site, admission.roles, self.net.now, since=admission.since
        )
        return enroller.admit(chain, self.net.source.settings, self.net.revocations.number)


def joiner_for(source, token, key=None, leaf=None):
    leaf = source.net.source.signer.chain[0] if leaf is None else leaf
    return Joiner(token, key or fresh_key(), leaf=leaf, nonce=fresh_bytes(NONCE_BYTES))


def converse(joiner, source, now):
    enroller = source.enroller()
    proof = enroller.receive(joiner.hello())
    request = joiner.receive(proof.data, now)
    application = enroller.receive(request.data)
    assert isinstance(application, Application)
    return joiner.receive(source.decide(enroller, application), now)


@pytest.fixture
def source(net):
    return Source(net)


def test_a_machine_with_a_token_becomes_the_member_it_was_invited_as(source, tmp_path):
    key = prepare_key(tmp_path)
    enrolled = converse(joiner_for(source, source.token("b", [Role.PLANNER]), key), source, NOW)
    assert isinstance(enrolled, Enrolled)
    credential = install(tmp_path, enrolled.root, enrolled.settings, enrolled.chain)
    assert (credential.member.site, credential.member.roles) == ("b", {Role.PLANNER})
    assert credential.member.public_key == public_bytes(key)
    assert credential.settings.dht_keys.current == source.net.source.settings.dht_keys.current
    assert (credential.settings.source, enrolled.revocations) == ((ADDRESS,), 0)
    assert Credential.load(tmp_path) == credential


def test_a_machine_joins_over_tls(tmp_path):
    net = Net(tmp_path, now=datetime.now(UTC))
    source = Source(net)
    link = Link(enrolment_client_context(), net.source.enrolment_context())
    joiner = joiner_for(source, source.token(), leaf=link.leaf_seen_by_client())
    assert converse(joiner, source, net.now).member.site == "b"
    assert link.leaf_seen_by_server() is None


def test_a_joiner_whose_answer_was_lost_comes_again_with_its_key(source):
    token, key = source.token(), fresh_key()
    first = converse(joiner_for(source, token, key), source, NOW)
    again = converse(joiner_for(source, token, key), source, NOW)
    assert (again.member.site, again.member.public_key) == (first.member.site, first.member.public_key)


def test_a_token_is_not_used_by_two_machines(source):
    token = source.token()
    converse(joiner_for(source, token), source, NOW)
    with pytest.raises(InvitationRefused) as refused:
        converse(joiner_for(source, token), source, NOW)
    assert refused.value.reason is Refusal.USED
    assert len(source.saved) == 1


# --- somebody else answers ------------------------------------------------------------------------------------


def proof_by(net, joiner, signer=None):
    enroller = Enroller(signer or net.source.signer, net.root, nonce=fresh_bytes(NONCE_BYTES))
    return enroller.receive(joiner.hello()).data


def refusal_before_it_speaks(joiner, proof, now=NOW):
    """Return why a joiner refuses a proof; then it takes nothing more."""
    with pytest.raises(Untrusted) as refused:
        joiner.receive(proof, now)
    assert joiner.stage is Stage.CLOSED
    with pytest.raises(MalformedFrame, match="does not come now"):
        joiner.receive(proof, now)
    return str(refused.value)


@pytest.mark.parametrize("name", ["meteo", "other"])
def test_a_network_with_another_root_gets_no_secret(source, tmp_path, name):
    other = Net(tmp_path, name)
    joiner = joiner_for(source, source.token(), leaf=other.source.signer.chain[0])
    assert "not the one of the invitation" in refusal_before_it_speaks(joiner, proof_by(other, joiner))


def test_the_root_is_compared_before_anything_else_is_read(source):
    with pytest.raises(Untrusted, match="not the one of the invitation"):
        check_enroller(b"no certificate", [b"none"], source.token(), NOW)


def test_a_root_that_fits_the_fingerprint_must_still_be_the_named_networks(source):
    token = source.token()
    renamed = Token("other", token.addresses, token.fingerprint, token.secret)
    joiner = joiner_for(source, renamed)
    assert "not of the network other" in refusal_before_it_speaks(joiner, proof_by(source.net, joiner))


def test_a_member_cannot_pass_for_the_source(source):
    member = source.net.signer("mallory", [Role.PUBLISHER, Role.SUBSCRIBER, Role.PLANNER])
    joiner = joiner_for(source, source.token(), leaf=member.chain[0])
    assert "only the source enrols" in refusal_before_it_speaks(joiner, proof_by(source.net, joiner, member))


def test_a_man_in_the_middle_who_passes_the_proof_on_is_noticed(source):
    member = source.net.signer("mallory")
    joiner = joiner_for(source, source.token(), leaf=member.chain[0])
    assert "somebody stands between" in refusal_before_it_speaks(joiner, proof_by(source.net, joiner))


def test_a_proof_of_another_conversation_is_refused(source):
    token = source.token()
    old = proof_by(source.net, joiner_for(source, token))
    assert "not for this conversation" in refusal_before_it_speaks(joiner_for(source, token), old)


def test_a_source_whose_certificate_has_ended_is_refused(source):
    joiner = joiner_for(source, source.token())
    assert "it ended" in refusal_before_it_speaks(joiner, proof_by(source.net, joiner), NOW + 31 * DAY)


# --- somebody else asks, or answers wrongly -------------------------------------------------------------------


def test_nobody_gets_a_certificate_for_a_key_that_is_not_theirs(source):
    joiner, enroller = joiner_for(source, source.token()), source.enroller()
    request = decode_from_joiner_untrusted(joiner.receive(enroller.receive(joiner.hello()).data, NOW).data)
    other = public_bytes(fresh_key())
    with pytest.raises(Untrusted, match="does not hold the key"):
        enroller.receive(encode(Request(request.secret, other, request.signature)))
    assert enroller.stage is Stage.CLOSED


def test_a_request_of_another_conversation_is_refused(source):
    joiner, first, second = joiner_for(source, source.token()), source.enroller(), source.enroller()
    request = joiner.receive(first.receive(joiner.hello()).data, NOW).data
    second.receive(joiner.hello())
    with pytest.raises(Untrusted, match="does not hold the key"):
        second.receive(request)


def asked(source):
    joiner, enroller = joiner_for(source, source.token()), source.enroller()
    enroller.receive(joiner.receive(enroller.receive(joiner.hello()).data, NOW).data)
    return joiner, enroller


def test_an_answer_for_another_key_or_of_another_network_is_refused(source, tmp_path):
    for net, match in ((source.net, "for another key"), (Net(tmp_path), "not issued by")):
        joiner, enroller = asked(source)
        answer = enroller.admit(net.signer("b").chain, source.net.source.settings, 0)
        with pytest.raises(Untrusted, match=match):
            joiner.receive(answer, NOW)


def test_an_answer_with_an_address_that_is_none_is_malformed(source):
    joiner, _ = asked(source)
    chain = source.net.authority.issue(public_bytes(joiner._key), "b", {Role.PLANNER}, NOW, since=0)
    with pytest.raises(MalformedFrame, match="host:port"):
        joiner.receive(encode(Answer(chain, 1, bytes(32), ["nowhere"], 0)), NOW)


@pytest.mark.parametrize("reason", list(Refusal))
def test_a_refusal_tells_the_joiner_why(source, reason):
    joiner, enroller = asked(source)
    with pytest.raises(InvitationRefused) as refused:
        joiner.receive(enroller.refuse(reason), NOW)
    assert refused.value.reason is reason


def test_a_reason_unknown_here_is_malformed(source):
    joiner, _ = asked(source)
    with pytest.raises(MalformedFrame, match="a reason not known here"):
        joiner.receive(encode(Refused("WEATHER")), NOW)


# --- order ----------------------------------------------------------------------------------------------------


def test_a_message_out_of_turn_closes_the_conversation(source):
    request = Request(bytes(20), bytes(32), bytes(64))
    for early in (request, Hello(bytes(32))):
        enroller = source.enroller()
        if isinstance(early, Hello):
            enroller.receive(encode(early))
        with pytest.raises(MalformedFrame, match="does not come now"):
            enroller.receive(encode(early))
        assert enroller.stage is Stage.CLOSED
    chain = source.net.source.signer.chain
    for early in (Answer(chain, 1, bytes(32), [], 0), Refused("USED")):
        joiner = joiner_for(source, source.token())
        with pytest.raises(MalformedFrame, match="does not come now"):
            joiner.receive(encode(early), NOW)


def test_there_is_one_decision_on_one_application(source):
    with pytest.raises(RuntimeError, match="no application"):
        source.enroller().refuse(Refusal.USED)
    _, enroller = asked(source)
    enroller.refuse(Refusal.USED)
    with pytest.raises(RuntimeError, match="no application"):
        enroller.admit(source.net.source.signer.chain, source.net.source.settings, 0)


def test_secrets_are_not_shown():
    assert "secret" not in repr(Application(b"hush", b"key"))


# --- decoding -------------------------------------------------------------------------------------------------

CERTIFICATES = (b"site", b"intermediate")


@pytest.mark.parametrize(
    ("message", "decode"),
    [
        (Hello(bytes(32)), decode_from_joiner_untrusted),
        (Request(bytes(20), bytes(32), bytes(64)), decode_from_joiner_untrusted),
        (Proof(b"root", CERTIFICATES, bytes(32), bytes(64)), decode_from_source_untrusted),
        (Answer(CERTIFICATES, 1, bytes(32), ["a:1"], 7), decode_from_source_untrusted),
        (Refused("USED"), decode_from_source_untrusted),
    ],
)
def test_a_message_is_read_back_whole_only(message, decode):
    data = encode(message)
    assert decode(data) == message
    for size in range(len(data)):
        with pytest.raises(MalformedFrame):
            decode(data[:size])


@pytest.mark.parametrize(
    "message",
    [
        Hello(bytes(31)),
        Request(bytes(19), bytes(32), bytes(64)),
        Request(bytes(20), bytes(33), bytes(64)),
        Request(bytes(20), bytes(32), bytes(65)),
    ],
)
def test_parts_of_another_size_are_malformed(message):
    with pytest.raises(MalformedFrame):
        decode_from_joiner_untrusted(encode(message))


@pytest.mark.parametrize(
    "message",
    [
        Proof(bytes(2049), CERTIFICATES, bytes(32), bytes(64)),
        Answer(CERTIFICATES, 0, bytes(32), [], 0),
        Answer(CERTIFICATES, 1, bytes(32), [], -1),
        Answer(CERTIFICATES, 1, bytes(32), ["a:1"] * 9, 0),
        Answer(CERTIFICATES, 1, bytes(32), ["a" * 265], 0),
        Answer((b"", b"", b""), 1, bytes(32), [], 0),
    ],
)
def test_answers_beyond_their_bounds_are_malformed(message):
    with pytest.raises(MalformedFrame):
        decode_from_source_untrusted(encode(message))


@pytest.mark.parametrize("decode", [decode_from_joiner_untrusted, decode_from_source_untrusted])
def test_large_deep_and_odd_messages_are_malformed_in_one_short_line(decode):
    for data in (
        bytes(LARGEST_MESSAGE + 1),
        b"\x91" * LARGEST_MESSAGE,
        b"\x91\xd9\xffx\n" + b"\n" * 254,
        b"\x91\xa1\xff",
    ):
        with pytest.raises(MalformedFrame) as refused:
            decode(data)
        assert len(str(refused.value).splitlines()) == 1
        assert len(str(refused.value)) < 250


@given(st.binary(max_size=200), st.sampled_from([b"", encode(Hello(bytes(32)))[:9], b"\x92\xa9refused-1"]))
def test_random_bytes_raise_nothing_but_malformed(data, beginning):
    for decode in (decode_from_joiner_untrusted, decode_from_source_untrusted):
        try:
            message = decode(beginning + data)
        except MalformedFrame:
            continue
        assert decode(encode(message)) == message


@given(st.binary(max_size=100))
def test_neither_side_survives_random_bytes_or_raises_anything_else(net, data):
    source = Source(net)
    for receive in (source.enroller().receive, lambda d: joiner_for(source, source.token()).receive(d, NOW)):
        with pytest.raises((MalformedFrame, Untrusted)):
            receive(data)


def test_effects_are_what_a_driver_expects(source):
    enroller = source.enroller()
    assert isinstance(enroller.receive(joiner_for(source, source.token()).hello()), Send)
