"""A client that was registered in advance belongs to the authorization server that has registered it.

Without `issuer`, the client cannot know which one that is. So the first authorization server that gets its credentials
is the only one.

Spec:
    2026-07-28, basic/authorization/client-registration, "Authorization Server Binding".
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mcpgen.runtime.http.client.auth.credentials import OAuth
from mcpgen.runtime.http.errors import LoginFailed

if TYPE_CHECKING:
    from mcpgen.runtime.http.client.auth.credentials import Credentials

__all__ = ["bound_issuer", "check_binding"]


async def bound_issuer(credentials: Credentials, server_url: str) -> str | None:
    """Return the authorization server that has got the credentials; None if there is none."""
    store = credentials.store if isinstance(credentials, OAuth) else credentials.bindings
    found = await store.load(_key(credentials, server_url))
    return None if found is None else found.decode(errors="replace")


async def check_binding(credentials: Credentials, server_url: str, issuer: str) -> None:
    """Check that a client that was registered in advance is used only at one authorization server.

    Args:
        credentials: The choices of the program.
        server_url: The URL of the MCP server.
        issuer: The authorization server that would get the credentials.

    Raises:
        LoginFailed: They are those of another one.
    """
    if credentials.client_id is None or credentials.issuer is not None:
        return
    known = await bound_issuer(credentials, server_url)
    if known is None:
        store = credentials.store if isinstance(credentials, OAuth) else credentials.bindings
        await store.save(_key(credentials, server_url), issuer.encode())
    elif known != issuer:
        raise LoginFailed(
            f"the server now uses the authorization server {issuer!r}, but the client {credentials.client_id!r} was "
            "registered with another one; register a client with the new one, and pass "
            f"{type(credentials).__name__}(…, issuer=…)"
        )


def _key(credentials: Credentials, server_url: str) -> str:
    return f"issuer of {credentials.client_id} {server_url}"
