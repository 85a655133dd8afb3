"""JWTs with which a client authenticates at the token endpoint (``private_key_jwt``).

They need PyJWT, of the extra ``auth``.

Spec:
    RFC 7523, section 3; the extension io.modelcontextprotocol/oauth-client-credentials: the audience is the issuer.
"""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Any, Final, cast

from mcpgen.runtime.errors import UsageError

if TYPE_CHECKING:
    from types import ModuleType

__all__ = ["client_assertion", "import_jwt"]

_LIFETIME_SECONDS: Final = 60


def import_jwt(what: str) -> ModuleType:
    """Return PyJWT, once it has what its signatures need.

    Args:
        what: What it is needed for.

    Raises:
        UsageError: It is not installed.
    """
    try:
        import jwt  # noqa: PLC0415 (most clients never need it)
        from jwt.algorithms import has_crypto  # noqa: PLC0415

        if not has_crypto:  # then PyJWT has only signatures with shared secrets
            raise ImportError  # noqa: TRY301 (the message is the same)
    except ImportError:
        raise UsageError(f'{what} needs PyJWT and cryptography; install both: pip install "mcpgen[auth]"') from None
    return jwt


def client_assertion(*, client_id: str, audience: str, key: str, algorithm: str, now: float) -> str:
    """Return a signed assertion that is valid for a minute.

    Args:
        client_id: The client.
        audience: The issuer of the authorization server.
        key: The private key, as PEM.
        algorithm: The algorithm of the signature, such as ``ES256``.
        now: The seconds of the system's clock.

    Raises:
        UsageError: The key is not one of the algorithm, or the algorithm is unknown or has no private keys.
    """
    if not isinstance(cast("object", algorithm), str):
        raise UsageError(f"`algorithm` must be a string, such as 'ES256', not {algorithm!r}")
    if algorithm == "none" or algorithm.startswith("HS"):
        raise UsageError(f"`algorithm` is {algorithm!r}, which has no private keys; use another one, such as 'ES256'")
    jwt: Any = import_jwt("a client that authenticates with a key")
    # ES521 is an old name of PyJWT for ES512. RFC 7518 does not have it, so no authorization server knows it.
    left_out = ("none", "ES521")
    names = [each for each in jwt.algorithms.get_default_algorithms() if not each.startswith(("HS", *left_out))]
    if algorithm not in names:
        raise UsageError(f"`algorithm` is {algorithm!r}; use {', '.join(names[:-1])} or {names[-1]}")
    if "-----BEGIN" not in key:
        raise UsageError("`private_key` is not a key as PEM; pass the text of the PEM file, not its path")
    claims = {
        "iss": client_id,
        "sub": client_id,
        "aud": audience,
        "iat": int(now),
        "exp": int(now) + _LIFETIME_SECONDS,
        "jti": secrets.token_urlsafe(16),
    }
    try:
        signed: str = jwt.encode(claims, key, algorithm=algorithm)
    except (jwt.PyJWTError, ValueError, TypeError, NotImplementedError):  # their texts could quote the key
        raise UsageError(
            f"`private_key` is not a PEM key for the algorithm {algorithm!r}, or has a passphrase"
        ) from None
    return signed
