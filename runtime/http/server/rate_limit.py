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

from mcpgen.runtime.protocol.messages import Batch, Error, Request

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcpgen.runtime.http.server.client_address import Client
    from mcpgen.runtime.limits import RateLimit
    from mcpgen.runtime.protocol.messages import Malformed, Message

__all__ = ["RATE_LIMITED", "Bucket", "RateLimiter", "rate_limit_error"]

# JSON-RPC 2.0 reserves -32768 to -32000, of which MCP has taken codes in each revision (2026-07-28, basic/index, "Error
# Codes"). All other codes are free for applications; this one is the HTTP status.
RATE_LIMITED: Final = 429

_LIMITED_METHODS: Final = frozenset(("tools/call", "completion/complete"))

# Each takes about 250 bytes. More clients than that use their buckets more often than they fill.
_MAX_BUCKETS: Final = 20_000


def rate_limit_error(seconds: float) -> Error:
    """Return the error for a call that has to wait for *seconds*."""
    milliseconds = ceil(seconds * 1000)
    reason = f"too many calls of tools and completions (rate_limit); try again in {milliseconds} milliseconds"
    return Error(RATE_LIMITED, reason, {"retryAfterMs": milliseconds})


def _call_count(message: Message | Batch | Malformed) -> int:
    if isinstance(message, Batch):
        return sum(isinstance(each, Request) and each.method in _LIMITED_METHODS for each in message.items)
    return 0


class Bucket:
    """The tokens of one client.

    Attributes:
        full_at: When no token is missing any more.
        name: Whose they are, in all workers of a server; empty if only this one knows.
        settled_at: When no token is missing of those that other workers know of.
    """

    __slots__ = ("full_at", "name", "settled_at")

    def __init__(self, name: str = "") -> None:
        self.full_at: float = 0
        self.name: str = name
        self.settled_at: float = 0


class RateLimiter:
    """The buckets of all clients without a session; a session has its own.

    Args:
        limit: The size of each bucket, and how fast it fills.
        clock: Returns monotonic seconds.

    Attributes:
        used: The buckets with missing tokens, by name, which other workers share; None if there are none.
    """

    def __init__(self, limit: RateLimit, clock: Callable[[], float]) -> None:
        self._burst = limit.burst
        self._token_seconds = 1 / limit.per_second
        self._full_seconds = self._token_seconds * limit.burst
        # Half a token more, because sums of floats are not exact.
        self._max_seconds = self._token_seconds * (limit.burst + 0.5)
        self.used: dict[str, Bucket] | None = None
        self._clock = clock
        self._buckets: OrderedDict[str, Bucket] = OrderedDict()  # least recently used first

    def wait_seconds(self, message: Message | Batch | Malformed, client: Client, own: Bucket | None = None) -> float:
        """Take a token for each call in *message*.

        A batch of more calls than a full bucket has tokens is let through when the bucket is full. The tokens that it
        lacks are missing from the bucket afterwards.

        Args:
            message: Of the client.
            client: Whose tokens are taken.
            own: The bucket of its session, which counts if the client is not known.

        Returns:
            0; or how many seconds the client has to wait, and no token is taken.
        """
        if isinstance(message, Request):
            if message.method not in _LIMITED_METHODS:
                return 0
            seconds, excess = self._token_seconds, 0.0
        else:
            count = _call_count(message)
            if not count:
                return 0
            seconds = self._token_seconds * min(count, self._burst)
            excess = self._token_seconds * count - seconds
        bucket = self._bucket(client.owner) if own is None or client.is_known else own
        now, full_at = self._clock(), bucket.full_at
        if full_at < now:  # noqa: PLR1730 (`max` takes longer)
            full_at = now
        full_at += seconds
        if full_at - now > self._max_seconds:
            return full_at - now - self._full_seconds
        bucket.full_at = full_at + excess
        if self.used is not None and bucket.name:
            self.used[bucket.name] = bucket
        return 0

    def _bucket(self, owner: str) -> Bucket:
        found = self._buckets.get(owner)
        if found is not None:
            self._buckets.move_to_end(owner)
            return found
        found = self._buckets[owner] = Bucket(f"owner {owner}")
        if len(self._buckets) > _MAX_BUCKETS:
            self._buckets.popitem(last=False)
        return found
