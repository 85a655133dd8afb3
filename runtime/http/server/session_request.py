"""A message of a session: start the session, or answer the message in it with JSON or with a stream of events.

Spec:
    2025-03-26 to 2025-11-25, basic/transports, "Streamable HTTP".
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from msgspec import UNSET

from mcpgen.runtime.http.server import responses
from mcpgen.runtime.http.server.direct_calls import finish_call
from mcpgen.runtime.http.server.open_requests import request_count
from mcpgen.runtime.protocol import envelope
from mcpgen.runtime.protocol import headers as http
from mcpgen.runtime.protocol.messages import Batch, ErrorResponse, Fault, Malformed, Notification, Request, Response
from mcpgen.runtime.protocol.newest import ErrorCode
from mcpgen.runtime.protocol.param_headers import has_revision_header
from mcpgen.runtime.server.dispatcher import take

if TYPE_CHECKING:
    from mcpgen.runtime.http.server.app_state import AppState
    from mcpgen.runtime.http.server.direct_calls import DirectCall
    from mcpgen.runtime.http.server.event_streams import EventStream
    from mcpgen.runtime.http.server.http_request import HttpRequest
    from mcpgen.runtime.http.server.http_session import HttpSession
    from mcpgen.runtime.http.server.response_buffer import ResponseBuffer
    from mcpgen.runtime.http.server.shared_state import SharedState
    from mcpgen.runtime.protocol.messages import Message
    from mcpgen.runtime.server.exchange import Exchange

__all__ = ["answer", "find_session", "serve"]

_NO_SESSION_ID: Final = "the request has no Mcp-Session-Id header; start a session with initialize"


# What these change is shared with other workers before they are answered.
_CHANGING: Final = frozenset(("initialize", "logging/setLevel", "resources/subscribe", "resources/unsubscribe"))


def find_session(post: HttpRequest) -> HttpSession | None:
    """Return the session that the headers name; None if there is none, or the headers are wrong."""
    session_id, revision = post.headers.get(http.SESSION), post.headers.get(http.REVISION)
    if session_id is None or (revision is not None and revision not in post.state.engine.handlers.served):
        return None
    return post.state.sessions.find(session_id, post.client.user)


async def serve(post: HttpRequest, message: Message | Batch | Malformed) -> None:
    """Answer a message of a handshake revision."""
    unsupported = post.state.unsupported_revision(post.headers)
    if unsupported is not None:
        # 2026-07-28, streamable-http, "Backward Compatibility": this revision's code tells a client that the server
        # is stateless; so a server without stateless revisions must not use it, or the client sends no initialize.
        handlers = post.state.engine.handlers
        code = None if handlers.stateless_revisions else ErrorCode.INVALID_REQUEST
        await responses.send_unsupported_revision(post.send, unsupported, handlers.served, code=code, body=post.body)
        return
    session_id = post.headers.get(http.SESSION)
    if session_id is not None:
        session = post.state.sessions.find(session_id, post.client.user)
        if session is None:
            await responses.send_unknown_session(post.send, post.body)
        else:
            await _serve_in_session(post, session, message)
    elif isinstance(message, Request) and message.method == "initialize":
        await _start_session(post, message)
    elif isinstance(message, Malformed):
        await post.refuse(message)
    else:
        await _refuse_without_session(post, message)


async def _refuse_without_session(post: HttpRequest, message: Message | Batch) -> None:
    """Refuse a message that names neither a session nor a stateless revision.

    Spec:
        2026-07-28, streamable-http, "Protocol Version Header": if a server supports no client that omits the header, a
        request without it is a mismatch.
    """
    handlers, problem, code = post.state.engine.handlers, _NO_SESSION_ID, ErrorCode.INVALID_REQUEST
    stateless = handlers.stateless_revisions[-1] if handlers.stateless_revisions else None
    batched = message.items if isinstance(message, Batch) else ()
    if any(isinstance(each, Request) and each.method == "initialize" for each in batched):
        problem = "initialize must not be part of a batch; send it alone"
    # Stateless revisions have no batches, no responses of a client, and fewer methods.
    if stateless and isinstance(message, Request) and message.method in handlers.methods(stateless).CLIENT_REQUESTS:
        problem += f", or name {stateless} in _meta and in the MCP-Protocol-Version header"
    request_id = message.id if isinstance(message, Request) else UNSET
    is_missing = request_id is not UNSET and http.REVISION not in post.headers
    if is_missing and stateless and all(map(has_revision_header, handlers.served)):
        problem, code = f"Header mismatch: MCP-Protocol-Version header is missing; {problem}", ErrorCode.HEADER_MISMATCH
    await responses.send_error(post.send, 400, problem, code=code, request_id=request_id)


def _malformed_batch(batch: Batch) -> Malformed | None:
    """Return the first fault of a batch that has no valid message; None if it has one.

    Spec:
        2025-03-26, basic/transports, "Sending Messages to the Server": a batch that is refused has an error status.
    """
    faults = [each for each in batch.items if isinstance(each, Malformed)]
    return faults[0] if len(faults) == len(batch.items) else None


async def _start_session(post: HttpRequest, request: Request) -> None:
    """Answer `initialize`, and start a session if the answer is no error."""
    state = post.state
    spawner = await state.open()
    session = state.new_session(post.client, spawner)
    _, response = session.take(request)
    body = response.take()  # the server session has answered already
    peer = session.session.peer
    if peer is None:
        session.close()
        await responses.send_json(post.send, body)
        return
    if not state.sessions.add(session, peer):  # only now, since it may end another client's session
        session.close()
        reason = "there are too many sessions (max_sessions, max_sessions_bytes)"
        await responses.send_error(post.send, 503, reason, headers=(responses.RETRY_AFTER,), request_id=request.id)
        return
    state.engine.add(session)
    if state.cluster is not None:
        await state.cluster.store(session)
    await responses.send_json(post.send, body, headers=((b"mcp-session-id", session.id.encode()),))


async def _serve_in_session(post: HttpRequest, session: HttpSession, message: Message | Batch | Malformed) -> None:
    # Each request has a token of its own, and another worker may have started the session.
    if not session.use_token(post.client):
        await post.refuse_overload()
        return
    revision = session.session.revision
    if post.state.cluster is not None and post.open_ticket(session=session.id) is None:  # it may wait for other workers
        await post.refuse_overload()
        return
    if isinstance(message, Notification | Response | ErrorResponse):
        take(session.session, message)
        if post.state.cluster is None or await _is_settled(post, post.state.cluster, session, message):
            await responses.send_empty(post.send, 202)
    elif isinstance(message, Malformed):
        if message.is_answer:  # fails the request that it answers
            if message.kind == "response" or message.id in session.session.server_requests:
                take(session.session, message)
            cluster = post.state.cluster
            if cluster is not None and not await _is_settled(post, cluster, session, message):
                return
        await post.refuse(message)
    elif isinstance(message, Batch) and not envelope.allows_batches(revision):
        await post.refuse(Malformed(Fault.NO_BATCHES))
    else:
        await answer(post, session, message)


async def answer(
    post: HttpRequest,
    session: HttpSession,
    message: Request | Batch,
    exchange: Exchange | None = None,
    call: DirectCall | None = None,
) -> None:
    """Answer requests in a session; *exchange* and *call* are those of a request whose function has begun already."""
    ticket = post.open_ticket(request_count(message), session.id)
    if ticket is None:
        await post.abandon(call)
        return
    if exchange is not None:
        stream, response = session.open_stream(exchange, ticket)
    elif isinstance(message, Batch):
        stream, response = session.open_batch(message, ticket)
    else:
        stream, response = session.take(message, ticket)
    response.unread, response.owner = post.state.unread, post.client.owner
    response.on_abort = responses.abort_of(post.scope)
    post.state.sessions.hold(session)
    post.state.add_response(response)
    try:
        if isinstance(message, Batch):
            await session.take_batch(message, ticket, stream, response)
            if session.session.is_closed:
                await responses.send_unknown_session(post.send)
                return
        cluster = post.state.cluster
        if cluster is not None and call is None and not await _is_settled(post, cluster, session, message, response):
            return
        if response.has_ended and response.is_empty and isinstance(message, Batch) and not _has_requests(message):
            malformed = _malformed_batch(message)  # an answer with a fault has failed our request by now
            await (responses.send_empty(post.send, 202) if malformed is None else post.refuse(malformed))
            return
        send_all = partial(_send_all, post, session, stream, response)
        if exchange is None or call is None:
            await send_all()
        else:
            sent = partial(_leave, post.state, session, stream, response)
            await finish_call(post.state, session, exchange, call, send_all=send_all, sent=sent)
    finally:
        _leave(post.state, session, stream, response)


def _has_requests(batch: Batch) -> bool:
    """Return whether *batch* has requests: then the response is JSON or a stream, also if all of them are cancelled.

    Spec:
        2025-03-26, basic/transports, "Sending Messages to the Server", 5.
    """
    return any(isinstance(each, Request) for each in batch.items)


async def _is_settled(
    post: HttpRequest,
    cluster: SharedState,
    session: HttpSession,
    message: Message | Batch | Malformed,
    response: ResponseBuffer | None = None,
) -> bool:
    """Tell the other workers what *message* has changed; answer and return False if the session has ended.

    Before that, wait for *response* if the message is one that changes the session.
    """
    if response is not None and isinstance(message, Request):
        if message.method not in _CHANGING:
            return True
        is_ready = False
        while not is_ready:  # an author's handler may decide
            is_ready = await response.wait_ready(post.state.limits.keep_alive_seconds)
    if await cluster.settle(session, message, post.body):
        return True
    await responses.send_unknown_session(post.send, post.body)
    return False


async def _send_all(post: HttpRequest, session: HttpSession, stream: EventStream, response: ResponseBuffer) -> None:
    state = post.state
    try:
        await responses.send_response(
            state,
            post.receive,
            post.send,
            response,
            start_stream=partial(_start_stream, session, stream),
            json_seconds=state.limits.stream_after_seconds,
            body=post.body,
        )
    except _SessionEnded:
        await responses.send_unknown_session(post.send, post.body)


def _leave(state: AppState, session: HttpSession, stream: EventStream, response: ResponseBuffer) -> None:
    """Detach *response*, once; its call may go on, and its session may have ended."""
    if response in state.open_responses:
        stream.detach(response)
        state.remove_response(response)
        state.sessions.release(session)


class _SessionEnded(Exception):  # noqa: N818 (no error: its client has ended it)
    """The session of a request has ended before a message was sent."""


def _start_stream(session: HttpSession, stream: EventStream) -> None:
    if session.session.is_closed:
        raise _SessionEnded
    session.start_stream(stream)
