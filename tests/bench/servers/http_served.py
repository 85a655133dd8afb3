"""Our servers as `mcpgen serve` runs them, but with another rate limit, which the command has no option for.

The load comes from one address, faster than the default limit allows. So the limit is one that it does not reach, or
`rate_limit=None`; the difference between both is what the limit costs.
"""

from __future__ import annotations

import sys
from importlib import import_module

from mcpgen.runtime.http.server import uvicorn_server
from mcpgen.runtime.limits import HttpLimits, RateLimit

HIGH = RateLimit(per_second=1_000_000, burst=1_000_000)

if __name__ == "__main__":
    module, limit = sys.argv[1:]
    limits = HttpLimits(rate_limit=HIGH if limit == "high" else None)
    uvicorn_server.serve_http(import_module(module).server, "127.0.0.1:0", {"limits": limits})
