"""The event that a caller waits for, once for each request. On asyncio it is a future: a tenth of an `anyio.Event`."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Final, Protocol

import anyio

from mcpgen.runtime.transports.spawner import is_asyncio

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["OTHER_LOOP", "AutoResetEvent", "auto_reset_event", "auto_reset_event_factory", "same_loop_check"]

OTHER_LOOP: Final = "this client belongs to another event loop: use it, and close it, where connect() was awaited"


class AutoResetEvent(Protocol):
    """Lets one task wait until it is set. `wait` resets it. To set it twice counts as once."""

    def set(self) -> None:
        """Let `wait` return, now or at its next call."""
        ...

    async def wait(self) -> None:
        """Return when `set` was called since the last return."""
        ...

    async def wait_at_most(self, seconds: float) -> bool:
        """Return True when `set` was called since the last return, or False after *seconds* without it."""
        ...


def auto_reset_event() -> AutoResetEvent:
    """Return a new event for the running event loop."""
    return auto_reset_event_factory()()


def auto_reset_event_factory() -> Callable[[], AutoResetEvent]:
    """Return a function that makes events for the running event loop."""
    return partial(_FutureEvent, asyncio.get_running_loop()) if is_asyncio() else _AnyioEvent


def same_loop_check() -> Callable[[], bool]:
    """Return a function that tells whether it is called in the event loop that runs now."""
    if is_asyncio():
        return partial(_runs, asyncio.get_running_loop())
    import trio  # noqa: PLC0415 (only where it runs already)

    token = trio.lowlevel.current_trio_token()
    return lambda: not is_asyncio() and trio.lowlevel.in_trio_run() and trio.lowlevel.current_trio_token() is token


def _runs(loop: asyncio.AbstractEventLoop) -> bool:
    try:
        return asyncio.get_running_loop() is loop
    except RuntimeError:
        return False


class _FutureEvent:
    __slots__ = ("_future", "_is_set", "_loop")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._future: asyncio.Future[None] | None = None
        self._is_set = False

    def set(self) -> None:
        self._is_set = True
        if self._future is not None and not self._future.done():
            self._future.set_result(None)

    async def wait(self) -> None:
        if not self._is_set:
            self._future = self._loop.create_future()
            try:
                await self._future
            finally:
                self._future = None
        self._is_set = False

    async def wait_at_most(self, seconds: float) -> bool:
        if not self._is_set:
            self._future = self._loop.create_future()
            timer = self._loop.call_later(seconds, self._give_up, self._future)  # a tenth of a cancel scope of anyio
            try:
                await self._future
            finally:
                timer.cancel()
                self._future = None
        was_set, self._is_set = self._is_set, False
        return was_set

    @staticmethod
    def _give_up(future: asyncio.Future[None]) -> None:
        if not future.done():
            future.set_result(None)


class _AnyioEvent:
    __slots__ = ("_event",)

    def __init__(self) -> None:
        self._event = anyio.Event()

    def set(self) -> None:
        self._event.set()

    async def wait(self) -> None:
        await self._event.wait()
        self._event = anyio.Event()

    async def wait_at_most(self, seconds: float) -> bool:
        with anyio.move_on_after(seconds):
            await self._event.wait()
        was_set = self._event.is_set()
        if was_set:
            self._event = anyio.Event()
        return was_set
