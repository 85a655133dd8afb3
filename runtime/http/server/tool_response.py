"""Sending what comes out of an outlet: as one JSON document, or as a stream of events."""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio

from mcpgen.runtime.http.server import responses
from mcpgen.runtime.transports.spawner import turn

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcpgen.runtime.http.server.app_state import AppState
    from mcpgen.runtime.http.server.response_buffer import ResponseBuffer
    from mcpgen.runtime.http.server.responses import Receive, Send

__all__ = ["send_tool_response"]


async def send_tool_response(  # noqa: PLR0913 (what ASGI gives, and what decides)
    desk: AppState,
    receive: Receive,
    send: Send,
    outlet: ResponseBuffer,
    *,
    begin: Callable[[], object],
    seconds: float,
    status: Callable[[bytes], int] | None = None,
) -> None:
    """Send what comes out of *outlet*: as JSON, or after so many *seconds* as a stream.

    Args:
        desk: Of the application.
        receive: Of ASGI.
        send: Of ASGI.
        outlet: Where it comes out.
        begin: Makes it a stream.
        seconds: How long the answer may take to be JSON.
        status: Says which status goes with it; by default 200.
    """
    if not outlet.is_ready:
        await turn()  # most handlers have answered by then
    only = outlet.only()
    if only is None:
        watch = (await desk.open()).start(responses.lose_when_gone, receive, outlet)
        try:
            only = await _first(desk, outlet, begin, seconds)
            if only is None and desk.is_leaving and not outlet.is_stream and outlet.is_empty:
                await responses.refuse(send, 503, "the server is shutting down")
                return
            if only is None:
                await responses.stream(outlet, send, desk.limits)
        finally:
            watch.cancel()
    if only is not None:
        await responses.answer(send, only, 200 if status is None else status(only))


async def _first(desk: AppState, outlet: ResponseBuffer, begin: Callable[[], object], seconds: float) -> bytes | None:
    """Return the answer, if it is the first that comes, and soon; otherwise begin a stream."""
    with anyio.move_on_after(seconds):
        await outlet.ready()
    only = outlet.only()
    is_told = not outlet.is_lost  # or what is asked later would wait on a stream of which no client knows
    if only is None and is_told and not outlet.is_stream and not (desk.is_leaving and outlet.is_over):
        begin()
    return only
