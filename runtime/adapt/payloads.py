"""The types that a revision allows for a part of a message, or for one of its definitions.

A value is checked like one from a peer: it is encoded, and decoded with the bindings of its revision. Converting it in
memory would not be faster, and less exact: only the decoder selects the arm of a union and checks the range of numbers.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import msgspec
from msgspec import Struct

from mcpgen.generated import registry
from mcpgen.runtime.adapt.json_pointer import is_array, is_object, linked_pointer, pointer_to
from mcpgen.runtime.errors import InvalidPayload, UnknownDefinition, UnknownMethod, UnknownRevision, UsageError

if TYPE_CHECKING:
    from types import ModuleType

__all__ = [
    "Part",
    "Payload",
    "Sender",
    "bindings",
    "decoder_of",
    "definition_payload",
    "message_payload",
    "needs_params",
    "senders",
]

Part: TypeAlias = Literal["params", "result", "notification", "error"]
"""A part of a message: the params of a request or a notification, or the answer to a request."""

Sender: TypeAlias = Literal["client", "server"]
"""The side that sends a request or a notification; results and errors go the other way."""

# What the modules export besides definitions.
_FUNCTIONS = frozenset({"decode", "decoder"})

# Errors of msgspec quote the peer's value, which may be as long as a message.
MAX_REASON_CHARS = 400


class Payload(Struct, frozen=True):
    """The types of one place of a message.

    Attributes:
        revision: The revision that defines them.
        what: The place, in words.
        types: The allowed types; the first is the usual one.
        decoders: The decoder of each type.
        holder: The key of the object for data that is not part of the protocol: ``_meta``, or ``data`` of an error.
    """

    revision: str
    what: str
    types: tuple[Any, ...]
    decoders: tuple[Callable[[bytes], Any], ...]
    holder: Literal["_meta", "data"]

    def check(self, value: object) -> tuple[Any, Any]:
        """Return *value* decoded, and the type that it was decoded as.

        Raises:
            InvalidPayload: It is not JSON, or not of one of these types.
        """
        data = self._encode(value)
        found = ""  # the message alone: the exception would keep this frame, and so the data, in a cycle
        for annotation, decode in zip(self.types, self.decoders, strict=True):
            try:
                return decode(data), annotation
            except RecursionError:
                raise self.too_deep() from None
            except msgspec.DecodeError as error:
                found = found or str(error)
        reason, pointer = _placed(found, value)
        raise self.invalid(reason, pointer)

    def invalid(self, reason: str, pointer: str = "") -> InvalidPayload:
        """Return the error for an invalid value."""
        return InvalidPayload(revision=self.revision, pointer=pointer, what=self.what, reason=reason)

    def too_deep(self) -> InvalidPayload:
        """Return the error for a value that is nested deeper than the interpreter's recursion limit."""
        return self.invalid("it is nested too deeply")

    def _encode(self, value: object) -> bytes:
        try:
            data = msgspec.json.encode(value)
            # msgspec encodes more than JSON: NaN as null, a tuple as an array, the key 1 as "1". These change.
            if msgspec.json.decode(data) == value:
                return data
        except RecursionError:
            raise self.too_deep() from None
        except (TypeError, ValueError, OverflowError, msgspec.DecodeError):
            pass  # `_first_non_json` finds the place
        reason, pointer = _first_non_json(value)
        raise self.invalid(reason, pointer)


def bindings(label: str) -> ModuleType:
    """Import and return the bindings of the revision *label*.

    Raises:
        UnknownRevision: There are none.
    """
    try:
        return registry.revision(label).bindings()
    except registry.UnknownRevision:
        raise UnknownRevision(label) from None


def decoder_of(label: str) -> Callable[[Any], Callable[[bytes], Any]]:
    """Return what `decoder` of the bindings of *label* does; in a draft, texts for patterns are limited.

    Raises:
        UnknownRevision: There are no bindings.
    """
    if any(each.label == label for each in registry.REVISIONS):  # they have no patterns, and a search takes 13 ms
        decoder: Callable[[Any], Callable[[bytes], Any]] = bindings(label).decoder
        return decoder
    from mcpgen.runtime.adapt.pattern_texts import package_decoder  # noqa: PLC0415 (few programs use a draft)

    return package_decoder(bindings(label))


def _find_installed(label: str) -> None:
    """Register the installed draft *label*, if there is one."""
    # Reading the metadata of installed packages takes 20 ms, and most programs name released revisions only.
    from mcpgen.runtime.adapt.registration import register_installed  # noqa: PLC0415

    register_installed(label)


