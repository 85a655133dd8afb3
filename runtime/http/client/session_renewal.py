"""Beginning another session where the server has lost the one before, so that its client need not notice.

Spec:
    2025-03-26 to 2025-11-25, basic/transports, "Session Management": after a 404, the client MUST start a new session.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

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

_MOST_SHOWN = 100


async def renew_session(posts: PostRequests, standing: SessionState, revision: str | None) -> HttpSession:
    """Return another session, which was told what the one before was told.

    Args:
        posts: The endpoint.
        standing: What has to be told.
        revision: What has to be agreed on again: the client cannot change any more what it speaks.

    Raises:
        RequestLost: The server does not want that, or wants another revision.
        SessionLost: It has lost the new one already.
    """
    session = HttpSession()
    greeting = transport_request(INITIALIZE, Raw(standing.greeting))
    answer = await _answer(posts, greeting, session, {})
    if not isinstance(answer, Response):
        raise RequestLost(f"initialize was answered with an error: {_said(answer)}")
    if session.revision != revision:
        raise RequestLost(f"the server speaks {session.revision or 'what nobody knows'} now, and spoke {revision}")
    told = parse_message(envelope.encode_notification("notifications/initialized"))
    refused = await posts.tell(told, session.headers)
    if refused is not None:
        raise refused.failure
    for method, params in standing.requests():
        try:
            again = await _answer(posts, transport_request(method, params), session, session.headers)
            problem = "" if isinstance(again, Response) else _said(again)
        except RequestLost as error:
            problem = str(error)
        if problem:
            _LOG.warning("%s could not be said again in a new session: %s", method, problem)
    return session


async def _answer(
    posts: PostRequests, message: OutgoingMessage, session: HttpSession, headers: dict[str, str]
) -> object:
    refused = await posts.ask(message, headers, session)
    if refused is not None:
        raise refused.failure
    return message.answer


def _said(answer: object) -> str:
    return printable(str(getattr(answer, "message", "it cannot be read"))[:_MOST_SHOWN])
