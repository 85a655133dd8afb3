"""An annotation that is being made."""

from __future__ import annotations

from msgspec import Raw, Struct, field

from mcpgen.runtime.cli.trace.annotations import Annotation, Direction, Finding, FindingKind, MessageKind

__all__ = ["AnnotationBuilder"]


class AnnotationBuilder(Struct, gc=False):
    """What is being found out about one message; the attributes are those of `Annotation`."""

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
        """Add *findings*; what is merely unknown is worth a note."""
        for each in findings:
            (self.notes if each.kind == "unknown key" else self.violations).append(each)

    def violate(self, kind: FindingKind, pointer: str, reason: str) -> None:
        """Add a violation."""
        self.violations.append(Finding(kind, pointer, reason))

    def note(self, kind: FindingKind, pointer: str, reason: str) -> None:
        """Add a note."""
        self.notes.append(Finding(kind, pointer, reason))

    def annotation(self) -> Annotation:
        """Return what was found out."""
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
