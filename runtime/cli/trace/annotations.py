"""What a trace says about one message: its kind, revision and type, and the findings."""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import Raw, Struct, field

__all__ = ["Annotation", "AnnotationBuilder", "Direction", "Finding", "FindingKind", "MessageKind"]

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


class Annotation(Struct, frozen=True, kw_only=True, gc=False):
    """One message, and what the tracer found out about it.

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


class AnnotationBuilder(Struct, gc=False):
    """A mutable `Annotation`, with the same attributes."""

    time_seconds: float
    direction: Direction
    frame: bytes | None
    item: int | None = None
    kind: MessageKind = "malformed"
    method: str | None = None
    id: Raw | None = None
    revision: str | None = None
    type: str | None = None
    latency_seconds: float | None = None
    summary: str = ""
    violations: list[Finding] = field(default_factory=list[Finding])
    notes: list[Finding] = field(default_factory=list[Finding])
    size_bytes: int = 0
    is_json: bool = True

    def add(self, findings: list[Finding]) -> None:
        """Add *findings*: unknown keys as notes, all others as violations."""
        for each in findings:
            (self.notes if each.kind == "unknown key" else self.violations).append(each)

    def violate(self, kind: FindingKind, pointer: str, reason: str) -> None:
        """Add a violation."""
        self.violations.append(Finding(kind, pointer, reason))

    def note(self, kind: FindingKind, pointer: str, reason: str) -> None:
        """Add a note."""
        self.notes.append(Finding(kind, pointer, reason))

    def annotation(self) -> Annotation:
        """Return the finished annotation."""
        return Annotation(
            time_seconds=self.time_seconds,
            direction=self.direction,
            kind=self.kind,
            item=self.item,
            method=self.method,
            id=self.id,
            revision=self.revision,
            type=self.type,
            latency_seconds=self.latency_seconds,
            summary=self.summary,
            violations=tuple(self.violations),
            notes=tuple(self.notes),
            size_bytes=self.size_bytes if self.frame is None else len(self.frame),
            frame=self.frame,
            is_json=self.is_json,
        )
