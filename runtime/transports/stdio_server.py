"""Serving on standard input and output, from the first byte to the end of the process.

Theory of operation. A conversation ends in one of three ways. The input ends: what runs may still answer for a while,
then it is cancelled. A signal asks us to leave: it is cancelled at once. Nobody reads the output: likewise, and nothing
more is said. Each way leads to the same end, in which every step is bounded, so that the process is gone within a
second. Only the server's own lifespan and what an event loop does at its end take as long as they take; there the
process is ended from outside (`mcpgen.runtime.transports.graceful_shutdown`).

Spec:
    2024-11-05 to 2025-11-25, basic/lifecycle, "Shutdown"; 2026-07-28, basic/transports/stdio, "Shutdown": "Servers
    SHOULD exit promptly when their standard input is closed or reads return end-of-file."
"""

from __future__ import annotations

from contextlib import nullcontext
from functools import partial
from typing import TYPE_CHECKING, Final

import anyio

from mcpgen.runtime.transports.gc_tuning import tune_gc
from mcpgen.runtime.transports.graceful_shutdown import GracefulShutdown
from mcpgen.runtime.transports.spawner import open_group, open_spawner
from mcpgen.runtime.transports.standard_streams import StandardStreams
from mcpgen.runtime.transports.stdio import open_pump

if TYPE_CHECKING:
    from mcpgen.runtime.transports.interfaces import Endpoint, Endpoints
    from mcpgen.runtime.transports.spawner import Handle
    from mcpgen.runtime.transports.stdio import Pump

__all__ = ["run", "serve_stdio"]

# What handlers get to clean up when they are cancelled, and their last answers to be read.
_SETTLE_SECONDS: Final = 0.1

# Behind the grace that running handlers get: cancelling them, what the spawner waits for, the lifespan's end.
_END_SECONDS: Final = 0.3


def run(
    server: Endpoints,
    *,
    streams: StandardStreams | None = None,
    backend: str = "asyncio",
) -> None:
    """Serve one peer on standard input and output, until it closes the input or a signal (SIGINT, SIGTERM) comes.

    It returns normally in each of these cases. If a handler does not end in time, it ends the process instead, with
    status 0.

    Args:
        server: What to serve.
        streams: The standard streams, if they are kept already; default: keep them meanwhile.
        backend: The event loop to run: ``asyncio`` or ``trio``.

    Raises:
        UsageError: This process serves on its standard streams already.
    """
    with (
        tune_gc(),
        GracefulShutdown() as departure,
        StandardStreams() if streams is None else nullcontext(streams) as kept,
    ):
        anyio.run(partial(serve_stdio, server, streams=kept, departure=departure), backend=backend)


async def serve_stdio(
    server: Endpoints,
    *,
    streams: StandardStreams | None = None,
    departure: GracefulShutdown | None = None,
) -> None:
    """Serve one peer on standard input and output, until it closes the input.

    Signals are the caller's. Handlers are cancelled before this returns; on asyncio, one that swallows that is left
    behind.

    Args:
        server: What to serve.
        streams: The standard streams, if they are kept already; default: keep them meanwhile.
        departure: Who asks to leave before the input ends, and is told when it has ended.

    Raises:
        UsageError: This process serves on its standard streams already.
    """
    limits = server.limits
    with StandardStreams() if streams is None else nullcontext(streams) as kept:
        async with (
            server.running(),
            open_spawner() as spawner,
            open_pump(
                kept.source,
                kept.sink,
                max_frame_bytes=limits.max_frame_bytes,
                max_buffered_bytes=limits.max_buffered_bytes,
            ) as pump,
        ):
            endpoint = server.connect(pump, spawner)
            try:
                await _converse(endpoint, pump, limits.grace_seconds, departure)
            finally:
                endpoint.close()
                with anyio.move_on_after(_SETTLE_SECONDS, shield=True):
                    await endpoint.finished()
                    await pump.flushed()


async def _converse(endpoint: Endpoint, pump: Pump, grace_seconds: float, departure: GracefulShutdown | None) -> None:
    """Return when there is nothing more to say, or `departure` asks to say no more."""
    async with open_group() as group:
        if departure is not None:
            group.start_soon(_cancel_when_asked, group.cancel_scope, departure)
        await pump.run(endpoint)
        if departure is not None:
            departure.begin(grace_seconds + _END_SECONDS)
        if not pump.is_lost:
            endpoint.end_of_input()
            with anyio.move_on_after(grace_seconds):
                await endpoint.finished()
                await pump.flushed()


async def _cancel_when_asked(scope: Handle, departure: GracefulShutdown) -> None:
    await departure.asked()
    scope.cancel()
