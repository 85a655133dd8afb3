"""A request that the client has sent, until its response comes or cannot come any more."""

from __future__ import annotations

from collections import deque
from typing import Any, Final, TypeAlias

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from mcpgen.runtime.errors import RequestError, TransportClosed
from mcpgen.runtime.protocol.messages import ErrorResponse, RequestId
from mcpgen.runtime.transports.auto_reset_event import AutoResetEvent

__all__ = ["MAX_MESSAGE_CHARS", "PendingRequest", "Progress", "RawResponse", "error_as_received", "fresh_error"]

# A callback that is slower than its server gets the newest of them. Progress only ever grows, so nothing is lost.
_MAX_QUEUED_PROGRESS: Final = 100
_MAX_QUEUED_CHARS: Final = 64 * 1024  # of their messages, without the newest one

MAX_MESSAGE_CHARS: Final = 64 * 1024
"""The characters of a message that are kept: one waits, and the callback has another one."""

RawResponse: TypeAlias = Raw | ErrorResponse
"""An undecoded result, or an error."""


class Progress(Struct, frozen=True):
    """One progress notification.

    Attributes:
        progress: The amount that is done.
        total: The amount in all; None if unknown.
        message: What the server is doing, as text for people; None if it did not say.
    """

    progress: float
    total: float | None = None
    message: str | None = None


class PendingRequest(Struct, eq=False):
    """One request of the client.

    Attributes:
        id: Its id.
        method: Its method.
        event: Set by progress, and when the request is done.
        token: Its progress token; None if the caller wants no progress.
        progress: Progress that the caller has not seen yet, oldest first; None if there was none.
        is_task: Whether the request is to become a task (2025-11-25), which is cancelled in another way.
        task_params: The params of ``tasks/result``, which name its task.
        timeout_seconds: How long it may take, and again after each progress notification.
        max_seconds: How long it may take in all.
        deadline: When it fails, on the clock of `Deadlines`; None before it has a deadline.
        final_deadline: When it fails in spite of progress.
        first_pause: How often the clock had stopped when it was sent; None if its clock does not stop any more.
    """

    id: RequestId
    method: str
    event: AutoResetEvent
    token: RequestId | None = None
    progress: deque[Progress] | None = None
    is_task: bool = False
    task_params: bytes | UnsetType = UNSET
    timeout_seconds: float = 0
    max_seconds: float = 0
    deadline: float | None = None
    final_deadline: float = 0
    first_pause: int | None = 0
    _response: RawResponse | None = None
    _failure: Exception | None = None

    @property
    def is_done(self) -> bool:
        """Whether there is a response, or none will come."""
        return self._response is not None or self._failure is not None

    @property
    def has_failed(self) -> bool:
        """Whether no response will come."""
        return self._failure is not None

    def resolve(self, response: RawResponse) -> None:
        """Finish the request with *response*."""
        self._response = response
        self.event.set()

    def fail(self, failure: Exception) -> None:
        """Finish the request with *failure*: there will be no response."""
        self._failure = failure
        self.event.set()

    def add_progress(self, progress: Progress) -> None:
        """Queue *progress* for the caller, if it wants any."""
        if self.token is None:
            return
        if self.progress is None:
            self.progress = deque(maxlen=_MAX_QUEUED_PROGRESS)
        self.progress.append(progress)
        while len(self.progress) > 1 and sum(len(each.message or "") for each in self.progress) > _MAX_QUEUED_CHARS:
            self.progress.popleft()
        self.event.set()

    def response(self) -> RawResponse:
        """Return the response.

        Raises:
            TransportClosed: The connection is closed.
            RequestTimedOut: The response took too long.
            MalformedFrame: The server sent something under this id that is no response.
        """
        if self._response is not None:
            return self._response
        raise fresh_error(self._failure or TransportClosed(f"the connection ended before {self.method} was answered"))

    async def wait(self) -> RawResponse:
        """Wait for the response, and return it. Raise what `response` raises."""
        while not self.is_done:
            await self.event.wait()
        return self.response()


def fresh_error(failure: Exception) -> Exception:
    """Return *failure*, as a copy if several tasks raise it: each then has a traceback of its own."""
    return failure.again() if isinstance(failure, TransportClosed) else failure


def error_as_received(response: ErrorResponse) -> RequestError:
    """Return an error as the server wrote it, without `data` if that cannot be read."""
    try:
        data = msgspec.json.decode(response.error, type=dict[str, Any]).get("data", UNSET)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        data = UNSET
    return RequestError(response.code, response.message, data)
