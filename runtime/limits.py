"""Bounds on what a peer can make us hold, do, or wait for. Each has a default, a name with its unit, and a reason.

`Limits` bounds a server, `HttpLimits` an HTTP application, `ClientLimits` a client, and `TaskLimits` the tasks of a
server. docs/guide/limits.md lists those that users set. Other bounds are constants or arguments beside their code:

* levels of nesting of a message: the recursion limit of the interpreter, about 1,000 in CPython 3.11;
* an output schema that a client checks, beside `MAX_SCHEMA_DEPTH`: `client/schema_cost.py`; how many are kept:
  `client/output_validation.py`;
* what a `requestState` carries: `server/request_state.py`;
* stored tasks: `server/tasks/task_store.py`; stored events: `http/server/event_store.py`;
* the head of an HTTP request, pipelining and idle connections: `http/server/uvicorn_limits.py`; the head of a response:
  `http/client/response_body.py`;
* reconnects of a client over HTTP: `http/client/post_requests.py` and `http/client/get_stream.py`;
* one stash: `adapt/stash.py`; remembered clients: `protocol/capabilities.py`.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct
from msgspec.structs import asdict

from mcpgen.runtime.errors import UsageError

__all__ = [
    "MAX_BATCH_LENGTH",
    "MAX_COMPLETION_VALUES",
    "MAX_FRAME_BYTES",
    "MAX_SCHEMA_DEPTH",
    "MAX_URI_CHARS",
    "ClientLimits",
    "HttpLimits",
    "Limits",
    "TaskLimits",
]

# MCP sets no limit; without one, a peer that never sends a newline fills our memory. 4 MiB is the python-sdk's default
# limit of a request body, so every message that its servers accept over HTTP fits.
MAX_FRAME_BYTES: Final = 4 * 1024 * 1024

# JSON-RPC sets no limit. Each message of a batch may start a handler, and a frame of 4 MiB holds 100,000 messages. A
# client that lists and calls needs a few dozen.
MAX_BATCH_LENGTH: Final = 1000

# Web servers commonly accept request lines of this length, and file systems no longer paths.
MAX_URI_CHARS: Final = 8192

# Spec: 2026-07-28, server/utilities/completion#completion-results; the same in every revision.
MAX_COMPLETION_VALUES: Final = 100

# The deepest nesting of an output schema that a client checks, as JSON. The validator itself reads 255 levels.
MAX_SCHEMA_DEPTH: Final = 100


class _Bounds(Struct, frozen=True, kw_only=True):
    def __post_init__(self) -> None:
        for name, value in asdict(self).items():
            may_be_zero = name == "grace_seconds"
            if not value >= 0 or (value == 0 and not may_be_zero):  # so written, nan is refused, too
                allowed = "0 or more" if may_be_zero else "a value greater than 0"
                raise UsageError(f"`{name}` of {type(self).__name__} is {value}; use {allowed}")


class Limits(_Bounds, frozen=True, kw_only=True):
    """Bounds on what one server holds for its peers.

    Attributes:
        max_frame_bytes: The longest message that is read.
        max_batch_length: The most messages in a batch (2025-03-26).
        max_in_flight: The most requests of one peer that are served at once. A host has a few, a gateway up to a
            thousand.
        max_in_flight_bytes: The size of the params of these requests; above it, new requests are refused.
        max_subscriptions: Limits two numbers: the resources that one connection is subscribed to, and its open
            subscription streams.
        max_waiting: The most handlers that wait for input from clients of 2026-07-28. Some never
            send it.
        max_waiting_bytes: The size of the requests of these handlers.
        waiting_seconds: The time that each of these handlers waits; after that, it is cancelled. People answer within
            minutes.
        answer_seconds: The time in which a client of 2024-11-05 to 2025-11-25 has to answer a request of the server.
        max_rounds: How often the handler of one request can ask its client for input; several requests at once count
            as one.
        max_buffered_bytes: The bytes that are buffered for a peer that does not read.
        grace_seconds: The time for running handlers to finish when the input has ended; hosts kill a server after a
            second or two.
    """

    max_frame_bytes: int = MAX_FRAME_BYTES
    max_batch_length: int = MAX_BATCH_LENGTH
    max_in_flight: int = 4096
    max_in_flight_bytes: int = 64 * 1024 * 1024
    max_subscriptions: int = 1000
    max_waiting: int = 1000
    max_waiting_bytes: int = 16 * 1024 * 1024
    waiting_seconds: float = 600
    answer_seconds: float = 600
    max_rounds: int = 32
    max_buffered_bytes: int = 1024 * 1024
    grace_seconds: float = 0.5


class HttpLimits(_Bounds, frozen=True, kw_only=True):
    """Bounds on what one HTTP application holds for all its clients together; `Limits` bounds each client.

    Attributes:
        max_sessions: The most sessions; each takes some kilobytes. At the limit, a new session replaces one whose
            client sent nothing after `initialize`; if there is none, it is refused.
        max_open: The most requests and streams that are open at once.
        max_open_bytes: The size of the bodies of these requests.
        idle_seconds: The time after which a session without messages and open streams ends.
        handshake_seconds: The time in which a client has to send its next message after `initialize`.
        body_seconds: The time in which a client has to send the rest of a body.
        stream_after_seconds: The time after which a response in a session becomes a stream, which the client can
            resume. A response that is lost before cannot be resumed.
        keep_alive_seconds: The time after which a comment is sent on a silent stream, because many proxies close it
            after 30 or 60 seconds.
        write_seconds: The time that the server waits for a client that does not read what was sent to it. Then the
            connection is closed.
        retry_seconds: The delay after which a client of a broken stream is told to reconnect.
        max_kept_messages: The most messages of one session that are kept until its client opens the stream for messages
            outside of requests (HTTP GET).
    """

    max_sessions: int = 10_000
    max_open: int = 10_000
    max_open_bytes: int = 256 * 1024 * 1024
    idle_seconds: float = 1800
    handshake_seconds: float = 60
    body_seconds: float = 30
    stream_after_seconds: float = 1
    keep_alive_seconds: float = 15
    write_seconds: float = 60
    retry_seconds: float = 1
    max_kept_messages: int = 100


class ClientLimits(_Bounds, frozen=True, kw_only=True):
    """Bounds on what one client holds for its server, and how long it waits for it.

    Attributes:
        max_frame_bytes: The longest message that is read.
        max_batch_length: The most messages in a batch (2025-03-26).
        max_in_flight: The most requests of a server that are handled at once. An honest server sends one question to
            the user at a time, and a few requests to the model.
        max_buffered_bytes: The bytes that are buffered for a server that does not read.
        max_rounds: The most `input_required` results of one request, one after the other.
        max_pages: The most pages of one list; a list without an end would never return.
        max_changes: The most unread changes of one subscription; equal ones count once.
        max_notices: The most other notifications, such as log entries, that wait for their handlers.
        max_notices_bytes: The size of these notifications.
        max_stderr_bytes: The bytes that are kept of the end of a server's standard error.
        call_seconds: The time that a request waits for its answer, or for progress; a call may set another.
        max_call_seconds: The time that a request waits in all, however much progress there is.
        probe_seconds: The time to wait for the reply that tells whether the server needs `initialize`. Without a reply,
            the client sends `initialize`.
        connect_seconds: The time until a server has to be ready; some are downloaded first.
        max_connections: The most concurrent requests to an HTTP server; others wait for their turn. Answers to the
            server's requests, and streams of subscriptions, do not count.
        open_seconds: The time to connect to an HTTP server, and to send each part of a request.
        stdin_seconds: The time in which a process has to exit when its input is closed.
        term_seconds: The time in which it has to exit after SIGTERM; after that, it is killed.
    """

    max_frame_bytes: int = MAX_FRAME_BYTES
    max_batch_length: int = MAX_BATCH_LENGTH
    max_in_flight: int = 100
    max_buffered_bytes: int = 1024 * 1024
    max_rounds: int = 32
    max_pages: int = 1000
    max_changes: int = 1000
    max_notices: int = 10_000
    max_notices_bytes: int = 16 * 1024 * 1024
    max_stderr_bytes: int = 64 * 1024
    call_seconds: float = 60
    max_call_seconds: float = 600
    probe_seconds: float = 3
    connect_seconds: float = 60
    max_connections: int = 100
    open_seconds: float = 15
    stdin_seconds: float = 2
    term_seconds: float = 2


class TaskLimits(Struct, frozen=True, kw_only=True):
    """Bounds on the lifetime and number of a server's tasks. Lifetimes count from creation, in milliseconds.

    Attributes:
        default_ttl_ms: The lifetime if the client asks for none: time to fetch a result after minutes of work.
        min_ttl_ms: The shortest lifetime; a task that expires before its first answer arrives is useless.
        max_ttl_ms: The longest lifetime: a day.
        poll_interval_ms: The interval at which a client is told to poll.
        page_size: The number of tasks in one page of ``tasks/list``.
        max_running: The most handlers that run as tasks.
        max_running_per_principal: The most of these for one client.
        max_waits_per_task: The most ``tasks/result`` requests that wait for one task; a client needs one.
    """

    default_ttl_ms: int = 10 * 60 * 1000
    min_ttl_ms: int = 1000
    max_ttl_ms: int = 24 * 60 * 60 * 1000
    poll_interval_ms: int = 1000
    page_size: int = 50
    max_running: int = 1000
    max_running_per_principal: int = 64
    max_waits_per_task: int = 16
