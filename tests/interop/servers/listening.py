"""Serving over HTTP with the Python SDKs: an application of ASGI, at any free port of this machine alone."""

from __future__ import annotations

import socket
import sys
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import uvicorn
from mcp.server.streamable_http import EventMessage as Event
from starlette.applications import Starlette
from starlette.responses import Response
from starlette.routing import Mount, Route

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from starlette.requests import Request

__all__ = ["RETRY_MS", "TRANSPORT", "Events", "endpoint", "listen", "pair"]

# What is asked for: nothing is stdio.
TRANSPORT = sys.argv[1] if len(sys.argv) > 1 else "stdio"

# When clients are to come back whose connection was closed.
RETRY_MS = 100


class Events:
    """What was said on streams, for clients who come back; an event store, as both SDKs have them."""

    def __init__(self) -> None:
        self._said: list[tuple[str, Any]] = []

    async def store_event(self, stream_id: str, message: Any) -> str:
        self._said.append((stream_id, message))
        return str(len(self._said) - 1)

    async def replay_events_after(self, last_event_id: str, send: Any) -> str:
        stream, _ = self._said[int(last_event_id)]
        for number, (each, message) in enumerate(self._said):
            if each == stream and number > int(last_event_id) and message is not None:
                await send(Event(message, str(number)))
        return stream


def endpoint(manager: Any) -> Starlette:
    """Return an application with the one endpoint of Streamable HTTP."""

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        async with manager.run():
            yield

    class App:
        async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
            await manager.handle_request(scope, receive, send)

    return Starlette(routes=[Route("/mcp", endpoint=App())], lifespan=lifespan)


def pair(transport: Any, run: Callable[[Any, Any], Awaitable[None]]) -> Starlette:
    """Return an application with the two endpoints of HTTP+SSE."""

    async def stream(request: Request) -> Response:
        async with transport.connect_sse(request.scope, request.receive, request._send) as (read, write):
            await run(read, write)
        return Response()

    messages = Mount("/messages/", app=transport.handle_post_message)
    return Starlette(routes=[Route("/sse", endpoint=stream), messages])


def listen(app: Any) -> None:
    """Serve until the process is ended; say where."""
    with socket.create_server(("127.0.0.1", 0)) as bound:
        path = "sse" if TRANSPORT == "sse" else "mcp"
        sys.stderr.write(f"http://127.0.0.1:{bound.getsockname()[1]}/{path}\n")
        sys.stderr.flush()
        uvicorn.Server(uvicorn.Config(app, log_level="warning")).run(sockets=[bound])
