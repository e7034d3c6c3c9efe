"""How a machine that holds a token becomes a member.

Theory of operation. The joiner knows the root's fingerprint and a secret; whoever learns the secret first can
take the joiner's place. So the order is: the source proves itself, then the joiner speaks.

They talk over TLS 1.3. The source shows the certificate it has as a site; the joiner accepts any for the moment,
as it does not know the root yet, and Python tells it the leaf only. The handshake has proved one thing: the
other end holds the *leaf's* key. Whether that leaf is the source's is what Proof shows: the root, which must
have the token's fingerprint and is looked at before anything else; the chain, which must lead from that very
leaf to that root and give it the role of the source; and a signature by the leaf's key over both nonces and the
leaf. A man in the middle has to show a leaf of its own, since it lacks the source's key. With its own leaf it
has no chain to the root that is a source's, and if it passes the source's Proof on, the leaf in it is not the
one that the joiner saw. A member in the middle has a chain, but not the role. The signature repeats what TLS
proved without relying on it, and makes an old Proof useless.

Only then does the joiner send the secret, with its new public key, and a signature by that key over the network,
the secret, both nonces and the leaf: it holds the key, and says so here and now. The source redeems the
invitation, saves that, issues the certificate, and answers. The joiner checks that the chain is for its key,
under the same root. If the answer is lost it comes again with the same key, which is why that is on disk before
(``prepare_key``).

Any error closes the conversation for good; the driver ends the connection.
"""

from __future__ import annotations

import enum
import hashlib
import hmac
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, assert_never

from overlay.identity.address import parse_addresses
from overlay.identity.certificates import Root, verify_chain
from overlay.identity.dht_keys import DhtKey, DhtKeys
from overlay.identity.domains import text_to_sign
from overlay.identity.enrolment_messages import (
    Answer,
    FromJoiner,
    FromSource,
    Hello,
    Proof,
    Refused,
    Request,
    decode_from_joiner_untrusted,
    decode_from_source_untrusted,
    encode,
)
from overlay.identity.errors import BadName, InvitationRefused, MalformedFrame, Refusal, Untrusted
from overlay.identity.keys import is_signed, public_bytes
from overlay.identity.member import Role
from overlay.identity.settings import NetworkSettings

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    from overlay.identity.credential import Signer
    from overlay.identity.invitation import Token
    from overlay.identity.member import Member


class Stage(enum.Enum):
    """How far a conversation is."""

    GREETING = enum.auto()
    PROVED = enum.auto()
    DECIDING = enum.auto()
    CLOSED = enum.auto()


_SOURCE_NEXT: Final[dict[tuple[Stage, type], Stage]] = {
    (Stage.GREETING, Hello): Stage.PROVED,
    (Stage.PROVED, Request): Stage.DECIDING,
}
_JOINER_NEXT: Final[dict[tuple[Stage, type], Stage]] = {
    (Stage.GREETING, Proof): Stage.PROVED,
    (Stage.PROVED, Answer): Stage.CLOSED,
    (Stage.PROVED, Refused): Stage.CLOSED,
}


@dataclass(frozen=True, slots=True)
class Send:
    """Effect: send these bytes as one message."""

    data: bytes


@dataclass(frozen=True, slots=True)
class Application:
    """Effect at the source: redeem, save, issue, then call ``admit`` or ``refuse``."""

    secret: bytes = field(repr=False)
    public_key: bytes


@dataclass(frozen=True, slots=True)
class Enrolled:
    """Effect at the joiner: ``credential.install`` what came; the revocation list is fetched as a member."""

    member: Member
    chain: tuple[bytes, bytes]
    root: Root
    settings: NetworkSettings
    revocations: int


def check_enroller(root_der: bytes, chain_der: Sequence[bytes], token: Token, now: datetime) -> Root:
    """Return the token's root if the chain makes its holder the source under it, or raise ``Untrusted``."""
    if not hmac.compare_digest(hashlib.sha256(root_der).digest(), token.fingerprint):
        raise Untrusted(
            "root certificate", "it is not the one of the invitation: this is not the network you mean"
        )
    root = Root.from_der(root_der)
    if root.network != token.network:
        raise Untrusted("root certificate", f"it is not of the network {token.network}")
    member = verify_chain(chain_der, root, now)
    if Role.SOURCE not in member.roles:
        raise Untrusted(f"certificate of {member.site}", "it is a member's, but only the source enrols")
    return root


