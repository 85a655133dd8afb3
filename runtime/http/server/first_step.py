"""The first step of an awaitable, which is done by hand to learn whether it has to wait.

Theory of operation. A coroutine is a generator for the event loop: each step runs until it has to wait, and yields what
it waits for. Most of what a request awaits never waits: its body has arrived, its response is written at once, its
function returns. So no time limit, stream or task is made before the first step says that it waits. A task of its own
would take 2 µs, an eager one of Python 3.12 1 µs (ADR 0033).

`Waiting` does the other steps in the task that awaits it, as `await` would. That needs asyncio: scopes of anyio and
trio, which the first step may have entered, must be left in the reverse order of entry.
"""

from __future__ import annotations

import asyncio
from types import CoroutineType
from typing import TYPE_CHECKING, Any, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Awaitable, Generator

__all__ = ["Waiting", "first_step"]

T = TypeVar("T")


def first_step(awaitable: Awaitable[T]) -> T | Waiting[T]:
    """Return the result of *awaitable* if it does not wait, or else the rest of it."""
    # A coroutine can be stepped itself; the iterator that `__await__` returns is one object more.
    steps: Any = awaitable if type(awaitable) is CoroutineType else awaitable.__await__()  # pyright: ignore[reportUnknownVariableType] # of any type
    try:
        waits_for = steps.send(None)
    except StopIteration as done:
        result: T = done.value
        return result
    return Waiting(steps, waits_for)


class Waiting(Generic[T]):
    """The rest of an awaitable whose first step has run, and which now waits.

    Args:
        steps: The iterator of the awaitable, or the awaitable if it is a coroutine.
        waits_for: The future that its first step yielded.
    """

    __slots__ = ("_steps", "_waits_for")

    def __init__(self, steps: Any, waits_for: Any) -> None:  # noqa: ANN401 (only the event loop knows)
        self._steps = steps
        self._waits_for = waits_for

    def __await__(self) -> Generator[Any, Any, T]:
        """Do the other steps, and wait for each future by means of a `_Waker`.

        The event loop throws the exception of a future into the task that waits for it. GeneratorExit would close every
        coroutine of this task, those of the ASGI server too. After a waker, the awaitable gets it from the future
        itself.
        """
        steps, waits_for = self._steps, self._waits_for
        try:
            while True:
                value = None
                try:
                    if asyncio.isfuture(waits_for):
                        waits_for._asyncio_future_blocking = False  # noqa: SLF001 (as a task does that waits for it)
                        yield from _Waker(waits_for)
                    else:
                        value = yield waits_for
                except BaseException as error:  # noqa: BLE001 (the event loop throws a cancellation into the awaitable)
                    waits_for = steps.throw(error)
                else:
                    waits_for = steps.send(value)
        except StopIteration as done:
            result: T = done.value
            return result

    def close(self) -> None:
        """Cancel the awaitable where it waits."""
        self._steps.close()


class _Waker(asyncio.Future[None]):
    """Is done when *awaited* is, but never has its exception."""

    def __init__(self, awaited: asyncio.Future[Any]) -> None:
        super().__init__(loop=awaited.get_loop())
        self._awaited = awaited
        awaited.add_done_callback(self._wake)

    def cancel(self, msg: Any = None) -> bool:  # noqa: ANN401 (of `Future`)
        return self._awaited.cancel(msg)

    def _wake(self, _: object) -> None:
        self.set_result(None)
