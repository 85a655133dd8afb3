"""Reading what a server sends: each message goes to the pending request, the handler or the stream that it is for.

A message that the server may not send, or that cannot be read, costs one line in the log and affects nothing else.

Spec:
    2024-11-05 to 2025-11-25, basic/index; 2026-07-28, basic/transports/stdio, "Receiving Messages".
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from mcpgen.runtime.client.batch_response import BatchResponse
from mcpgen.runtime.client.incoming_requests import IncomingRequests
from mcpgen.runtime.client.notifications import handle_notification
from mcpgen.runtime.errors import MalformedFrame, printable
from mcpgen.runtime.protocol import envelope
from mcpgen.runtime.protocol.framing import OversizedLine
from mcpgen.runtime.protocol.messages import (
    Batch,
    ErrorResponse,
    Fault,
    Malformed,
    Message,
    Notification,
    Request,
    Response,
)
from mcpgen.runtime.protocol.reading_policy import SUSPECT, TEXT_ID, meant_id

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcpgen.runtime.client.client_session import ClientSession
    from mcpgen.runtime.client.incoming_requests import IncomingRequest
    from mcpgen.runtime.client.pending_request import PendingRequest
    from mcpgen.runtime.protocol.framing import Frame

__all__ = ["MessageDispatcher"]

# Characters of a malformed frame in the log: enough to recognise which code printed it.
_MAX_SHOWN: Final = 80

_RESPONSES: Final = (Response, ErrorResponse)

_LOG = logging.getLogger("mcpgen.session")


class MessageDispatcher:
    """Dispatches the messages of one server.

    Args:
        session: The session with the server.
        start_handler: Runs the handler of a request. It calls `IncomingRequests.complete` or `IncomingRequests.fail`.

    Attributes:
        requests: The open requests of the server.
    """

    def __init__(self, session: ClientSession, start_handler: Callable[[IncomingRequest], None]) -> None:
        self.requests: IncomingRequests = IncomingRequests(session, start_handler)
        self._session = session

    def dispatch(self, frame: Frame | OversizedLine) -> None:
        """Handle one frame. After the connection is closed, ignore it."""
        if self._session.failure is not None:
            return
        if isinstance(frame, OversizedLine):
            self._handle_malformed(envelope.decode_oversized(frame))
            return
        limits = self._session.limits
        message = envelope.decode(frame, max_batch_length=limits.max_batch_length, max_values=limits.max_values)
        if isinstance(message, Response):  # most messages are
            self._dispatch_response(message)
            return
        if isinstance(message, SUSPECT):
            message = self._session.reading.reread(frame, message, limits)
        if isinstance(message, Batch):
            self._dispatch_batch(message)
        else:
            self._dispatch_message(message, None, frame)

    def replay_early_notifications(self) -> None:
        """Handle the notifications that came before a revision was agreed."""
        early, self._session.early_notifications = self._session.early_notifications, []
        for each in early:
            handle_notification(self._session, self.requests, each)

    def _dispatch_message(self, message: Message | Malformed, batch: BatchResponse | None, frame: Frame = b"") -> None:
        if isinstance(message, _RESPONSES):
            self._dispatch_response(message)
        elif isinstance(message, Notification):
            handle_notification(self._session, self.requests, message)
        elif isinstance(message, Request):
            self.requests.receive(message, batch)
        else:
            self._handle_malformed(message, frame, batch)

    def _dispatch_response(self, message: Response | ErrorResponse) -> None:
        request = None if message.id is None else self._session.pending.get(message.id)
        if request is None:
            request = self._find_request(message)
        if request is not None:
            self._session.resolve(request, message.result if isinstance(message, Response) else message)

    def _find_request(self, message: Response | ErrorResponse) -> PendingRequest | None:
        """Return the request of a response whose id is not that of an open request; None if there is none."""
        request = None
        if message.id is None:
            request = self._only_request()
        elif isinstance(message.id, str):
            request = self._meant_request(message.id)
        if request is None and not self._session.cancel_late_task(message):
            # 2026-07-28, basic/patterns/cancellation: the response to a cancelled request may still come. Ignore it.
            _LOG.debug("a response is ignored: the client does not wait for the request %r", message.id)
        return request

    def _only_request(self) -> PendingRequest | None:
        """Return the request that an error without id is about. Before a revision is agreed, there is one at a time."""
        if self._session.server is None and len(self._session.pending) == 1:
            return next(iter(self._session.pending.values()))
        self._session.warn(
            "the server sent an error response without an id; it is ignored, because its request is unknown"
        )
        return None

    def _meant_request(self, response_id: str) -> PendingRequest | None:
        """Return the request whose integer id is written as a text; a strict client fails it."""
        session = self._session
        request = session.pending.get(meant) if (meant := meant_id(response_id)) is not None else None
        if request is None:
            return None
        if session.reading.is_strict:
            reason = f"its id is the text {response_id!r}, but the id of the request is a number"
            session.fail_request(
                request, MalformedFrame(revision=session.revision or "", reason=reason, request_id=request.id)
            )
            return None
        session.reading.note("a response", TEXT_ID)
        return request

    def _dispatch_batch(self, batch: Batch) -> None:
        """Handle the messages of a batch, if the revision has batches.

        Spec:
            2025-03-26, basic/index, "Batching": MUST support receiving; 2025-06-18, changelog: batches are gone.
        """
        # One may come in the same read as the response that agrees on the revision, which no task has seen yet. That
        # response itself is part of no batch (2025-03-26, basic/lifecycle).
        is_early = self._session.server is None
        if not is_early and not envelope.allows_batches(self._session.revision):
            self._handle_malformed(Malformed(Fault.NO_BATCHES))
            return
        gathered = BatchResponse(self._session.limits.max_batch_bytes)
        for item in batch.items:
            if not (is_early and isinstance(item, _RESPONSES)):
                self._dispatch_message(item, gathered)
        gathered.is_complete = True
        gathered.send_if_finished(self._session)

    def _handle_malformed(self, malformed: Malformed, frame: Frame = b"", batch: BatchResponse | None = None) -> None:
        """Fail the pending request that a malformed response is for. Log anything else."""
        session = self._session
        # A message that has only the id of a pending request is a response without its result.
        is_response = malformed.kind == "response" or malformed.fault is Fault.NO_METHOD
        request = session.pending.get(malformed.id) if malformed.id is not None and is_response else None
        if request is not None:
            failure = MalformedFrame(revision=session.revision or "", reason=malformed.reason, request_id=malformed.id)
            session.fail_request(request, failure)
            return
        shown = printable(frame[:_MAX_SHOWN].decode(errors="replace"))
        quote = f": {shown}" if shown else ""
        session.warn("the server sent something that is not a message; it is ignored: %s%s", malformed.reason, quote)
        # 2025-11-25, basic/index, "Error Responses"; 2026-07-28, basic/transports/stdio: a client writes no responses.
        may_refuse = session.server is not None and not session.is_stateless
        if malformed.kind == "request" and malformed.id is not None and may_refuse:
            refusal = envelope.refusal(malformed, session.revision)
            if refusal is not None:
                self.requests.send(refusal, batch)
