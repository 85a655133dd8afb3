"""A question that a server has put to its client: sent as a request, or inside a demand for input.

Spec:
    2024-11-05 to 2025-11-25, client/roots, client/sampling, client/elicitation; 2026-07-28, basic/patterns/mrtr.

How a server asks its client something: by a request of its own, or by a demand for input and a retry.

To a handshake peer a question goes at once, as a request, and its answer comes back under its id. A stateless peer
cannot be sent requests: what it is asked is gathered, and becomes a demand for input
(`mcpgen.runtime.server.input_required`).

Spec:
    2024-11-05 to 2025-11-25, client/roots, client/sampling, client/elicitation; 2026-07-28, basic/patterns/mrtr.
"""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import UNSET, Raw, UnsetType

from mcpgen.runtime.adapt.json_pointer import is_object
from mcpgen.runtime.errors import (
    AdaptationError,
    InvalidPayload,
    RequestError,
    RequestRefused,
    TransportClosed,
    UnknownMethod,
    UnsupportedByPeer,
)
from mcpgen.runtime.protocol import envelope
from mcpgen.runtime.protocol.capabilities import lacking
from mcpgen.runtime.protocol.codec import codec
from mcpgen.runtime.protocol.messages import Code

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcpgen.runtime.protocol.capabilities import Peer
    from mcpgen.runtime.protocol.codec import OutgoingRequestCodec
    from mcpgen.runtime.protocol.messages import ErrorResponse
    from mcpgen.runtime.server.exchange import Exchange
    from mcpgen.runtime.server.server_session import ServerSession
    from mcpgen.runtime.server.tasks.running_task import RunningTask

__all__ = [
    "ServerRequest",
    "abandon_request",
    "send_request",
    "flush_soon",
    "require_capability",
    "take_response",
    "abandon_all",
]


class ServerRequest:
    """A question, and its answer as soon as there is one.

    Attributes:
        codec: Makes a value of home out of the answer.
        params: What the client is asked, in the terms of its revision.
        value: What the handler wanted to be sent, in the terms of home.
        on_settled: Called once, when there is an answer or none will come.
        key: What names it among those of its exchange.
    """

    __slots__ = ("_failure", "_is_settled", "_result", "codec", "key", "on_settled", "params", "value")

    def __init__(self, codec: OutgoingRequestCodec, params: bytes | UnsetType, value: Any) -> None:
        self.codec: OutgoingRequestCodec = codec
        self.params: bytes | UnsetType = params
        self.value: Any = value
        self.on_settled: Callable[[], None] | None = None
        self.key: str = ""
        self._is_settled = False
        self._result: Any = None
        self._failure: Exception | None = None

    @property
    def is_settled(self) -> bool:
        """Whether there is an answer, or none will come."""
        return self._is_settled

    @property
    def digest(self) -> str:
        """What tells this question from another one at the same place."""
        params = b"" if isinstance(self.params, UnsetType) else self.params
        return sha256(self.codec.method.encode() + b"\0" + params).hexdigest()

    def read(self, raw: Raw) -> Any:
        """Return the client's result as home has it.

        Raises:
            InvalidPayload: The client's revision does not allow it.
        """
        return _several(self.value, self.codec.result(raw))

    def settle(self, result: Any) -> None:
        """Take *result*, which `read` returned, for the answer."""
        self._result = result
        self._done()

    def refuse(self, response: ErrorResponse) -> None:
        """Take an error response for the answer."""
        self.fail(RequestRefused(self.codec.method, self.codec.error(response)))

    def fail(self, failure: Exception) -> None:
        """Take it that there will be no answer, because of *failure*."""
        self._failure = failure
        self._done()

    def outcome(self) -> Any:
        """Return the answer.

        Raises:
            RequestRefused: The client answered with an error.
            InvalidPayload: It answered with something else than its revision allows.
            UnsupportedByPeer: The client that came back cannot be asked any more.
            TransportClosed: It has gone.
        """
        if self._failure is not None:
            raise self._failure
        return self._result

    def _done(self) -> None:
        if self._is_settled:
            return
        self._is_settled = True
        if self.on_settled is not None:
            self.on_settled()

    def leave(self) -> None:
        """Take it that there is nobody left to answer."""
        self.fail(TransportClosed("the client has gone before it answered"))


