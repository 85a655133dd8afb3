"""A cluster in Redis or Valkey, through redis-py.

Theory of operation. A record is a hash with an expiry. A change is one Lua script, so it is one step for all workers.
Events are in Redis Streams: see `mcpgen.runtime.server.cluster.redis_events`.
Messages use pub/sub, on a connection of their own. Nothing is sent twice: redis-py would repeat a command whose
connection broke, and Redis may have carried it out already.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Mapping
from contextlib import suppress
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, cast

import anyio

from mcpgen.runtime.errors import UsageError
from mcpgen.runtime.limits import EventLimits
from mcpgen.runtime.protocol.argument_checks import check_numbers, check_whole_numbers
from mcpgen.runtime.server.cluster.cluster import ClusterUnavailable
from mcpgen.runtime.server.cluster.fair_gate import FairGate
from mcpgen.runtime.server.cluster.redis_events import ADD_EVENTS, EVENTS_AFTER, REMOVE_EVENTS, limits_as_arguments
from mcpgen.runtime.transports.spawner import is_asyncio

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence

    from mcpgen.runtime.server.cluster.cluster import Event

__all__ = ["Redis"]

# How much of a stream Redis returns at once. It does nothing else meanwhile, and a stream may have 64 MiB.
_EVENTS_BYTES: Final = 1024 * 1024

# Of all keys and channels; the number is the version of what is stored.
_PREFIX: Final = "mcpgen:1:"

_CREATE: Final = """
if redis.call('EXISTS', KEYS[1]) == 1 then return 0 end
for i = 2, #ARGV, 2 do redis.call('HSET', KEYS[1], ARGV[i], ARGV[i + 1]) end
redis.call('PEXPIRE', KEYS[1], ARGV[1])
return 1
"""

# ARGV: the lifetime or an empty text; a channel or an empty text, and a message; the number of expected fields, and
# these; the number of new fields, and these; the names of the fields to remove.
_CHANGE: Final = """
if redis.call('EXISTS', KEYS[1]) == 0 then return 0 end
local at = 4
local last = at + 2 * tonumber(ARGV[at])
for i = at + 1, last, 2 do
  if redis.call('HGET', KEYS[1], ARGV[i]) ~= ARGV[i + 1] then return 0 end
end
at = last + 1
last = at + 2 * tonumber(ARGV[at])
for i = at + 1, last, 2 do redis.call('HSET', KEYS[1], ARGV[i], ARGV[i + 1]) end
for i = last + 1, #ARGV do redis.call('HDEL', KEYS[1], ARGV[i]) end
if ARGV[1] ~= '' then redis.call('PEXPIRE', KEYS[1], ARGV[1]) end
if ARGV[2] ~= '' then redis.call('PUBLISH', ARGV[2], ARGV[3]) end
return 1
"""

# ARGV: a channel or an empty text, and a message.
_REMOVE: Final = """
local count = redis.call('DEL', KEYS[1])
if ARGV[1] ~= '' then redis.call('PUBLISH', ARGV[1], ARGV[2]) end
return count
"""

# KEYS: the levels. ARGV: what is added to each, in milliseconds. A key has the time at which its level is 0.
_RAISE: Final = """
local time = redis.call('TIME')
local now = time[1] * 1000 + time[2] / 1000
local levels = {}
for i, key in ipairs(KEYS) do
  local empty_at = math.max(now, tonumber(redis.call('GET', key) or 0)) + ARGV[i]
  if empty_at > now then
    redis.call('SET', key, string.format('%.3f', empty_at), 'PX', math.ceil(empty_at - now))
  end
  levels[i] = string.format('%.3f', empty_at - now)
