"""Our server as an application of ASGI, on the same uvicorn as those of others, with the same settings."""

from __future__ import annotations

from http_running import PATH, run
from ours import server

if __name__ == "__main__":
    run("mcpgen", server.asgi(path=PATH, bound_to="127.0.0.1"))
