"""Our server for ``uvicorn --workers``; with the URL of Redis in the environment, the workers share it."""

from __future__ import annotations

import os

from mcpgen import Context, HttpLimits, Redis, Server

server = Server("bench", version="1.0")


@server.tool
async def echo(text: str) -> str:
    """Return the text."""
    return text


@server.tool
async def touch(ctx: Context) -> str:
    """Report a change of a resource."""
    await ctx.resource_updated("note://a")
    return "touched"


@server.resource("note://a")
def note() -> str:
    """Return a text."""
    return "text"


REDIS = os.environ.get("BENCH_REDIS")
# All load comes from one address.
LIMITS = HttpLimits(rate_limit=None, max_sessions=20_000)
app = server.asgi(limits=LIMITS, cluster=Redis(REDIS) if REDIS else None)
