"""Validate one part of a message against its revision, and name its type.

The decoders of the bindings come first, because they are fast. `mcpgen.runtime.adapt.payloads` checks again what they
reject, to find the place of the error.
"""

from __future__ import annotations

import typing
from functools import cache
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from mcpgen.generated import registry
from mcpgen.runtime.adapt.json_pointer import is_object
from mcpgen.runtime.adapt.payloads import (
    Payload,
    bindings,
    definition_payload,
    message_payload,
    needs_params,
    senders,
)
from mcpgen.runtime.errors import InvalidPayload, UnknownDefinition
from mcpgen.runtime.protocol.trace.annotations import Finding
from mcpgen.runtime.protocol.trace.foreign_keys import defined_when, foreign_keys, foreign_keys_of_open

if TYPE_CHECKING:
    from types import ModuleType

    from mcpgen.runtime.adapt.payloads import Part, Sender

__all__ = ["Validation", "is_method_of_era", "misplaced_method", "validate"]

_UNREADABLE: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError, ValueError)
_MAX_QUOTED_METHOD: Final = 100
_decode: Final = msgspec.json.Decoder().decode


class Validation(Struct, frozen=True, gc=False):
    """The result of validating one part of a message.

    Attributes:
        type: The name of its type in the revision.
        value: The JSON value; None if it is absent or not readable.
        findings: What is wrong with it.
    """

    type: str | None
    value: Any
    findings: list[Finding]


class _PartTypes(Struct, frozen=True, gc=False):
    """The types that one part of a message can have, and their names."""

    payload: Payload
    names: tuple[str, ...]
    views: tuple[type[Struct] | None, ...]
    is_required: bool


def validate(label: str, method: str, part: Part, sender: Sender, raw: Raw | UnsetType) -> Validation:
    """Validate one part of a message.

    Args:
        label: The revision.
        method: A method that *sender* can send in this revision.
        part: The part of the message.
        sender: The sender of the request or the notification.
        raw: The part, undecoded.
    """
    types = _part_types(label, method, part, sender)
    if raw is UNSET:
        missing = [Finding("schema", "", f"`params` is missing; {method} requires it")] if types.is_required else []
        return Validation(types.names[0], None, missing)
    prefix = "/result" if part == "result" else "/error" if part == "error" else "/params"
    try:
        value = _decode(raw)
    except _UNREADABLE:
        reason = "the value has too many nested levels, or a number that is too large"
        return Validation(types.names[0], None, [Finding("schema", prefix, reason)])
    for name, view, decode in zip(types.names, types.views, types.payload.decoders, strict=True):
        try:
            model = decode(raw)
        except _UNREADABLE:
            continue
        if isinstance(model, Struct):
            return Validation(type(model).__name__, value, foreign_keys(label, model, value, prefix))
        return Validation(name, value, [] if view is None else foreign_keys_of_open(label, view, value, prefix))
    return _rejected(label, types, value, prefix)


def _rejected(label: str, types: _PartTypes, value: Any, prefix: str) -> Validation:  # noqa: ANN401 (any JSON value)
    name, payload = types.names[0], types.payload
    if is_object(value) and (arm := _arm(label, name, value)) is not None:
        name, payload = arm.what, arm
    try:
        payload.check(value)
    except InvalidPayload as error:
        return Validation(name, value, [Finding("schema", prefix + error.pointer, error.reason)])
    return Validation(name, value, [Finding("schema", prefix, f"the value is not a valid {name}")])


def _arm(label: str, name: str, value: dict[str, Any]) -> Payload | None:
    """Return the arm of the union *name* that the value is meant to be; a decoder only says that it is none of them."""
    if name.endswith("ResultResponseResult"):
        is_input_required = value.get("resultType") == "input_required"
        arm = "InputRequiredResult" if is_input_required else name.removesuffix("ResponseResult")
    elif name == "ElicitRequestParams":
        arm = "ElicitRequestURLParams" if value.get("mode") == "url" else "ElicitRequestFormParams"
    else:
        return None
    try:
        return definition_payload(label, arm)
    except UnknownDefinition:
        return None


@cache  # bounded by the number of methods
def _part_types(label: str, method: str, part: Part, sender: Sender) -> _PartTypes:
    payload = message_payload(label, method, part, sender)
    models: ModuleType = bindings(label).models
    named: dict[str, Any] = vars(models)
    known = {id(each): name for name, each in named.items() if name in models.__all__}
    names = tuple(_name(each, known) for each in payload.types)
    return _PartTypes(payload, names, tuple(map(_view, payload.types)), needs_params(label, method, part, sender))


def _name(annotation: Any, known: dict[int, str]) -> str:  # noqa: ANN401 (any type)
    view = _view(annotation)
    return known.get(id(annotation)) or ("object" if view is None else view.__name__)


def _view(annotation: Any) -> type[Struct] | None:  # noqa: ANN401 (any type)
    """Return the class of *annotation*, or of the typed view of its values."""
    for each in (annotation, *typing.get_args(annotation)):
        if isinstance(each, type) and issubclass(each, Struct):
            return each
    return None


def misplaced_method(label: str, method: str, part: Part, sender: Sender) -> Finding | None:
    """Return a finding if *sender* cannot send a request or notification of *method* in this revision.

    Args:
        label: The revision.
        method: The method, which may be unknown.
        part: ``params`` for a request, or ``notification``.
        sender: The sender of the message.
    """
    able = senders(label, method, part)
    is_inside = part == "params" and method in bindings(label).methods.INPUT_REQUESTS
    if sender in able and not is_inside:
        return None
    shown = method if len(method) <= _MAX_QUOTED_METHOD else f"{method[:_MAX_QUOTED_METHOD]}…"
    kind = "notification" if part == "notification" else "request"
    if is_inside:
        return Finding("direction", "/method", f"in {label}, {shown} must be inside `inputRequests` of a result")
    if able:
        return Finding("direction", "/method", f"{label} allows {shown} only from a {able[0]}, but a {sender} sent it")
    if part == "notification" and senders(label, method, "params"):
        return Finding("method", "", f"{shown} is a request, but has no id")
    if part == "params" and senders(label, method, "notification"):
        return Finding("method", "/id", f"{shown} is a notification, but has an id")
    having = [each.label for each in registry.known() if senders(each.label, method, part)]
    elsewhere = f" ({defined_when(label, having)})" if having else ""
    return Finding("method", "/method", f"{label} has no {kind} {shown}{elsewhere}")


def is_method_of_era(label: str, method: str, part: Part) -> bool:
    """Return whether a revision of the same era has a request or a notification of *method*."""
    era = registry.revision(label).era
    return any(each.era == era and senders(each.label, method, part) for each in registry.known())
