"""What a client has tried for one request whose access token was refused, and which logins its server has demanded."""

from __future__ import annotations

from collections import deque
from typing import Final

from msgspec import Struct

from mcpgen.runtime.http.errors import LoginFailed

__all__ = ["Attempts", "Logins"]

# A person who uses several tools may log in for each of them, but not for a server that never has enough.
_MAX_LOGINS: Final = 8
_LOGINS_SECONDS: Final = 600.0


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


class Logins:
    """The last logins that a server has demanded of a person."""

    def __init__(self) -> None:
        self._began: deque[float] = deque(maxlen=_MAX_LOGINS)

    def count(self, now: float) -> None:
        """Count one more, which begins at *now*, in seconds of a monotonic clock.

        Raises:
            LoginFailed: The server opens one login page after the other, such as with a new scope each time.
        """
        if len(self._began) == _MAX_LOGINS and now - self._began[0] < _LOGINS_SECONDS:
            within = f"within {_LOGINS_SECONDS / 60:g} minutes"
            raise LoginFailed(f"the server has demanded {_MAX_LOGINS} logins {within}; try again later")
        self._began.append(now)