def _several(asked: Any, result: Any) -> Any:
    """Return *result* with a list wherever a choice of several was asked for.

    Before 2025-11-25 forms have no such choice: the adapter offers one of the options, and a string comes back.

    Spec:
        2025-11-25, client/elicitation, "Supported Schema Types" (multi-select enums are new).
    """
    content = getattr(result, "content", UNSET)
    schema = getattr(asked, "requested_schema", None)
    if not is_object(content) or schema is None:
        return result
    properties: dict[str, Any] = msgspec.to_builtins(schema).get("properties", {})
    given: dict[str, Any] = content
    wrapped = {
        name: [answer] if isinstance(answer, str) and properties.get(name, {}).get("type") == "array" else answer
        for name, answer in given.items()
    }
    return result if wrapped == given else msgspec.structs.replace(result, content=wrapped)


# What a key of inputRequests is called; any unique text will do (2026-07-28, basic/patterns/mrtr, "InputRequests").
_KINDS = {"elicitation/create": "elicitation", "roots/list": "roots", "sampling/createMessage": "sampling"}

# 48 bits of its digest tell the questions of one handler apart.
_DIGEST_LETTERS = 12


def send_request(
    session: ServerSession, exchange: Exchange | None, method: str, value: Any, *, terms: str
) -> ServerRequest:
    """Ask the client, and return the question; nothing has been sent if this raises.

    Args:
        session: The client's session, for a question that belongs to no request.
        exchange: The request whose handler asks.
        method: What to ask: ``elicitation/create``.
        value: Params, in the terms of the revision *terms*; UNSET for none.
        terms: The revision that the answer is wanted in, too.

    Raises:
        UnsupportedByPeer: The client's revision has no such question, or it has not declared that it can answer it.
        TransportClosed: The request was cancelled, or is answered already.
    """
    peer = session.peer if exchange is None else exchange.peer
    if peer is None:
        raise UnsupportedByPeer(revision="", what=method, reason="outside a request it has to have shaken hands")
    if exchange is not None and exchange.has_ended:
        raise TransportClosed("the request is over")
    try:
        translate = codec(terms, peer.revision).ask(method)
        params = translate.params(value)
    except (AdaptationError, UnknownMethod) as error:
        raise UnsupportedByPeer(revision=peer.revision, what=method, reason=_why(error)) from error
    require_capability(peer, method, params)
    params = _identified(session, value, params)
    if exchange is not None and exchange.task is not None:
        params = _related(params, exchange.task)
    question = ServerRequest(translate, params, value)
    if peer.era == "stateless":
        _gather(exchange, question, peer)
    else:
        _send(session, exchange, question)
    return question


def _why(error: AdaptationError | UnknownMethod) -> str:
    # A message without a pointer is one that does not exist; otherwise something in it has no meaning.
    if isinstance(error, UnknownMethod) or not error.pointer:
        return "its revision has no such request"
    return f"its revision has nothing for {error.pointer}"


def require_capability(peer: Peer, method: str, params: bytes | UnsetType) -> None:
    """Check that *peer* has declared what answering takes.

    Raises:
        UnsupportedByPeer: It has not.
    """
    missing = lacking(peer, method, {} if isinstance(params, UnsetType) else msgspec.json.decode(params))
    if missing is not None:
        raise UnsupportedByPeer(
            revision=peer.revision, what=method, reason="the client has not declared that it can", required=missing
        )


def _identified(session: ServerSession, value: Any, params: bytes | UnsetType) -> bytes | UnsetType:
    """Return *params* with an id of its own for an elicitation by url, where only the peer's revision has such ids.

    Adapters make one of what is asked, so the same page twice would have the same one.

    Spec:
        2025-11-25, client/elicitation, "URL Mode Elicitation Requests": a unique identifier.
    """
    if isinstance(params, UnsetType) or b'"elicitationId"' not in params or hasattr(value, "elicitation_id"):
        return params
    members: dict[str, Any] = msgspec.json.decode(params)
    if "elicitationId" in members:
        members["elicitationId"] = session.service.token()
    return msgspec.json.encode(members)


