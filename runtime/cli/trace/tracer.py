"""Two streams of bytes, annotated: the messages of a client and a server, as a third party sees them.

Theory of operation. A message alone does not say to which revision it belongs. A stateless request does, in its
``_meta``. All else follows from what was seen before: a response belongs with its request; a notification with the
request that it names, by id, progress token or subscription; everything else with what ``initialize`` has settled. Both
eras may be mixed on one pipe, as by a client that tries which of them a server knows.

What comes must come in the order in which it was sent: a request before its response. Whoever feeds this sees to that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType, field

from mcpgen.generated import registry
from mcpgen.runtime.cli.trace.annotation_builder import AnnotationBuilder
from mcpgen.runtime.cli.trace.pending_requests import PendingRequests, SeenRequest
from mcpgen.runtime.cli.trace.summaries import error_summary, summary, text_summary
from mcpgen.runtime.cli.trace.validation import misused, validate
from mcpgen.runtime.limits import MAX_FRAME_BYTES
from mcpgen.runtime.protocol.envelope import allows_batches, decode, decode_oversized, unknown_id
from mcpgen.runtime.protocol.framing import LineFramer, OversizedLine
from mcpgen.runtime.protocol.messages import Batch, ErrorResponse, Fault, Malformed, Notification, Request, Response
from mcpgen.runtime.protocol.negotiation import read_meta, revisions_of_era

if TYPE_CHECKING:
    from mcpgen.runtime.adapt.payloads import Sender
    from mcpgen.runtime.cli.trace.annotations import Annotation, Direction
    from mcpgen.runtime.protocol.messages import Message, RequestId

__all__ = ["Tracer"]

_ALL: Final = [each.label for each in registry.REVISIONS]
_HANDSHAKES: Final = revisions_of_era(_ALL, "handshake")
_STATELESS: Final = revisions_of_era(_ALL, "stateless")
_OTHER: Final[dict[Sender, Sender]] = {"client": "server", "server": "client"}

_ENVELOPE: Final = frozenset(("jsonrpc", "id", "method", "params", "result", "error"))
_NO_JSON: Final = (Fault.TOO_LONG, Fault.NOT_UTF8, Fault.NOT_JSON, Fault.TOO_DEEP)
_BANNER: Final = "the message is not JSON: a server may write nothing but messages to its standard output"
_UNREADABLE: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)

_LONGEST_QUOTE: Final = 40  # more than a revision has


class _Versioned(Struct, frozen=True, gc=False, rename="camel"):
    protocol_version: str


class _Meta(Struct, frozen=True, gc=False):
    subscription: str | int | UnsetType = field(name="io.modelcontextprotocol/subscriptionId", default=UNSET)


class _Mentions(Struct, frozen=True, gc=False, rename="camel"):
    """What names a request in the params of a notification."""

    request_id: str | int | UnsetType = UNSET
    progress_token: str | int | UnsetType = UNSET
    meta: _Meta = field(name="_meta", default=_Meta())


_decode_versioned: Final = msgspec.json.Decoder(_Versioned).decode
_decode_mentions: Final = msgspec.json.Decoder(_Mentions).decode
_decode_members: Final = msgspec.json.Decoder(dict[str, Raw]).decode
_decode_items: Final = msgspec.json.Decoder(list[Raw]).decode


class Tracer:
    """Annotates what a client and a server write to each other.

    Attributes:
        messages: How many there were; those of a batch count each, and what is no message counts, too.
        violations: How many violations were found in them.

    Args:
        max_frame_bytes: The longest message that is looked at.
    """

    def __init__(self, *, max_frame_bytes: int = MAX_FRAME_BYTES) -> None:
        self.messages: int = 0
        self.violations: int = 0
        self._framers = {"to server": LineFramer(max_frame_bytes), "to client": LineFramer(max_frame_bytes)}
        self._ledgers: dict[Sender, PendingRequests] = {"client": PendingRequests(), "server": PendingRequests()}
        self._agreed: str | None = None  # by initialize
        self._latest: str | None = None  # of the stateless requests
        self._proposed: str | None = None  # by the last `initialize`

    def feed(self, direction: Direction, data: bytes, time_seconds: float) -> list[Annotation]:
        """Return the annotations of the messages that *data* completes, oldest first."""
        frames = self._framers[direction].feed(data)
        return [each for frame in frames for each in self._annotate(direction, frame, time_seconds)]

    def finish(self, direction: Direction, time_seconds: float) -> list[Annotation]:
        """Return the annotation of what the end of a stream has left without a newline, if anything."""
        frames = self._framers[direction].finish()
        return [each for frame in frames for each in self._annotate(direction, frame, time_seconds)]

    def _annotate(self, direction: Direction, frame: bytes | OversizedLine, time: float) -> list[Annotation]:
        if isinstance(frame, OversizedLine):
            draft = AnnotationBuilder(time, direction, None, size_bytes=frame.size_bytes, is_json=False)
            self._oversized(draft, frame)
            return [self._counted(draft)]
        message = decode(frame)
        draft = AnnotationBuilder(time, direction, frame)
        if not isinstance(message, Batch):
            self._message(draft, message, frame)
            return [self._counted(draft)]
        self._batch(draft, message)
        drafts = [draft]
        for index, (item, raw) in enumerate(zip(message.items, _decode_items(frame), strict=True)):
            data = bytes(raw)
            drafts.append(AnnotationBuilder(time, direction, data, index))
            self._message(drafts[-1], item, data)
        return [self._counted(each) for each in drafts]

    def _counted(self, draft: AnnotationBuilder) -> Annotation:
        self.messages += draft.kind != "batch"
        self.violations += len(draft.violations)
        return draft.annotation()

    def _oversized(self, draft: AnnotationBuilder, line: OversizedLine) -> None:
        known = decode_oversized(line)
        draft.violate("frame", "", f"too long to be looked at: {line.size_bytes:,} bytes")
        if known.id is not None and known.kind == "response":
            self._answered(draft, known.id)
        elif known.id is not None:
            # Its answer will come, and must not be taken for an answer to nothing.
            asked = SeenRequest("", self._agreed or self._latest, draft.time_seconds)
            self._ledgers[_sender(draft)].ask(known.id, asked)

    def _batch(self, draft: AnnotationBuilder, batch: Batch) -> None:
        draft.kind, draft.revision, draft.summary = "batch", self._agreed, f"{len(batch.items)} messages"
        if self._agreed is None:
            draft.violate("frame", "", "there are no batches before a revision is agreed on")
        elif not allows_batches(self._agreed):
            draft.violate("frame", "", f"{self._agreed} has no batches")

    def _message(self, draft: AnnotationBuilder, message: Message | Malformed, frame: bytes) -> None:
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
        if draft.kind == "error" and draft.id is None and unknown_id(draft.revision) is None:
            draft.violate("id", "", f"{draft.revision or 'JSON-RPC'} has no errors without an id")
        elif draft.kind == "error" and draft.id in (None, b"null"):
            draft.note("id", "", "it does not say what it answers")
        if not _ENVELOPE.issuperset(members):
            for key in members.keys() - _ENVELOPE:
                draft.note("unknown key", f"/{_quoted(key)}", "no message of JSON-RPC has this key")

    def _malformed(self, draft: AnnotationBuilder, message: Malformed, frame: bytes) -> None:
        draft.revision = self._agreed
        draft.is_json = message.fault not in _NO_JSON
        draft.summary = text_summary(frame)
        is_banner = message.fault is Fault.NOT_JSON and draft.direction == "to client"
        draft.violate("frame", "", _BANNER if is_banner else message.fault.reason)
        if message.kind == "response" and message.id is not None:
            self._answered(draft, message.id)

    def _request(self, draft: AnnotationBuilder, message: Request) -> None:
        draft.kind, draft.method = "request", message.method
        sender = _sender(draft)
        ledger = self._ledgers[sender]
        meta = read_meta(message.params)
        if message.method == "initialize" and sender == "client":
            draft.revision = self._proposed = _offered(draft, message.params)
        else:
            draft.revision = self._named(draft, meta.revision, message.method)
        problem = ledger.ask(message.id, SeenRequest(message.method, draft.revision, draft.time_seconds))
        if problem is not None:
            draft.violate("id", "/id", problem)
        if meta.progress_token is not UNSET:
            ledger.give(meta.progress_token, draft.revision)
        _judge(draft, message.method, "params", message.params)

    def _named(self, draft: AnnotationBuilder, named: str | UnsetType, method: str) -> str | None:
        """Return the revision of a request that names this one in its ``_meta``, or none."""
        if named is UNSET:
            revision = self._agreed or self._latest
            if revision is None and method != "ping" and self._proposed is not None:
                draft.note("revision", "", f"initialize was not answered yet: judged as {self._proposed}, as offered")
                return self._proposed
            if revision is None and method != "ping":
                reason = "it belongs to no revision: none was agreed on, and its _meta names none"
                draft.violate("revision", "", reason)
            return revision
        if named in _STATELESS:
            self._latest = named
            return named
        reason = "is agreed on by a handshake" if named in _HANDSHAKES else "is not known here"
        place = "/params/_meta/io.modelcontextprotocol~1protocolVersion"
        draft.note("revision", place, f"the revision {_quoted(named)} {reason}")
        return named if named in _HANDSHAKES else None

    def _notification(self, draft: AnnotationBuilder, message: Notification) -> None:
        draft.kind, draft.method = "notification", message.method
        named = read_meta(message.params).revision
        if named is not UNSET and named in _STATELESS:
            draft.revision = named
        else:
            draft.revision = self._mentioned(draft, message) or self._agreed or self._latest or self._proposed
        _judge(draft, message.method, "notification", message.params)

    def _mentioned(self, draft: AnnotationBuilder, message: Notification) -> str | None:
        """Return the revision of the request that a notification is about, if it is about one."""
        try:
            mentions = _Mentions() if message.params is UNSET else _decode_mentions(message.params)
        except _UNREADABLE:
            return None
        sender = _sender(draft)
        own, theirs = self._ledgers[sender], self._ledgers[_OTHER[sender]]
        asked: SeenRequest | None = None
        if message.method == "notifications/cancelled" and mentions.request_id is not UNSET:
            asked = own.waiting(mentions.request_id)
            if asked is not None:
                asked.is_cancelled = True
            else:  # a server that ends a stream names the request of its client
                asked = theirs.waiting(mentions.request_id)
            if asked is None:
                return theirs.revision_of_answered(mentions.request_id) or own.revision_of_answered(mentions.request_id)
        elif message.method == "notifications/progress" and mentions.progress_token is not UNSET:
            if not theirs.has_given(mentions.progress_token):
                draft.violate("id", "/params/progressToken", "no request has given this token")
            return theirs.revision_of_token(mentions.progress_token)
        elif mentions.meta.subscription is not UNSET:
            asked = theirs.waiting(mentions.meta.subscription)
        return None if asked is None else asked.revision

    def _response(self, draft: AnnotationBuilder, message: Response) -> None:
        draft.kind, draft.summary = "response", text_summary(bytes(message.result))
        asked = self._answered(draft, message.id)
        asker = _OTHER[_sender(draft)]
        if asked is None:
            return
        if asked.method == "initialize" and asker == "client":
            self._learn(draft, message.result)
        if draft.revision is not None and misused(draft.revision, asked.method, "params", asker) is None:
            judgement = validate(draft.revision, asked.method, "result", asker, message.result)
            draft.type, draft.summary = judgement.type, summary(judgement.value)
            draft.add(judgement.findings)

    def _learn(self, draft: AnnotationBuilder, result: Raw) -> None:
        """Take what ``initialize`` was answered with as agreed on."""
        chosen = _version(result)
        if chosen in _HANDSHAKES:
            self._agreed = draft.revision = chosen
        elif chosen is not None:
            reason = f"the revision {_quoted(chosen)} is not known here; what follows cannot be judged"
            draft.note("revision", "/result/protocolVersion", reason)

    def _error(self, draft: AnnotationBuilder, message: ErrorResponse) -> None:
        draft.kind, draft.type, draft.summary = "error", "Error", error_summary(message)
        if message.id is None:
            draft.revision = self._agreed or self._latest
            return
        asked = self._answered(draft, message.id)
        asker = _OTHER[_sender(draft)]
        if asked is None or draft.revision is None:
            return
        if misused(draft.revision, asked.method, "params", asker) is None:
            draft.add(validate(draft.revision, asked.method, "error", asker, message.error).findings)

    def _answered(self, draft: AnnotationBuilder, request_id: RequestId) -> SeenRequest | None:
        """Note that a request of the other side is answered, and return it."""
        ledger = self._ledgers[_OTHER[_sender(draft)]]
        was_answered = ledger.was_answered(request_id)
        asked = ledger.answer(request_id)
        if asked is None:
            reason = "this request was answered before" if was_answered else "there is no request with this id"
            draft.violate("id", "/id", reason)
            draft.revision = self._agreed or self._latest
            return None
        draft.method, draft.revision = asked.method or None, asked.revision
        draft.latency_seconds = draft.time_seconds - asked.time_seconds
        if asked.is_cancelled:
            draft.note("id", "/id", "the request was cancelled before")
        return asked


def _sender(draft: AnnotationBuilder) -> Sender:
    return "client" if draft.direction == "to server" else "server"


def _judge(
    draft: AnnotationBuilder, method: str, part: Literal["params", "notification"], raw: Raw | UnsetType
) -> None:
    """Hold the params of a request or a notification against its revision."""
    if raw is not UNSET:
        draft.summary = text_summary(bytes(raw))
    if draft.revision is None:
        return
    sender = _sender(draft)
    finding = misused(draft.revision, method, part, sender)
    if finding is not None:
        draft.violations.append(finding)
        return
    judgement = validate(draft.revision, method, part, sender, raw)
    draft.type, draft.summary = judgement.type, summary(judgement.value)
    draft.add(judgement.findings)


def _offered(draft: AnnotationBuilder, params: Raw | UnsetType) -> str:
    """Return the revision to judge ``initialize`` by: the one that it offers, if that has a handshake."""
    offered = _version(params)
    if offered in _HANDSHAKES:
        return offered
    if offered is not None:
        reason = "has no handshake" if offered in _STATELESS else "is not known here"
        draft.note("revision", "/params/protocolVersion", f"the revision {_quoted(offered)} {reason}")
    return _HANDSHAKES[-1]


def _version(raw: Raw | UnsetType) -> str | None:
    try:
        return None if raw is UNSET else _decode_versioned(raw).protocol_version
    except _UNREADABLE:
        return None


def _quoted(text: str) -> str:
    return text if len(text) <= _LONGEST_QUOTE else f"{text[:_LONGEST_QUOTE]}…"
