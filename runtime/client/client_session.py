"""A client's side of one connection: what it has asked, and what its server may say when; no awaiting, no clock.

Theory of operation. What we ask becomes a `PendingRequest`, and whoever waits for it is woken by the answer; what it
means is
read by the one who asked, so that what is wrong with it is told to nobody else. What a server asks, in the era in which
it may, becomes an `IncomingRequest`, whose handler the sink runs. A server that says what it may not, or what nobody
can read, costs itself a line in the log, and nobody else anything.

Spec:
    2024-11-05 to 2025-11-25, basic/lifecycle, client/*; 2026-07-28, basic/transports/stdio, "Receiving Messages".
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final, Protocol

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from mcpgen.runtime.client import incoming_requests, notifications
from mcpgen.runtime.client.pending_request import PendingRequest
from mcpgen.runtime.client.subscriptions import Subscriptions
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
    RequestId,
    Response,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcpgen.runtime.client.client_features import ClientFeatures, NotificationHandler
    from mcpgen.runtime.client.incoming_requests import IncomingRequest
    from mcpgen.runtime.client.subscriptions import ChangeStream
    from mcpgen.runtime.limits import ClientLimits
    from mcpgen.runtime.protocol.capabilities import Peer, ServerPeer
    from mcpgen.runtime.protocol.framing import Frame
    from mcpgen.runtime.transports.auto_reset_event import AutoResetEvent

__all__ = ["ClientSession", "SessionOutput"]

# Whoever floods us with nonsense should not fill a disk.
_MOST_WARNINGS: Final = 20

# Characters of what is no message: enough to find who printed it.
_MOST_SHOWN: Final = 80

_LOG = logging.getLogger("mcpgen.session")


class SessionOutput(Protocol):
    """What a session tells the shell that runs it."""

    @property
    def is_full(self) -> bool:
        """Whether the server reads too slowly."""
        ...

    def send(self, message: bytes) -> None:
        """Write *message*."""
        ...

    def start(self, asked: IncomingRequest) -> None:
        """Run the handler of *asked*, and call `answering.complete` or `answering.fail` with what comes out."""
        ...

    def moved(self, call: PendingRequest) -> None:
        """Note that there was progress with *call*, which has its time anew."""
        ...

    def tell(self, notifications: NotificationHandler, params: Raw | UnsetType) -> None:
        """Run the handler of a notification, after those of the notifications before it."""
        ...

    @property
    def waker(self) -> Callable[[], AutoResetEvent]:
        """Make what a caller waits with."""
        ...


class _Cancelled(Struct, rename="camel"):
    request_id: RequestId
    reason: str | UnsetType = UNSET


class ClientSession:
    """One connection of a client.

    Attributes:
        offering: What the client offers.
        limits: What its server may ask of it.
        sink: The shell.
        server: The server, once it is agreed what is spoken with it; None before.
        us: This client, as that server sees it.
        calls: Our open requests, by id.
        asked: The open requests of the server, by id.
        listening: What we want to hear of.
        level: The least severe log entries that we want with each request of a stateless server.
        failure: Why nothing can be asked any more; None while it can.
        running: How many of our handlers run that the server waits for.
        on_tools_changed: Called when the server tells that it has other tools now.
        early: What the server told before it was agreed what is spoken.
    """

    def __init__(self, offering: ClientFeatures, limits: ClientLimits, sink: SessionOutput) -> None:
        self.offering = offering
        self.limits = limits
        self.sink = sink
        self.server: ServerPeer | None = None
        self.us: Peer | None = None
        self.calls: dict[RequestId, PendingRequest] = {}
        self.asked: dict[RequestId, IncomingRequest] = {}
        self.listening: Subscriptions = Subscriptions(limits.max_changes)
        self.level: str | None = None
        self.failure: Exception | None = None
        self.running: int = 0
        self.early: list[Notification] = []
        self.on_tools_changed: Callable[[], None] | None = None
        self._by_token: dict[RequestId, PendingRequest] = {}
        self._last_id = 0
        self._unread = 0
        self._ahead = 0  # bytes of answers that were written since the sink was full

    @property
    def _may_answer(self) -> bool:
        """Whether a server asks with requests of its own: then one that cannot be read is answered, too.

        Spec:
            2025-11-25, basic/index, "Error Responses"; 2026-07-28, basic/transports/stdio: a client writes none.
        """
        return self.server is not None and self.server.era == "handshake"

    @property
    def revision(self) -> str | None:
        """What was agreed on; None if nothing was."""
        return None if self.server is None else self.server.revision

    def agree(self, server: ServerPeer) -> None:
        """Take *server* for the one at the other end."""
        self.server = server
        self.us = self.offering.as_peer(server.revision)
        early, self.early = self.early, []
        for each in early:
            notifications.take_notification(self, each)

    def next_token(self) -> int:
        """Return a progress token that no other request of ours has had: it counts as an id."""
        self._last_id += 1
        return self._last_id

    def send(
        self,
        method: str,
        params: bytes | UnsetType,
        *,
        token: RequestId | None = None,
        stream: ChangeStream | None = None,
    ) -> PendingRequest:
        """Send a request.

        Args:
            method: As the server calls it.
            params: In its terms.
            token: What its params say that its progress is to be told under.
            stream: What it opens, if it is `subscriptions/listen`; it is woken by the answer, too.
        """
        self._last_id += 1
        call = PendingRequest(self._last_id, method, self.sink.waker() if stream is None else stream.waker, token)
        if self.failure is not None:
            call.fail(self.failure)
            return call
        self.calls[call.id] = call
        if token is not None:
            self._by_token[token] = call
        if stream is not None:
            self.listening.streams[call.id] = stream
        self.sink.send(envelope.encode_request(call.id, method, params))
        return call

    def notify(self, method: str, params: bytes | UnsetType = UNSET) -> None:
        """Send a notification."""
        if self.failure is None:
            self.sink.send(envelope.encode_notification(method, params))

    def answer(self, message: bytes) -> None:
        """Send a response, unless the server asks and asks, and does not read what it is answered."""
        if not self.sink.is_full:
            self._ahead = 0
        elif self._ahead >= self.limits.max_buffered_bytes:
            self.complain("an answer is dropped: the server asks, and does not read")
            return
        else:
            self._ahead += len(message)
        self.sink.send(message)

    def drop(self, call: PendingRequest) -> bool:
        """Forget *call*; return whether it was open."""
        if call.token is not None and self._by_token.get(call.token) is call:
            del self._by_token[call.token]
        return self.calls.pop(call.id, None) is not None

    def cancel(self, call: PendingRequest, reason: str) -> None:
        """Forget *call*, which nobody waits for any more, and tell the server so.

        Spec:
            2025-11-25, basic/utilities/cancellation: the `initialize` request MUST NOT be cancelled; 2026-07-28,
            basic/patterns/cancellation. Nobody knows whether an old server can read anything before `initialize`, so a
            probe is not cancelled either.
        """
        if self.drop(call) and self.server is not None:
            self.notify("notifications/cancelled", msgspec.json.encode(_Cancelled(call.id, reason)))

    def lost(self, request_id: RequestId, failure: Exception) -> None:
        """Take it that one request of ours will not be answered, because of *failure*; the others may be."""
        call = self.calls.get(request_id)
        if call is None:
            _LOG.debug("the request %r is lost, for which nobody waits: %s", request_id, failure)
            return
        stream = self.listening.streams.pop(request_id, None)
        if stream is not None:
            stream.end(failure)
        self.drop(call)
        call.fail(failure)

    def of_token(self, token: RequestId) -> PendingRequest | None:
        """Return the open request whose progress is told under *token*."""
        return self._by_token.get(token)

    def close(self, failure: Exception) -> None:
        """Take it that nothing more will come, because of *failure*."""
        if self.failure is not None:
            return
        self.failure = failure
        calls, self.calls = list(self.calls.values()), {}
        self._by_token.clear()
        for call in calls:
            call.fail(failure)
        for asked in list(self.asked.values()):
            incoming_requests.stop(self, asked)
        self.asked.clear()
        self.listening.fail(failure)

    def receive(self, frame: Frame | OversizedLine) -> None:
        """Take one frame; nobody wants it any more when the conversation is over."""
        if self.failure is not None:
            return
        if isinstance(frame, OversizedLine):
            self._malformed(envelope.decode_oversized(frame))
            return
        message = envelope.decode(frame, max_batch_length=self.limits.max_batch_length)
        if isinstance(message, Batch):
            self._batch(message)
        else:
            self._take(message, None, frame)

    def complain(self, what: str, *details: object, failure: BaseException | None = None) -> None:
        """Log what a server should not have done, or what failed at it; much of it only for who wants to see all."""
        self._unread += 1
        level = logging.WARNING if self._unread <= _MOST_WARNINGS else logging.DEBUG
        _LOG.log(level, what, *details, exc_info=failure)

    def _take(
        self, message: Message | Malformed, batch: incoming_requests.BatchResponse | None, frame: Frame = b""
    ) -> None:
        if isinstance(message, Response | ErrorResponse):
            self._answer(message)
        elif isinstance(message, Notification):
            notifications.take_notification(self, message)
        elif isinstance(message, Request):
            incoming_requests.take(self, message, batch)
        else:
            self._malformed(message, frame, batch)

    def _answer(self, message: Response | ErrorResponse) -> None:
        call = None if message.id is None else self.calls.get(message.id)
        if call is None and message.id is None:
            call = self._only_call()
        if call is None:
            # 2026-07-28, basic/patterns/cancellation: the answer to what was cancelled may still come, and is ignored.
            _LOG.debug("an answer to %r, which nobody waits for", message.id)
            return
        self._end(call)
        call.settle(message.result if isinstance(message, Response) else message)

    def _end(self, call: PendingRequest) -> None:
        """Forget *call*, which is answered, and the stream that it opened: nothing may come on that any more."""
        self.drop(call)
        self.listening.streams.pop(call.id, None)

    def _only_call(self) -> PendingRequest | None:
        """Return what an error without an id is about: before anything is agreed on, there is one request at a time."""
        if self.server is None and len(self.calls) == 1:
            return next(iter(self.calls.values()))
        self.complain("the server tells of an error, and not which request it is about")
        return None

    def _batch(self, batch: Batch) -> None:
        """Take the messages of a batch, if the revision has any.

        Spec:
            2025-03-26, basic/index, "Batching": MUST support receiving; 2025-06-18, changelog: batches are gone.
        """
        if not envelope.allows_batches(self.revision):
            self._malformed(Malformed(Fault.NO_BATCHES))
            return
        gathered = incoming_requests.BatchResponse()
        for item in batch.items:
            self._take(item, gathered)
        gathered.is_complete = True
        gathered.send_if_finished(self)

    def _malformed(
        self, malformed: Malformed, frame: Frame = b"", batch: incoming_requests.BatchResponse | None = None
    ) -> None:
        """Take what is no message: it may be an answer that somebody waits for."""
        call = None if malformed.id is None or malformed.kind != "response" else self.calls.get(malformed.id)
        if call is None:
            shown = printable(frame[:_MOST_SHOWN].decode(errors="replace"))
            said = f": {shown}" if shown else ""
            self.complain("what the server sent is ignored: %s%s", malformed.fault.reason, said)
            if malformed.kind == "request" and malformed.id is not None and self._may_answer:
                refusal = envelope.refusal(malformed, self.revision)
                if refusal is not None and batch is None:
                    self.answer(refusal)
                elif refusal is not None and batch is not None:
                    batch.messages.append(refusal)
            return
        self._end(call)
        call.fail(MalformedFrame(revision=self.revision or "", reason=malformed.fault.reason, request_id=malformed.id))
