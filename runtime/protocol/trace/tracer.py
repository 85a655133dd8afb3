"""Annotate the two byte streams between a client and a server.

Theory of operation. Most messages do not name their revision; only a stateless request does, in its ``_meta``. So the
tracer keeps state: a response has the revision of its request; a notification has that of the request that it names by
id, progress token or subscription; every other message has the revision that ``initialize`` negotiated. One connection
can carry handshake and stateless messages, for example while a client probes what a server supports.

The caller must feed a request before its response.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType, field

from mcpgen.generated import registry
from mcpgen.runtime.limits import MAX_FRAME_BYTES, MAX_VALUES
from mcpgen.runtime.protocol.envelope import allows_batches, decode, decode_oversized, unknown_id
from mcpgen.runtime.protocol.framing import LineFramer, OversizedLine
from mcpgen.runtime.protocol.messages import Batch, ErrorResponse, Fault, Malformed, Notification, Request, Response
from mcpgen.runtime.protocol.negotiation import read_meta, revisions_of_era
from mcpgen.runtime.protocol.newest import MetaKey
from mcpgen.runtime.protocol.trace.annotations import Annotation, Finding
from mcpgen.runtime.protocol.trace.extension_messages import (
    MessagePart,
    declared_extensions,
    undeclared,
    validate_changed,
    validate_new,
)
from mcpgen.runtime.protocol.trace.pending_requests import PendingRequests, SeenRequest
from mcpgen.runtime.protocol.trace.summaries import error_summary, message_count, summary, text_summary
from mcpgen.runtime.protocol.trace.validation import Validation, is_method_of_era, misplaced_method, validate

if TYPE_CHECKING:
    from mcpgen.runtime.adapt.payloads import Sender
    from mcpgen.runtime.protocol.messages import Message, RequestId
    from mcpgen.runtime.protocol.trace.annotations import Direction

__all__ = ["Tracer"]

_ALL: Final = [each.label for each in registry.REVISIONS]
_HANDSHAKES: Final = registry.Labels(revisions_of_era(_ALL, "handshake"))
_STATELESS: Final = registry.Labels(revisions_of_era(_ALL, "stateless"))
_NEWEST_HANDSHAKE: Final = revisions_of_era(_ALL, "handshake")[-1]
_OTHER: Final[dict[Sender, Sender]] = {"client": "server", "server": "client"}

_ENVELOPE: Final = frozenset(("jsonrpc", "id", "method", "params", "result", "error"))
_UNREAD: Final = {Fault.TOO_MANY_VALUES, *(each for each in Fault if each.code is Fault.NOT_JSON.code)}
_BANNER: Final = "the message is not JSON; on stdio, a server may write only messages to standard output"
_UNREADABLE: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)

_MAX_QUOTE: Final = 40  # a revision is shorter


class _Versioned(Struct, frozen=True, gc=False, rename="camel"):
    protocol_version: str


class _Declaring(Struct, frozen=True, gc=False):
    capabilities: Raw | UnsetType = UNSET


class _Meta(Struct, frozen=True, gc=False):
    subscription: str | int | UnsetType = field(name=MetaKey.SUBSCRIPTION_ID, default=UNSET)


class _Mentions(Struct, frozen=True, gc=False, rename="camel"):
    """The members of a notification's params that refer to a request."""

    request_id: str | int | UnsetType = UNSET
    progress_token: str | int | UnsetType = UNSET
    meta: _Meta = field(name="_meta", default=_Meta())


_decode_versioned: Final = msgspec.json.Decoder(_Versioned).decode
_decode_declaring: Final = msgspec.json.Decoder(_Declaring).decode
_decode_mentions: Final = msgspec.json.Decoder(_Mentions).decode
_decode_members: Final = msgspec.json.Decoder(dict[str, Raw]).decode
_decode_items: Final = msgspec.json.Decoder(list[Raw]).decode


