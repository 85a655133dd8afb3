"""Proof Key for Code Exchange, RFC 7636: only the client that has started a login can redeem its code.

Spec:
    2026-07-28, basic/authorization/security-considerations, "Authorization Code Protection".
"""

from __future__ import annotations

from base64 import urlsafe_b64encode
from hashlib import sha256
from typing import TYPE_CHECKING

from mcpgen.runtime.http.errors import LoginFailed

if TYPE_CHECKING:
    from mcpgen.runtime.http.auth.discovery import ServerMetadata

__all__ = ["check_pkce", "code_challenge", "unpadded"]


def code_challenge(verifier: str) -> str:
    """Return the code challenge of *verifier* with the method ``S256``."""
    return unpadded(sha256(verifier.encode("ascii")).digest())


def check_pkce(metadata: ServerMetadata) -> None:
    """Check that the authorization server supports ``S256``.

    Raises:
        LoginFailed: Its metadata does not say so.
    """
    if "S256" not in (metadata.code_challenge_methods_supported or ()):
        raise LoginFailed(
            "the metadata of the authorization server does not list S256 in `code_challenge_methods_supported`; if you "
            "know that it supports PKCE, pass OAuth(assume_pkce=True)"
        )


def unpadded(data: bytes) -> str:
    """Return *data* in the base64 of URLs, without padding."""
    return urlsafe_b64encode(data).rstrip(b"=").decode("ascii")
