"""Validate the messages of extensions, with the bindings of the known extensions.

A known extension is used for its own methods, and for a message of the protocol that the extension changes, if the
client has declared the extension.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from mcpgen.runtime.adapt.extensions import extension_message, known_extensions
from mcpgen.runtime.adapt.json_pointer import is_object
from mcpgen.runtime.adapt.payloads import Part, Sender
from mcpgen.runtime.errors import InvalidPayload
from mcpgen.runtime.protocol.trace.annotations import Finding
from mcpgen.runtime.protocol.trace.foreign_keys import foreign_keys
from mcpgen.runtime.protocol.trace.validation import Validation

__all__ = ["MessagePart", "declared_extensions", "undeclared", "validate_changed", "validate_new"]

_UNREADABLE: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError, ValueError)
_decode: Final = msgspec.json.Decoder().decode


class _Capabilities(Struct):
    extensions: dict[str, Raw] = {}


_decode_capabilities: Final = msgspec.json.Decoder(_Capabilities).decode


def declared_extensions(capabilities: Raw | UnsetType) -> frozenset[str]:
    """Return the identifiers of the known extensions in a client's capabilities; none if these cannot be read."""
    try:
        declared = {} if capabilities is UNSET else _decode_capabilities(capabilities).extensions
    except _UNREADABLE:
        return frozenset()
    return frozenset(each.EXTENSION for each in known_extensions() if each.EXTENSION in declared)


def undeclared(identifier: str) -> Finding:
    """Return the finding about a message of an extension that the client has not declared."""
    reason = f"the client has not declared the extension {identifier}, to which this method belongs"
    return Finding("method", "/method", reason)


class MessagePart(Struct, frozen=True, gc=False):
    """One part of a message, to be validated.

    Attributes:
        method: The method.
        part: The part of the message.
        sender: The sender of the request or the notification.
        raw: The part, undecoded.
    """

    method: str
    part: Part
    sender: Sender
    raw: Raw | UnsetType


def validate_new(message: MessagePart) -> tuple[str, Validation] | None:
    """Return the extension of a method that the revision does not have, and the validation of the part.

    None: no known extension has such a method.
    """
    for package in known_extensions():
        found = _validate(package, message)
        if found is not None:
            return package.EXTENSION, found
    return None


def validate_changed(validation: Validation, message: MessagePart, declared: frozenset[str]) -> Validation:
    """Return *validation*, or that of a declared extension that changes the method, if that fits better."""
    if not validation.findings or not declared:
        return validation
    for package in known_extensions():
        if package.EXTENSION in declared:
            found = _validate(package, message)
            if found is not None and _badness(found) < _badness(validation):
                return found
    return validation


def _badness(validation: Validation) -> tuple[int, int]:
    """Return the numbers of violations and of all findings."""
    violations = sum(each.kind != "unknown key" for each in validation.findings)
    return violations, len(validation.findings)


def _validate(package: Any, message: MessagePart) -> Validation | None:  # noqa: ANN401 (a generated package)
    payload = extension_message(package, message.method, message.part, message.sender)
    if payload is None:
        return None
    annotation, part, raw = payload.types[0], message.part, message.raw
    name = getattr(annotation, "__name__", "object")
    if raw is UNSET:
        return Validation(name, None, [Finding("schema", "", f"`params` is missing; {message.method} requires it")])
    prefix = "/result" if part == "result" else "/error" if part == "error" else "/params"
    try:
        value = _decode(raw)
    except _UNREADABLE:
        reason = "the value has too many nested levels, or a number that is too large"
        return Validation(name, None, [Finding("schema", prefix, reason)])
    try:
        model, _ = payload.check(value)
    except InvalidPayload as error:
        return Validation(name, value, [Finding("schema", prefix + error.pointer, error.reason)])
    if isinstance(model, Struct) and is_object(value):
        return Validation(type(model).__name__, value, foreign_keys(package.BASE, model, value, prefix))
    return Validation(name, value, [])
