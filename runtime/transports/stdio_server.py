"""Serving on standard input and output, from the first byte to the end of the process.

Theory of operation. A connection ends in one of three ways. After the end of input, running handlers may still answer
for a while, and are then cancelled. After a signal, they are cancelled at once. If the client does not read the output
any more, they are cancelled at once, and nothing more is written. Every step after that is bounded, so the process ends
within a second. Only the server's lifespan and the end of the event loop are not bounded. If they take too long, a
thread ends the process (`mcpgen.runtime.transports.graceful_shutdown`).

Spec:
    2024-11-05 to 2025-11-25, basic/lifecycle, "Shutdown"; 2026-07-28, basic/transports/stdio, "Shutdown": "Servers
    SHOULD exit promptly when their standard input is closed or reads return end-of-file."
"""

from __future__ import annotations

from contextlib import nullcontext
from functools import partial
from typing import TYPE_CHECKING, Final

import anyio

from mcpgen.runtime.transports.graceful_shutdown import GracefulShutdown
from mcpgen.runtime.transports.process_memory import tune_gc
from mcpgen.runtime.transports.spawner import open_group, open_spawner
from mcpgen.runtime.transports.standard_streams import StandardStreams
from mcpgen.runtime.transports.stdio import open_pump

if TYPE_CHECKING:
    from mcpgen.runtime.transports.interfaces import Endpoint, ServerInterface
    from mcpgen.runtime.transports.pump import Pump
    from mcpgen.runtime.transports.spawner import StartedFunction

__all__ = ["run", "serve_stdio"]

# For cancelled handlers to clean up, and for the client to read the last responses.
_CLEANUP_SECONDS: Final = 0.1

# After the grace period of running handlers: cancelling them, the end of the spawner, of threads, and of the lifespan.
_END_SECONDS: Final = 0.4


def run(server: ServerInterface, *, streams: StandardStreams | None = None, backend: str = "asyncio") -> None:
    """Serve one client on standard input and output, until it closes the input or a signal (SIGINT, SIGTERM) comes.

    It returns normally in these cases. If a handler does not end in time, it ends the process instead, with status 0.

    Args:
        server: The server.
        streams: The standard streams, if they are reserved already; by default they are reserved while this runs.
        backend: The event loop to run: ``asyncio`` or ``trio``.

    Raises:
        UsageError: This process serves on its standard streams already.
    """
    with (
        tune_gc(),
        GracefulShutdown() as shutdown,
        StandardStreams() if streams is None else nullcontext(streams) as reserved,
    ):
        anyio.run(partial(serve_stdio, server, streams=reserved, shutdown=shutdown), backend=backend)


async def serve_stdio(
    server: ServerInterface, *, streams: StandardStreams | None = None, shutdown: GracefulShutdown | None = None
) -> None:
    """Serve one client on standard input and output, until it closes the input. The caller handles signals.

    Handlers are cancelled before this returns. On asyncio, a handler that catches its cancellation and does not end
    keeps running.

    Args:
        server: The server.
        streams: The standard streams, if they are reserved already; by default they are reserved while this runs.
        shutdown: Requests the end before the input ends, and gets the time limit when it has ended.

    Raises:
        UsageError: This process serves on its standard streams already.
    """
    limits = server.limits
    with StandardStreams() if streams is None else nullcontext(streams) as reserved:
        async with (
            server.running(),
            open_spawner() as spawner,
            open_pump(
                reserved.source,
                reserved.sink,
                max_frame_bytes=limits.max_frame_bytes,
                max_buffered_bytes=limits.max_buffered_bytes,
            ) as pump,
        ):
            endpoint = server.connect(pump, spawner)
            try:
                await _run_connection(endpoint, pump, limits.grace_seconds, shutdown)
            finally:
                # After a signal, too. 2026-07-28, basic/patterns/cancellation: a server MUST tell that streams end.
                endpoint.end_of_input()
                endpoint.close()
                with anyio.move_on_after(_CLEANUP_SECONDS, shield=True):
                    await endpoint.wait_finished()
                    await pump.flushed()


async def _run_connection(
    endpoint: Endpoint, pump: Pump, grace_seconds: float, shutdown: GracefulShutdown | None
) -> None:
    """Return when nothing is left to write, or when `shutdown` is requested."""
    async with open_group() as group:
        if shutdown is not None:
            group.start_soon(_cancel_on_request, group.cancel_scope, shutdown)
        await pump.run(endpoint)
        if shutdown is not None:
            shutdown.start_countdown(grace_seconds + _END_SECONDS)
        if not pump.is_abandoned:
            endpoint.end_of_input()
            with anyio.move_on_after(grace_seconds):
                await endpoint.wait_finished()
                await pump.flushed()


async def _cancel_on_request(scope: StartedFunction, shutdown: GracefulShutdown) -> None:
    await shutdown.wait_requested()
    scope.cancel()
