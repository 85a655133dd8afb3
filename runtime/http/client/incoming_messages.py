"""Messages from the server, on their way to the client, and what the transport learns from them.

Spec:
    2025-11-25, basic/transports, "Session Management"; 2026-07-28, basic/transports/streamable-http, "Custom Headers
    from Tool Parameters".
"""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING, Final

import anyio
import msgspec
from msgspec import Struct

from mcpgen.runtime.http.client.http_session import HttpSession, SessionState
from mcpgen.runtime.http.client.outgoing_messages import INITIALIZE, LIST_TOOLS
from mcpgen.runtime.http.client.param_header_cache import ParamHeaderCache
from mcpgen.runtime.protocol import envelope
from mcpgen.runtime.protocol.messages import Batch, ErrorResponse, Malformed, Message, Request, Response
from mcpgen.runtime.protocol.reading_policy import SUSPECT, is_meant_id, meant_message
from mcpgen.runtime.transports.event_loops import next_turn

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from mcpgen.runtime.http.client.outgoing_messages import OutgoingMessage
    from mcpgen.runtime.limits import ClientLimits
    from mcpgen.runtime.protocol.messages import RequestId
    from mcpgen.runtime.transports.interfaces import ClientEndpoint

__all__ = ["IncomingMessages"]


# The messages that are delivered in one turn of the event loop, those of all streams and responses together. One of
# 14 KiB with slow numbers takes up to 100 ms, and one that is no message some 100 µs.
_MAX_TURN_BYTES: Final = 16 * 1024
_MESSAGE_BYTES: Final = 128  # what each costs besides its bytes


class _Initialized(Struct, rename="camel"):
    protocol_version: str


class IncomingMessages:
    """Deliver messages from the server to the client.

    Attributes:
        session: The current session; None in a stateless revision, and before the handshake.
        initialize: The client's `initialize` request, once it was sent.
        session_state: The state of the session that a new one must repeat.
        param_headers: The param headers of the server's tools.

    Args:
        limits: The limits of the client.
    """

    def __init__(self, limits: ClientLimits) -> None:
        self.session: HttpSession | None = None
        self.initialize: OutgoingMessage | None = None
        self.session_state: SessionState = SessionState()
        self.param_headers: ParamHeaderCache = ParamHeaderCache()
        self._limits = limits
        self._endpoint: ClientEndpoint | None = None
        self._turn = anyio.Lock()
        self._turn_bytes = 0  # of the messages that were delivered since the last turn that `ready` has waited for
        self._early: list[bytes] = []
        self._early_failures: list[tuple[RequestId, Exception]] = []

    def start(self, endpoint: ClientEndpoint) -> None:
        """Deliver messages to *endpoint*: those that arrived before, and those to come."""
        self._endpoint = endpoint
        early, self._early = self._early, []
        if early:
            endpoint.receive(early)
        for request_id, failure in self._early_failures:
            endpoint.request_lost(request_id, failure)
        self._early_failures.clear()

    def replace_session(self, session: HttpSession) -> None:
        """Use *session* instead of the one that the server has lost."""
        self.session = session
        if self._endpoint is not None:
            self._endpoint.session_renewed()

    async def ready(self, size: int) -> None:
        """Return when the client takes another message, of *size* bytes.

        The responses to a hundred calls can arrive in one turn of the event loop, and each can take long to decode.
        """
        size += _MESSAGE_BYTES
        if self._turn.locked() or self._turn_bytes + size > _MAX_TURN_BYTES:
            async with self._turn:
                if self._turn_bytes + size > _MAX_TURN_BYTES:
                    await next_turn()
                    self._turn_bytes = 0
                self._turn_bytes += size
        else:
            self._turn_bytes += size
        if self._endpoint is not None:
            await self._endpoint.ready()

    def paused(self) -> AbstractContextManager[object]:
        """Stop the clocks of the client's requests within the block."""
        return nullcontext() if self._endpoint is None else self._endpoint.paused()

    def awaits(self, request_id: RequestId) -> bool:
        """Return whether the client still waits for the answer to a request."""
        return self._endpoint is None or self._endpoint.awaits(request_id)

    def fail(self, request_id: RequestId, failure: Exception) -> None:
        """Report that a request will not be answered."""
        if self._endpoint is None:
            self._early_failures.append((request_id, failure))
        else:
            self._endpoint.request_lost(request_id, failure)

    def receive(self, frame: bytes, message: OutgoingMessage | None, session: HttpSession | None) -> bool:
        """Deliver *frame*, and return whether it contains the answer to *message*.

        Args:
            frame: The frame.
            message: The request to which it is a response; None if it arrived on a stream without a request.
            session: Its session; None in a stateless revision.
        """
        limits = self._limits
        found = envelope.decode(frame, max_batch_length=limits.max_batch_length, max_values=limits.max_values)
        if isinstance(found, SUSPECT):  # to learn from it; the client reads the frame itself, or refuses it
            found, _ = meant_message(frame, found, limits)
        if isinstance(found, Batch) and not envelope.allows_batches(None if session is None else session.revision):
            self._deliver(frame)  # the client logs it, and takes no answer from it
            return False
        is_answered = False
        for each in found.items if isinstance(found, Batch) else (found,):
            if isinstance(each, Request):
                if session is not None:
                    session.add_server_request(each.id)
                continue
            request = self._request_of(each, message)
            if request is None:
                continue
            is_answered = is_answered or request is message
            if isinstance(each, Response):
                frame = self._learn(each, request, session, frame)
            elif isinstance(each, ErrorResponse) and each.id is None and found is each and request.id is not None:
                frame = envelope.encode_error(request.id, each.error)  # it can only be about this request
        if message is not None and message.is_internal and is_answered:
            message.answer = found if isinstance(found, Response | ErrorResponse) else None
        else:
            self._deliver(frame)
        return is_answered

    def cancel_server_requests(self, session: HttpSession) -> None:
        """Cancel the handlers of the server's requests in a lost session, whose answers a new one must not get."""
        for request_id in list(session.server_requests):
            cancelled = {"requestId": request_id, "reason": "the session of this request is lost"}
            self._deliver(envelope.encode_notification("notifications/cancelled", cancelled))
        session.server_requests.clear()

    def _request_of(self, found: Message | Malformed, message: OutgoingMessage | None) -> OutgoingMessage | None:
        """Return the request that *found* answers: *message* or `initialize`; None if it answers neither."""
        if not isinstance(found, Response | ErrorResponse) and not (
            isinstance(found, Malformed) and found.kind == "response"
        ):
            return None
        request = message if message is not None else self.initialize
        if request is None or request.kind != "request":
            return None
        has_no_id = message is not None and isinstance(found, ErrorResponse) and found.id is None
        return request if has_no_id or is_meant_id(found.id, request.id) else None

    def _learn(self, answer: Response, request: OutgoingMessage, session: HttpSession | None, frame: bytes) -> bytes:
        """Learn from the answer to *request*, and return the frame to deliver."""
        if request.method == INITIALIZE and session is not None:
            try:
                session.set_revision(msgspec.json.decode(answer.result, type=_Initialized).protocol_version)
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
                return frame  # the client reports the error
            if not request.is_internal:
                self.session = session
        elif session is None and request.method == LIST_TOOLS:
            return self.param_headers.learn(frame, answer)
        elif session is not None and not request.is_internal:
            self.session_state.record(request)
            if request.method.endswith("/list"):
                session.add_cursor(answer.result)
        return frame

    def _deliver(self, frame: bytes) -> None:
        if self._endpoint is None:
            self._early.append(frame)
        else:
            self._endpoint.receive([frame])
