"""Asking a server, from params to a result: with progress, a time limit, and answers to what it wants to know first.

Theory of operation. Whoever asks waits here, in a task of their own. Their callback for progress is called here, too,
so that it is over before the result is returned, and what it raises is theirs. When the task is cancelled while it
waits, the request is cancelled.
"""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

import anyio
from msgspec import Raw, Struct, UnsetType

from mcpgen.runtime.client import input_required
from mcpgen.runtime.errors import (
    InvalidPayload,
    RequestError,
    RequestRefused,
    RequestTimedOut,
    UsageError,
)
from mcpgen.runtime.protocol.messages import ErrorResponse
from mcpgen.runtime.transports.auto_reset_event import OTHER_LOOP

if TYPE_CHECKING:
    from collections import deque
    from collections.abc import Awaitable, Callable

    from mcpgen.runtime.client.connection_task import Conversation
    from mcpgen.runtime.client.pending_request import Progress
    from mcpgen.runtime.protocol.messages import RequestId

__all__ = ["RequestSender", "OutgoingRequest"]


class OutgoingRequest(Struct, frozen=True, kw_only=True):
    """A request to be put.

    Attributes:
        method: As the server calls it.
        params: In its terms.
        error: Makes our error of the server's.
        token: What its params say that progress is told under.
        on_progress: Told of progress.
        seconds: How long it may take; None for the limit of the client.
        short: Reads a result that needs no more than that; None of one that does.
    """

    method: str
    params: bytes | UnsetType
    error: Callable[[ErrorResponse], RequestError]
    token: RequestId | None = None
    on_progress: Callable[[float, float | None, str | None], Awaitable[object] | object] | None = None
    seconds: float | None = None
    short: Callable[[Raw], Any] | None = None


class RequestSender:
    """Puts the requests of one client."""

    def __init__(self, conversation: Conversation) -> None:
        self._session = conversation.session
        self._deadlines = conversation.deadlines
        self._writer = conversation.writer
        self._context = conversation.context
        self._is_here = conversation.is_here

    async def final(self, question: OutgoingRequest) -> Any:
        """Return the final result, undecoded unless the short way has read it; what the server asks first is answered.

        Raises:
            RequestRefused: The server answered with an error.
            RequestTimedOut: It did not answer in time.
            TransportClosed: It is gone.
            InvalidPayload: It demands what it may not.
        """
        session, params = self._session, question.params
        stateless = session.server is not None and session.server.era == "stateless"
        visited: set[str] = set()
        for _ in range(session.limits.max_rounds):
            try:
                found = await self.once(question, params)
                if question.short is not None:
                    value = question.short(found)
                    if value is not None:
                        return value
                demand = input_required.input_demand(session, question.method, found) if stateless else found
                if isinstance(demand, Raw):
                    return demand
            except RequestRefused as refusal:
                pages = input_required.url_demand(refusal, visited)
                if pages is None or stateless or question.method not in input_required.MAY_DEMAND:
                    raise
                if not await self._visited(question.method, pages):
                    raise
                visited |= pages.input_requests.keys()
                continue
            answers = await input_required.answer_demand(session, question.method, demand, self._context)
            params = input_required.retry_params(b"{}" if isinstance(params, UnsetType) else params, demand, answers)
        raise InvalidPayload(
            revision=session.revision or "",
            pointer="",
            what=f"the result of {question.method}",
            reason=f"the server has demanded input {session.limits.max_rounds} times",
        )

    async def _visited(self, method: str, demand: input_required.InputDemand) -> bool:
        """Whether the user has agreed to visit all the pages that an error names; they are asked here."""
        try:
            answers = await input_required.answer_demand(self._session, method, demand, self._context)
        except InvalidPayload:
            return False  # we have not declared that we can: whoever asked gets the error
        return input_required.are_accepted(answers)

    async def once(self, question: OutgoingRequest, params: bytes | UnsetType) -> Raw:
        """Return what comes back, a demand for input included.

        Raises:
            RequestRefused: The server answered with an error.
            RequestTimedOut: It did not answer in time.
            TransportClosed: It is gone.
            UsageError: It has no time to do so.
        """
        if not self._is_here():
            raise UsageError(OTHER_LOOP)
        limits = self._session.limits
        seconds = limits.call_seconds if question.seconds is None else question.seconds
        if not seconds > 0:  # so written, nan is refused, too
            raise UsageError(f"timeout_seconds is {seconds}; it has to be more than 0")
        await self.room(question.method, seconds)
        call = self._session.send(question.method, params, token=question.token)
        self._deadlines.start(call, seconds, limits.max_call_seconds)
        try:
            while True:
                await call.waker.wait()
                if call.progress:
                    await _tell(call.progress, question)
                if call.is_settled:
                    break
        finally:
            if not call.is_settled:
                self._session.cancel(call, "nobody waits for the answer any more")
        answer = call.outcome()
        if isinstance(answer, ErrorResponse):
            raise RequestRefused(question.method, question.error(answer))
        return answer

    async def room(self, method: str, seconds: float | None = None) -> None:
        """Return when there is room for another message: the server has read most of those before.

        Raises:
            RequestTimedOut: It does not read.
        """
        if self._writer.is_full:
            seconds = self._session.limits.call_seconds if seconds is None else seconds
            with anyio.move_on_after(seconds) as scope:
                await self._writer.drain()
            if scope.cancelled_caught:
                raise RequestTimedOut(method, seconds)


async def _tell(progress: deque[Progress], question: OutgoingRequest) -> None:
    while progress:
        each = progress.popleft()
        if question.on_progress is not None:
            told = question.on_progress(each.progress, each.total, each.message)
            if inspect.isawaitable(told):
                await told
