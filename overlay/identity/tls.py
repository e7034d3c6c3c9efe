"""TLS contexts: version 1.3 only, one root only, and no resumption.

Sites are told apart by their certificates, not by host names, hence no host name is checked. A resumed session
would skip the certificates and with them expiry, so no tickets are given. Between members both ends show
certificates. Whoever enrols has none and knows only the root's fingerprint: ``enrolment`` says how the joining
side checks what the handshake did not. OpenSSL compares validity with the system's clock, without ``SKEW``.
"""

from __future__ import annotations

import ssl
from typing import TYPE_CHECKING

from overlay.identity.errors import BadCredential

if TYPE_CHECKING:
    from pathlib import Path

    from overlay.identity.keys import KeyPlace


def member_server_context(own: KeyPlace, root: Path) -> ssl.SSLContext:
    """Return the context that accepts links from members only."""
    return _trusting(_presenting(_context(ssl.PROTOCOL_TLS_SERVER), own), root)


def member_client_context(own: KeyPlace, root: Path) -> ssl.SSLContext:
    """Return the context that opens links to members only."""
    return _trusting(_presenting(_context(ssl.PROTOCOL_TLS_CLIENT), own), root)


def enrolment_server_context(own: KeyPlace) -> ssl.SSLContext:
    """Return the source's context for those who are not members yet: it asks for no certificate."""
    context = _presenting(_context(ssl.PROTOCOL_TLS_SERVER), own)
    context.verify_mode = ssl.CERT_NONE
    return context


def enrolment_client_context() -> ssl.SSLContext:
    """Return the joining side's context, which accepts any certificate: ``enrolment.Joiner`` checks it."""
    context = _context(ssl.PROTOCOL_TLS_CLIENT)
    context.verify_mode = ssl.CERT_NONE
    return context


def _context(protocol: int) -> ssl.SSLContext:
    context = ssl.SSLContext(protocol)
    context.minimum_version = context.maximum_version = ssl.TLSVersion.TLSv1_3
    context.check_hostname = False
    if protocol == ssl.PROTOCOL_TLS_SERVER:
        context.num_tickets = 0  # OP_NO_TICKET would only move the tickets to the server's memory in TLS 1.3
    return context


def _presenting(context: ssl.SSLContext, own: KeyPlace) -> ssl.SSLContext:
    try:
        context.load_cert_chain(own.certificates, own.key)
    except OSError as exc:  # ssl.SSLError is one
        raise BadCredential(own.certificates, "TLS cannot use it with its key", "join the network again") from exc
    return context


def _trusting(context: ssl.SSLContext, root: Path) -> ssl.SSLContext:
    try:
        context.load_verify_locations(cafile=root)
    except OSError as exc:
        raise BadCredential(root, "TLS cannot use it", "join the network again") from exc
    context.verify_mode = ssl.CERT_REQUIRED
    context.verify_flags |= ssl.VERIFY_X509_STRICT
    return context