class Tracer:
    """Annotate the messages between a client and a server.

    Attributes:
        messages: The number of messages, malformed ones and each message of a batch included.
        violations: The number of violations.

    Args:
        max_frame_bytes: The longest message that is checked.
        max_values: The most values of a message that is checked.
    """

    def __init__(self, *, max_frame_bytes: int = MAX_FRAME_BYTES, max_values: int = MAX_VALUES) -> None:
        self._max_values = max_values
        self.messages: int = 0
        self.violations: int = 0
        self._framers = {"to server": LineFramer(max_frame_bytes), "to client": LineFramer(max_frame_bytes)}
        self._requests: dict[Sender, PendingRequests] = {"client": PendingRequests(), "server": PendingRequests()}
        self._negotiated: str | None = None  # by `initialize`
        self._latest: str | None = None  # of the stateless requests
        self._proposed: str | None = None  # by the last `initialize`
        self._extensions: frozenset[str] = frozenset()  # that the client of the handshake has declared

    def feed(self, direction: Direction, data: bytes, time_seconds: float) -> list[Annotation]:
        """Return the annotations of the messages that *data* completes, oldest first."""
        frames = self._framers[direction].feed(data)
        return [each for frame in frames for each in self.annotate(direction, frame, time_seconds)]

    def finish(self, direction: Direction, time_seconds: float) -> list[Annotation]:
        """Return the annotation of the incomplete last line of a stream, if there is one."""
        frames = self._framers[direction].finish()
        return [each for frame in frames for each in self.annotate(direction, frame, time_seconds)]

    def annotate(self, direction: Direction, frame: bytes | OversizedLine, time: float) -> list[Annotation]:
        """Return the annotation of one frame; of a batch, also those of its messages."""
        if isinstance(frame, OversizedLine):
            size = frame.size_bytes
            draft = Annotation(time_seconds=time, direction=direction, size_bytes=size, frame=None, is_json=False)
            self._oversized(draft, frame)
            return [self._counted(draft)]
        message = decode(frame, max_values=self._max_values)
        draft = Annotation(time_seconds=time, direction=direction, size_bytes=len(frame), frame=frame)
        if not isinstance(message, Batch):
            self._message(draft, message, frame)
            return [self._counted(draft)]
        self._batch(draft, message)
        drafts = [draft]
        for index, (item, raw) in enumerate(zip(message.items, _decode_items(frame), strict=True)):
            data = bytes(raw)
            part = Annotation(time_seconds=time, direction=direction, item=index, size_bytes=len(data), frame=data)
            drafts.append(part)
            self._message(part, item, data)
        return [self._counted(each) for each in drafts]

    def _counted(self, draft: Annotation) -> Annotation:
        self.messages += draft.kind != "batch"
        self.violations += len(draft.violations)
        return draft

    def _oversized(self, draft: Annotation, line: OversizedLine) -> None:
        known = decode_oversized(line)
        draft.violate("frame", "", f"the message is too long to check: {line.size_bytes:,} bytes")
        if known.id is not None and known.kind == "response":
            self._answered(draft, known.id)
        elif known.id is not None:
            # So that its response is not reported as unexpected.
            request = SeenRequest("", self._negotiated or self._latest, draft.time_seconds)
            self._requests[_sender(draft)].add(known.id, request)

    def _batch(self, draft: Annotation, batch: Batch) -> None:
        revision = self._negotiated or self._latest
        draft.kind, draft.revision, draft.summary = "batch", revision, message_count(len(batch.items))
        if revision is None:
            draft.violate("frame", "", "batches are not allowed before `initialize` is answered")
        elif not allows_batches(revision):
            draft.violate("frame", "", f"{revision} has no batches")

    def _message(self, draft: Annotation, message: Message | Malformed, frame: bytes) -> None:
        match message:
            case Malformed():
                self._malformed(draft, message, frame)
                return
            case Request():
                self._request(draft, message)
            case Notification():
                self._notification(draft, message)
            case Response():
                self._response(draft, message)
            case ErrorResponse():
                self._error(draft, message)
        members = _decode_members(frame)
        draft.id = members.get("id")
        if draft.kind == "error" and draft.id is None and draft.revision and unknown_id(draft.revision) is None:
            draft.violate("id", "", f"{draft.revision} does not allow an error response without an id")
        elif draft.kind == "error" and draft.id in (None, b"null"):
            draft.note("id", "", "the error response has no id, so its request is unknown")
        reason = "JSON-RPC messages have no such key"
        # All at once: a peer can send 50,000 keys, and each addition copies the earlier findings.
        draft.add([Finding("unknown key", f"/{_quoted(key)}", reason) for key in members if key not in _ENVELOPE])

    def _malformed(self, draft: Annotation, message: Malformed, frame: bytes) -> None:
        draft.revision = self._negotiated
        draft.is_json = message.fault not in _UNREAD
        draft.summary = text_summary(frame)
        is_text = message.fault is Fault.NOT_JSON and b'"jsonrpc"' not in frame  # not a message with a mistake
        is_banner = is_text and draft.direction == "to client"
        draft.violate("frame", "", _BANNER if is_banner else message.reason)
        if message.kind == "response" and message.id is not None:
            self._answered(draft, message.id)
        elif message.kind == "request" and message.id is not None:
            # So that its response is not reported as unexpected.
            request = SeenRequest("", self._negotiated or self._latest, draft.time_seconds)
            self._requests[_sender(draft)].add(message.id, request)

    def _request(self, draft: Annotation, message: Request) -> None:
        draft.kind, draft.method = "request", message.method
        sender = _sender(draft)
        requests = self._requests[sender]
        meta = read_meta(message.params)
        if message.method == "initialize" and sender == "client":
            draft.revision = self._proposed = _proposed_revision(draft, message.params)
            self._extensions = _proposed_extensions(message.params)
        else:
            draft.revision = self._named(draft, meta.revision, message.method)
        declared = self._extensions if meta.revision is UNSET else declared_extensions(meta.client_capabilities)
        seen = SeenRequest(message.method, draft.revision, draft.time_seconds, extensions=declared)
        problem = requests.add(message.id, seen)
        if problem is not None:
            draft.violate("id", "/id", problem)
        if meta.progress_token is not UNSET:
            requests.add_token(meta.progress_token, draft.revision)
        _validate(draft, message.method, "params", message.params, declared)

    def _named(self, draft: Annotation, named: str | UnsetType, method: str) -> str | None:
        """Return the revision of a request; *named* is the one in its ``_meta``."""
        if named is UNSET:
            revision = self._negotiated or self._latest
            if revision is None and method != "ping" and self._proposed is not None:
                reason = "`initialize` has not negotiated a revision, so the message is checked against"
                draft.note("revision", "", f"{reason} {self._proposed}")
                return self._proposed
            if revision is None and method != "ping":
                reason = (
                    "the request has no revision: `initialize` negotiated none, and `_meta` of the request names none"
                )
                draft.violate("revision", "", reason)
            return revision
        if named in _STATELESS:
            self._latest = named
            return named
        reason = "has to be negotiated by `initialize`" if named in _HANDSHAKES else "is unknown to mcpgen"
        place = "/params/_meta/io.modelcontextprotocol~1protocolVersion"
        draft.note("revision", place, f"the revision {_quoted(named)} {reason}")
        return named if named in _HANDSHAKES else None

    def _notification(self, draft: Annotation, message: Notification) -> None:
        draft.kind, draft.method = "notification", message.method
        named = read_meta(message.params).revision
        if named is not UNSET and named in _STATELESS:
            draft.revision = named
        else:
            draft.revision = self._mentioned(draft, message) or self._negotiated or self._latest or self._proposed
        _validate(draft, message.method, "notification", message.params, None)

    def _mentioned(self, draft: Annotation, message: Notification) -> str | None:
        """Return the revision of the request that a notification refers to, if any."""
        try:
            mentions = _Mentions() if message.params is UNSET else _decode_mentions(message.params)
        except _UNREADABLE:
            return None
        sender = _sender(draft)
        own, theirs = self._requests[sender], self._requests[_OTHER[sender]]
        request: SeenRequest | None = None
        if message.method == "notifications/cancelled" and mentions.request_id is not UNSET:
            request = own.pending(mentions.request_id)
            if request is not None:
                request.is_cancelled = True
            else:  # a server that ends a subscription names the client's request
                request = theirs.pending(mentions.request_id)
            if request is None:
                return theirs.revision_of_answered(mentions.request_id) or own.revision_of_answered(mentions.request_id)
        elif message.method == "notifications/progress" and mentions.progress_token is not UNSET:
            if not theirs.has_token(mentions.progress_token):
                draft.violate("id", "/params/progressToken", "no request has this progress token")
            return theirs.revision_of_token(mentions.progress_token)
        elif mentions.meta.subscription is not UNSET:
            request = theirs.pending(mentions.meta.subscription)
        return None if request is None else request.revision

    def _response(self, draft: Annotation, message: Response) -> None:
        draft.kind, draft.summary = "response", text_summary(bytes(message.result))
        request = self._answered(draft, message.id)
        requester = _OTHER[_sender(draft)]
        if request is None:
            return
        if request.method == "initialize" and requester == "client":
            self._negotiate(draft, message.result)
        if draft.revision is None:
            return
        found: Validation | None = None
        part = MessagePart(request.method, "result", requester, message.result)
        if misplaced_method(draft.revision, request.method, "params", requester) is None:
            found = validate(draft.revision, request.method, "result", requester, message.result)
            found = validate_changed(found, part, request.extensions)
        elif (new := validate_new(part)) is not None:
            found = new[1]
        if found is not None:
            draft.type, draft.summary = found.type, summary(found.value)
            draft.add(found.findings)

    def _negotiate(self, draft: Annotation, result: Raw) -> None:
        """Take the revision in the result of ``initialize`` as negotiated."""
        chosen = _version(result)
        if chosen in _HANDSHAKES:
            self._negotiated = draft.revision = chosen
        elif chosen is not None:
            draft.note("revision", "/result/protocolVersion", _not_for_a_handshake(chosen))

    def _error(self, draft: Annotation, message: ErrorResponse) -> None:
        draft.kind, draft.type, draft.summary = "error", "Error", error_summary(message)
        if message.id is None:
            draft.revision = self._negotiated or self._latest
            return
        request = self._answered(draft, message.id)
        requester = _OTHER[_sender(draft)]
        if request is None or draft.revision is None:
            return
        if misplaced_method(draft.revision, request.method, "params", requester) is None:
            draft.add(validate(draft.revision, request.method, "error", requester, message.error).findings)

    def _answered(self, draft: Annotation, request_id: RequestId) -> SeenRequest | None:
        """Mark a request of the other side as answered, and return it."""
        requests = self._requests[_OTHER[_sender(draft)]]
        was_answered = requests.was_answered(request_id)
        request = requests.answer(request_id)
        if request is None:
            known = "a request with this id was answered before"
            draft.violate("id", "/id", known if was_answered else "there is no request with this id")
            draft.revision = self._negotiated or self._latest
            return None
        draft.method, draft.revision = request.method or None, request.revision
        draft.latency_seconds = draft.time_seconds - request.time_seconds
        if request.is_cancelled:
            draft.note("id", "/id", "the request was cancelled before")
        return request