registry.find_with(_find_installed)


def definition_payload(label: str, name: str) -> Payload:
    """Return the types of the definition *name* in the revision *label*.

    Raises:
        UnknownRevision: There is no such revision.
        UnknownDefinition: It has no such definition.
    """
    door = bindings(label)
    if name not in {*door.models.__all__} - _FUNCTIONS:  # then load `messages`, which few programs need
        names = sorted({*door.models.__all__, *door.messages.__all__} - _FUNCTIONS)
        if name not in names:
            from difflib import get_close_matches  # noqa: PLC0415 (only for the message of an error)

            raise UnknownDefinition(name, revision=label, similar=get_close_matches(str(name), names))
    holder: Literal["_meta", "data"] = "data" if name == "Error" else "_meta"
    return _payload(label, name, [getattr(door, name)], holder)


def message_payload(label: str, method: str, part: Part, sender: Sender | None) -> Payload:
    """Return the types of *part* of *method* in the revision *label*.

    Raises:
        UnknownRevision: There is no such revision.
        UnknownMethod: It has no such method, or not of the kind that has this part, or not from this sender.
        UsageError: *part* or *sender* is not one of the allowed names.
    """
    methods: ModuleType = bindings(label).methods
    found = _found(label, method, part, sender)
    if part == "error":
        return _payload(label, f"an error of {method}", [bindings(label).models.Error], "data")
    if part == "result":
        # A request that may be answered with a task has a second entry, which is not in the tables.
        named: dict[str, Any] = vars(methods)
        entries = [*found, *(each for each in named.values() if isinstance(each, methods.RequestMethod))]
        types = [each.result for each in entries if each.name == method]
        return _payload(label, f"the result of {method}", types, "_meta")
    return _payload(label, f"the params of {method}", [each.params for each in found], "_meta")


def senders(label: str, method: str, part: Part) -> list[Sender]:
    """Return the senders of *method* in the revision *label*; none if it has no such method of that kind."""
    tables = _tables(bindings(label).methods, part)
    return list(dict.fromkeys(sender for sender, table in tables if method in table))


def needs_params(label: str, method: str, part: Part, sender: Sender) -> bool:
    """Return whether a request or notification without params is invalid in the revision *label*."""
    if part not in ("params", "notification"):
        return False
    tables = [table for side, table in _tables(bindings(label).methods, part) if side == sender]
    return any(table[method].params_required for table in tables if method in table)


def _found(label: str, method: str, part: Part, sender: Sender | None) -> list[Any]:
    """Return the entries of *method* in the tables of its revision."""
    methods = bindings(label).methods
    if part not in ("params", "result", "notification", "error"):
        raise UsageError(f"`part` is {part!r}; use params, result, notification or error")
    if sender not in (None, "client", "server"):
        raise UsageError(f"`sender` is {sender!r}; use client or server")
    tables = [table for side, table in _tables(methods, part) if sender in (None, side)]
    found = [table[method] for table in tables if method in table]
    if not found:
        kind = "notification" if part == "notification" else "request"
        known = sorted({name for table in tables for name in table})
        by = f" from a {sender}" if sender else ""
        raise UnknownMethod(method, revision=label, kind=kind + by, known=known, hint=_hint(methods, method, kind))
    return found


def _hint(methods: ModuleType, method: str, expected: str) -> str:
    """Return the kind and the sender of *method*; with the names of its parts, if *expected* is another kind."""
    requests = [sender for sender, table in _tables(methods, "params") if method in table]
    notifications = [sender for sender, table in _tables(methods, "notification") if method in table]
    if requests:
        parts = "; its parts are params, result and error" if expected != "request" else ""
        return f"it is a request from a {' or '.join(dict.fromkeys(requests))}{parts}"
    parts = "; its part is `notification`" if expected != "notification" else ""
    return f"it is a notification from a {' or '.join(notifications)}{parts}" if notifications else ""


def _tables(methods: ModuleType, part: Part) -> list[tuple[Sender, Any]]:
    if part == "notification":
        return [("client", methods.CLIENT_NOTIFICATIONS), ("server", methods.SERVER_NOTIFICATIONS)]
    return [
        ("client", methods.CLIENT_REQUESTS),
        ("server", methods.SERVER_REQUESTS),
        ("server", methods.INPUT_REQUESTS),
    ]