end
return levels
"""


class Redis:
    """A `Cluster` in Redis 7 or Valkey 7; it needs the extra ``redis``, and asyncio.

        app = server.asgi(cluster=Redis("redis://127.0.0.1:6379"))

    Anything that can write to this Redis can act as any user of the server. So give it a password, and use
    ``rediss://`` (TLS) between machines.

    Args:
        url: ``redis://user:password@host:port/database``; ``rediss://`` for TLS, ``unix://`` for a socket.
        timeout_seconds: The time in which an operation must end. A request that needs Redis gets 503 after it.
        max_connections: The largest number of connections of this process, beside the one for messages.
        event_limits: Limits on the events of streams that are stored for clients whose streams break.
        options: More options of redis-py's ``Redis.from_url``, such as ``ssl_ca_certs``.

    Raises:
        UsageError: The extra is not installed, or an argument is not valid.
    """

    def __init__(
        self,
        url: str,
        *,
        timeout_seconds: float = 2,
        max_connections: int = 32,
        event_limits: EventLimits | None = None,
        options: Mapping[str, Any] | None = None,
    ) -> None:
        check_numbers(timeout_seconds=timeout_seconds)
        check_whole_numbers(max_connections=max_connections)
        if not isinstance(cast("object", event_limits), EventLimits | None):
            raise UsageError(
                f"`event_limits` must be an EventLimits, such as EventLimits(max_streams=100), not {event_limits!r}"
            )
        if not isinstance(cast("object", options), Mapping | None):
            raise UsageError(f"`options` must be a mapping, such as {{'ssl_ca_certs': 'ca.pem'}}, not {options!r}")
        if not timeout_seconds > 0 or max_connections < 1:
            raise UsageError("`timeout_seconds` must be greater than 0, and `max_connections` at least 1")
        try:
            self._library: Any = import_module("redis.asyncio")
            self._errors: Any = import_module("redis.exceptions")
        except ImportError as error:
            raise UsageError('Redis(…) needs redis, which is not installed: pip install "mcpgen[redis]"') from error
        self._timeout = timeout_seconds
        self._options: dict[str, Any] = {
            "max_connections": max_connections,
            "timeout": timeout_seconds,
            "socket_timeout": timeout_seconds,
            "socket_connect_timeout": timeout_seconds,
            "retry": import_module("redis.asyncio.retry").Retry(import_module("redis.backoff").NoBackoff(), 0),
            **(options or {}),
        }
        given: Any = url
        if not isinstance(given, str):
            raise UsageError(f"`url` must be a string, such as 'redis://127.0.0.1:6379', not {given!r}")
        self._url = url
        try:
            self._library.BlockingConnectionPool.from_url(url, **self._options)
        except (ValueError, TypeError) as error:
            raise UsageError(f"`url` or `options` of Redis(…) is not valid: {error}") from error
        self._loop: asyncio.AbstractEventLoop | None = None
        self._users = 0
        self._client: Any = None
        self._gate = FairGate(1)
        self._stream_gate = FairGate(1)
        self._event_limits = limits_as_arguments(EventLimits() if event_limits is None else event_limits)
        self._create: Any = None
        self._change: Any = None
        self._remove: Any = None
        self._add_events: Any = None
        self._events_after: Any = None
        self._remove_events: Any = None
        self._raise: Any = None

    async def open(self) -> None:
        """Prepare for the event loop that runs now; see `Cluster`.

        Raises:
            UsageError: It is not asyncio's.
        """
        if not is_asyncio():
            raise UsageError("Redis(…) needs asyncio; use MemoryCluster() in tests on trio")
        loop = asyncio.get_running_loop()
        self._users += 1
        if self._loop is loop:
            return
        self._users = 1  # others were of an event loop that has ended
        self._loop = loop
        # One connection is the listener's. Those that wait for a connection itself would be served in order of arrival.
        self._gate = FairGate(max(1, self._options["max_connections"] - 1))
        self._stream_gate = FairGate(1)  # or one client would fill the memory with the streams that it resumes at once
        pool = self._library.BlockingConnectionPool.from_url(self._url, **self._options)
        self._client = self._library.Redis(connection_pool=pool)
        self._create = self._client.register_script(_CREATE)
        self._change = self._client.register_script(_CHANGE)
        self._remove = self._client.register_script(_REMOVE)
        self._add_events = self._client.register_script(ADD_EVENTS)
        self._events_after = self._client.register_script(EVENTS_AFTER)
        self._remove_events = self._client.register_script(REMOVE_EVENTS)
        self._raise = self._client.register_script(_RAISE)

    async def close(self) -> None:
        """End the connections of this process; see `Cluster`."""
        self._users -= 1
        if self._users:
            return
        self._loop = None
        await self._disconnect(self._client)

    async def listen(
        self, channels: Sequence[str], *, subscribed: Callable[[], None], received: Callable[[bytes], None]
    ) -> None:
        """Listen until the connection breaks; see `Cluster`."""
        listener = self._client.pubsub()
        try:
            await self._do(listener.subscribe(*(_PREFIX + each for each in channels)))
            confirmed = 0
            while True:
                message = await listener.get_message(timeout=None)
                if message is None:
                    continue
                if message["type"] == "subscribe":  # also after redis-py has connected again by itself
                    confirmed += 1
                    if confirmed % len(channels) == 0:
                        subscribed()
                elif message["type"] == "message":
                    received(message["data"])
        except (OSError, self._errors.RedisError, TimeoutError) as error:
            raise ClusterUnavailable(_reason(error)) from error
        finally:
            await listener.aclose()

    async def send(self, channel: str, message: bytes) -> int:
        """Send a message; see `Cluster`."""
        return int(await self._do(self._client.publish(_PREFIX + channel, message)))

    async def create(self, key: str, fields: Mapping[str, bytes], seconds: float) -> bool:
        """Store a new record; see `Cluster`."""
        arguments: list[Any] = [_milliseconds(seconds), *_flat(fields)]
        return bool(await self._do(self._create(keys=[_PREFIX + key], args=arguments)))

    async def read(self, key: str) -> dict[str, bytes]:
        """Return the fields of a record; see `Cluster`."""
        found: dict[bytes, bytes] = await self._do(self._client.hgetall(_PREFIX + key))
        return {name.decode("utf-8", "surrogatepass"): value for name, value in found.items()}

    async def change(
        self,
        key: str,
        fields: Mapping[str, bytes | None],
        *,
        expected: Mapping[str, bytes] | None = None,
        seconds: float | None = None,
        announced: tuple[str, bytes] | None = None,
    ) -> bool:
        """Change fields of a record; see `Cluster`."""
        new = {name: value for name, value in fields.items() if value is not None}
        removed = [_name(name) for name, value in fields.items() if value is None]
        expected = expected or {}
        lifetime: Any = "" if seconds is None else _milliseconds(seconds)
        fixed = [lifetime, *_message(announced), len(expected), *_flat(expected), len(new), *_flat(new)]
        return bool(await self._do(self._change(keys=[_PREFIX + key], args=[*fixed, *removed])))

    async def remove(self, key: str, *, announced: tuple[str, bytes] | None = None) -> bool:
        """Remove a record; see `Cluster`."""
        return bool(await self._do(self._remove(keys=[_PREFIX + key], args=_message(announced))))

    async def keep(self, keys: Iterable[str], seconds: float) -> None:
        """Let records live for longer; see `Cluster`."""
        pipeline = self._client.pipeline(transaction=False)
        for each in keys:
            pipeline.pexpire(_PREFIX + each, _milliseconds(seconds))
        await self._do(pipeline.execute())

    async def add_events(self, key: str, events: Sequence[Event]) -> None:
        """Store events; see `Cluster`."""
        arguments = [*self._event_limits, *(part for each in events for part in each)]
        await self._do(self._add_events(keys=[f"{_PREFIX}{key}:"], args=arguments))

    async def events_after(self, key: str, stream: str, number: int) -> list[tuple[int, bytes]] | None:
        """Return the events after *number*; see `Cluster`."""
        read = self._read_events(f"{_PREFIX}{key}:", stream, number)
        found: list[tuple[int, bytes]] | None = await self._limited(read)
        return found

    async def _read_events(self, key: str, stream: str, number: int) -> list[tuple[int, bytes]] | None:
        """Return the events after *number*, which are read in several steps."""
        events: list[tuple[int, bytes]] = []
        async with self._stream_gate:
            while True:
                arguments = [stream, events[-1][0] if events else number, _EVENTS_BYTES]
                found = await self._do(self._events_after(keys=[key], args=arguments))
                if found is None:
                    return None
                if not found:
                    return events
                events += [(int(name.partition(b"-")[0]), fields[1]) for name, fields in found]

    async def remove_events(self, key: str, streams: Sequence[str]) -> None:
        """Remove the events of *streams*; see `Cluster`."""
        await self._do(self._remove_events(keys=[f"{_PREFIX}{key}:"], args=list(streams)))

    async def raise_levels(self, key: str, amounts: Mapping[str, float]) -> dict[str, float]:
        """Add to levels; see `Cluster`."""
        keys = [_name(f"{_PREFIX}{key}:{name}") for name in amounts]
        found = await self._do(self._raise(keys=keys, args=[amount * 1000 for amount in amounts.values()]))
        return {name: float(level) / 1000 for name, level in zip(amounts, found, strict=True)}

    async def _do(self, operation: Coroutine[Any, Any, Any]) -> Any:
        """Return the result of *operation* within the time limit.

        Raises:
            ClusterUnavailable: It failed, or takes too long; or the connections have ended, and it would open another.
        """
        return await self._limited(self._in_turn(operation))

    async def _in_turn(self, operation: Coroutine[Any, Any, Any]) -> Any:
        client = self._client
        try:
            async with self._gate:
                if self._loop is None:
                    raise ClusterUnavailable("this worker has left it")
                return await operation
        finally:
            operation.close()  # it has not begun if its time was over before its turn
            if self._loop is None or client is not self._client:  # it may have connected after `close`
                await self._disconnect(client)

    async def _disconnect(self, client: Any) -> None:
        """End the connections of *client*, also if this is cancelled."""
        with suppress(ClusterUnavailable), anyio.CancelScope(shield=True):  # then nothing is left to end
            await self._limited(client.connection_pool.disconnect())

    async def _limited(self, operation: Awaitable[Any]) -> Any:
        try:
            async with asyncio.timeout(self._timeout):
                return await operation
        except (OSError, self._errors.RedisError, TimeoutError) as error:
            raise ClusterUnavailable(_reason(error)) from error


def _reason(error: Exception) -> str:
    return str(error) or "Redis does not answer in time"


def _message(announced: tuple[str, bytes] | None) -> tuple[str, bytes]:
    return ("", b"") if announced is None else (_PREFIX + announced[0], announced[1])


def _milliseconds(seconds: float) -> int:
    return max(1, math.ceil(seconds * 1000))


def _name(field: str) -> bytes:
    return field.encode("utf-8", "surrogatepass")  # a URI that a client subscribes to may have a lone surrogate


def _flat(fields: Mapping[str, bytes]) -> list[bytes]:
    return [part for name, value in fields.items() for part in (_name(name), value)]
