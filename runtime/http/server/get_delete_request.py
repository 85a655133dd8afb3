"""GET and DELETE on the endpoint: open or resume a stream of a session, and end a session.

Spec:
    2025-03-26 to 2025-11-25, basic/transports, "Listening for Messages from the Server", "Resumability and Redelivery",
    "Session Management". 2026-07-28 has neither method.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from mcpgen.runtime.http.server import responses
from mcpgen.runtime.http.server.auth.token_expiry import ending_with_token
from mcpgen.runtime.protocol import headers as http
from mcpgen.runtime.server.cluster.cluster import ClusterUnavailable
from mcpgen.runtime.server.event_store import parse_event_id
from mcpgen.runtime.server.fair_turns import REQUEST_COST_BYTES
from mcpgen.runtime.transports.tracebacks import traceback_logger

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mcpgen.runtime.http.server.app_state import AppState
    from mcpgen.runtime.http.server.client_address import Client
    from mcpgen.runtime.http.server.http_session import HttpSession
    from mcpgen.runtime.http.server.response_buffer import ResponseBuffer
    from mcpgen.runtime.http.server.responses import Receive, Send

__all__ = ["delete", "get"]

_NO_SESSION_ID: Final = "the request has no Mcp-Session-Id header; send the id from the response to initialize"

_LOG = traceback_logger("mcpgen.http")


async def get(  # noqa: PLR0913, PLR0917 (of `PostRequest`)
    state: AppState,
    headers: Mapping[str, str],
    client: Client,
    receive: Receive,
    send: Send,
    on_abort: Callable[[], object] | None,
) -> None:
    """Open or resume a stream of a session, and send its messages until the client disconnects."""
    if state.cluster is not None and await state.cluster.relay_stream(headers, client, receive, send, on_abort):
        return
    session = await _find_session(state, headers, client.user, send)
    if session is None:
        return
    ticket = state.open_ticket(client, headers, session=session.id, is_stream=True)
    if ticket is None:
        await responses.send_error(send, 503, state.refusal, headers=(responses.RETRY_AFTER,))
        return
    response = state.new_response(client, on_abort)
    ticket.on_give_way = response.give_way
    state.sessions.hold(session)
    state.add_response(response)
    try:
        turns = state.engine.turns
        if turns.is_used_up:
            await turns.wait_to_work(client.owner, session.id)
        try:
            size = await _attach(session, headers.get("last-event-id"), response)
        except ClusterUnavailable:  # 503
            raise
        except Exception:  # noqa: BLE001 (the boundary: a user's event store)
            _LOG.exception("the event store failed; a stream cannot be resumed now")
            await responses.send_error(send, 500, "the stream cannot be resumed now; try again later")
            return
        # A request of 200 bytes resumes a stream of megabytes, and the next one does so again.
        turns.spend(max(size or 0, REQUEST_COST_BYTES))
        if size is None:
            reason = "the stream cannot be resumed: its Last-Event-ID is unknown, or later events are no longer stored"
            await responses.send_error(send, 400, reason)
            return
        spawner = await state.open()
        with ending_with_token(client.access, spawner, partial(session.detach, response)):
            await responses.send_events_until_disconnect(response, receive, send, state.limits, spawner)
    finally:
        session.detach(response)
        state.remove_response(response)
        state.sessions.release(session)
        ticket.release()


async def _attach(session: HttpSession, last_event_id: str | None, response: ResponseBuffer) -> int | None:
    if last_event_id is None:
        session.open_get_stream(response)
        return 0
    found = parse_event_id(last_event_id.strip())
    return None if found is None else await session.resume(*found, response)


async def delete(state: AppState, headers: Mapping[str, str], client: Client, send: Send) -> None:
    """End a session."""
    if state.cluster is not None:
        await state.cluster.prepare(headers, client)
    session = await _find_session(state, headers, client.user, send)
    if session is not None:
        if state.cluster is not None:
            await state.cluster.end(session)
        state.sessions.end(session)
        await responses.send_empty(send, 204)


async def _find_session(state: AppState, headers: Mapping[str, str], user: str, send: Send) -> HttpSession | None:
    """Return the session that *headers* name; refuse the request and return None if there is none."""
    unsupported = state.unsupported_revision(headers)
    if unsupported is not None:
        await responses.send_unsupported_revision(send, unsupported, state.engine.handlers.served)
        return None
    session_id = headers.get(http.SESSION)
    if session_id is None:
        named = headers.get(http.REVISION)
        is_stateless = named in state.engine.handlers.stateless_revisions
        reason = f"{named} has neither sessions nor GET and DELETE; send a POST" if is_stateless else _NO_SESSION_ID
        await responses.send_error(send, 400, reason)
        return None
    session = state.sessions.find(session_id, user)
    if session is None:
        await responses.send_unknown_session(send)
    return session
