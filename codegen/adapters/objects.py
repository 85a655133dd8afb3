"""Build the operations that convert an object from one revision to another, key by key."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mcpgen.codegen.adapters.ops import (
    Absent,
    Admit,
    Defaulted,
    Dropped,
    Foreign,
    Keep,
    Moved,
    Nested,
    Operation,
    Refused,
    Relabelled,
)
from mcpgen.codegen.changes import vocabulary as v

if TYPE_CHECKING:
    from mcpgen.codegen import ir
    from mcpgen.codegen.adapters.function_builder import FunctionBuilder
    from mcpgen.codegen.adapters.known_keys import ObjectKeys
    from mcpgen.codegen.adapters.rules import Found

__all__ = ["operations"]

# Keys whose value is the revision of the message: 2025-11-25, basic/lifecycle "Initialization"; 2026-07-28, basic/index
# "_meta". A step replaces the source's label by the target's.
LABELS = frozenset({"protocolVersion", "io.modelcontextprotocol/protocolVersion"})


def operations(builder: FunctionBuilder, one: ObjectKeys, other: ObjectKeys) -> tuple[Operation, ...]:
    """Return the operations, in order, that convert an object *one* of the source to *other* of the target."""
    return tuple(_Pair(builder, one, other).operations())


class _Pair:
    """An object of the source with its counterpart in the target."""

    def __init__(self, builder: FunctionBuilder, one: ObjectKeys, other: ObjectKeys) -> None:
        self._builder = builder
        self._one = one
        self._other = other
        self._place = builder.place(one.name, other.name)
        self._nodes = (builder.source.label, one.name), (builder.target.label, other.name)
        builder.lineages.define(self._nodes[0], one.properties)
        builder.lineages.define(self._nodes[1], other.properties)
        # Objects at one place are the same object, unless one of them is paired with another definition.
        self._are_one = not (one.is_defined and other.is_defined) or builder.pairing.are_one(one.name, other.name)
        if self._are_one:
            builder.lineages.join(*self._nodes)

    def operations(self) -> list[Operation]:
        ours, theirs = dict(self._one.properties), self._other.properties
        found = [*self._whole()]
        moved = self._moved(ours)
        for move in moved:
            ours[move.to] = ours.pop(move.key)
        foreign = self._foreign(set(self._one.properties), {move.to for move in moved})
        found += [Foreign(keys=foreign)] if foreign else []
        found += moved
        if self._builder.mode == "up":
            found += [self._admitted(key, theirs[key]) for key in theirs if key not in ours]
        for key, each in ours.items():
            found += self._shared(each, theirs[key]) if key in theirs else self._gone(each)
        for key, each in theirs.items():
            if key not in ours and each.required:
                found += self._required(each)
        return found

    def _whole(self) -> list[Operation]:
        found = self._builder.found(*dict.fromkeys((self._one.name, self._other.name)))
        if found is None:
            return []
        match found.action:
            case v.Convert(function=function):
                return [self._builder.convert(found, function)]
            case v.Refuse(service=service):
                return [Refused(key=None, reason=found.reason, service=service)]
            case _:
                self._builder.misplaced(found, self._place.new)
                return []

    def _foreign(self, ours: set[str], moved: set[str]) -> tuple[str, ...]:
        """Return the foreign keys to drop: the source does not define them. Targets of renames are among them."""
        all_keys = self._builder.lineages.keys(self._nodes[0]) | self._builder.lineages.keys(self._nodes[1])
        admitted = set[str]() if self._builder.mode == "down" else set(self._other.properties) - moved
        stays = ours | admitted
        source, target = self._builder.source, self._builder.target
        return tuple(
            each
            for each in sorted(all_keys - stays)
            if not (source.tolerates(self._one.name, each) and target.tolerates(self._other.name, each))
        )

    def _moved(self, ours: dict[str, ir.Property]) -> list[Moved]:
        moved: list[Moved] = []
        for key in ours:
            if key in self._other.properties:
                continue
            spelled = [f"{name}.{key}" for name in (self._one.name, self._other.name)]
            if isinstance(action := self._builder.declared(*spelled), v.Rename):
                self._builder.found(*spelled)
                moved.append(Moved(key=key, to=action.key))
        return moved

    def _admitted(self, key: str, theirs: ir.Property) -> Operation:
        if key in LABELS:  # the key is unknown in the source, so its value is not a revision
            return Dropped(
                key=key,
                reason=f"{self._builder.source.label} does not define this key, so its value has no meaning.",
                unless=(self._builder.target.label,),
            )
        place = self._builder.closing.place(self._other.name, self._other.name).inside(f".{key}")
        closing = self._builder.closing.transform(theirs.type, theirs.type, place)
        return Admit(definition=self._other.name, key=key, closing=closing)

    def _gone(self, ours: ir.Property) -> list[Operation]:
        """Return the operations for a key that the target does not define."""
        place = self._place.inside(f".{ours.wire}")
        found = self._builder.found(*place.spellings)
        reason = self._builder.says(*place.spellings)
        if found is None and reason is None and self._builder.mode == "up" and self._are_one:
            # Dropping an added key for older peers needs no declaration. Dropping a removed key for newer peers does.
            found = self._builder.need(
                "key-removed",
                place.new,
                ours.pointer,
                f"{self._builder.target.label} no longer has `{ours.wire}` there",
            )
        reason = reason if found is None else found.reason
        match None if found is None else found.action:
            case v.Refuse(service=service):
                return [Refused(key=ours.wire, reason=_reason(found), service=service)]
            case v.Convert(function=function) if found is not None:
                converted = [self._builder.convert(found, function, ours.wire)]
                return [*converted, self._dropped(ours, _reason(found))]
            case v.Keep() if self._builder.target.tolerates(self._other.name, ours.wire):
                return []
            case None | v.Drop():
                pass
            case _:
                if found is not None:
                    self._builder.misplaced(found, place.new)
        plain = f"{self._builder.target.label} does not define this key."
        return [self._dropped(ours, reason or plain)]

    def _dropped(self, ours: ir.Property, reason: str) -> Dropped:
        default = self._builder.opposite(*self._place.inside(f".{ours.wire}").spellings)
        implied = (default.value,) if isinstance(default, v.Default) and default.make is None else ()
        return Dropped(key=ours.wire, reason=reason, unless=implied)

    def _shared(  # noqa: C901, PLR0912 one case per action
        self, ours: ir.Property, theirs: ir.Property
    ) -> list[Operation]:
        """Return the operations for a key that both define."""
        key = theirs.wire
        place = self._place.inside(f".{key}")
        is_required = theirs.required and not ours.required
        if isinstance(self._builder.declared(*place.spellings), v.Default) and not is_required:
            found = None  # the default is for the other direction
        else:
            found = self._builder.found(*place.spellings)
        operations: list[Operation] = []
        is_covered = False
        if is_required:
            operations += self._filled(theirs, found)
            found = None if found is not None and isinstance(found.action, (v.Default, v.Refuse)) else found
        match None if found is None else found.action:
            case None:
                pass
            case v.Keep():
                is_covered = True
            case v.Convert(function=function) if found is not None:
                operations.append(self._builder.convert(found, function, key, spelled=ours.wire))
                is_covered = True
            case v.Refuse(service=service):
                return [Refused(key=key, reason=_reason(found), service=service)]
            case v.Drop() if not theirs.required:
                return [Dropped(key=key, reason=_reason(found))]
            case v.Rename() if ours.wire != key:
                pass  # the key is already renamed
            case _:
                if found is not None:
                    self._builder.misplaced(found, place.new)
        if key in LABELS and self._builder.mode != "close":
            operations.append(Relabelled(key=key))
        transform = self._builder.transform(ours.type, theirs.type, place, is_covered=is_covered)
        if not isinstance(transform, Keep):
            operations.append(Nested(key=key, spelled=ours.wire, required=ours.required, transform=transform))
        return operations

    def _filled(self, theirs: ir.Property, found: Found | None) -> list[Operation]:
        """Return the operations for an optional key that the target requires."""
        if found is not None and isinstance(found.action, (v.Default, v.Refuse)):
            return [self._supplied(theirs, found)]
        if found is not None and isinstance(found.action, v.Keep) and self._is_kept(theirs.wire):
            return []  # only the target names the key, and its holder is converted
        kind = "requiredness-changed"
        problem = f"{self._builder.target.label} requires `{theirs.wire}`, which may be absent"
        met = self._builder.need(kind, self._place.inside(f".{theirs.wire}").new, theirs.pointer, problem)
        return [] if met is None else [self._supplied(theirs, met)]

    def _is_kept(self, key: str) -> bool:
        """Whether a declared change keeps the unknown key *key* of the source."""
        return self._builder.source.keeps(self._one.name, key)

    def _required(self, theirs: ir.Property) -> list[Operation]:
        """Return the operations for a key that the target requires and the source does not define."""
        place = self._place.inside(f".{theirs.wire}")
        found = self._builder.found(*place.spellings)
        if found is None:
            kind = "key-removed" if self._builder.mode == "down" else "key-added"
            problem = f"{self._builder.target.label} requires `{theirs.wire}`"
            found = self._builder.need(kind, place.new, theirs.pointer, problem)
        return [] if found is None else [self._supplied(theirs, found)]

    def _supplied(self, theirs: ir.Property, found: Found) -> Operation:
        match found.action:
            case v.Default(value=value, make=make, implied=implied):
                if make is not None:
                    self._builder.convert(found, make)
                return Defaulted(
                    key=theirs.wire,
                    value=value,
                    function=None if make is None else make.__name__,
                    reason=None if implied else found.reason,
                )
            case v.Refuse(service=service):
                return Absent(key=theirs.wire, reason=found.reason, service=service)
            case _:
                self._builder.misplaced(found, self._place.inside(f".{theirs.wire}").new)
                return Absent(key=theirs.wire, reason=found.reason, service=None)


def _reason(found: Found | None) -> str:
    return "" if found is None else found.reason
