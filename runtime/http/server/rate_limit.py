"""Rate limits: how many tools and completions a client may call each second.

Theory of operation. Each client has a bucket of tokens, which fills at a steady rate. A call takes one token. A client
that finds no token is told when to try again. A client is the user, if known; else the session, because an address may
be that of a proxy; else, without a session, the address.

Spec:
    server/tools, "Security Considerations": servers MUST rate limit tool invocations. server/utilities/completion,
    "Security": MUST implement appropriate rate limiting. Every revision says so.
"""

from __future__ import annotations

from collections import OrderedDict
from math import ceil
from typing import TYPE_CHECKING, Final

from msgspec import UNSET

from mcpgen.runtime.http.server import responses
from mcpgen.runtime.protocol.messages import Batch, Error, Request

if TYPE_CHECKING:
    from collections.abc import Callable, Container

    from mcpgen.runtime.http.server.client_address import Client
    from mcpgen.runtime.http.server.responses import Send
    from mcpgen.runtime.limits import RateLimit
    from mcpgen.runtime.protocol.messages import Malformed, Message

__all__ = ["RATE_LIMITED", "RateLimiter", "bucket_name", "call_count", "rate_limit_error", "send_rate_limited"]

# JSON-RPC 2.0 reserves -32768 to -32000, of which MCP has taken codes in each revision (2026-07-28, basic/index, "Error
# Codes"). All other codes are free for applications; this one is the HTTP status.
RATE_LIMITED: Final = 429

_LIMITED_METHODS: Final = frozenset(("tools/call", "completion/complete"))

# Each takes about 250 bytes. More clients than that use their buckets more often than they fill.
_MAX_BUCKETS: Final = 20_000


def call_count(message: Message | Batch | Malformed) -> int:
    """Return how many calls in *message* are limited."""
    if isinstance(message, Request):
        return int(message.method in _LIMITED_METHODS)
    return sum(map(call_count, message.items)) if isinstance(message, Batch) else 0


def rate_limit_error(seconds: float) -> Error:
    """Return the error for a call that has to wait for *seconds*."""
    milliseconds = ceil(seconds * 1000)
    reason = f"too many calls of tools and completions (rate_limit); try again in {milliseconds} milliseconds"
    return Error(RATE_LIMITED, reason, {"retryAfterMs": milliseconds})


def bucket_name(client: Client, session_id: str | None, sessions: Container[str]) -> str:
    """Return whose bucket a request takes tokens from: the session's only if it exists and its client is not known."""
    if client.is_known or session_id is None or session_id not in sessions:
        return client.owner
    return f"session {session_id}"


async def send_rate_limited(send: Send, message: Message | Batch | Malformed, seconds: float) -> None:
    """Refuse a request that has to wait for *seconds*.

    Raises:
        ClientDisconnected: The client has closed its connection.
    """
    request_id = message.id if isinstance(message, Request) else UNSET
    error = rate_limit_error(seconds)
    headers = ((b"retry-after", b"%d" % ceil(seconds)),)
    await responses.send_error(
        send, 429, error.message, code=error.code, request_id=request_id, data=error.data, headers=headers
    )


class RateLimiter:
    """The buckets of all clients.

    Args:
        limit: The size of each bucket, and how fast it fills; None for no limit.
        clock: Returns monotonic seconds.
    """

    def __init__(self, limit: RateLimit | None, clock: Callable[[], float]) -> None:
        self._limit = limit
        self._clock = clock
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()  # tokens, and when; least recent first

    def wait_seconds(self, client: str, count: int) -> float:
        """Take *count* tokens of *client*, or all that a full bucket has; return 0, or how long it has to wait."""
        limit = self._limit
        if limit is None:
            return 0
        now = self._clock()
        needed = min(count, limit.burst)
        tokens, last = self._buckets.get(client, (limit.burst, now))
        tokens = min(limit.burst, tokens + (now - last) * limit.per_second)
        if tokens < needed:
            return (needed - tokens) / limit.per_second
        self._buckets[client] = tokens - needed, now
        self._buckets.move_to_end(client)
        if len(self._buckets) > _MAX_BUCKETS:
            self._buckets.popitem(last=False)
        return 0
