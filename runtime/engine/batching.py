"""The answers to one batch, which go back together.

Spec:
    2025-03-26, basic/index, "Batching"; JSON-RPC 2.0, "Batch".
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mcpgen.runtime.wire import envelope

if TYPE_CHECKING:
    from mcpgen.runtime.engine.exchange import Body
    from mcpgen.runtime.engine.sink import Sink
    from mcpgen.runtime.wire.messages import RequestId

__all__ = ["BatchAnswer", "refuse"]


class BatchAnswer:
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


def refuse(sink: Sink, request_id: RequestId, body: Body, batch: BatchAnswer | None) -> None:
    """Answer a request that never got as far as an origin."""
    message = envelope.encode_error(request_id, body.json)
    if batch is None:
        sink.send(message, None)
    else:
        batch.messages.append(message)
