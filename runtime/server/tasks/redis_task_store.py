"""A store of tasks in Redis or Valkey, which the processes of several machines can share.

Theory of operation. The methods of a `TaskStore` wait for Redis and for nothing else: each is one short script or
command, which takes some 0.2 ms on one machine. So Redis must be near. If it does not answer within `timeout_seconds`,
the store fails at once for a second, and does not make each request wait. Nothing is sent twice.
"""

from __future__ import annotations

import time
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

import msgspec

from mcpgen.runtime.errors import UsageError
from mcpgen.runtime.protocol.argument_checks import check_numbers, check_required_texts, check_texts
from mcpgen.runtime.server.tasks import redis_task_scripts as scripts
from mcpgen.runtime.server.tasks.memory_task_store import StoreBounds, counted_bytes
from mcpgen.runtime.server.tasks.task_store import StoreFailed, StoreFull, TaskRecord

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from mcpgen.runtime.server.tasks.task_store import Position

__all__ = ["RedisTaskStore"]

# The number is the version of what is stored.
_PREFIX: Final = "mcpgen:1:"

# After a failure, until Redis is asked again.
_PAUSE_SECONDS: Final = 1.0

# How long a task is kept after its expiry if no worker removes it. Also the largest difference of the workers' clocks.
_KEPT_MS: Final = 60 * 60 * 1000
_BEATS_KEPT_MS: Final = 24 * 60 * 60 * 1000

_MAX_TRIES: Final = 10

_encode: Final = msgspec.msgpack.Encoder().encode
_decode: Final = msgspec.msgpack.Decoder(TaskRecord).decode


