"""What a server says, on its way to the client: what HTTP needs to know of it is learnt here, and nothing else changed.

Spec:
    2025-11-25, basic/transports, "Session Management"; 2026-07-28, basic/transports/streamable-http, "Custom Headers
    from Tool Parameters".
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec
from msgspec import Struct

from mcpgen.runtime.http.client.http_session import HttpSession, SessionState
from mcpgen.runtime.http.client.outgoing_messages import INITIALIZE, LIST_TOOLS
from mcpgen.runtime.http.client.param_header_cache import ParamHeaderCache
from mcpgen.runtime.protocol import envelope
from mcpgen.runtime.protocol.messages import Batch, ErrorResponse, Malformed, Message, Request, Response

if TYPE_CHECKING:
    from mcpgen.runtime.http.client.outgoing_messages import OutgoingMessage
    from mcpgen.runtime.protocol.messages import RequestId
    from mcpgen.runtime.transports.interfaces import ClientEndpoint

__all__ = ["IncomingMessages"]

_WHY: Final = "the session in which this was asked is lost"


class _Initialized(Struct, rename="camel"):
    protocol_version: str


class IncomingMessages:
    """Hands on what comes in.

    Attributes:
        session: The session that there is; None in the stateless era, and before it has begun.
        greeting: The client's `initialize`, once it was sent.
        standing: What another session would have to be told.
        mirrors: What is known of the server's tools.

    Args:
        max_batch_length: The most messages in a batch.
    """

    def __init__(self, max_batch_length: int) -> None:
        self.session: HttpSession | None = None
        self.greeting: OutgoingMessage | None = None
        self.standing: SessionState = SessionState()
        self.mirrors: ParamHeaderCache = ParamHeaderCache()
        self._max_batch_length = max_batch_length
        self._endpoint: ClientEndpoint | None = None
        self._early: list[bytes] = []
        self._lost_early: list[tuple[RequestId, Exception]] = []

    def begin(self, endpoint: ClientEndpoint) -> None:
        """Hand to *endpoint* what comes, and what has come before."""
        self._endpoint = endpoint
        early, self._early = self._early, []
        if early:
            endpoint.receive(early)
        for request_id, failure in self._lost_early:
            endpoint.lost(request_id, failure)
        self._lost_early.clear()

    def lose(self, request_id: RequestId, failure: Exception) -> None:
        """Say that there will be no answer to a request."""
        if self._endpoint is None:
            self._lost_early.append((request_id, failure))
        else:
            self._endpoint.lost(request_id, failure)

    def take(self, frame: bytes, message: OutgoingMessage | None, session: HttpSession | None) -> bool:
        """Hand on *frame*, and return whether it has the answer to *message*.

        Args:
            frame: What came.
            message: The request that it came for; None if it came on a stream of its own.
            session: What it came in; None in the stateless era.
        """
        found = envelope.decode(frame, max_batch_length=self._max_batch_length)
        is_answered = False
        for each in found.items if isinstance(found, Batch) else (found,):
            if isinstance(each, Request):
                if session is not None:
                    session.note_asked(each.id)
                continue
            about = self._answered(each, message)
            if about is None:
                continue
            is_answered = is_answered or about is message
            if isinstance(each, Response):
                frame = self._learn(each, about, session, frame)
            elif isinstance(each, ErrorResponse) and each.id is None and found is each and about.id is not None:
                frame = envelope.encode_error(about.id, each.error)  # what else could it be about?
        if message is not None and message.is_own and is_answered:
            message.answer = found if isinstance(found, Response | ErrorResponse) else None
        else:
            self._deliver(frame)
        return is_answered

    def void(self, session: HttpSession) -> None:
        """Have our handlers stop whose answers a lost session would get: another must not get them."""
        for request_id in list(session.asked):
            self._deliver(
                envelope.encode_notification("notifications/cancelled", {"requestId": request_id, "reason": _WHY})
            )
        session.asked.clear()

    def _answered(self, found: Message | Malformed, message: OutgoingMessage | None) -> OutgoingMessage | None:
        """Return the request of ours that *found* answers, as far as that is known here; None if it answers none."""
        if not isinstance(found, Response | ErrorResponse) and not (
            isinstance(found, Malformed) and found.kind == "response"
        ):
            return None
        asked = message if message is not None else self.greeting
        if asked is None or asked.kind != "request":
            return None
        is_anonymous = message is not None and isinstance(found, ErrorResponse) and found.id is None
        return asked if is_anonymous or found.id == asked.id else None

    def _learn(self, answer: Response, about: OutgoingMessage, session: HttpSession | None, frame: bytes) -> bytes:
        """Learn from the result of *about*, and return the frame as it is to be handed on."""
        if about.method == INITIALIZE and session is not None:
            try:
                session.agree(msgspec.json.decode(answer.result, type=_Initialized).protocol_version)
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
                return frame  # whoever has asked finds out
            if not about.is_own:
                self.session = session
        elif session is None and about.method == LIST_TOOLS:
            return self.mirrors.learn(frame, answer.result)
        elif session is not None and not about.is_own:
            self.standing.note(about)
        return frame

    def _deliver(self, frame: bytes) -> None:
        if self._endpoint is None:
            self._early.append(frame)
        else:
            self._endpoint.receive([frame])
