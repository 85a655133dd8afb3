"""Starting handlers, on asyncio and on other event loops.

Theory of operation. A shell starts thousands of short coroutines a second. A task group of anyio takes about 32 µs for
each, `asyncio.create_task` 3 µs. So asyncio's own function is used where asyncio runs, and a task group elsewhere.
Three rules hold on both; code that counts its running handlers relies on them:

* Each started function is entered. A cancellation that comes before its first step takes effect at its first ``await``,
  so its ``finally`` runs. (asyncio alone would drop the coroutine without entering it.)
* An exception is logged here at the latest, and ends nothing else, not even if it is `SystemExit`.
* Each task is referenced until it ends. asyncio itself keeps only weak references.

Python 3.12 can run the first steps of a task at once, instead of in the next turn of the loop. A response that waits
for nothing is then written in the turn in which its request came. So a function may be over when `start` returns,
except between `hold` and `release`: all messages that arrive together are read before a handler runs.

Functions that `release` lets run together share one task on asyncio as long as none of them waits, because a task costs
more than all of a usual call. The first that waits keeps the task, and each of the others gets its own, which the loop
starts in its next turn. So at most one function of a task ever waits, and a cancellation finds the right one. The task
is not shared further after a function that leaves something behind in it: a context variable or a cancellation.
"""

from __future__ import annotations

import asyncio
import sys
from collections import deque
from contextlib import asynccontextmanager
from contextvars import copy_context
from functools import cache
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias, TypeVarTuple, cast

import anyio
from msgspec import Struct

from mcpgen.runtime.transports.tracebacks import traceback_logger

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Coroutine

__all__ = [
    "Group",
    "Spawner",
    "StartedFunction",
    "cancel_task",
    "is_asyncio",
    "open_group",
    "open_spawner",
    "postponed_cancellation",
    "start_alone",
    "turn",
]

_Arguments = TypeVarTuple("_Arguments")

_LOG = traceback_logger("mcpgen.handlers")

# For cancelled handlers to clean up at the end. Hosts kill the process after a second or two.
_CLEANUP_SECONDS: Final = 0.1

_Work: TypeAlias = "Coroutine[Any, Any, None]"

if sys.version_info >= (3, 12):

    def _start_eagerly(work: _Work, loop: asyncio.AbstractEventLoop) -> asyncio.Task[None]:
        return asyncio.Task(work, loop=loop, eager_start=True)

else:
    _start_eagerly: Callable[[_Work, asyncio.AbstractEventLoop], asyncio.Task[None]] | None = None


class StartedFunction(Protocol):
    """The handle of a started function, to cancel it."""

    def cancel(self) -> object:
        """Cancel the function at its next ``await``; do nothing if it has ended."""
        ...


class Spawner(Protocol):
    """Starts the handlers of a connection."""

    def start(
        self, function: Callable[[*_Arguments], Coroutine[Any, Any, object]], /, *arguments: *_Arguments
    ) -> StartedFunction:
        """Start *function*. It may have ended already when this returns.

        The return value of *function* is dropped. Its exception is logged.
        """
        ...

    def hold(self) -> None:
        """Delay all functions that are started from now on, until `release`."""
        ...

    def release(self) -> None:
        """Run the functions that were started since `hold`."""
        ...


@asynccontextmanager
async def open_spawner(cleanup_seconds: float = _CLEANUP_SECONDS) -> AsyncGenerator[Spawner]:
    """Start handlers within the block, and cancel those that still run at the end of the block.

    On asyncio, a handler that has not ended *cleanup_seconds* after its cancellation keeps running. Its name is logged.
    """
    if is_asyncio():
        tasks = _Tasks(asyncio.get_running_loop())
        try:
            yield tasks
        finally:
            await tasks.end(cleanup_seconds)
        return
    async with open_group() as group:
        yield _Group(group)


class Group(Protocol):
    """A task group, or on trio a nursery."""

    @property
    def cancel_scope(self) -> StartedFunction:
        """Cancels all tasks of the group."""
        ...

    def start_soon(
        self, function: Callable[[*_Arguments], Coroutine[Any, Any, object]], /, *arguments: *_Arguments
    ) -> object:
        """Start *function* in a task of the group."""
        ...


@asynccontextmanager
async def open_group() -> AsyncGenerator[Group]:
    """Open a task group that is cancelled at the end of the block, and out of which the block's errors come plain."""
    failure: Exception | None = None
    async with anyio.create_task_group() if is_asyncio() else _open_nursery() as group:
        try:
            yield group
        except Exception as error:  # noqa: BLE001 (raised below, where the group cannot wrap it in a group of errors)
            failure = error
        finally:
            group.cancel_scope.cancel()
    if failure is not None:
        raise failure


