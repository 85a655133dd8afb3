"""The answers to one batch, which go back together.

Spec:
    2025-03-26, basic/index, "Batching"; JSON-RPC 2.0, "Batch".
"""

from __future__ import annotations

from mcpgen.runtime.wire import envelope

__all__ = ["BatchAnswer"]


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
