"""What a revision says of a message: what its type is called, and whether it is valid.

The decoders of the bindings judge, since they are fast. What they refuse is looked at again by
`mcpgen.runtime.adapt.payloads`, which knows the place.
"""

from __future__ import annotations

import typing
from functools import cache
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from mcpgen.generated import registry
from mcpgen.runtime.adapt.json_pointer import is_object
from mcpgen.runtime.adapt.payloads import Payload, bindings, definition_payload, message_payload, senders
from mcpgen.runtime.cli.trace.annotations import Finding
from mcpgen.runtime.cli.trace.foreign_keys import foreign_keys, foreign_keys_of_open, when
from mcpgen.runtime.errors import InvalidPayload, UnknownDefinition

if TYPE_CHECKING:
    from types import ModuleType

    from mcpgen.runtime.adapt.payloads import Part, Sender

__all__ = ["Verdict", "validate", "misused"]

_UNREADABLE: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError, ValueError)
_MOST_CHARACTERS: Final = 100  # of what is quoted
_decode: Final = msgspec.json.Decoder().decode


class Verdict(Struct, frozen=True, gc=False):
    """What was found about one part of a message.

    Attributes:
        type: What the revision calls it.
        value: The JSON value; None if there is none that can be read.
        findings: What is wrong with it.
    """

    type: str | None
    value: Any
    findings: list[Finding]


class _Place(Struct, frozen=True, gc=False):
    """Where a part of a message stands: what it may be, and what that is called."""

    payload: Payload
    names: tuple[str, ...]
    views: tuple[type[Struct] | None, ...]
    is_required: bool


def validate(label: str, method: str, part: Part, sender: Sender, raw: Raw | UnsetType) -> Verdict:
    """Hold a part of a message against its revision.

    Args:
        label: The revision.
        method: A method that it has, from *sender*.
        part: Which part.
        sender: Who sends the request or the notification.
        raw: The part as it came.
    """
    place = _place(label, method, part, sender)
    if raw is UNSET:
        missing = [Finding("schema", "", f"params are missing, which {method} needs")] if place.is_required else []
        return Verdict(place.names[0], None, missing)
    prefix = "/result" if part == "result" else "/error" if part == "error" else "/params"
    try:
        value = _decode(raw)
    except _UNREADABLE:
        reason = "it is nested too deeply, or holds a number too large to be looked at"
        return Verdict(place.names[0], None, [Finding("schema", prefix, reason)])
    for name, view, decode in zip(place.names, place.views, place.payload.decoders, strict=True):
        try:
            model = decode(raw)
        except _UNREADABLE:
            continue
        if isinstance(model, Struct):
            return Verdict(type(model).__name__, value, foreign_keys(label, model, value, prefix))
        return Verdict(name, value, [] if view is None else foreign_keys_of_open(label, view, value, prefix))
    return _refused(label, place, value, prefix)


def _refused(label: str, place: _Place, value: Any, prefix: str) -> Verdict:  # noqa: ANN401 (any JSON value)
    name, payload = place.names[0], place.payload
    if is_object(value) and (arm := _arm(label, name, value)) is not None:
        name = arm
        payload = definition_payload(label, arm)
    try:
        payload.check(value)
    except InvalidPayload as error:
        return Verdict(name, value, [Finding("schema", prefix + error.pointer, error.reason)])
    return Verdict(name, value, [Finding("schema", prefix, f"it is no {name}")])


def _arm(label: str, name: str, value: dict[str, Any]) -> str | None:
    """Return which arm of the union *name* the value means, where a decoder can only say that it is none of them."""
    candidates: list[str] = []
    if name.endswith("ResultResponseResult"):
        is_demand = value.get("resultType") == "input_required"
        candidates = ["InputRequiredResult" if is_demand else name.removesuffix("ResponseResult")]
    elif name == "ElicitRequestParams":
        candidates = ["ElicitRequestURLParams" if value.get("mode") == "url" else "ElicitRequestFormParams"]
    for each in candidates:
        try:
            definition_payload(label, each)
        except UnknownDefinition:
            continue
        return each
    return None


@cache  # of the methods that there are, so that it is bounded
def _place(label: str, method: str, part: Part, sender: Sender) -> _Place:
    payload = message_payload(label, method, part, sender)
    models: ModuleType = bindings(label).models
    named: dict[str, Any] = vars(models)
    known = {id(each): name for name, each in named.items() if name in models.__all__}
    names = tuple(_name(each, known) for each in payload.types)
    methods = bindings(label).methods
    tables = (
        (methods.CLIENT_NOTIFICATIONS if sender == "client" else methods.SERVER_NOTIFICATIONS,)
        if part == "notification"
        else (methods.CLIENT_REQUESTS,)
        if sender == "client"
        else (methods.SERVER_REQUESTS, methods.INPUT_REQUESTS)
    )
    is_required = part != "result" and any(table[method].params_required for table in tables if method in table)
    return _Place(payload, names, tuple(map(_view, payload.types)), is_required)


def _name(annotation: Any, known: dict[int, str]) -> str:  # noqa: ANN401 (any type)
    view = _view(annotation)
    return known.get(id(annotation)) or ("object" if view is None else view.__name__)


def _view(annotation: Any) -> type[Struct] | None:  # noqa: ANN401 (any type)
    """Return the class that *annotation* is, or that is the view of its values."""
    for each in (annotation, *typing.get_args(annotation)):
        if isinstance(each, type) and issubclass(each, Struct):
            return each
    return None


def misused(label: str, method: str, part: Part, sender: Sender) -> Finding | None:
    """Return what is wrong with a request (part: params) or notification of *method* from *sender*, if it has no place.

    Args:
        label: The revision.
        method: The method, which may be none.
        part: ``params`` of a request, or ``notification``.
        sender: Who sent it.
    """
    able = senders(label, method, part)
    is_inside = part == "params" and method in bindings(label).methods.INPUT_REQUESTS
    if sender in able and not is_inside:
        return None
    shown = method if len(method) <= _MOST_CHARACTERS else f"{method[:_MOST_CHARACTERS]}…"
    kind = "notification" if part == "notification" else "request"
    if is_inside:
        return Finding("direction", "/method", f"{label} has {shown} only inside a result, as a demand for input")
    if able:
        return Finding("direction", "/method", f"a {sender} does not send {shown}; in {label}, a {able[0]} does")
    if part == "notification" and senders(label, method, "params"):
        return Finding("method", "", f"{shown} is a request, but has no id")
    if part == "params" and senders(label, method, "notification"):
        return Finding("method", "/id", f"{shown} is a notification, but has an id")
    having = [each.label for each in registry.REVISIONS if senders(each.label, method, part)]
    elsewhere = f" ({when(label, having)})" if having else ""
    return Finding("method", "/method", f"{label} has no {kind} {shown}{elsewhere}")