@asynccontextmanager
async def _open_nursery() -> AsyncGenerator[Group]:
    import trio  # noqa: PLC0415 (only where it runs already)

    async with trio.open_nursery() as nursery:
        yield _Nursery(nursery.start_soon, nursery.cancel_scope)


async def turn() -> None:
    """Let all other tasks that are ready run."""
    if is_asyncio():
        await asyncio.sleep(0)  # half the cost of `anyio.lowlevel.checkpoint`
    else:
        await anyio.lowlevel.checkpoint()


def is_asyncio() -> bool:
    """Return whether the current task is one of asyncio."""
    try:
        return asyncio.current_task() is not None  # another library may run as a guest of an asyncio loop
    except RuntimeError:
        return False


_CLEANING: Final[dict[asyncio.Task[Any], bool]] = {}  # whether each is to be cancelled at the end


def cancel_task(task: asyncio.Task[Any]) -> None:
    """Cancel *task*, or note that it is cancelled while it cleans up (`postponed_cancellation`)."""
    if task in _CLEANING:
        _CLEANING[task] = True
    else:
        task.cancel()


@asynccontextmanager
async def postponed_cancellation() -> AsyncGenerator[None]:
    """On asyncio, postpone `cancel_task` to the end of the block: a shield of anyio does not stop `Task.cancel`."""
    task = asyncio.current_task() if is_asyncio() else None
    if task is None or task in _CLEANING:
        yield
        return
    _CLEANING[task] = False
    try:
        yield
    finally:
        if _CLEANING.pop(task):
            task.cancel()
            await asyncio.sleep(0)  # so that it takes effect here, and not where the task next waits


class _Task(Struct, eq=False):
    """One coroutine on asyncio, and whether it has been entered."""

    task: asyncio.Task[None] | None = None  # an eager task runs before it is assigned here
    is_entered: bool = False
    is_cancelled: bool = False

    def cancel(self) -> None:
        self.is_cancelled = True
        if self.is_entered and self.task is not None:
            cancel_task(self.task)