def _sender(draft: Annotation) -> Sender:
    return "client" if draft.direction == "to server" else "server"


def _validate(
    draft: Annotation,
    method: str,
    part: Literal["params", "notification"],
    raw: Raw | UnsetType,
    declared: frozenset[str] | None,
) -> None:
    """Validate the params of a request or a notification; *declared* are the extensions of the client, if known."""
    if raw is not UNSET:
        draft.summary = text_summary(bytes(raw))
    if draft.revision is None:
        return
    sender = _sender(draft)
    finding = misplaced_method(draft.revision, method, part, sender)
    new = None if finding is None or finding.kind != "method" else validate_new(MessagePart(method, part, sender, raw))
    is_undeclared = new is not None and declared is not None and new[0] not in declared
    if new is not None and not (is_undeclared and is_method_of_era(draft.revision, method, part)):
        identifier, found = new
        if is_undeclared:
            draft.violations += (undeclared(identifier),)
    elif finding is not None:
        draft.violations += (finding,)
        return
    else:
        found = validate(draft.revision, method, part, sender, raw)
        found = validate_changed(found, MessagePart(method, part, sender, raw), declared or frozenset())
    draft.type, draft.summary = found.type, summary(found.value)
    draft.add(found.findings)


def _proposed_revision(draft: Annotation, params: Raw | UnsetType) -> str:
    """Return the revision that ``initialize`` proposes; the newest handshake revision if it proposes another."""
    proposed = _version(params)
    if proposed is not None and proposed in _HANDSHAKES:
        return proposed
    if proposed is not None:
        draft.note("revision", "/params/protocolVersion", _not_for_a_handshake(proposed))
    return _NEWEST_HANDSHAKE


def _not_for_a_handshake(revision: str) -> str:
    reason = "has no `initialize`" if revision in _STATELESS else "is unknown to mcpgen"
    return f"the revision {_quoted(revision)} {reason}"


def _proposed_extensions(params: Raw | UnsetType) -> frozenset[str]:
    """Return the extensions that ``initialize`` declares."""
    try:
        return frozenset() if params is UNSET else declared_extensions(_decode_declaring(params).capabilities)
    except _UNREADABLE:
        return frozenset()


def _version(raw: Raw | UnsetType) -> str | None:
    try:
        return None if raw is UNSET else _decode_versioned(raw).protocol_version
    except _UNREADABLE:
        return None


def _quoted(text: str) -> str:
    return text if len(text) <= _MAX_QUOTE else f"{text[:_MAX_QUOTE]}…"
