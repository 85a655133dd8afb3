"""Limits on what a peer can make us hold, do, or wait for. Each has a default, a name with its unit, and a reason.

`Limits` limits a server, `HttpLimits` an HTTP application, `ClientLimits` a client, `TaskLimits` the tasks of a server,
and `EventLimits` the events of a cluster. docs/guide/limits.md lists those that users set. Other limits are constants
or arguments beside their code:

* levels of nesting of a message: the recursion limit of the interpreter, about 1,000 in CPython 3.11;
* an output schema that a client checks, beside `MAX_SCHEMA_DEPTH`: `client/schema_cost.py`; how many are kept:
  `client/output_validation.py`;
* what a `requestState` carries: `server/request_state.py`;
* stored tasks: `server/tasks/task_store.py`; stored events: `server/event_store.py`;
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
    "MAX_COMPLETION_BYTES",
    "MAX_COMPLETION_VALUES",
    "MAX_CURSOR_CHARS",
    "MAX_DECLARATION_BYTES",
    "MAX_DECLARATION_VALUES",
    "MAX_FORM_FIELDS",
    "MAX_FRAME_BYTES",
    "MAX_ID_CHARS",
    "MAX_META_BYTES",
    "MAX_REQUEST_VALUES",
    "MAX_RESPONSE_VALUES",
    "MAX_SCHEMA_DEPTH",
    "MAX_THREADS",
    "MAX_URI_CHARS",
    "MAX_VALUES",
    "MAX_WIDE_URL_CHARS",
    "ClientLimits",
    "EventLimits",
    "HttpLimits",
    "Limits",
    "RateLimit",
    "TaskLimits",
]

# MCP sets no limit; without one, a peer that never sends a newline fills our memory. 4 MiB is the python-sdk's default
# limit of a request body, so every message that its servers accept over HTTP fits.
MAX_FRAME_BYTES: Final = 4 * 1024 * 1024

# JSON-RPC sets no limit. Each message of a batch may start a handler, and a frame of 4 MiB holds 100,000 messages. A
# client that lists and calls needs a few dozen.
MAX_BATCH_LENGTH: Final = 1000

# JSON-RPC sets no limit. Decoding takes longer for many small values than for many bytes. A message with this many
# occupies the event loop for at most 100 ms on a usual core, wherever its values are (docs/guide/limits.md), unless
# they become objects of large classes. A result may be a table of 5,000 rows with eight cells.
MAX_VALUES: Final = 50_000

# What a client sends becomes objects of the classes of a tool, which take the longest. A model writes no arguments of
# this many values. They can be a table of 2,000 rows with eight cells, or twelve embeddings of 1,536 numbers.
MAX_REQUEST_VALUES: Final = 20_000

# JSON-RPC sets no limit. A session keeps the ids and progress tokens of its open requests, and repeats them.
MAX_ID_CHARS: Final = 1024

# What `clientInfo` and `capabilities` hold together. A session keeps them, decoded. Clients declare about ten values,
# and an icon as a data URL takes some kilobytes.
MAX_DECLARATION_BYTES: Final = 64 * 1024
MAX_DECLARATION_VALUES: Final = 250

# The `_meta` of a request. A stateless client repeats its declaration there; traces and other metadata are small.
MAX_META_BYTES: Final = 128 * 1024

# Web servers commonly accept request lines of this length, and file systems no longer paths.
MAX_URI_CHARS: Final = 8192

# The request for the next page repeats the cursor, and each copy takes up to four bytes for a character. Servers write
# a number, an id, or a short document.
MAX_CURSOR_CHARS: Final = 64 * 1024

# A URL of a server that is not ASCII. To normalise its host takes a time that grows with the square of its combining
# marks: 2 ms for this length. The redirects of a hundred calls can arrive in one turn of the event loop.
MAX_WIDE_URL_CHARS: Final = 1024

# The `inputResponses` of a retry. Their types have no tags, so an answer takes 7 µs to decode, more than other values.
MAX_RESPONSE_VALUES: Final = 10_000

# The params of `completion/complete`, without `_meta`. A completion function may copy the value for each of its
# suggestions. The longest URI of a template, and a value of the same length, fit.
MAX_COMPLETION_BYTES: Final = 2 * MAX_URI_CHARS

# The fields of a form that a client shows. Fields are read one by one, to find out what kind each is: that takes 20 µs
# each. Forms for people have a few dozen.
MAX_FORM_FIELDS: Final = 500

# Spec: 2026-07-28, server/utilities/completion#completion-results; the same in every revision.
MAX_COMPLETION_VALUES: Final = 100

# Plain functions that run at once, in worker threads; anyio's default. Each thread takes some 100 kB, and CPython runs
# one at a time, so that more help only functions that wait.
MAX_THREADS: Final = 40

# The deepest nesting of an output schema that a client checks, as JSON. The validator itself reads 255 levels.
MAX_SCHEMA_DEPTH: Final = 100


class _Bounds(Struct, frozen=True, kw_only=True):
    def __post_init__(self) -> None:
        for name, value in asdict(self).items():
            if name == "rate_limit":
                if value is not None and not isinstance(value, RateLimit):
                    raise UsageError(
                        f"`{name}` of {type(self).__name__} must be a RateLimit, such as RateLimit(per_second=10, "
                        f"burst=50), or None, not {value!r}"
                    )
                continue
            if isinstance(value, bool) or not isinstance(value, int | float):
                raise UsageError(f"`{name}` of {type(self).__name__} must be a number, not {value!r}")
            if isinstance(value, float) and "second" not in name:
                raise UsageError(f"`{name}` of {type(self).__name__} must be a whole number, not {value!r}")
            may_be_zero = name == "grace_seconds"
            if not value >= 0 or (value == 0 and not may_be_zero):  # so written, nan is refused, too
                allowed = "0 or more" if may_be_zero else "a value greater than 0"
                raise UsageError(f"`{name}` of {type(self).__name__} is {value}; use {allowed}")


class Limits(_Bounds, frozen=True, kw_only=True):
    """Limits of one server. `max_waiting` and `max_waiting_bytes` are for all its clients together.

    The others are for each connection. Over HTTP, a connection is a session, or one request of 2026-07-28.

    Attributes:
        max_frame_bytes: The size of the longest message that the server reads.
        max_values: The largest number of values in a message: members of objects, and items of arrays. The server
            counts them before it decodes the message. A number with an exponent of three digits counts as 20, and each
            25 digits of a number as 4, because they take as long to decode.
        max_batch_length: The largest number of messages in a batch (2025-03-26).
        max_batch_bytes: The total size of the responses to a batch, at most. Each response that does not fit is
            replaced by an error.
        max_in_flight: The largest number of requests that are served at once. A host has a few, a gateway up to a
            thousand.
        max_in_flight_bytes: The memory that these requests and their handlers take until the handlers have ended, at
            most. Handlers of notifications, requests to the client, and the responses to batches that are not complete
            count too. Above it, new requests are refused.
            A request that is alone is served, however large it is.
        max_session_bytes: The memory that one session itself takes, at most: for the client's capabilities, and the
            URIs that it is subscribed to.
        max_declaration_bytes: The size of the client's `clientInfo` and `capabilities` together, at most.
        max_declaration_values: The largest number of values in them.
        max_meta_bytes: The size of the `_meta` of a request, at most.
        max_id_chars: The length of the id of a request, and of a progress token, at most.
        max_uri_chars: The length of a URI that a client subscribes to, or that a template reads, at most.
        max_completion_bytes: The size of the params of `completion/complete`, without `_meta`, at most.
        max_subscriptions: Limits two numbers: the resources that the client is subscribed to, and its open
            subscription streams.
        max_waiting: The largest number of handlers that wait for input from clients of 2026-07-28. A client may never
            send the input. At the limit, the user or address with the most handlers makes room for another: its oldest
            handler is cancelled.
        max_waiting_bytes: The memory that these handlers and their requests take, at most. Clients share it likewise.
        waiting_seconds: The time that such a handler waits. Then it is cancelled. People answer within minutes.
        answer_seconds: The time in which a client of 2024-11-05 to 2025-11-25 has to answer a request of the server.
        max_rounds: How often the handler of one request can ask its client for input. Several requests at once count
            as one.
        max_buffered_bytes: The largest number of bytes that are buffered while the client does not read.
        max_threads: The largest number of plain functions that run at once, each in a thread. Other calls wait. A
            function whose call was cancelled counts until it returns, because a thread cannot be stopped. Clients share
            it likewise: a function that waits for its client may have to give way.
        grace_seconds: The time that running handlers have to finish after the end of the input. Hosts kill a server
            after a second or two.
    """

    max_frame_bytes: int = MAX_FRAME_BYTES
    max_values: int = MAX_REQUEST_VALUES
    max_batch_length: int = MAX_BATCH_LENGTH
    max_batch_bytes: int = MAX_FRAME_BYTES
    max_in_flight: int = 4096
    max_in_flight_bytes: int = 64 * 1024 * 1024
    max_session_bytes: int = 512 * 1024
    max_declaration_bytes: int = MAX_DECLARATION_BYTES
    max_declaration_values: int = MAX_DECLARATION_VALUES
    max_meta_bytes: int = MAX_META_BYTES
    max_id_chars: int = MAX_ID_CHARS
    max_uri_chars: int = MAX_URI_CHARS
    max_completion_bytes: int = MAX_COMPLETION_BYTES
    max_subscriptions: int = 1000
    max_waiting: int = 1000
    max_waiting_bytes: int = 32 * 1024 * 1024
    waiting_seconds: float = 600
    answer_seconds: float = 600
    max_rounds: int = 32
    max_buffered_bytes: int = 1024 * 1024
    max_threads: int = MAX_THREADS
    grace_seconds: float = 0.5


class RateLimit(_Bounds, frozen=True, kw_only=True):
    """How many tools and completions one client may call; each client has a bucket of tokens.

    Attributes:
        per_second: How many tokens are added to the bucket each second.
        burst: How many tokens it holds.
    """

    per_second: float = 100
    burst: int = 1000


class HttpLimits(_Bounds, frozen=True, kw_only=True):
    """Limits of one HTTP application. `Limits` has the limits of its server.

    Attributes:
        max_sessions: The largest number of sessions of all clients. At the limit, a session of the client that has the
            most makes room: one that was never used, or else the one that was idle longest.
        max_sessions_bytes: What all sessions cost in memory, at most: what their clients declared, their subscriptions,
            and the messages that are kept for them.
        max_open: The largest number of requests and streams of all clients that are open at once, and of handlers whose
            clients have hung up.
        max_open_bytes: What these cost in memory, at most, with bodies that are still arriving.
        max_unread_bytes: The total size of what was written for clients that do not read it, at most;
            `max_buffered_bytes` of `Limits` bounds each response.
        idle_seconds: The time after which a session without messages and open streams ends.
        handshake_seconds: The time in which a client has to send its next message after `initialize`.
        body_seconds: The time in which a client has to send the rest of a body.
        stream_after_seconds: The time after which a response in a session becomes a stream. A client can resume the
            response only from then on.
        keep_alive_seconds: The time after which a comment is sent on a silent stream, because many proxies close it
            after 30 or 60 seconds.
        write_seconds: The time that the server waits for a client that does not read. Then the connection is closed.
        retry_seconds: The time that a client is told to wait before it reconnects to a broken stream.
        max_kept_messages: The largest number of messages that one session keeps while its client has no GET stream
            open.
        max_kept_bytes: The total size of these messages, at most.
        rate_limit: How many tools and completions one user may call, or one session, or one address of stateless
            clients; None for no limit.
    """

    max_sessions: int = 10_000
    max_sessions_bytes: int = 128 * 1024 * 1024
    max_open: int = 10_000
    max_open_bytes: int = 256 * 1024 * 1024
    max_unread_bytes: int = 96 * 1024 * 1024
    idle_seconds: float = 1800
    handshake_seconds: float = 60
    body_seconds: float = 30
    stream_after_seconds: float = 1
    keep_alive_seconds: float = 15
    write_seconds: float = 60
    retry_seconds: float = 1
    max_kept_messages: int = 100
    max_kept_bytes: int = 64 * 1024
    rate_limit: RateLimit | None = RateLimit()


class EventLimits(_Bounds, frozen=True, kw_only=True):
    """Limits on the events of streams that the workers of one server store together.

    Attributes:
        max_streams: The largest number of streams of all sessions together.
        max_events_per_stream: The largest number of messages of one stream.
        max_bytes: The total size of all messages, at most; each counts 320 bytes more than its own size.
        lifetime_seconds: The time that a stream is stored after its last message.
    """

    max_streams: int = 10_000
    max_events_per_stream: int = 1000
    max_bytes: int = 64 * 1024 * 1024
    lifetime_seconds: float = 600


class ClientLimits(_Bounds, frozen=True, kw_only=True):
    """Limits of one client: what it holds for its server, and how long it waits for the server.

    Attributes:
        max_frame_bytes: The size of the longest message that the client reads.
        max_values: The largest number of values in a message, as for a server.
        max_batch_length: The largest number of messages in a batch (2025-03-26).
        max_batch_bytes: The total size of the results in the responses to a batch, at most. A result that does not fit
            is replaced by an error.
        max_in_flight: The largest number of requests of the server that are handled at once. An honest server sends
            one question to the user at a time, and a few requests to the model.
        max_in_flight_bytes: The total size of the ids and params of these requests. The client refuses more.
        max_buffered_bytes: The largest number of bytes that are buffered while the server does not read.
        max_rounds: The largest number of `input_required` results of one request, one after the other.
        max_pauses: The largest number of requests of the server that pause the time limit of one request of the client.
            The limit pauses while the handler of the server's request runs, because it may be asking a person.
        max_pages: The largest number of pages of one list. A server could send pages without end.
        max_items: The largest number of items of one list. The rest is left out, and the log says so.
        max_list_bytes: The total size of the pages of one list.
        max_cached_bytes: The total size of the results that the client keeps, if it keeps any.
        max_changes: The largest number of unread changes of one subscription, whose URIs may have 1,024 characters on
            average. Equal ones count once.
        max_notices: The largest number of notifications, such as log entries, that wait for their handlers. Changes
            do not count.
        max_notices_bytes: The total size of these notifications, at most.
        max_stderr_bytes: The number of bytes that are kept of the server's standard error: the last ones.
        call_seconds: The time that a request waits for its answer. Each progress notification restarts it. A call can
            set another time.
        max_call_seconds: The time that a request waits in all, even if there is progress.
        probe_seconds: The time that the client waits for the reply to its first request (`server/discover`), which
            shows whether the server needs `initialize`. Without a reply, the client sends `initialize`.
        connect_seconds: The time in which the server has to be ready. A command such as npx downloads the server first.
        max_connections: The largest number of concurrent requests to an HTTP server. Others wait for their turn.
            Answers to the server's requests, and streams of subscriptions, do not count.
        open_seconds: The time to connect to an HTTP server, and to send each part of a request.
        stdin_seconds: The time in which the server's process has to exit after its input is closed. Then it gets
            SIGTERM.
        term_seconds: The time in which the process has to exit after SIGTERM. Then it is killed.
    """

    max_frame_bytes: int = MAX_FRAME_BYTES
    max_values: int = MAX_VALUES
    max_batch_length: int = MAX_BATCH_LENGTH
    max_batch_bytes: int = MAX_FRAME_BYTES
    max_in_flight: int = 100
    max_in_flight_bytes: int = 16 * 1024 * 1024
    max_buffered_bytes: int = 1024 * 1024
    max_rounds: int = 32
    max_pauses: int = 1000
    max_pages: int = 1000
    max_items: int = 100_000
    max_list_bytes: int = 64 * 1024 * 1024
    max_cached_bytes: int = 16 * 1024 * 1024
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


class TaskLimits(_Bounds, frozen=True, kw_only=True):
    """Limits on the lifetime and number of a server's tasks. Lifetimes count from creation, in milliseconds.

    Attributes:
        default_ttl_ms: The lifetime if the client asks for none: enough to fetch a result after minutes of work.
        min_ttl_ms: The shortest lifetime. A task that expires before its first answer arrives is useless.
        max_ttl_ms: The longest lifetime: a day.
        poll_interval_ms: The interval at which a client is told to poll.
        page_size: The number of tasks in one page of ``tasks/list``.
        max_running: The largest number of handlers that run as tasks.
        max_running_per_principal: The largest number of these for one client.
        max_running_bytes: The bytes of memory that the requests of these handlers take. A request that is alone may
            take more.
        max_running_bytes_per_principal: The bytes that those of one client take.
        max_waits_per_task: The largest number of ``tasks/result`` requests that wait for one task. A client needs one.
        lease_seconds: The time after which a process that shares the store and gives no sign of life has died. Another
            process then takes over its tasks.
    """

    default_ttl_ms: int = 10 * 60 * 1000
    min_ttl_ms: int = 1000
    max_ttl_ms: int = 24 * 60 * 60 * 1000
    poll_interval_ms: int = 1000
    page_size: int = 50
    max_running: int = 1000
    max_running_per_principal: int = 64
    max_running_bytes: int = 64 * 1024 * 1024
    max_running_bytes_per_principal: int = 16 * 1024 * 1024
    max_waits_per_task: int = 16
    lease_seconds: float = 15

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.min_ttl_ms > self.max_ttl_ms:
            raise UsageError(
                f"`min_ttl_ms` of TaskLimits is {self.min_ttl_ms}, more than `max_ttl_ms` ({self.max_ttl_ms}); "
                "change one of them"
            )