def _payload(label: str, what: str, types: list[Any], holder: Literal["_meta", "data"]) -> Payload:
    distinct: list[Any] = []
    for each in types:  # not in a set, because aliases of unions may not be hashable
        if not any(each is known for known in distinct):
            distinct.append(each)
    decoder = decoder_of(label)
    return Payload(label, what, tuple(distinct), tuple(decoder(each) for each in distinct), holder)


def _first_non_json(value: object) -> tuple[str, str]:
    """Return why *value* is not JSON, and the pointer to the first such place."""
    pending: list[tuple[tuple[Any, ...], Any]] = [((), value)]
    while pending:
        at, found = pending.pop()
        if reason := _non_json(found):
            return reason, linked_pointer(at)
        members: Any = found.items() if is_object(found) else enumerate(found) if is_array(found) else ()
        pending.extend(reversed([((at, key), member) for key, member in members]))
    return "it is not a JSON value", ""


def _non_json(value: object) -> str | None:
    match value:
        case None | bool():
            return None
        case str() if not _is_text(value):
            return "a string holds half of a surrogate pair"
        case float() if not math.isfinite(value):
            return f"{value} is not a JSON value"
        case str() | int() | float() if _is_writable(value):
            return None
        case int() if type(value) is int:
            return "an integer is too large"
        case list():
            return None
        case dict():
            keys: list[object] = list(value)  # pyright: ignore[reportUnknownArgumentType]  # of anything
            return next((reason for key in keys if (reason := _bad_key(key))), None)
        case msgspec.Struct():
            return f"a value of the type {type(value).__name__} is not a JSON value; convert it: msgspec.to_builtins(…)"
        case _:
            return f"a value of the type {type(value).__name__} is not a JSON value"


def _bad_key(key: object) -> str | None:
    if not isinstance(key, str):
        return f"a key of an object is not a string: {key!r}"[:MAX_REASON_CHARS]
    return None if _is_text(key) else f"a key of an object holds half of a surrogate pair: {key!r}"[:MAX_REASON_CHARS]


def _is_text(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _is_writable(value: str | float) -> bool:
    try:
        msgspec.json.encode(value)
    except (ValueError, OverflowError, TypeError):
        # More than 64 bits in older releases of msgspec, Python's limit of digits in newer ones, or a subclass.
        return False
    return True


_PLACE = re.compile(r"(?P<what>.*?)(?: in `(?P<inner>[^`]*)`)?(?: - at `(?:key` in `)?\$(?P<path>[^`]*)`)?", re.DOTALL)


def _placed(message: str, value: object) -> tuple[str, str]:
    """Split an error *message* of the bindings about *value* into the reason and the pointer."""
    if len(message) > 10 * MAX_REASON_CHARS:  # keep the end, which holds the place
        message = f"{message[:MAX_REASON_CHARS]}...{message[-4 * MAX_REASON_CHARS :]}"
    match = _PLACE.fullmatch(message)
    if match is None:  # for type checkers; the pattern matches any text
        return message, ""
    what, inner, path = match.group("what", "inner", "path")
    path = path or ""
    if inner:
        path += inner if inner.startswith("[") else f".{inner}"
    what = what if len(what) <= MAX_REASON_CHARS else f"{what[:MAX_REASON_CHARS]}..."
    pointer, is_map = _pointer(path, value)
    return f"{what} in one of its values" if is_map else what, pointer


def _pointer(path: str, value: Any) -> tuple[str, bool]:  # noqa: ANN401 (any JSON value)
    """Return msgspec's *path* as a pointer into *value*, up to the first part that is ambiguous.

    Also return whether the pointer ends at a map, one of whose values is meant: without this, an error about the value
    would read as one about the map.
    """
    tokens: list[str | int] = []
    while path:
        if path.startswith("["):
            inside, _, path = path[1:].partition("]")
            if not (inside.isdigit() and is_array(value) and int(inside) < len(value)):
                # "..." stands for some key of a map
                return pointer_to(tokens), inside == "..." and is_object(value)
            tokens.append(int(inside))
            value = value[int(inside)]
            continue
        rest = path[1:]
        # Keys may contain dots (io.modelcontextprotocol/clientInfo), so compare with the keys of the value.
        keys = [key for key in value if _begins(rest, key)] if is_object(value) else []
        if not keys:
            break
        key = max(keys, key=len)
        tokens.append(key)
        value, path = value[key], rest[len(key) :]
    return pointer_to(tokens), False


def _begins(path: str, key: str) -> bool:
    return path.startswith(key) and path[len(key) : len(key) + 1] in ("", ".", "[")
