"""A running task of the extension ``io.modelcontextprotocol/tasks``.

Its client polls with ``tasks/get`` and answers with ``tasks/update``. The task sends no messages: progress becomes the
status message, log entries are dropped, and the requests of the handler to the client are published in the record.

Spec:
    ext-tasks, specification/draft/tasks, "Task Polling", "Task Update Requests", "Task Status Notifications".
"""

from __future__ import annotations

import logging
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ClassVar

import msgspec
from msgspec import Raw, UnsetType

from mcpgen.runtime.errors import AdaptationError, InvalidPayload, RequestError
from mcpgen.runtime.protocol.message_size import decoded_bytes
from mcpgen.runtime.protocol.newest import ErrorCode
from mcpgen.runtime.server.server_requests import read_result
from mcpgen.runtime.server.tasks.running_task import RunningTask
from mcpgen.runtime.server.tasks.task_store import Outcome, StoreFailed, StoreFull
from mcpgen.runtime.transports.event_loops import call_soon, running_loop

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping

    from mcpgen.runtime.protocol.reading_policy import ReadingPolicy
    from mcpgen.runtime.server.exchange import Exchange
    from mcpgen.runtime.server.tasks.running_task import Change

__all__ = ["ExtensionTask"]

_LOG = logging.getLogger("mcpgen.tasks")


class ExtensionTask(RunningTask):
    """A running task of the extension.

    Args:
        task_id: Its id.
        change: Changes the record.
        closed: Called when the handler has ended.
        exchange: The run of its handler.
        may_leave: Returns whether another worker will run the handler again, if this one is stopped.
        max_rounds: How often the handler can ask its client for input.
        reading: How the results of clients are read.

    Attributes:
        looked_at_ms: Which change of its record was looked at last for responses that came to another process.
    """

    marks_messages: ClassVar[bool] = False

    def __init__(  # noqa: PLR0913 (those of a running task, and its handler's)
        self,
        task_id: str,
        *,
        change: Change,
        closed: Callable[[], None],
        exchange: Exchange,
        may_leave: Callable[[], bool],
        max_rounds: int,
        reading: ReadingPolicy,
    ) -> None:
        super().__init__(task_id, change=change, changed=lambda _: None, closed=closed, may_leave=may_leave)
        self._exchange = exchange
        self._max_rounds = max_rounds
        self._reading = reading
        self.looked_at_ms: int = -1
        self._is_publishing = False

    @property
    def is_asking(self) -> bool:
        """Whether the handler waits for its client."""
        return bool(self._exchange.server_requests)

    def related(self, meta: Mapping[str, object] | UnsetType = msgspec.UNSET) -> dict[str, object]:
        """Return *meta* unchanged: only 2025-11-25 marks messages with their task."""
        return {} if isinstance(meta, UnsetType) else dict(meta)

    def report_progress(self, progress: float, total: float | None, message: str | None) -> None:
        """Make progress the status message."""
        self.set_status_message(message or (f"{progress:g}" if total is None else f"{progress:g} of {total:g}"))

    def attach(self, stop: Callable[[], None]) -> None:
        """Set the function that stops the handler; publish what the handler has asked just before it became a task."""
        super().attach(stop)
        if self._exchange.server_requests:
            self._publish_soon()

    def ask(self, exchange: Exchange) -> None:
        """Publish the requests of the handler.

        Raises:
            RequestError: The handler asks too often.
        """
        if len(exchange.server_requests) == 1:
            exchange.round_count += 1
            if exchange.round_count > self._max_rounds:
                exchange.server_requests.clear()
                reason = f"the handler asked for input too often; the limit is {self._max_rounds} (max_rounds)"
                raise RequestError(ErrorCode.INTERNAL_ERROR, reason)
        self._publish_soon()

    @contextmanager
    def awaiting_input(self) -> Generator[None]:
        """Publish at the end of the block which requests are still open; `ask` publishes new ones."""
        try:
            yield
        finally:
            self._publish_soon()

    def read(self, responses: Mapping[str, Raw]) -> tuple[dict[str, Any], int]:
        """Return the results in those of the client's *responses* that the handler waits for, and their bytes.

        Raises:
            RequestError: There is no room for them.
            InvalidPayload: One is not valid.
            AdaptationError: One cannot be read in the native revision.
        """
        waiting = self._exchange.server_requests
        wanted = {key: each for key, each in responses.items() if key in waiting}
        size = sum(map(decoded_bytes, wanted.values()))
        if self.call is not None:
            self.call.check(size)
        return {key: read_result(self._reading, waiting[key], each) for key, each in wanted.items()}, size

    def answer(self, results: Mapping[str, Any], size: int) -> None:
        """Pass results of *size* bytes to the handler, which may keep them until it ends."""
        if self.call is not None:
            self.call.keep(size)
            self._exchange.charge(size)
        for key, result in results.items():
            request = self._exchange.server_requests.pop(key, None)
            if request is not None:
                request.set_result(result)

    def receive(self, responses: Mapping[str, Raw]) -> None:
        """Pass responses to the handler that the client sent to another process; an invalid one fails its request."""
        for key in list(self._exchange.server_requests):
            if key in responses:
                try:
                    self.answer(*self.read({key: responses[key]}))
                except (InvalidPayload, AdaptationError, RequestError) as error:
                    self._exchange.server_requests.pop(key).fail(error)

    def finish(self, result: bytes) -> None:
        """End the task with the JSON of the result of its request, also of a tool that failed."""
        self._has_outcome = True
        self._change("completed", outcome=Outcome(result))

    def _publish_soon(self) -> None:
        """Publish the open requests, once for all that begin or end in this turn of the event loop."""
        if not self._is_publishing:
            self._is_publishing = True
            call_soon(running_loop(), self._publish)

    def _publish(self) -> None:
        self._is_publishing = False
        if self.has_ended:
            return
        requests = {
            key: {"method": each.codec.method}
            | ({} if isinstance(each.params, UnsetType) else {"params": Raw(each.params)})
            for key, each in self._exchange.server_requests.items()
        }
        published = msgspec.json.encode(requests) if requests else None
        try:
            self._change("input_required" if requests else "working", input_requests=published)
        except (StoreFull, StoreFailed) as failure:
            _LOG.warning("the requests of task %s for its client are not stored: %s", self.task_id[:8], failure)
            unsent = list(self._exchange.server_requests.values())
            self._exchange.server_requests.clear()
            for each in unsent:
                each.fail(type(failure)(str(failure)))
