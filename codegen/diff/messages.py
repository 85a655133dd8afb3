"""Compare the messages and the error codes of two revisions."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from msgspec.structs import replace

from mcpgen.codegen import ir
from mcpgen.codegen.diff.model import Change, Kind, Site, change
from mcpgen.codegen.diff.type_text import type_text
from mcpgen.codegen.methods import Method
from mcpgen.codegen.methods import Side as Sender

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from mcpgen.codegen.diff.schema_pair import PairedSchema, SchemaPair
    from mcpgen.codegen.overlay import ErrorCode

__all__ = ["compare_errors", "compare_messages", "holders"]

_Senders: TypeAlias = dict[Sender, Method]


def compare_messages(schemas: SchemaPair, old: Iterable[Method], new: Iterable[Method]) -> Iterator[Change]:
    """Yield the differences between the messages: added, removed, other sender, other content."""
    before, after = _by_name(old), _by_name(new)
    for key in sorted(before.keys() | after.keys()):
        senders, others = before.get(key, {}), after.get(key, {})
        if len(senders) == len(others) == 1 and senders.keys() != others.keys():
            (one,), (other,) = senders.values(), others.values()
            sites = _site(schemas.old, one), _site(schemas.new, other)
            yield change("direction-changed", old=sites[0], new=sites[1])
            yield from _compared(schemas, one, other)
            continue
        for sender in sorted(senders.keys() | others.keys()):
            if sender not in senders:
                yield change(_kind(others[sender], "added"), new=_site(schemas.new, others[sender]))
            elif sender not in others:
                yield change(_kind(senders[sender], "removed"), old=_site(schemas.old, senders[sender]))
            else:
                yield from _compared(schemas, senders[sender], others[sender])


def compare_errors(old: Iterable[ErrorCode], new: Iterable[ErrorCode]) -> Iterator[Change]:
    """Yield the differences between the error codes; their descriptions do not count."""
    before, after = {each.code: each.name for each in old}, {each.code: each.name for each in new}
    removed = {name: code for code, name in before.items() if code not in after}
    added = {name: code for code, name in after.items() if code not in before}
    for code in sorted(before.keys() | after.keys()):
        if code not in after:
            if before[code] not in added:
                yield change("error-removed", old=_error(code, before[code]))
        elif code not in before:
            if after[code] in removed:
                yield change(
                    "error-code-changed", old=_error(removed[after[code]], after[code]), new=_error(code, after[code])
                )
            else:
                yield change("error-added", new=_error(code, after[code]))
        elif before[code] != after[code]:
            yield change("error-name-changed", old=_error(code, before[code]), new=_error(code, after[code]))


def holders(schema: ir.Schema, methods: Iterable[Method]) -> dict[str, set[str]]:
    """Return, for each definition, the messages that contain it at any depth: ``tools/call result``."""
    found: dict[str, set[str]] = {}
    for method in methods:
        results = [*ir.names(method.result)] if method.result is not None else []
        results += [method.task_result] if method.task_result else []
        for part, roots in (("params", [*ir.names(method.params)]), ("result", results)):
            label = f"{method.name} {part}"
            pending = [*roots]
            while pending:
                name = pending.pop()
                if label not in (labels := found.setdefault(name, set())):
                    labels.add(label)
                    pending += _mentioned(schema.definitions[name])
    return found


def _mentioned(definition: ir.Definition) -> Iterator[str]:
    held = [each.type for each in definition.properties] if isinstance(definition, ir.Object) else [definition.type]
    return (name for ref in held for name in ir.names(ref))


def _by_name(methods: Iterable[Method]) -> dict[tuple[bool, str], _Senders]:
    """Return the messages by name and sender; requests and notifications are separate."""
    found: dict[tuple[bool, str], _Senders] = {}
    for each in methods:
        found.setdefault((each.kind == "notification", each.name), {}).setdefault(each.sender, each)
    return found


def _kind(method: Method, what: str) -> Kind:
    is_notification = method.kind == "notification"
    if what == "added":
        return "notification-added" if is_notification else "request-added"
    return "notification-removed" if is_notification else "request-removed"


def _compared(schemas: SchemaPair, old: Method, new: Method) -> Iterator[Change]:
    """Yield how one message changed."""
    one, other = _site(schemas.old, old), _site(schemas.new, new)
    if old.kind != new.kind:
        yield _text_change("carrier-changed", one, other, old.kind, new.kind)
    if not schemas.alike(old.params, new.params):
        yield _typed("params-changed", schemas, (one, old.params), (other, new.params))
    if old.params_required != new.params_required:
        yield change(
            "params-requiredness-changed",
            old=replace(one, shape="", required=old.params_required),
            new=replace(other, shape="", required=new.params_required),
            effect="narrowed" if new.params_required else "widened",
        )
    if old.result is not None and new.result is not None and not schemas.alike(old.result, new.result):
        yield _typed("result-changed", schemas, (one, old.result), (other, new.result))
    if old.task_result != new.task_result:
        yield _text_change("task-result-changed", one, other, old.task_result, new.task_result)
    if old.capability != new.capability:
        yield _text_change("capability-changed", one, other, ".".join(old.capability), ".".join(new.capability))


def _text_change(kind: Kind, old: Site, new: Site, before: str, after: str) -> Change:
    return change(kind, old=replace(old, shape=before), new=replace(new, shape=after))


def _typed(kind: Kind, schemas: SchemaPair, old: tuple[Site, ir.TypeRef], new: tuple[Site, ir.TypeRef]) -> Change:
    return change(
        kind,
        old=replace(old[0], shape=type_text(schemas.old.schema, old[1])),
        new=replace(new[0], shape=type_text(schemas.new.schema, new[1])),
        effect=schemas.effect(old[1], new[1]),
    )


def _site(side: PairedSchema, method: Method) -> Site:
    """Return the site of a message; its shape shows its params and its result."""
    shape = type_text(side.schema, method.params)
    if method.result is not None:
        shape += f" -> {type_text(side.schema, method.result)}"
    return Site(
        name=method.name,
        sender=method.sender,
        carrier=method.kind,
        pointer=side.schema.definitions[method.definition].pointer,
        shape=shape,
    )


def _error(code: int, name: str) -> Site:
    return Site(name=str(code), shape=name)
