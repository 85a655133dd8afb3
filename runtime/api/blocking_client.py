"""An event loop in a thread of its own, for a client of programs without one.

Theory of operation. `EventLoopThread` runs asyncio in a daemon thread. A method of `SyncClient` hands a coroutine
function to it and waits. If the wait is interrupted, for example with Ctrl-C, the coroutine is cancelled, which cancels
the request. It works inside of a running event loop, too, as in a notebook, and blocks that loop meanwhile.

Functions that answer the server, such as `elicit`, and `on_progress` run in that thread. They must not call the
blocking client, because its answer could then never arrive: that is refused.

A client that is still open is closed when the interpreter exits. The thread is a daemon, so that the interpreter does
not wait for it before.

A forked process has no such thread, and a call there would wait for ever: to it, the client is closed.
"""

from __future__ import annotations

import atexit
import os
import threading
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from anyio.from_thread import start_blocking_portal

from mcpgen.runtime.errors import TransportClosed, UsageError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
    from types import TracebackType
    from typing import Self

    from mcpgen.runtime.api.client import Client
    from mcpgen.runtime.api.hosts.client_group import ClientGroup
    from mcpgen.runtime.client.changes import Changes
    from mcpgen.runtime.client.outgoing_requests import OnProgress
    from mcpgen.runtime.client.subscriptions import Change
    from mcpgen.runtime.client.task_handle import TaskHandle
    from mcpgen.runtime.client.task_state import TaskState
    from mcpgen.runtime.protocol.subscriptions import SubscriptionFilter

__all__ = ["BlockingClient", "BorrowedThread", "EventLoopThread", "SyncChanges", "SyncTaskHandle"]

T = TypeVar("T")
C = TypeVar("C", bound="Client | ClientGroup")


class EventLoopThread:
    """An event loop in a thread. It is stopped with `stop`, or at the exit of the interpreter."""

    def __init__(self) -> None:
        self._stack = ExitStack()
        self._portal = self._stack.enter_context(start_blocking_portal())
        self._lock = threading.RLock()  # a signal handler may close the client while this thread does so
        self._thread: int = self._portal.call(threading.get_ident)
        self._process: int = os.getpid()

    def run(self, function: Callable[[], Awaitable[T]]) -> T:
        """Call *function* in the thread, and return what its awaitable returns.

        Raises:
            UsageError: This is the thread of the event loop itself.
            TransportClosed: The thread was stopped, or is in the process of which this one is a fork.
        """
        if os.getpid() != self._process:
            raise TransportClosed("the client belongs to the process that was forked; connect again in this one")
        self.check()
        try:
            future = self._portal.start_task_soon(_outcome, function)
        except RuntimeError:  # the portal does not run any more
            raise TransportClosed("the client is closed") from None
        try:
            outcome = future.result()
        except BaseException:  # this thread was interrupted, as by Ctrl-C
            future.cancel()
            raise
        if isinstance(outcome, _Failure):
            try:
                raise outcome.error
            finally:
                del outcome  # it would keep this frame, and the frame it
        return outcome

    def check(self) -> None:
        """Refuse to wait in the thread of the event loop itself.

        Raises:
            UsageError: This is that thread.
        """
        if threading.get_ident() == self._thread:
            raise UsageError(
                "the blocking client was called in the thread of its event loop, where it would wait for itself; in a "
                "function that gets a `context`, such as `elicit` or `log`, write `async def` and use "
                "`context.client`; in other functions, such as `on_progress`, do not call the client"
            )

    def iterate(self, items: AsyncIterator[T]) -> Iterator[T]:
        """Yield each of *items*."""
        end = object()

        async def following() -> object:
            return await anext(items, end)

        while True:
            item: Any = self.run(following)
            if item is end:
                return
            yield item

    def stop(self) -> None:
        """End the event loop and its thread. Any thread may call it, any number of times."""
        if os.getpid() != self._process:
            with suppress(StopIteration, RuntimeError):
                self._portal.stop().send(None)  # otherwise its end, as garbage, would wait for the thread
            return
        with self._lock:
            self._stack.close()


class BorrowedThread(EventLoopThread):
    """The event loop of another blocking client. Its owner ends it."""

    def __init__(self, owner: EventLoopThread) -> None:
        self._stack = ExitStack()  # empty, so that `stop` has no effect
        self._portal = owner._portal  # noqa: SLF001 (of the same class)
        self._lock = threading.RLock()
        self._thread = owner._thread  # noqa: SLF001 (as above)
        self._process = owner._process  # noqa: SLF001 (as above)


