"""The answers to one batch, which go back together.

Spec:
    2025-03-26, basic/index, "Batching"; JSON-RPC 2.0, "Batch".
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mcpgen.runtime.protocol import envelope
from mcpgen.runtime.protocol.messages import Fault, Malformed, Request

if TYPE_CHECKING:
    from mcpgen.runtime.protocol.messages import Batch, RequestId
    from mcpgen.runtime.server.exchange import Body
    from mcpgen.runtime.server.interfaces import SessionOutput
    from mcpgen.runtime.server.server_session import ServerSession

__all__ = ["BatchResponse", "refuse", "take_batch"]


class BatchResponse:
    """Gathers the answers to the requests of one batch (2025-03-26), which go back as one batch."""

    def __init__(self) -> None:
        self.open = 0
        self.messages: list[bytes] = []
        self.is_complete = False

    def finished(self) -> bytes | None:
        """Return the batch, once everything in it is answered; None before, and if nothing needs an answer."""
        if self.open or not self.is_complete or not self.messages:
            return None
        messages, self.messages = self.messages, []
        return envelope.encode_batch(messages)


def refuse(sink: SessionOutput, request_id: RequestId, body: Body, batch: BatchResponse | None) -> None:
    """Answer a request that never got as far as an origin."""
    message = envelope.encode_error(request_id, body.json)
    if batch is None:
        sink.answer(message, None)
    else:
        batch.messages.append(message)


def take_batch(session: ServerSession, batch: Batch) -> None:
    """Take the messages of a batch, or refuse each of them where its revision has no batches.

    Spec:
        2025-03-26, basic/index, "Batching"; 2025-06-18, changelog: batches are gone.
    """
    if not envelope.allows_batches(session.revision):
        for item in batch.items:
            if isinstance(item, Request):
                session.refuse(Malformed(Fault.NO_BATCHES, item.id, "request"), None)
        if not any(isinstance(item, Request) for item in batch.items):
            session.refuse(Malformed(Fault.NO_BATCHES), None)
        return
    gathered = BatchResponse()
    for item in batch.items:
        session.take_one(item, gathered)
    gathered.is_complete = True
    whole = gathered.finished()
    if whole is not None:
        session.sink.answer(whole, None)
    elif not gathered.open:
        session.sink.dropped(None)
