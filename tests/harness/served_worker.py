"""One worker of ``several_workers.py``: ``python served_worker.py FILE.py``, with Redis in ``MCPGEN_REDIS``.

It closes each connection after one response, so that the next request of a client gets to another worker.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any, cast

from mcpgen import Redis, Server
from mcpgen.runtime.cli.serve_command import _load_server
from mcpgen.runtime.http.server import uvicorn_server

if TYPE_CHECKING:
    from mcpgen import Application


def closing(app: Application) -> Any:
    """Return *app*, but its responses end their connections."""

    async def wrapped(scope: Any, receive: Any, send: Any) -> None:
        async def closed(message: Any) -> None:
            if message["type"] == "http.response.start":
                headers = [each for each in message.get("headers", ()) if each[0] != b"connection"]
                message = {**message, "headers": [*headers, (b"connection", b"close")]}
            await send(message)

        await app(scope, receive, closed)

    return wrapped


def main(file: str) -> None:
    """Serve until SIGTERM."""
    server = cast("Server", _load_server(file, is_debug=False))
    cluster = Redis(os.environ["MCPGEN_REDIS"], timeout_seconds=10)
    uvicorn_server.serve_http(server, "127.0.0.1:0", {"cluster": cluster}, closing)


if __name__ == "__main__":
    main(sys.argv[1])
