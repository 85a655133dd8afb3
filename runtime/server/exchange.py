"""One request that is being served, from its arrival to its answer.

On most peers an exchange has one request. A stateless peer answers a question by sending its request again: then the
same exchange, with the same handler, goes on under another id, perhaps on another connection, and in between it has
none.

Spec:
    2026-07-28, basic/patterns/mrtr, "Basic Workflow".
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from msgspec import UNSET, Raw, Struct, UnsetType

from mcpgen.runtime.errors import UsageError

if TYPE_CHECKING:
    from mcpgen.runtime.protocol.capabilities import Peer
    from mcpgen.runtime.protocol.codec import IncomingRequestCodec
    from mcpgen.runtime.protocol.messages import RequestId
    from mcpgen.runtime.protocol.negotiation import RequestMeta
    from mcpgen.runtime.server.parked_requests import InputRound
    from mcpgen.runtime.server.server_requests import ServerRequest
    from mcpgen.runtime.server.server_session import ServerSession
    from mcpgen.runtime.server.tasks.running_task import RunningTask
    from mcpgen.runtime.transports.spawner import Handle

__all__ = ["Body", "Entry", "Exchange", "Origin"]


class Body(Struct, frozen=True):
    """What a request is answered with: the JSON of a result or of an error."""

    json: bytes
    is_error: bool = False


class Entry(Struct, frozen=True, kw_only=True, eq=False):
    """How one method is served to the peers of one revision.

    Attributes:
        method: Its name.
        codec: Makes values of home out of the peer's JSON, and the other way round; None where the engine answers.
        call: The handler, with middleware around it.
        may_ask: Whether its answer may be a demand for input (2026-07-28, basic/patterns/mrtr, "Supported Requests").
        short: The short way, where there is one: returns an entry of its own, with what its handler takes.
        long: In the entry of a short way: the entry that it cuts short.
        frame: Likewise: what stands before and after a text in the JSON of a result.
        is_alone: Likewise: whether the handler looks at no context, so that it can ask nothing and tell nothing.
    """

    method: str
    codec: IncomingRequestCodec
    call: Callable[[Any, Any], Awaitable[Any]]
    may_ask: bool = False
    short: Callable[[RequestMeta], tuple[Entry, Any] | None] | None = None
    long: Entry | None = None
    frame: tuple[bytes, bytes] | None = None
    is_alone: bool = False


class Origin(Struct, eq=False):
    """Where a request came from, and what it said about itself.

    Attributes:
        session: The peer's session, or the pipe of a stateless one.
        id: The id to answer.
        peer: Who asks, and what it can do.
        progress_token: What it wants progress to be reported under.
        log_level: What it wants to see of the log; UNSET: whatever its session says.
        batch: What gathers the answers, if it came in a batch.
        on_drop: Called when it is cancelled, where no handler serves it.
        via: What its answer goes over, where a connection has more than one way; the shell's own.
    """

    session: ServerSession
    id: RequestId
    peer: Peer
    progress_token: RequestId | UnsetType = UNSET
    log_level: str | UnsetType = UNSET
    batch: Any = None
    on_drop: Callable[[], None] | None = None
    via: Any = None


class Exchange(Struct, eq=False):
    """One request that is being served.

    Attributes:
        origin: The open request; None while the exchange waits for its client to come back.
        entry: How its method is served.
        params: Its params, as home has them.
        raw: Its params as they came.
        has_ended: It was answered for good, or cancelled.
        asks: The open questions of its handler, by key.
        asked: How often it has put each of its questions.
        answers: For a replay: what was answered before, by key.
        is_forgetful: Whether there were more answers than a state can hold, so that there can be no replay.
        round: The demand for input that the open request answers.
        early: The answer of a handler that ended while nobody was there to receive it.
        progress: The last progress that was told, so that it only ever grows.
        handle: What runs its handler.
        task: The task that its request became; then it is answered already, and what comes out is the task's.
    """

    origin: Origin | None
    entry: Entry
    params: Any
    raw: Raw | UnsetType
    has_ended: bool = False
    is_flushing: bool = False
    asks: dict[str, ServerRequest] = {}
    asked: dict[str, int] = {}
    answers: dict[str, Raw] = {}
    is_forgetful: bool = False
    round: InputRound | None = None
    rounds: int = 0
    early: Body | None = None
    progress: float | None = None
    handle: Handle | None = None
    task: RunningTask | None = None
    last_peer: Peer | None = None

    @property
    def peer(self) -> Peer:
        """Who asks; while nobody does, who asked last."""
        if self.origin is not None:
            return self.origin.peer
        if self.last_peer is None:  # cannot be: an exchange begins with an origin
            raise UsageError("nobody has asked")
        return self.last_peer
