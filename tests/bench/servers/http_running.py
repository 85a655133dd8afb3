"""How all the servers of other people, and the floors, are run over HTTP: as ``mcpgen serve --http`` runs ours."""

from __future__ import annotations

import socket
import sys
from typing import Any

import uvicorn

PATH = "/mcp"
# As many connections as a test opens at once may wait to be accepted.
BACKLOG = 2048


def run(name: str, app: Any, *, parser: str = "httptools") -> None:
    """Serve an ASGI application on a free port of this machine, and say where when it accepts connections."""
    listener = socket.create_server(("127.0.0.1", 0), backlog=BACKLOG)
    port = listener.getsockname()[1]
    # One process, with uvloop wherever there is one, and no log of requests: what is left is the server's own work and
    # the application's.
    config = uvicorn.Config(
        app, loop="auto", http=parser, ws="none", access_log=False, log_level="warning", backlog=BACKLOG
    )
    # The system accepts for it from now on; who comes before it runs waits a moment.
    sys.stderr.write(f"bench: serving {name} at http://127.0.0.1:{port}{PATH}\n")
    sys.stderr.flush()
    uvicorn.Server(config).run(sockets=[listener])
