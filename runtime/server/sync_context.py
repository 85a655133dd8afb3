"""The methods of `Context` without ``await``, for plain functions, and the check that each form is used in its place.

Theory of operation. A plain function runs in a worker thread. A coroutine that it does not await never runs, and
nothing but a warning says so, later. So each method of `Context` that returns a coroutine checks that an event loop
runs in its thread, and each method here checks that none does.
"""

from __future__ import annotations

from functools import partial, wraps
from typing import TYPE_CHECKING, Any, Literal, TypeVar, cast, overload

from msgspec import UNSET

from mcpgen.runtime.errors import UsageError
from mcpgen.runtime.server.exchange import RequestEnded
from mcpgen.runtime.transports.event_loops import running_loop

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence

    from mcpgen.runtime.protocol.log_levels import Level
    from mcpgen.runtime.protocol.newest import models
    from mcpgen.runtime.server.context import Context
    from mcpgen.runtime.server.elicitation_forms import Elicited

__all__ = ["SyncContext", "awaited"]

F = TypeVar("F", bound="Callable[..., Any]")
T = TypeVar("T")


class SyncContext:
    """The methods of a `Context`, for plain functions: each waits until it is done.

    A thread cannot be stopped. If the client has cancelled the request, the next call of a method raises
    `TransportClosed`, so that the function ends.

    Args:
        context: The context.
    """

    __slots__ = ("_context",)

    def __init__(self, context: Context[Any]) -> None:
        self._context = context

    def progress(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        """Do what `Context.progress` does."""
        self._run(self._context.progress, progress, total, message)

    def log(self, level: Level, data: object, *, logger: str | None = None) -> None:
        """Do what `Context.log` does."""
        self._run(self._context.log, level, data, logger=logger)

    @overload
    def elicit(self, message: str, requested: type[T]) -> Elicited[T]: ...
    @overload
    def elicit(self, message: str, requested: Mapping[str, Any]) -> Elicited[dict[str, Any]]: ...
    def elicit(self, message: str, requested: type[Any] | Mapping[str, Any]) -> Elicited[Any]:
        """Do what `Context.elicit` does."""
        return self._run(cast("Any", self._context.elicit), message, requested)

    def elicit_url(
        self, message: str, url: str, *, elicitation_id: str | None = None
    ) -> Literal["accept", "decline", "cancel"]:
        """Do what `Context.elicit_url` does."""
        return self._run(self._context.elicit_url, message, url, elicitation_id=elicitation_id)

    def elicitation_completed(self, elicitation_id: str) -> None:
        """Do what `Context.elicitation_completed` does."""
        self._run(self._context.elicitation_completed, elicitation_id)

    def sample(
        self, messages: str | Sequence[models.SamplingMessage], *, max_tokens: int, **more: Any
    ) -> models.CreateMessageResult:
        """Do what `Context.sample` does."""
        return self._run(self._context.sample, messages, max_tokens=max_tokens, **more)

    def roots(self) -> list[models.Root]:
        """Do what `Context.roots` does."""
        return self._run(self._context.roots)

    def defer(self) -> bool:
        """Do what `Context.defer` does."""
        return self._run(self._context.defer)

    def disconnect(self, *, retry_seconds: float | None = None) -> bool:
        """Do what `Context.disconnect` does."""
        return self._run(self._context.disconnect, retry_seconds=retry_seconds)

    def request(self, method: Any, params: Any = UNSET, /) -> Any:
        """Do what `Context.request` does."""
        return self._run(self._context.request, method, params)

    def notify(self, method: Any, params: Any = UNSET, /) -> None:
        """Do what `Context.notify` does."""
        self._run(self._context.notify, method, params)

    def resource_updated(self, uri: str) -> None:
        """Do what `Context.resource_updated` does."""
        self._run(self._context.resource_updated, uri)

    def tools_changed(self) -> None:
        """Do what `Context.tools_changed` does."""
        self._run(self._context.tools_changed)

    def prompts_changed(self) -> None:
        """Do what `Context.prompts_changed` does."""
        self._run(self._context.prompts_changed)

    def resources_changed(self) -> None:
        """Do what `Context.resources_changed` does."""
        self._run(self._context.resources_changed)

    def _run(self, method: Callable[..., Coroutine[Any, Any, T]], *arguments: Any, **named: Any) -> T:
        """Return the result of *method*, which runs in the event loop of the server."""
        # A server without such a function need not import this.
        from anyio import from_thread  # noqa: PLC0415

        name = method.__name__
        if running_loop() is not None:
            raise UsageError(
                f"ctx.sync.{name}() would block the event loop, because it was called in an `async def` function; "
                f"write `await ctx.{name}(...)`"
            )
        if self._context.is_cancelled:
            raise RequestEnded(
                "the request is over: it was answered, was cancelled or has expired, or the client has disconnected"
            )
        try:
            from_thread.check_cancelled()
        except RuntimeError as error:
            raise UsageError(
                f"ctx.sync.{name}() was called in a thread that the server did not start; call it in the thread in "
                "which the server called the function"
            ) from error
        failures: list[Exception] = []
        result = from_thread.run(_kept, failures, partial(method, *arguments, **named))
        if failures:
            raise failures.pop()
        return cast("T", result)


async def _kept(failures: list[Exception], method: Callable[[], Awaitable[T]]) -> T | None:
    """Return the result of *method*; add what it raises to *failures*. anyio would keep that in a cycle."""
    try:
        return await method()
    except Exception as error:  # noqa: BLE001 (raised by the caller, in its thread)
        failures.append(error)
        return None
    except BaseException as error:
        import asyncio  # noqa: PLC0415 (as in `_run`)
        from concurrent import futures  # noqa: PLC0415

        if not isinstance(error, asyncio.CancelledError):
            raise
        failures.append(futures.CancelledError())  # asyncio would print anyio's own one when the server ends
        return None


def awaited(method: F) -> F:
    """Let *method*, an async method of `Context`, raise UsageError where nothing can await it.

    Otherwise a plain function that calls it would go on, and nothing would happen.
    """

    @wraps(method)
    def checked(self: Any, *arguments: Any, **named: Any) -> Any:
        if running_loop() is None:
            name = method.__name__
            raise UsageError(
                f"ctx.{name}() needs `await`, but it was called in a plain function (`def`); write "
                f"ctx.sync.{name}(...), or make the function an `async def` with `await ctx.{name}(...)`"
            )
        return method(self, *arguments, **named)

    return cast("F", checked)
