"""The response to a batch, which only 2025-03-26 has.

Spec:
    2025-03-26, basic/index, "Batching".
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from mcpgen.runtime.protocol import envelope
from mcpgen.runtime.protocol.messages import Error
from mcpgen.runtime.protocol.newest import ErrorCode

if TYPE_CHECKING:
    from mcpgen.runtime.protocol.messages import RequestId

__all__ = ["BatchResponse"]

# The error in place of a response that does not fit into its batch, with an id of usual length.
_ERROR_BYTES: Final = 256

# Its handler has run, in most cases.
_REPEAT: Final = "send this request again, outside of a batch, only if that does no harm"


def _charge_nothing(_size: int) -> bool:
    return True


class BatchResponse(Struct, eq=False):
    """Collect the responses to one batch (2025-03-26), which are sent as one batch.

    Attributes:
        max_bytes: The most bytes that are collected. What does not fit is replaced by an error.
        charge: Charges bytes more, or less if negative, for what is collected; returns whether there is room.
        open: How many requests of the batch are not answered yet.
        messages: The responses so far.
        is_complete: Whether every message of the batch has been taken.
        size: The bytes of the responses so far.
        charged: The bytes that are charged.
    """

    max_bytes: int
    charge: Callable[[int], bool]
    open: int = 0
    messages: list[bytes] = []
    is_complete: bool = False
    size: int = 0
    charged: int = 0

    def add(self, message: bytes, request_id: RequestId | None) -> None:
        """Add the response *message*; an error instead, if it is that of a request and the batch would be too long."""
        errors_to_come = _ERROR_BYTES * self.open
        if request_id is not None and self.size + len(message) + errors_to_come > self.max_bytes:
            reason = f"the responses to this batch have more than {self.max_bytes} bytes (max_batch_bytes); {_REPEAT}"
            message = envelope.encode_error(request_id, Error(ErrorCode.INTERNAL_ERROR, reason))
        if self.charge(len(message)):
            self.charged += len(message)
        else:
            reason = (
                "the pending requests, and the responses to batches that are not complete, would keep too many bytes "
                f"(max_in_flight_bytes, max_open_bytes); {_REPEAT}"
            )
            message = envelope.encode_error(request_id, Error(ErrorCode.INTERNAL_ERROR, reason))
        self.size += len(message)
        self.messages.append(message)

    def release(self) -> None:
        """Charge nothing more."""
        self.charge(-self.charged)
        self.charge = _charge_nothing

    def finished(self) -> bytes | None:
        """Return the batch when every request is answered; None before, and if there are no responses."""
        if self.open or not self.is_complete or not self.messages:
            return None
        messages, self.messages = self.messages, []
        self.release()
        return envelope.encode_batch(messages)