def _related(params: bytes | UnsetType, task: RunningTask) -> bytes:
    """Return *params* with the task that the question belongs to.

    Spec:
        2025-11-25, basic/utilities/tasks, "Associating Task-Related Messages".
    """
    members: dict[str, Any] = {} if isinstance(params, UnsetType) else msgspec.json.decode(params)
    return msgspec.json.encode({**members, "_meta": task.related(members.get("_meta", UNSET))})


def _send(session: ServerSession, exchange: Exchange | None, question: ServerRequest) -> None:
    method = question.codec.method
    if exchange is not None and not exchange.asks:
        exchange.rounds += 1
        if exchange.rounds > session.service.limits.max_rounds:
            raise RequestError(Code.INTERNAL_ERROR, "the request has asked for input too often")
    if not session.is_ready and method != "ping":
        # 2025-11-25, basic/lifecycle, "Initialization": before initialized the server SHOULD NOT send other requests.
        revision = session.revision or ""
        raise UnsupportedByPeer(revision=revision, what=method, reason="it has not finished the handshake")
    session.last_id += 1
    question.key = str(session.last_id)
    session.asks[session.last_id] = question
    if exchange is not None:
        exchange.asks[question.key] = question
    session.sink.send(envelope.encode_request(session.last_id, method, question.params), exchange)


def _gather(exchange: Exchange | None, question: ServerRequest, peer: Peer) -> None:
    method = question.codec.method
    if exchange is None or not exchange.entry.may_ask or method not in _KINDS:
        # 2026-07-28, basic/patterns/mrtr, "Supported Requests".
        reason = "this revision asks only while it serves tools/call, prompts/get or resources/read"
        raise UnsupportedByPeer(revision=peer.revision, what=method, reason=reason)
    question.key = _key(exchange, question)
    before = exchange.answers.get(question.key)
    if before is not None:
        question.settle(question.read(before))
        return
    exchange.asks[question.key] = question
    flush_soon(exchange)


def _key(exchange: Exchange, question: ServerRequest) -> str:
    """Return what names *question*: what it says, and how often it was put, so that a replay gives it the same name.

    The order of questions would not do: handlers that ask two things at once need not always do it in the same order.
    """
    base = f"{_KINDS[question.codec.method]}-{question.digest[:_DIGEST_LETTERS]}"
    times = exchange.asked[base] = exchange.asked.get(base, 0) + 1
    return base if times == 1 else f"{base}-{times}"


def flush_soon(exchange: Exchange) -> None:
    """Have what is asked demanded, once the handler had time to ask for all of it."""
    if exchange.origin is not None and not exchange.is_flushing:
        exchange.is_flushing = True
        exchange.origin.session.sink.flush_soon(exchange)


def abandon_request(session: ServerSession, exchange: Exchange | None, question: ServerRequest) -> None:
    """Take back a question that nobody waits for any more.

    Spec:
        2025-11-25, basic/utilities/cancellation; 2026-07-28, basic/patterns/cancellation: there it has no request.
    """
    if exchange is not None:
        exchange.asks.pop(question.key, None)
    if not question.is_settled and question.key.isdecimal() and session.asks.pop(int(question.key), None) is not None:
        cancelled = {"requestId": int(question.key), "reason": "the server does not need the answer any more"}
        session.sink.send(envelope.encode_notification("notifications/cancelled", cancelled), exchange)


def abandon_all(exchange: Exchange) -> None:
    """Take back all questions of an exchange that is over."""
    session = None if exchange.origin is None else exchange.origin.session
    for question in list(exchange.asks.values()):
        if session is not None:
            abandon_request(session, exchange, question)
        question.leave()
    exchange.asks.clear()
    exchange.answers = {}  # its rounds are remembered for a while, and nobody needs these any more


def take_response(question: ServerRequest, raw: Raw) -> None:
    """Take *raw* for the answer to a request of ours."""
    try:
        question.settle(question.read(raw))
    except (InvalidPayload, AdaptationError) as error:
        question.fail(error)
