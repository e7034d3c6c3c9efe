"""Who is a member of a network, as what, and how that is proved; nothing here opens a socket or reads a clock.

Layers, bottom up: ``errors``, ``member`` (sites, roles), ``address``; ``private_files`` and ``keys`` (what lies
on disk), ``domains`` and ``untrusted`` (what is signed, what is decoded); ``certificates`` (verifying) and
``issuing`` (making); ``dht_keys`` and ``settings``; ``tls``; ``revocation``; ``credential`` (what a site is on
disk), ``authority`` (what the source has besides) and ``renewal``; ``signing`` (envelopes); ``invitation``,
``enrolment_messages`` and ``enrolment`` (joining). Start reading at ``certificates``, ``credential`` and
``enrolment``.

The moment ``now`` is always given, as an aware ``datetime``. Randomness comes from ``keys.fresh_key``,
``keys.fresh_bytes`` and the serial numbers of certificates.
"""

from overlay.identity.address import Address
from overlay.identity.authority import Authority, NewNetwork, create_network
from overlay.identity.certificates import Root, verify_chain
from overlay.identity.credential import Credential, Signer, install, prepare_key
from overlay.identity.dht_keys import DhtKey, DhtKeys
from overlay.identity.enrolment import Application, Enrolled, Enroller, Joiner, Send
from overlay.identity.errors import (
    BadCredential,
    BadName,
    BadToken,
    IdentityError,
    InvitationRefused,
    MalformedFrame,
    NotPermitted,
    Refusal,
    StaleList,
    UnknownSigner,
    Untrusted,
)
from overlay.identity.invitation import Admission, Invitations, Token, invite
from overlay.identity.member import Member, Role
from overlay.identity.revocation import RevocationList, decode_list_untrusted, first_list, read_own_list
from overlay.identity.settings import NetworkSettings
from overlay.identity.signing import Signed, open_signed, sign, sign_compact

__all__ = [
    "Address",
    "Admission",
    "Application",
    "Authority",
    "BadCredential",
    "BadName",
    "BadToken",
    "Credential",
    "DhtKey",
    "DhtKeys",
    "Enrolled",
    "Enroller",
    "IdentityError",
    "InvitationRefused",
    "Invitations",
    "Joiner",
    "MalformedFrame",
    "Member",
    "NetworkSettings",
    "NewNetwork",
    "NotPermitted",
    "Refusal",
    "RevocationList",
    "Role",
    "Root",
    "Send",
    "Signed",
    "Signer",
    "StaleList",
    "Token",
    "UnknownSigner",
    "Untrusted",
    "create_network",
    "decode_list_untrusted",
    "first_list",
    "install",
    "invite",
    "open_signed",
    "prepare_key",
    "read_own_list",
    "sign",
    "sign_compact",
    "verify_chain",
]
