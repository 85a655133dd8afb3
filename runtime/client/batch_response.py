"""The response to a batch of requests of a server (2025-03-26)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mcpgen.runtime.errors import RequestError
from mcpgen.runtime.protocol import envelope
from mcpgen.runtime.protocol.newest import ErrorCode

if TYPE_CHECKING:
    from mcpgen.runtime.client.client_session import ClientSession
    from mcpgen.runtime.protocol.messages import RequestId

__all__ = ["BatchResponse"]

_REPEAT: Final = "send this request again, outside of a batch, only if that does no harm"


class BatchResponse:
    """The responses to the requests of one batch (2025-03-26). They go back as one batch.

    Args:
        max_bytes: The most bytes that results of handlers fill. A result that does not fit is replaced by an error.

    Attributes:
        open_requests: How many requests have no response yet.
        kept_bytes: The size of the responses that wait for the others.
        is_complete: Whether all requests of the batch were read.
    """

    def __init__(self, max_bytes: int) -> None:
        self._free_bytes = max_bytes
        self.open_requests: int = 0
        self.kept_bytes: int = 0
        self.is_complete: bool = False
        self._messages: list[bytes] = []

    def add(self, message: bytes) -> None:
        """Add a response."""
        self._messages.append(message)
        self.kept_bytes += len(message)

    def add_result(self, message: bytes, request_id: RequestId) -> None:
        """Add the response to a request whose handler has ended; an error instead, if there is no room for it."""
        if len(message) > self._free_bytes:
            reason = f"the responses to this batch have too many bytes (max_batch_bytes); {_REPEAT}"
            error = envelope.error_json(RequestError(ErrorCode.INTERNAL_ERROR, reason))
            self.add(envelope.encode_error(request_id, error))
        else:
            self._free_bytes -= len(message)
            self.add(message)

    def send_if_finished(self, session: ClientSession) -> None:
        """Send the responses, if each request of the batch has one."""
        if self.is_complete and not self.open_requests and self._messages:
            messages, self._messages, self.kept_bytes = self._messages, [], 0
            session.respond(envelope.encode_batch(messages))