class RedisTaskStore:
    """A `TaskStore` in Redis 7 or Valkey 7, for processes on any number of machines; it needs the extra ``redis``.

        server = Server("calculator", tasks=RedisTaskStore("redis://127.0.0.1:6379", name="calculator"))

    Anything that can write to this Redis can call functions as any user of the server.

    Args:
        url: As for `Redis`.
        name: The name of the server. Servers of other names share nothing with it.
        timeout_seconds: The time in which an operation must end. The server does nothing else in this time.
        max_tasks: The largest number of tasks of all owners together. An owner is a user, or else an address.
        max_tasks_per_principal: The largest number of tasks of one owner.
        max_outcome_bytes: The total size of all results, at most.
        max_outcome_bytes_per_principal: The total size of the results of one owner, at most.
        options: More options of redis-py's ``Redis.from_url``, such as ``ssl_ca_certs``.

    Raises:
        UsageError: The extra is not installed, or an argument is not valid.
    """

    def __init__(  # noqa: PLR0913 (each limit by its name)
        self,
        url: str,
        *,
        name: str,
        timeout_seconds: float = 0.25,
        max_tasks: int = 10_000,
        max_tasks_per_principal: int = 1000,
        max_outcome_bytes: int = 64 * 1024 * 1024,
        max_outcome_bytes_per_principal: int = 16 * 1024 * 1024,
        options: Mapping[str, Any] | None = None,
    ) -> None:
        check_numbers(timeout_seconds=timeout_seconds)
        check_required_texts(url=url)
        check_texts(name=name)
        if not timeout_seconds > 0:
            raise UsageError("`timeout_seconds` must be greater than 0")
        if not name:
            raise UsageError("`name` of RedisTaskStore(…) is empty; pass the name of the server")
        self._limits = (max_tasks, max_tasks_per_principal, max_outcome_bytes, max_outcome_bytes_per_principal)
        self._bounds = StoreBounds(*self._limits)
        try:
            library: Any = import_module("redis")
            self._errors: Any = import_module("redis.exceptions")
        except ImportError as error:
            missing = 'RedisTaskStore(…) needs redis, which is not installed: pip install "mcpgen[redis]"'
            raise UsageError(missing) from error
        own = {
            "socket_timeout": timeout_seconds,
            "socket_connect_timeout": timeout_seconds,
            "retry": import_module("redis.retry").Retry(import_module("redis.backoff").NoBackoff(), 0),
        }
        try:
            self._client: Any = library.Redis.from_url(url, **{**own, **(options or {})})
        except (ValueError, TypeError) as error:
            raise UsageError(f"`url` or `options` of RedisTaskStore(…) is not valid: {error}") from error
        self._prefix = f"{_PREFIX}{{{quote(name, safe=' ', errors='surrogatepass')}}}:tasks:"
        self._scripts: dict[str, Any] = {}
        self._failed_until = -1.0
        self._reason = ""

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._prefix!r}>"

    @property
    def is_shared(self) -> bool:
        """Whether several processes use it."""
        return True

    @property
    def count(self) -> int:
        """The number of stored tasks."""
        return int(self._do(lambda: self._client.zcard(f"{self._prefix}expiries")))

    def add(self, record: TaskRecord) -> None:
        """Store the record of a new task; see `TaskStore`."""
        said, *numbers = self._run(scripts.ADD, *self._described(record), *self._limits)
        if said == b"exists":
            raise UsageError(f"there is already a task with the id {record.task_id[:8]}…; give each task its own id")
        if said == b"count":
            exceeded = self._bounds.exceeded_count(*numbers)
            raise StoreFull(f"it has {exceeded[0] if exceeded else 'too many tasks'}")
        self._check(said, numbers)

    def get(self, task_id: str) -> TaskRecord | None:
        """Return the record of a task; see `TaskStore`."""
        found = self._stored(task_id)
        return None if found is None else self._decoded([found])[0]

    def briefs(self, task_ids: Sequence[str]) -> list[TaskRecord]:
        """Return the briefs of those tasks that exist, in one step."""
        return self._decoded(self._run(scripts.BRIEFS, *map(_bytes, task_ids))) if task_ids else []

    def replace(self, record: TaskRecord, *, before: TaskRecord | None = None) -> bool:
        """Replace the record that has the same `task_id`; see `TaskStore`."""
        for _ in range(_MAX_TRIES):
            expected = b""
            if before is not None:
                # Decoded, since another version of mcpgen may write other bytes for an equal record.
                found = self._stored(record.task_id)
                if found is None or self._decoded([found])[0] != before:
                    return False
                expected = found
            said, *numbers = self._run(scripts.REPLACE, *self._described(record), *self._limits[2:], expected)
            self._check(said, numbers)
            if said != b"changed":
                return bool(said == b"replaced")
        return False

    def remove(self, task_id: str) -> None:
        """Remove a task, if it exists."""
        self.remove_all([task_id])

    def remove_all(self, task_ids: Sequence[str]) -> None:
        """Remove those tasks that exist, in one step."""
        self._run(scripts.REMOVE, *map(_bytes, task_ids))

    def page(self, principal: str, *, after: Position | None, limit: int) -> list[TaskRecord]:
        """Return the briefs of tasks of *principal*, oldest first; see `TaskStore`."""
        least = b"-" if after is None else b"(" + _position(*after)
        return self._decoded(self._run(scripts.PAGE, _bytes(principal), least, limit))

    def expire(self, now_ms: int) -> list[TaskRecord]:
        """Remove the expired tasks, and return their briefs."""
        following = self.next_expiry_ms()
        if following is None or following > now_ms:  # usual, and faster
            return []
        return self._decoded(self._run(scripts.EXPIRE, now_ms))

    def next_expiry_ms(self) -> int | None:
        """Return the time at which the next task expires; None if there are no tasks."""
        found = self._do(lambda: self._client.zrange(f"{self._prefix}expiries", 0, 0, withscores=True))
        return int(found[0][1]) if found else None

    def beat(self, worker: str) -> Mapping[str, int]:
        """Count one beat of *worker*; see `TaskStore`."""
        removed, beats = self._run(scripts.BEAT, _bytes(worker), _BEATS_KEPT_MS)
        counted = {_text(name): int(count) for name, count in zip(beats[::2], beats[1::2], strict=True)}
        return {**{_text(name): 0 for name in removed}, **counted}

    def unfinished(self, worker: str) -> list[TaskRecord]:
        """Return the briefs of the tasks of *worker* that have not ended."""
        return self._decoded(self._run(scripts.UNFINISHED, _bytes(worker)))

    def remove_worker(self, worker: str) -> None:
        """Forget the beats of *worker*."""
        self._do(lambda: self._client.hdel(f"{self._prefix}workers", _bytes(worker)))

    def close(self) -> None:
        """Close the connections. The next use opens others."""
        self._client.close()

    def _described(self, record: TaskRecord) -> list[Any]:
        """Return the first arguments of `ADD` and `REPLACE`."""
        return [
            _bytes(record.task_id),
            _encode(record),
            _bytes(record.principal),
            _bytes(record.sharer),
            _bytes(record.worker),
            record.status,
            int(record.has_ended),
            counted_bytes(record),
            _position(*record.position),
            record.expires_ms,
            max(0, record.ttl_ms) + _KEPT_MS,
            _encode(record.brief()),
        ]

    def _check(self, said: bytes, numbers: Sequence[int]) -> None:
        if said == b"bytes":
            self._bounds.check_bytes(*numbers)

    def _stored(self, task_id: str) -> bytes | None:
        found: bytes | None = self._do(lambda: self._client.hget(f"{self._prefix}records", _bytes(task_id)))
        return found

    def _decoded(self, found: Sequence[bytes]) -> list[TaskRecord]:
        try:
            return [_decode(each) for each in found]
        except msgspec.MsgspecError as error:
            raise StoreFailed(f"Redis has a task that this version of mcpgen cannot read: {error}") from error

    def _run(self, script: str, *arguments: object) -> Any:
        registered = self._scripts.get(script)
        if registered is None:
            registered = self._scripts[script] = self._client.register_script(script)
        return self._do(lambda: registered(keys=[self._prefix], args=arguments))

    def _do(self, operate: Callable[[], Any]) -> Any:
        """Return what *operate* returns.

        Raises:
            StoreFailed: Redis does not answer, refuses, or did so in the last second.
        """
        if time.monotonic() < self._failed_until:
            raise StoreFailed(f"Redis could not be used a moment ago: {self._reason}")
        try:
            return operate()
        except (OSError, self._errors.RedisError) as error:
            self._failed_until = time.monotonic() + _PAUSE_SECONDS
            self._reason = str(error) or "it does not answer in time"
            raise StoreFailed(f"Redis cannot be used: {self._reason}") from error


def _bytes(name: str) -> bytes:
    return name.encode("utf-8", "surrogatepass")


def _text(name: bytes) -> str:
    return name.decode("utf-8", "surrogatepass")


def _position(created_ms: int, task_id: str) -> bytes:
    """Return text that is sorted as positions are; the id begins at its 22nd byte."""
    return b"%020d:%b" % (max(0, created_ms), _bytes(task_id))
