"""A GET to the endpoint: the session's own stream, or one that broke and goes on; and a DELETE, which ends the session.

Spec:
    2025-03-26 to 2025-11-25, basic/transports, "Listening for Messages from the Server", "Resumability and Redelivery",
    "Session Management". 2026-07-28 has neither.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from mcpgen.runtime.http.server import responses
from mcpgen.runtime.http.server.event_store import parse_event_id
from mcpgen.runtime.http.server.response_buffer import ResponseBuffer
from mcpgen.runtime.protocol import headers as http

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mcpgen.runtime.http.server.app_state import AppState
    from mcpgen.runtime.http.server.http_session import HttpSession
    from mcpgen.runtime.http.server.responses import Receive, Send

__all__ = ["delete", "get"]

_NO_SESSION_ID: Final = "the request belongs to no session: it has no Mcp-Session-Id; begin one by posting initialize"

_LAST_EVENT: Final = "last-event-id"

_LOG = logging.getLogger("mcpgen.http")


async def get(desk: AppState, headers: Mapping[str, str], user: str, receive: Receive, send: Send) -> None:
    """Open a stream of a session, and send what comes on it until its client goes."""
    session = await _session(desk, headers, user, send)
    if session is None:
        return
    busy = desk.refusal(0)
    if busy is not None:
        await responses.send_error(send, 503, busy)
        return
    outlet = ResponseBuffer(desk.engine.limits.max_buffered_bytes)
    desk.sessions.hold(session)
    desk.enter(outlet)
    try:
        try:
            is_attached = await _attach(session, headers.get(_LAST_EVENT), outlet)
        except Exception:  # noqa: BLE001 (the boundary: a store is somebody else's)
            _LOG.exception("a stream cannot be resumed: the store of events failed")
            await responses.send_error(send, 500, "what came after the event of Last-Event-ID cannot be told now")
            return
        if not is_attached:
            await responses.send_error(send, 400, "what came after the event of Last-Event-ID is not known here")
            return
        await responses.send_events_until_disconnect(outlet, receive, send, desk.limits, await desk.open())
    finally:
        session.leave(outlet)
        desk.leave(outlet)
        desk.sessions.release(session)


async def _attach(session: HttpSession, last_event: str | None, outlet: ResponseBuffer) -> bool:
    if last_event is None:
        session.own.open(outlet, retry_ms=session.retry_ms)
        return True
    place = parse_event_id(last_event.strip())
    return place is not None and await session.resume(*place, outlet)


async def delete(desk: AppState, headers: Mapping[str, str], user: str, send: Send) -> None:
    """End a session."""
    session = await _session(desk, headers, user, send)
    if session is not None:
        desk.sessions.end(session)
        await responses.send_empty(send, 204)


async def _session(desk: AppState, headers: Mapping[str, str], user: str, send: Send) -> HttpSession | None:
    """Return the session that is named; without one, the request is refused."""
    said = desk.unserved(headers)
    if said is not None:
        await responses.send_unsupported_revision(send, said, desk.engine.service.served)
        return None
    session_id = headers.get(http.SESSION)
    if session_id is None:
        await responses.send_error(send, 400, _NO_SESSION_ID)
        return None
    session = desk.sessions.find(session_id, user)
    if session is None:
        await responses.send_unknown_session(send)
    return session
