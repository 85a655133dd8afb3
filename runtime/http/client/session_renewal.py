"""Start a new session after the server has lost the one before, without the client noticing.

Spec:
    2025-03-26 to 2025-11-25, basic/transports, "Session Management": after a 404, the client MUST start a new session.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from msgspec import Raw

from mcpgen.runtime.errors import RequestLost, printable
from mcpgen.runtime.http.client.http_session import HttpSession
from mcpgen.runtime.http.client.outgoing_messages import INITIALIZE, parse_message, transport_request
from mcpgen.runtime.protocol import envelope
from mcpgen.runtime.protocol.messages import Response

if TYPE_CHECKING:
    from mcpgen.runtime.http.client.http_session import SessionState
    from mcpgen.runtime.http.client.outgoing_messages import OutgoingMessage
    from mcpgen.runtime.http.client.post_requests import PostRequests

__all__ = ["renew_session"]

_LOG = logging.getLogger("mcpgen.client")

_MAX_SHOWN_CHARS: Final = 100


async def renew_session(posts: PostRequests, state: SessionState, lost: HttpSession) -> HttpSession:
    """Return a new session, in which the requests of *state* were repeated.

    Args:
        posts: The endpoint.
        state: The state of the session before.
        lost: The session before. The server must accept its revision again: the client cannot change to another.

    Raises:
        RequestLost: The server refuses, or chooses another revision.
        SessionLost: It has lost the new session already.
    """
    session, revision = HttpSession(lost), lost.revision
    initialize = transport_request(INITIALIZE, Raw(state.initialize_params))
    answer = await _request(posts, initialize, session, {})
    if not isinstance(answer, Response):
        raise RequestLost(f"initialize failed: {_error_message(answer)}")
    if session.revision != revision:
        new = f"answers with {session.revision}" if session.revision else "answers with an unknown revision"
        raise RequestLost(f"the server {new} now, but the lost session used {revision}")
    initialized = parse_message(envelope.encode_notification("notifications/initialized"))
    error = await posts.send_message(initialized, session.headers)
    if error is not None:
        raise error.failure
    for method, params in state.requests():
        try:
            answer = await _request(posts, transport_request(method, params), session, session.headers)
            problem = "" if isinstance(answer, Response) else _error_message(answer)
        except RequestLost as failure:
            problem = str(failure)
        if problem:
            _LOG.warning("%s could not be repeated in the new session: %s", method, problem)
    return session


async def _request(
    posts: PostRequests, message: OutgoingMessage, session: HttpSession, headers: dict[str, str]
) -> object:
    error = await posts.send_request(message, headers, session)
    if error is not None:
        raise error.failure
    return message.answer


def _error_message(answer: object) -> str:
    return printable(str(getattr(answer, "message", "the answer is malformed"))[:_MAX_SHOWN_CHARS])