class Joiner:
    """The joining side of one conversation, over a TLS link whose other end showed ``leaf``.

    ``nonce`` is ``keys.fresh_bytes(NONCE_BYTES)``, anew for each conversation.
    """

    def __init__(self, token: Token, key: Ed25519PrivateKey, *, leaf: bytes, nonce: bytes) -> None:
        self.stage = Stage.GREETING
        self._token = token
        self._key = key
        self._leaf = leaf
        self._nonce = nonce
        self._root: Root | None = None

    def hello(self) -> bytes:
        """Return the first message."""
        return encode(Hello(self._nonce))

    def receive(self, data: bytes, now: datetime) -> Send | Enrolled:
        """Take a message; raises ``MalformedFrame``, ``Untrusted`` or ``InvitationRefused``, and closes."""
        stage, self.stage = self.stage, Stage.CLOSED
        message = decode_from_source_untrusted(data)
        following = _next(_JOINER_NEXT, stage, message)
        match message:
            case Proof():
                effect: Send | Enrolled = Send(self._request(message, now))
            case Answer():
                effect = self._enrolled(message, now)
            case Refused():
                raise _refusal(message)
            case _:
                assert_never(message)
        self.stage = following
        return effect

    def _request(self, proof: Proof, now: datetime) -> bytes:
        self._root = check_enroller(proof.root, proof.chain, self._token, now)
        if not hmac.compare_digest(proof.chain[0], self._leaf):
            raise Untrusted("source", "somebody stands between: the link does not end where its proof was made")
        source = verify_chain(proof.chain, self._root, now)
        text = _proof_text(self._token.fingerprint, self._nonce, proof.nonce, self._leaf)
        if not is_signed(source.public_key, proof.signature, text):
            raise Untrusted("source", "its proof is not for this conversation")
        public_key = public_bytes(self._key)
        text = _possession_text(self._root, self._token.secret, public_key, self._nonce + proof.nonce, self._leaf)
        return encode(Request(self._token.secret, public_key, self._key.sign(text)))

    def _enrolled(self, answer: Answer, now: datetime) -> Enrolled:
        assert self._root is not None  # set on the way to the stage in which answers are taken
        member = verify_chain(answer.chain, self._root, now)
        if member.public_key != public_bytes(self._key):
            raise Untrusted(f"certificate of {member.site}", "it is for another key than the one that asked")
        try:
            source = parse_addresses(answer.source)
        except BadName as exc:
            raise MalformedFrame("enrolment message", str(exc)) from exc
        keys = DhtKeys(DhtKey(answer.dht_key_number, answer.dht_key))
        settings = NetworkSettings(self._root.network, source, keys)
        return Enrolled(member, answer.chain, self._root, settings, answer.revocations)


class Enroller:
    """The source's side of one conversation; ``signer`` is of the credential whose TLS context the link uses."""

    def __init__(self, signer: Signer, root: Root, *, nonce: bytes) -> None:
        self.stage = Stage.GREETING
        self._signer = signer
        self._root = root
        self._nonce = nonce
        self._joiner_nonce = b""

    def receive(self, data: bytes) -> Send | Application:
        """Take a message; raises ``MalformedFrame`` or ``Untrusted``, and closes."""
        stage, self.stage = self.stage, Stage.CLOSED
        message = decode_from_joiner_untrusted(data)
        following = _next(_SOURCE_NEXT, stage, message)
        match message:
            case Hello():
                effect: Send | Application = Send(self._proof(message))
            case Request():
                effect = self._application(message)
            case _:
                assert_never(message)
        self.stage = following
        return effect

    def admit(self, chain: tuple[bytes, bytes], settings: NetworkSettings, revocations: int) -> bytes:
        """Return the answer to the application; the redemption is on disk."""
        self._decide()
        key = settings.dht_keys.current
        source = [str(address) for address in settings.source]
        return encode(Answer(chain, key.number, key.secret, source, revocations))

    def refuse(self, reason: Refusal) -> bytes:
        """Return the refusal of the application."""
        self._decide()
        return encode(Refused(reason.name))

    def _proof(self, hello: Hello) -> bytes:
        self._joiner_nonce = hello.nonce
        text = _proof_text(self._root.fingerprint, hello.nonce, self._nonce, self._signer.chain[0])
        return encode(Proof(self._root.der, self._signer.chain, self._nonce, self._signer.key.sign(text)))

    def _application(self, request: Request) -> Application:
        nonces = self._joiner_nonce + self._nonce
        text = _possession_text(self._root, request.secret, request.public_key, nonces, self._signer.chain[0])
        if not is_signed(request.public_key, request.signature, text):
            raise Untrusted("joiner", "it does not hold the key that it wants a certificate for")
        return Application(request.secret, request.public_key)

    def _decide(self) -> None:
        if self.stage is not Stage.DECIDING:
            raise RuntimeError(f"there is no application to decide on: the conversation is {self.stage.name}")
        self.stage = Stage.CLOSED


def _next(table: dict[tuple[Stage, type], Stage], stage: Stage, message: FromJoiner | FromSource) -> Stage:
    try:
        return table[stage, type(message)]
    except KeyError:
        raise MalformedFrame("enrolment message", f"{type(message).__name__} does not come now") from None


def _refusal(message: Refused) -> InvitationRefused:
    try:
        return InvitationRefused(Refusal[message.reason])
    except KeyError:
        raise MalformedFrame("enrolment message", "it is refused for a reason not known here") from None


def _proof_text(fingerprint: bytes, joiner_nonce: bytes, source_nonce: bytes, leaf: bytes) -> bytes:
    return text_to_sign("enroller", fingerprint, joiner_nonce, source_nonce, hashlib.sha256(leaf).digest())


def _possession_text(root: Root, secret: bytes, public_key: bytes, nonces: bytes, leaf: bytes) -> bytes:
    parts = (root.network.encode(), root.fingerprint, hashlib.sha256(secret).digest(), public_key, nonces)
    return text_to_sign("possession", *parts, hashlib.sha256(leaf).digest())
