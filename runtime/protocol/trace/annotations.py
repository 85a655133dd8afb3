"""What a trace says about one message: its kind, revision and type, and the findings."""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import Raw, Struct

__all__ = ["Annotation", "Direction", "Finding", "FindingKind", "MessageKind"]

Direction: TypeAlias = Literal["to server", "to client"]

MessageKind: TypeAlias = Literal["request", "response", "notification", "error", "batch", "malformed"]

FindingKind: TypeAlias = Literal[
    "frame", "schema", "key of another revision", "unknown key", "method", "direction", "id", "revision"
]


class Finding(Struct, frozen=True, gc=False):
    """A violation or a note about a message.

    Attributes:
        kind: The kind of finding.
        pointer: The place in the message, an RFC 6901 pointer; empty for the whole message.
        reason: What is wrong; it may quote the message.
    """

    kind: FindingKind
    pointer: str
    reason: str


class Annotation(Struct, kw_only=True, gc=False):
    """One message, and what the tracer found out about it so far.

    Attributes:
        time_seconds: The time when the message was complete, by the caller's clock.
        direction: The direction of the message.
        kind: The kind of message. After the annotation of a batch comes one for each of its messages.
        item: The index in the batch, from 0; None outside a batch.
        method: The method; of a response, that of its request.
        id: The id as JSON, as in the message.
        revision: The revision of the message; None if it is unknown.
        type: The name of the params or the result in that revision.
        latency_seconds: Of a response, the time since its request.
        summary: The most useful parts of the message as text.
        violations: What the revision does not allow.
        notes: What the revision allows but is unusual.
        size_bytes: The length of the message.
        frame: The message itself; None if it was too long to keep.
        is_json: Whether the frame is JSON in UTF-8.
    """

    time_seconds: float
    direction: Direction
    kind: MessageKind = "malformed"
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

    def add(self, findings: list[Finding]) -> None:
        """Add *findings*: unknown keys as notes, all others as violations."""
        self.violations += tuple(each for each in findings if each.kind != "unknown key")
        self.notes += tuple(each for each in findings if each.kind == "unknown key")

    def violate(self, kind: FindingKind, pointer: str, reason: str) -> None:
        """Add a violation."""
        self.violations += (Finding(kind, pointer, reason),)

    def note(self, kind: FindingKind, pointer: str, reason: str) -> None:
        """Add a note."""
        self.notes += (Finding(kind, pointer, reason),)