class _Tasks:
    """The spawner of asyncio."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._running: set[_Task] = set()
        self._held: list[tuple[_Task, _Work]] | None = None
        self._sharing: deque[tuple[_Task, _Work]] = deque()  # those that a shared task has yet to run
        # A task factory says how the program wants its tasks to be made. Do not bypass it.
        self._has_factory = loop.get_task_factory() is not None
        self._start_eagerly = None if self._has_factory else _start_eagerly

    def start(
        self, function: Callable[[*_Arguments], Coroutine[Any, Any, object]], /, *arguments: *_Arguments
    ) -> StartedFunction:
        handle = _Task()
        work = self._run(handle, function(*arguments))
        self._running.add(handle)
        if self._held is None:
            self._enter(handle, work)
        else:
            self._held.append((handle, work))
        return handle

    def hold(self) -> None:
        self._held = []

    def release(self) -> None:
        held, self._held = self._held, None
        if not held:
            return
        if len(held) == 1 or self._has_factory:
            for each in held:
                self._enter(*each)
        else:
            self._sharing.extend(held)
            if self._start_eagerly is None:
                self._loop.create_task(self._run_sharing())
                self._loop.call_soon(self._enter_sharing)  # when the shared task has ended, or waits
            else:
                self._start_eagerly(self._run_sharing(), self._loop)
                self._enter_sharing()

    async def _run_sharing(self) -> None:
        """Run functions in this task, until one has waited."""
        task, context = cast("asyncio.Task[None]", asyncio.current_task()), copy_context()
        while self._sharing:
            handle, work = self._sharing.popleft()
            handle.task = task
            await work
            if task.cancelling() or copy_context() != context:
                return

    def _enter_sharing(self) -> None:
        """Start the functions that no shared task has run, each in its own task."""
        while self._sharing:
            self._enter(*self._sharing.popleft())

    def _enter(self, handle: _Task, work: _Work) -> None:
        if self._start_eagerly is None:
            handle.task = self._loop.create_task(work)
            return
        handle.task = self._start_eagerly(work, self._loop)
        if handle.is_cancelled and handle in self._running:  # by itself in its first steps, or before them
            handle.task.cancel()

    async def _run(self, handle: _Task, coroutine: Coroutine[Any, Any, object]) -> None:
        handle.is_entered = True
        if handle.is_cancelled and handle.task is not None:
            handle.task.cancel()
        try:
            await coroutine
        except asyncio.CancelledError:
            # `cancelling`: other code cancelled the task, such as `asyncio.run` when the event loop ends.
            if not handle.is_cancelled and not (handle.task is not None and handle.task.cancelling()):
                _LOG.exception("a handler raised a cancellation exception, but nothing cancelled the handler")
            raise
        except BaseException as error:  # noqa: BLE001 (the boundary: what was started fails alone, whatever it raises)
            _LOG.exception("a handler raised %s", type(error).__name__)
        finally:
            self._running.discard(handle)
            handle.task = None  # a task that was cancelled keeps this frame, and they would keep each other

    async def end(self, cleanup_seconds: float) -> None:
        self._enter_sharing()
        for handle in self._running:
            handle.cancel()
        tasks = [handle.task for handle in self._running if handle.task is not None]
        if not tasks:
            return
        with anyio.CancelScope(shield=True):  # even if this task is cancelled, the handlers must end
            await asyncio.wait(tasks, timeout=cleanup_seconds)
        for task in (each for each in tasks if not each.done()):
            _LOG.error("a handler catches its cancellation and does not end; it keeps running: %r", task)


class _Group:
    """The spawner of any other event loop."""

    def __init__(self, group: Group) -> None:
        self._group = group

    def start(
        self, function: Callable[[*_Arguments], Coroutine[Any, Any, object]], /, *arguments: *_Arguments
    ) -> StartedFunction:
        scope = anyio.CancelScope()
        self._group.start_soon(_run_in_scope, scope, function(*arguments))
        return scope

    def hold(self) -> None:
        """Do nothing: what is started runs in a later turn of the loop."""

    def release(self) -> None:
        """Do nothing, likewise."""


async def _run_in_scope(scope: anyio.CancelScope, coroutine: Coroutine[Any, Any, object]) -> None:
    with scope:
        try:
            await coroutine
        except anyio.get_cancelled_exc_class():
            if not scope.cancel_called and not anyio.get_current_task().has_pending_cancellation():
                _LOG.exception("a handler raised a cancellation exception, but nothing cancelled the handler")
                return
            raise
        except BaseException as error:  # noqa: BLE001 (the boundary: what was started fails alone, whatever it raises)
            _LOG.exception("a handler raised %s", type(error).__name__)


class _Nursery:
    """A task group of trio, in whose tasks `KeyboardInterrupt` is not raised.

    trio raises it wherever the program is when the signal comes: in a handler, where it would be logged and lost, or in
    a task of a client, whose parent is a system task, where trio takes it for an error of its own. In a protected
    function it is raised in the main task, as asyncio does. A child of a protected task is not protected by itself.
    """

    def __init__(self, start_soon: Callable[..., object], cancel_scope: StartedFunction) -> None:
        self.cancel_scope: StartedFunction = cancel_scope
        self._start_soon = start_soon

    def start_soon(
        self, function: Callable[[*_Arguments], Coroutine[Any, Any, object]], /, *arguments: *_Arguments
    ) -> object:
        return self._start_soon(_protected(), function, arguments)


async def _call(function: Callable[..., Coroutine[Any, Any, object]], arguments: tuple[object, ...]) -> None:
    await function(*arguments)


@cache
def _protected() -> Callable[..., Coroutine[Any, Any, None]]:
    import trio  # noqa: PLC0415 (only where it runs already)

    return trio.lowlevel.enable_ki_protection(_call)


def start_alone(function: Callable[[], Coroutine[Any, Any, object]], ended: Callable[[], object]) -> StartedFunction:
    """Start *function* in a task without a parent, which may outlive the task that runs now.

    It has to end by itself, and must not raise. When the event loop ends, it is cancelled; asyncio may do so before it
    is entered. *ended* is called at its end in any case.
    """
    if is_asyncio():
        return _start_alone(function, ended)
    import trio  # noqa: PLC0415 (only where it runs already)

    scope = anyio.CancelScope()

    async def run() -> None:
        try:
            with scope:
                await function()
        finally:
            ended()

    trio.lowlevel.spawn_system_task(run, context=copy_context())
    return scope


_ALONE: Final[set[asyncio.Task[object]]] = set()  # asyncio itself keeps weak references only


def _start_alone(function: Callable[[], Coroutine[Any, Any, object]], ended: Callable[[], object]) -> StartedFunction:
    task: asyncio.Task[object] = asyncio.get_running_loop().create_task(function())
    _ALONE.add(task)
    task.add_done_callback(_ALONE.discard)
    task.add_done_callback(lambda _: ended())
    return task
