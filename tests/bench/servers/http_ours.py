"""Our server as an application of ASGI, on the same uvicorn as those of others, with the same settings."""

from __future__ import annotations

from http_running import PATH, run
from ours import server

from mcpgen.runtime.limits import HttpLimits

if __name__ == "__main__":
    # The load comes from one address, faster than the default rate limit allows.
    limits = HttpLimits(rate_limit=None)
    run("mcpgen", server.asgi(path=PATH, bound_to="127.0.0.1", limits=limits))
