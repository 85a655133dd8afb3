"""What is said of one message that was seen."""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import Raw, Struct

__all__ = ["Annotation", "Direction", "Finding", "FindingKind", "MessageKind"]

Direction: TypeAlias = Literal["to server", "to client"]

MessageKind: TypeAlias = Literal["request", "response", "notification", "error", "batch", "malformed"]

FindingKind: TypeAlias = Literal[
    "frame", "schema", "foreign key", "unknown key", "method", "direction", "id", "revision"
]


class Finding(Struct, frozen=True, gc=False):
    """Something that a message should not have, or that is worth a look.

    Attributes:
        kind: What sort of thing it is.
        pointer: Where in the message, as an RFC 6901 pointer; empty for the whole.
        reason: What is wrong; it may quote the message.
    """

    kind: FindingKind
    pointer: str
    reason: str


class Annotation(Struct, frozen=True, kw_only=True, gc=False):
    """One message, and what is known of it.

    Attributes:
        time_seconds: When it was complete, by the clock of whoever looks on.
        direction: Where it went.
        kind: What it is; each message of a batch has an annotation of its own, behind that of the batch.
        item: Its place in the batch that it came in, from 0; None if it came alone.
        method: Of a response, that of its request.
        id: As it stands in the message, JSON.
        revision: The revision that it belongs to; None if that is not known.
        type: What its revision calls its params, or its result.
        latency_seconds: Of a response: how long ago its request came.
        summary: What tells most about it; it quotes the message.
        violations: What its revision does not allow.
        notes: What it allows, and what is odd even so.
        size_bytes: How long it is.
        frame: The message itself; None if it was too long to be kept.
        is_json: Whether the frame is JSON, in UTF-8.
    """

    time_seconds: float
    direction: Direction
    kind: MessageKind
    item: int | None = None
    method: str | None = None
    id: Raw | None = None
    revision: str | None = None
    type: str | None = None
    latency_seconds: float | None = None
    summary: str = ""
    violations: tuple[Finding, ...] = ()
    notes: tuple[Finding, ...] = ()
    size_bytes: int
    frame: bytes | None
    is_json: bool = True
