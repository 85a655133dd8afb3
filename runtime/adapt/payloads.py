"""What a revision allows as one part of a message, or as one of its definitions.

A value is checked as a peer's would be that came over the wire: encoded, and decoded with the bindings of its revision.
Converting it in memory would be no faster, and not as exact: unions are told apart, and numbers judged, by the decoder.
"""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import msgspec
from msgspec import Struct

from mcpgen.generated import registry
from mcpgen.runtime.adapt.json_pointer import is_array, is_object, pointer_to
from mcpgen.runtime.errors import InvalidPayload, UnknownDefinition, UnknownMethod, UnknownRevision, UsageError

if TYPE_CHECKING:
    from types import ModuleType

__all__ = ["Part", "Payload", "Sender", "bindings", "definition_payload", "message_payload", "senders"]

Part: TypeAlias = Literal["params", "result", "notification", "error"]
"""A part of a message: what a request or a notification carries, or what a request is answered with."""

Sender: TypeAlias = Literal["client", "server"]
"""Who sends a request or a notification; results and errors go the other way."""

# An error is for people. msgspec quotes what it does not like, which a peer can make as long as a message.
MOST_CHARACTERS = 400


class Payload(Struct, frozen=True):
    """What one place of a message may hold.

    Attributes:
        revision: The revision whose rules these are.
        what: The place, in words.
        types: The types that it may have; the first is the usual one.
        decoders: Of each type, what decodes it.
        holder: The key whose object takes what is no part of the protocol: ``_meta``, or ``data`` of an error.
    """

    revision: str
    what: str
    types: tuple[Any, ...]
    decoders: tuple[Callable[[bytes], Any], ...]
    holder: Literal["_meta", "data"]

    def check(self, value: object) -> tuple[Any, Any]:
        """Return *value* decoded, and the type that it was decoded as.

        Raises:
            InvalidPayload: It is not JSON, or not of these types.
        """
        data = self._encode(value)
        failure: msgspec.DecodeError | None = None
        for annotation, decode in zip(self.types, self.decoders, strict=True):
            try:
                return decode(data), annotation
            except RecursionError:
                raise self.too_deep() from None
            except msgspec.DecodeError as error:
                failure = failure or error
        reason, pointer = _placed(str(failure), value)
        raise self.invalid(reason, pointer)

    def invalid(self, reason: str, pointer: str = "") -> InvalidPayload:
        """Return the error that says what is wrong with a value."""
        return InvalidPayload(revision=self.revision, pointer=pointer, what=self.what, reason=reason)

    def too_deep(self) -> InvalidPayload:
        """Return the error for a value that is nested deeper than this interpreter can follow."""
        return self.invalid("it is nested too deeply")

    def _encode(self, value: object) -> bytes:
        try:
            data = msgspec.json.encode(value)
            # msgspec writes more than JSON: NaN as null, a tuple as an array, the key 1 as "1". They come back changed.
            if msgspec.json.decode(data) == value:
                return data
        except RecursionError:
            raise self.too_deep() from None
        except (TypeError, ValueError, OverflowError, msgspec.DecodeError):
            pass  # found again, and the place with it
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


def definition_payload(label: str, name: str) -> Payload:
    """Return what the revision *label* allows as its definition *name*.

    Raises:
        UnknownRevision: There is no such revision.
        UnknownDefinition: It has no such definition.
    """
    door = bindings(label)
    names = sorted({*door.models.__all__, *door.messages.__all__} - {"decode", "decoder"})
    if name not in names:
        raise UnknownDefinition(name, revision=label, similar=difflib.get_close_matches(name, names))
    holder: Literal["_meta", "data"] = "data" if name == "Error" else "_meta"
    return _payload(label, name, [getattr(door, name)], holder)


def message_payload(label: str, method: str, part: Part, sender: Sender | None) -> Payload:
    """Return what the revision *label* allows as *part* of *method*.

    Raises:
        UnknownRevision: There is no such revision.
        UnknownMethod: It has no such method, or not of the kind that has this part, or not from this sender.
        UsageError: *part* is no part.
    """
    methods: ModuleType = bindings(label).methods
    found = _found(label, method, part, sender)
    if part == "error":
        return _payload(label, f"an error of {method}", [bindings(label).models.Error], "data")
    if part == "result":
        # A request that may be answered with a task has a second entry, which no table lists.
        named: dict[str, Any] = vars(methods)
        entries = [*found, *(each for each in named.values() if isinstance(each, methods.RequestMethod))]
        types = [each.result for each in entries if each.name == method]
        return _payload(label, f"the result of {method}", types, "_meta")
    return _payload(label, f"the params of {method}", [each.params for each in found], "_meta")


def senders(label: str, method: str, part: Part) -> list[Sender]:
    """Return who sends *method* in the revision *label*; nobody, if it has no such method of that kind."""
    tables = _tables(bindings(label).methods, part)
    return list(dict.fromkeys(sender for sender, table in tables if method in table))


