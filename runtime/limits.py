"""How much a peer may ask of us at once, and how long we wait for it; each bound has a default and a reason."""

from __future__ import annotations

from typing import Final

from msgspec import Struct
from msgspec.structs import asdict

from mcpgen.runtime.errors import UsageError

__all__ = [
    "MAX_BATCH_LENGTH",
    "MAX_COMPLETION_VALUES",
    "MAX_FRAME_BYTES",
    "MAX_URI_CHARS",
    "ClientLimits",
    "HttpLimits",
    "Limits",
]

# MCP sets no ceiling; without one, a peer that never sends a newline fills our memory. 4 MiB is the python-sdk's
# default request-body limit, so what its servers accept over HTTP fits here too.
MAX_FRAME_BYTES: Final = 4 * 1024 * 1024

# JSON-RPC sets no ceiling, and each message of a batch may start work of its own, while a frame of 4 MiB holds a
# hundred thousand of them. A client that lists and calls needs a few dozen.
MAX_BATCH_LENGTH: Final = 1000

# Web servers commonly accept request lines of this length, and file systems no longer paths.
MAX_URI_CHARS: Final = 8192

# Spec: 2026-07-28, server/utilities/completion#completion-results; the same in every revision.
MAX_COMPLETION_VALUES: Final = 100


class Limits(Struct, frozen=True, kw_only=True):
    """Bounds on what one server holds for its peers.

    Attributes:
        max_frame_bytes: The longest message that is read.
        max_batch_length: The most messages in a batch (2025-03-26).
        max_in_flight: The most requests of one peer that are served at once; a host runs a few, a gateway a thousand.
        max_in_flight_bytes: How much the params of those may hold; what comes then is refused until some are served.
        max_subscriptions: The most resources that one session watches, and the most open streams of a connection.
        max_waiting: The most handlers that wait for an answer of a stateless peer, which may never come.
        max_waiting_bytes: The most that the requests behind them hold.
        waiting_seconds: How long each of them waits. People answer within minutes; a form that took longer is sent
            anew.
        answer_seconds: How long a handshake peer may take to answer a request of ours.
        max_rounds: How often one request may demand input, one demand after the other.
        max_buffered_bytes: How much is written ahead of a peer that does not read.
        grace_seconds: How long running handlers may go on when the input has ended; hosts wait a second or two before
            they kill a server.
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

    def __post_init__(self) -> None:
        _check(self, may_be_zero="grace_seconds")


class HttpLimits(Struct, frozen=True, kw_only=True):
    """Bounds on what one HTTP application holds for all its clients; `Limits` bounds what each may ask for.

    Attributes:
        max_sessions: The most sessions; each takes some kilobytes. When there are so many, one whose client never came
            back after `initialize` makes room, and otherwise no other begins.
        max_open: The most requests and streams that are open at once.
        max_open_bytes: How much the bodies of those requests may hold.
        idle_seconds: How long a session may be silent, with no stream open, before it ends.
        handshake_seconds: How long a client may take to come back after `initialize`.
        body_seconds: How long a client may take to send the rest of a body.
        stream_after_seconds: How long the answer in a session may take before a stream is begun, on which it can come
            later. What is lost before cannot be had again.
        keep_alive_seconds: How long a stream is silent before a comment is sent, so that nobody in between takes it for
            dead; many do so after 30 seconds or a minute.
        write_seconds: How long a client may read nothing while there is something to read.
        retry_seconds: When a client of a stream that broke is to come back.
        max_kept_messages: The most messages that wait for a session's own stream to be opened.
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

    def __post_init__(self) -> None:
        _check(self)


class ClientLimits(Struct, frozen=True, kw_only=True):
    """Bounds on what one client holds for its server, and how long it waits for it.

    Attributes:
        max_frame_bytes: The longest message that is read.
        max_batch_length: The most messages in a batch (2025-03-26).
        max_in_flight: The most requests of a server that are answered at once; an honest one asks a user one thing at a
            time, and a model a few.
        max_buffered_bytes: How much is written ahead of a server that does not read.
        max_rounds: How often one request may be answered with a demand for input, one after the other.
        max_pages: The most pages of one list; a server that always has another page would never end.
        max_changes: The most changes that wait to be looked at on one stream; those that are equal count once.
        max_notices: The most other notifications that wait for their handlers, such as log entries.
        max_notices_bytes: How much they may hold.
        max_stderr_bytes: How much is kept of what a server prints as errors: the last of it.
        call_seconds: How long a request waits for its answer, or for progress, unless the call says otherwise.
        max_call_seconds: How long it waits in all, however much progress is told.
        probe_seconds: How long a server may take to say which era it is of, before it is taken for an old one.
        connect_seconds: How long it may take in all until it can be used; some are downloaded first.
        max_connections: The most requests to an HTTP server that are on their way at once; others wait for their turn.
            What the server asked us is answered all the same, and streams of changes do not count.
        open_seconds: How long a connection to an HTTP server may take to be made, and a part of a request to be sent.
        stdin_seconds: How long a process may take to exit when its input is closed.
        term_seconds: How long it may take when it was then told to terminate; after that it is killed.
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

    def __post_init__(self) -> None:
        _check(self)


def _check(limits: Struct, may_be_zero: str = "") -> None:
    for name, value in asdict(limits).items():
        if not value >= 0 or (value == 0 and name != may_be_zero):  # so written, nan is refused, too
            raise UsageError(f"{name} is {value}; it has to be more than 0")
