"""The task in which requests that arrive together run."""

from __future__ import annotations

import asyncio
from collections import deque
from contextvars import copy_context
from typing import TYPE_CHECKING, TypeAlias, cast

if TYPE_CHECKING:
    from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

    from mcpgen.runtime.http.server.cycle_protocol import CycleProtocol

__all__ = ["SharedTask"]

_Started: TypeAlias = "tuple[CycleProtocol, RequestResponseCycle]"


class SharedTask:
    """Runs the requests of all connections: those that arrive in one turn of the event loop in one task.

    The first that waits keeps the task, and each of the others gets its own. The task is not shared further after a
    request that leaves a context variable or a cancellation in it. The spawner of handlers does the same.
    """

    def __init__(self) -> None:
        self._requests: deque[_Started] = deque()

    def start(self, protocol: CycleProtocol, cycle: RequestResponseCycle) -> None:
        """Run the application for *cycle*."""
        requests = self._requests
        requests.append((protocol, cycle))
        if len(requests) == 1:
            self._start(requests, protocol)
        elif len(requests) == 2:  # noqa: PLR2004 (one, and more)
            protocol.loop.call_soon(self._start_rest, requests)  # when the shared task has ended, or waits

    def _start_rest(self, requests: deque[_Started]) -> None:
        while requests:
            each = requests.popleft()
            self._start(deque([each]), each[0])

    def _start(self, requests: deque[_Started], protocol: CycleProtocol) -> None:
        protocol.tasks.add(protocol.loop.create_task(self._run(requests, protocol.tasks)))

    async def _run(self, requests: deque[_Started], tasks: set[asyncio.Task[None]]) -> None:
        task, context = cast("asyncio.Task[None]", asyncio.current_task()), copy_context()
        has_factory = task.get_loop().get_task_factory() is not None  # a program wants its tasks to be made by it
        if requests is self._requests:
            self._requests = deque()  # for those that arrive from now on, such as pipelined ones: they get a turn, too
        try:
            while requests:
                protocol, cycle = requests.popleft()
                try:
                    await cycle.run_asgi(protocol.app)
                finally:
                    if not cycle.response_complete and not cycle.disconnected:
                        protocol.on_failed_response()
                if requests and (has_factory or task.cancelling() or copy_context() != context):
                    return
        finally:
            tasks.discard(task)