def _found(label: str, method: str, part: Part, sender: Sender | None) -> list[Any]:
    """Return the entries of *method* in the tables of its revision."""
    methods = bindings(label).methods
    if part not in ("params", "result", "notification", "error"):
        raise UsageError(f"no part of a message is called {part!r}; it is params, result, notification or error")
    if sender not in (None, "client", "server"):
        raise UsageError(f"a sender is client or server, not {sender!r}")
    tables = [table for who, table in _tables(methods, part) if sender in (None, who)]
    found = [table[method] for table in tables if method in table]
    if not found:
        kind = "notification" if part == "notification" else "request"
        known = sorted({name for table in tables for name in table})
        by = f" from a {sender}" if sender else ""
        raise UnknownMethod(method, revision=label, kind=kind + by, known=known, hint=_hint(methods, method))
    return found


def _hint(methods: ModuleType, method: str) -> str:
    """Return what *method* is, for somebody who took it for something else."""
    requests = [sender for sender, table in _tables(methods, "params") if method in table]
    notifications = [sender for sender, table in _tables(methods, "notification") if method in table]
    if requests:
        return f"it is a request from a {' or '.join(dict.fromkeys(requests))}, with params, result and error"
    return f"it is a notification from a {' or '.join(notifications)}" if notifications else ""


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
    for each in types:  # not hashed: aliases of unions need not be hashable
        if not any(each is known for known in distinct):
            distinct.append(each)
    decoder = bindings(label).decoder
    return Payload(label, what, tuple(distinct), tuple(decoder(each) for each in distinct), holder)


def _first_non_json(value: object) -> tuple[str, str]:
    """Return what the first thing in *value* is that JSON cannot hold, and where."""
    pending: list[tuple[tuple[Any, ...], Any]] = [((), value)]
    while pending:
        at, found = pending.pop()
        if reason := _non_json(found):
            return reason, _linked_pointer(at)
        members: Any = found.items() if is_object(found) else enumerate(found) if is_array(found) else ()
        pending.extend(reversed([((at, key), member) for key, member in members]))
    return "it is not a JSON value", ""


def _non_json(value: object) -> str | None:
    match value:
        case None | bool():
            return None
        case str():
            return None if _is_text(value) else "a string holds half of a surrogate pair"
        case int():
            return None if _is_writable(value) else "an integer is too large"
        case float():
            return None if math.isfinite(value) else f"{value} is not a JSON value"
        case list():
            return None
        case dict():
            keys: list[object] = list(value)  # pyright: ignore[reportUnknownArgumentType]  # of anything
            bad = [key for key in keys if not (isinstance(key, str) and _is_text(key))]
            return f"a key of an object is not text: {bad[0]!r}"[:MOST_CHARACTERS] if bad else None
        case _:
            return f"a {type(value).__name__} is not a JSON value"


def _is_text(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _is_writable(number: int) -> bool:
    try:
        msgspec.json.encode(number)
    except (ValueError, OverflowError, TypeError):
        # 64 bits in older releases of msgspec; Python's limit of digits in newer; a subclass of int.
        return False
    return True


def _linked_pointer(at: tuple[Any, ...]) -> str:
    tokens: list[str | int] = []
    while at:
        at, token = at
        tokens.append(token)
    return pointer_to(reversed(tokens))


_PLACE = re.compile(r"(?P<what>.*?)(?: in `(?P<inner>[^`]*)`)?(?: - at `(?:key` in `)?\$(?P<path>[^`]*)`)?", re.DOTALL)


def _placed(message: str, value: object) -> tuple[str, str]:
    """Split an error *message* of the bindings about *value* into what is wrong, and the pointer to it."""
    if len(message) > 10 * MOST_CHARACTERS:  # the place is at the end, and made of names of ours
        message = f"{message[:MOST_CHARACTERS]}...{message[-4 * MOST_CHARACTERS :]}"
    match = _PLACE.fullmatch(message)
    if match is None:  # cannot be: the pattern takes any text
        return message, ""
    what, inner, path = match.group("what", "inner", "path")
    path = path or ""
    if inner:
        path += inner if inner.startswith("[") else f".{inner}"
    return (what if len(what) <= MOST_CHARACTERS else f"{what[:MOST_CHARACTERS]}..."), _pointer(path, value)


def _pointer(path: str, value: Any) -> str:  # noqa: ANN401 (any JSON value)
    """Return the pointer into *value* that msgspec's *path* means, as far as it can be told."""
    tokens: list[str | int] = []
    while path:
        if path.startswith("["):
            inside, _, path = path[1:].partition("]")
            if not (inside.isdigit() and is_array(value) and int(inside) < len(value)):
                break  # "..." is any key of a map: the message does not say which
            tokens.append(int(inside))
            value = value[int(inside)]
            continue
        rest = path[1:]
        # Names have dots (io.modelcontextprotocol/clientInfo), so the value is asked which are keys.
        keys = [key for key in value if _begins(rest, key)] if is_object(value) else []
        if not keys:
            break
        key = max(keys, key=len)
        tokens.append(key)
        value, path = value[key], rest[len(key) :]
    return pointer_to(tokens)


def _begins(path: str, key: str) -> bool:
    return path.startswith(key) and path[len(key) : len(key) + 1] in ("", ".", "[")
