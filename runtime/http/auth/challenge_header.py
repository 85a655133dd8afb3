"""Write the header ``WWW-Authenticate``: how a client gets a token that a request needs.

Spec:
    RFC 6750, section 3; RFC 9728, section 5.1; 2025-11-25, basic/authorization, "Scope Challenge Handling".
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["bearer_challenge"]


def bearer_challenge(metadata_url: str, *, scopes: Iterable[str] = (), error: str = "", description: str = "") -> bytes:
    """Return the value of the header.

    Args:
        metadata_url: The URL of the protected-resource metadata, without characters that must be quoted.
        scopes: The scopes that the request needs, each as RFC 6749, 3.3, defines them.
        error: The code of RFC 6750, section 3.1; empty if the request has no token.
        description: What is wrong, for developers: ASCII, without quotes and backslashes.
    """
    parameters = {
        "error": error,
        "error_description": description,
        "scope": " ".join(sorted(scopes)),
        "resource_metadata": metadata_url,
    }
    return b"Bearer " + ", ".join(f'{name}="{value}"' for name, value in parameters.items() if value).encode("ascii")
