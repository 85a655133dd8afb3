"""Pair the definitions and union arms of one revision with those of another, in one direction."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mcpgen.codegen import ir
from mcpgen.codegen.adapters.discriminators import same_sort

if TYPE_CHECKING:
    from mcpgen.codegen.adapters.known_keys import RevisionTypes
    from mcpgen.codegen.adapters.rules import Way
    from mcpgen.codegen.diff.schema_pair import SchemaPair

__all__ = ["Pairing"]


class Pairing:
    """The definitions and arms of the target that belong to those of the source.

    Args:
        source: The types of the source.
        target: The types of the target.
        way: The direction.
        schemas: Both revisions; None if source and target are the same one.
    """

    def __init__(self, source: RevisionTypes, target: RevisionTypes, way: Way, schemas: SchemaPair | None) -> None:
        self._source = source
        self._target = target
        self._is_down = way == "down"
        self._schemas = schemas

    def are_paired(self, source: str, target: str) -> bool:
        """Whether two definitions are paired as the same one."""
        return source == target if self._schemas is None else self.partner(source) == target

    def are_one(self, source: str, target: str) -> bool:
        """Whether two definitions at one place are the same one: they are paired, or both are inline."""
        inline = self._source.schema.definitions[source].anonymous and self._target.schema.definitions[target].anonymous
        return inline or self.are_paired(source, target)

    def partner(self, source: str) -> str | None:
        """Return the target's name of the definition *source*, or None."""
        if self._schemas is None:
            return source
        side = self._schemas.new if self._is_down else self._schemas.old
        return side.partners.get(source)

    def admits(self, target: ir.TypeRef, source: ir.TypeRef) -> bool:
        """Whether *target* accepts every value of *source*."""
        if self._schemas is None:
            return True
        if self._is_down:
            return self._schemas.old_admits(target, source)
        return self._schemas.new_admits(target, source)

    def counterpart(self, arm: ir.TypeRef, others: list[ir.TypeRef]) -> ir.TypeRef | None:
        """Return the arm of the target to which values of *arm* belong."""
        for other in others:
            if isinstance(other, ir.Anything):
                return other
            if isinstance(arm, ir.Named) and isinstance(other, ir.Named) and self.are_paired(arm.name, other.name):
                return other
        alike = [other for other in others if same_sort(arm, other) and self._admits_arm(other, arm)]
        return next((other for other in alike if self._are_alike(arm, other)), alike[0] if alike else None)

    def _are_alike(self, arm: ir.TypeRef, other: ir.TypeRef) -> bool:
        if self._schemas is None:
            return arm == other
        return self._schemas.alike(other, arm) if self._is_down else self._schemas.alike(arm, other)

    def _admits_arm(self, other: ir.TypeRef, arm: ir.TypeRef) -> bool:
        return isinstance(arm, (ir.Array, ir.Mapping)) or self.admits(other, arm)
