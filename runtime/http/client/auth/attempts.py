"""What a client has tried for one request whose access token was refused."""

from __future__ import annotations

from msgspec import Struct

from mcpgen.runtime.http.errors import LoginFailed

__all__ = ["Attempts"]


class Attempts(Struct):
    """What was tried for one request.

    Attributes:
        has_nonce: Whether a new nonce was tried.
        has_token: Whether a new token was tried.
        has_login: Whether that of a login was tried after that of a refresh.
        failure: Why the tokens of the request have expired and could not be refreshed; None if that was not tried.
        step_ups: How often more scopes were requested for it. A login for another request does not count.
        refusals: How often it was refused for its scopes.
    """

    has_nonce: bool = False
    has_token: bool = False
    has_login: bool = False
    failure: LoginFailed | None = None
    step_ups: int = 0
    refusals: int = 0
