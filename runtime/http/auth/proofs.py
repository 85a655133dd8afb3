"""DPoP proofs: a signature over each request shows that the client holds the key to which its token is bound.

They need PyJWT, of the extra ``auth``. The key is of the curve P-256, since each server with DPoP must verify ES256.

Spec:
    RFC 9449, sections 4, 7 and 8.
"""

from __future__ import annotations

import json
import secrets
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit, urlunsplit

from mcpgen.runtime.http.auth.assertions import import_jwt
from mcpgen.runtime.http.auth.pkce import unpadded

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["MAX_NONCE_CHARS", "NONCE_ERROR", "ProofKey"]

ALGORITHM: Final = "ES256"

NONCE_ERROR: Final = "use_dpop_nonce"
"""The error with which a server demands another nonce."""

MAX_NONCE_CHARS: Final = 1024
"""How long a nonce may be; it is sent with each request."""

_PUBLIC: Final = ("kty", "crv", "x", "y")


class ProofKey:
    """A key for DPoP, and the proofs that it signs.

    Attributes:
        pem: The private key, as PEM. It is stored with the tokens that are bound to it.

    Args:
        pem: The private key; None for a new one.

    Raises:
        UsageError: PyJWT is not installed.
    """

    def __init__(self, pem: str | None = None) -> None:
        self._jwt: Any = import_jwt("DPoP")
        from cryptography.hazmat.primitives import serialization  # noqa: PLC0415 (it takes long to load)
        from cryptography.hazmat.primitives.asymmetric import ec  # noqa: PLC0415 (it takes long to load)

        if pem is None:
            made = ec.generate_private_key(ec.SECP256R1())
            pem = made.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            ).decode("ascii")
        self.pem: str = pem
        self._key: Any = serialization.load_pem_private_key(pem.encode("ascii"), None)
        jwk: Mapping[str, str] = json.loads(self._jwt.algorithms.ECAlgorithm.to_jwk(self._key.public_key()))
        self._public = {name: jwk[name] for name in _PUBLIC}

    def __repr__(self) -> str:
        return "<key of DPoP>"

    def proof(self, verb: str, url: str, *, now: float, token: str | None = None, nonce: str | None = None) -> str:
        """Return the proof for one request.

        Args:
            verb: The HTTP method.
            url: The URL of the request; its query does not count.
            now: The seconds of the system's clock.
            token: The access token that the request carries, if any.
            nonce: The nonce that the server has sent, if any.
        """
        parts = urlsplit(url)
        target = urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))
        claims: dict[str, object] = {
            "jti": secrets.token_urlsafe(16),
            "htm": verb,
            "htu": target,
            "iat": int(now),
        }
        if token is not None:
            claims["ath"] = unpadded(sha256(token.encode("ascii")).digest())
        if nonce is not None:
            claims["nonce"] = nonce
        headers = {"typ": "dpop+jwt", "jwk": self._public}
        signed: str = self._jwt.encode(claims, self._key, algorithm=ALGORITHM, headers=headers)
        return signed
