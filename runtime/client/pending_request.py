"""A request of ours, from the moment it is sent until there is an answer or none will come."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import msgspec
from msgspec import UNSET, Raw, Struct

from mcpgen.runtime.errors import RequestError, TransportClosed
from mcpgen.runtime.protocol.messages import ErrorResponse

if TYPE_CHECKING:
    from mcpgen.runtime.protocol.messages import RequestId
    from mcpgen.runtime.transports.auto_reset_event import AutoResetEvent

__all__ = ["Answer", "PendingRequest", "Progress", "error_as_received"]

# A callback that is slower than its server sees the newest of them; progress only ever grows.
_MOST_PROGRESS: Final = 100

Answer: TypeAlias = Raw | ErrorResponse
"""What came back: a result, undecoded, or an error."""


class Progress(Struct, frozen=True):
    """How far a request has come.

    Attributes:
        progress: So much is done.
        total: Of so much; None if that is not known.
        message: What is being done, for people; None if nobody says.
    """

    progress: float
    total: float | None = None
    message: str | None = None


class PendingRequest:
    """One request of ours.

    Attributes:
        id: Its id.
        method: What is asked.
        token: What its progress is told under; None if nobody wants to hear of it.
        waker: Woken by progress, and when it is settled.
        progress: What was told and not yet looked at, oldest first; None if nobody wants to hear of it.
        seconds: How long it may take from when it was sent, or from when there was progress last.
        most_seconds: How long it may take in all.
        deadline: When it fails, on the clock of its `Deadlines`; None while nobody counts.
        last_deadline: When it fails, whatever progress there is.
    """

    __slots__ = (
        "_answer",
        "_failure",
        "deadline",
        "id",
        "last_deadline",
        "method",
        "most_seconds",
        "progress",
        "seconds",
        "token",
        "waker",
    )

    def __init__(
        self, request_id: RequestId, method: str, waker: AutoResetEvent, token: RequestId | None = None
    ) -> None:
        self.id: RequestId = request_id
        self.method: str = method
        self.token: RequestId | None = token
        self.waker: AutoResetEvent = waker
        self.progress: deque[Progress] | None = None if token is None else deque(maxlen=_MOST_PROGRESS)
        self.seconds: float = 0
        self.most_seconds: float = 0
        self.deadline: float | None = None
        self.last_deadline: float = 0
        self._answer: Answer | None = None
        self._failure: Exception | None = None

    @property
    def is_settled(self) -> bool:
        """Whether there is an answer, or none will come."""
        return self._answer is not None or self._failure is not None

    def settle(self, answer: Answer) -> None:
        """Take *answer* for the answer."""
        self._answer = answer
        self.waker.wake()

    def fail(self, failure: Exception) -> None:
        """Take it that there will be no answer, because of *failure*."""
        self._failure = failure
        self.waker.wake()

    def tell(self, progress: Progress) -> None:
        """Note that it has come so far."""
        if self.progress is not None:
            self.progress.append(progress)
            self.waker.wake()

    def outcome(self) -> Answer:
        """Return the answer.

        Raises:
            TransportClosed: There is nobody left who could answer.
            RequestTimedOut: It took too long.
            MalformedFrame: What came back is no response.
        """
        if self._answer is not None:
            return self._answer
        failure = self._failure or TransportClosed(f"{self.method} has no answer")
        raise failure.again() if isinstance(failure, TransportClosed) else failure


def error_as_received(response: ErrorResponse) -> RequestError:
    """Return an error as the server wrote it; what cannot be read of its data is left out."""
    try:
        data = msgspec.json.decode(response.error, type=dict[str, Any]).get("data", UNSET)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        data = UNSET
    return RequestError(response.code, response.message, data)