class _Failure:
    def __init__(self, error: BaseException) -> None:
        self.error = error


async def _outcome(function: Callable[[], Awaitable[T]]) -> T | _Failure:
    """Return what *function* returns, or its failure.

    A portal whose task raises `SystemExit`, as a handler may, is gone, and the client with it.
    """
    try:
        return await function()
    except (Exception, KeyboardInterrupt, SystemExit) as error:  # noqa: BLE001 (raised again in the thread of the caller)
        return _Failure(error)


class BlockingClient(Generic[C]):
    """The part of a blocking client that is not derived from the asynchronous one."""

    def __init__(self, thread: EventLoopThread, client: C) -> None:
        self._thread = thread
        self._client = client
        self._untyped: Any = client
        atexit.register(self.close)

    def __repr__(self) -> str:
        return f"<{type(self).__name__}{repr(self._client).removeprefix(f'<{type(self._client).__name__}')}"

    if not TYPE_CHECKING:  # type checkers must report these as errors

        async def __aenter__(self) -> object:
            self.close()
            raise UsageError("connect_sync() needs `with`; in a coroutine, write `async with connect(…) as client`")

        async def __aexit__(self, *_: object) -> None:
            """Exist, because Python looks for it before `__aenter__` is called."""

    def __enter__(self) -> Self:
        """Return the client, which is connected already. It is closed at the end of the block."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Close the client."""
        self.close()

    def close(self) -> None:
        """End the connection, and the server's process. Any thread may call it, any number of times."""
        self._thread.check()
        atexit.unregister(self.close)
        try:
            with suppress(TransportClosed):  # it was closed before
                self._thread.run(self._client.close)
        finally:
            self._thread.stop()


class SyncChanges:
    """The changes that a server reports, within a ``with`` block. One thread iterates over them.

    The iteration ends when the server ends the stream. It raises `TransportClosed` when the connection is lost.
    """

    def __init__(self, thread: EventLoopThread, changes: Changes) -> None:
        self._thread = thread
        self._changes = changes

    def __repr__(self) -> str:
        return repr(self._changes).replace("<Changes ", f"<{type(self).__name__} ", 1)

    @property
    def is_closed(self) -> bool:
        """Whether no more changes will come."""
        return self._changes.is_closed

    @property
    def acknowledged(self) -> SubscriptionFilter:
        """The part of the requested changes that the server agreed to report."""
        return self._changes.acknowledged

    def __enter__(self) -> Self:
        """Start to listen. The errors are those of `Client.listen`."""
        self._thread.run(self._changes.__aenter__)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Stop listening."""
        with suppress(TransportClosed):  # the client was closed inside of the block
            self._thread.run(lambda: self._changes.__aexit__(None, None, None))

    def __iter__(self) -> Iterator[Change]:
        """Iterate over the changes, oldest first. Each waits for the next change."""
        return self._thread.iterate(self._changes)


class SyncTaskHandle:
    """A tool that was started with `SyncClient.start_tool`: a `TaskHandle` whose methods wait."""

    def __init__(self, thread: EventLoopThread, handle: TaskHandle) -> None:
        self._thread = thread
        self._handle = handle

    def __repr__(self) -> str:
        return repr(self._handle).replace("<TaskHandle ", f"<{type(self).__name__} ", 1)

    @property
    def task_id(self) -> str:
        """The id of the task; empty if the server ran the tool at once, as a plain call."""
        return self._handle.task_id

    def state(self) -> TaskState:
        """Return the state of the task; see `TaskHandle.state`."""
        return self._thread.run(self._handle.state)

    def result(
        self, *, returns: Any = None, on_progress: OnProgress | None = None, timeout_seconds: float | None = None
    ) -> Any:
        """Wait until the task has ended, and return the result of the tool; see `TaskHandle.result`."""
        return self._thread.run(
            lambda: self._handle.result(returns=returns, on_progress=on_progress, timeout_seconds=timeout_seconds)
        )

    def cancel(self) -> None:
        """Ask the server to cancel the task. Nothing happens if it has ended.

        Raises:
            UnsupportedByPeer: The server has not declared that it cancels tasks.
        """
        self._thread.run(self._handle.cancel)
