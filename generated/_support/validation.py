"""The second part of decoding, for the values that msgspec cannot decode alone.

Copied by ``mcpgen build --out`` into the package of each revision; the original is in ``generated/_support``.

msgspec decodes a structural union as any value, and an open object as a dict. *Settling* finds the class of the former
and checks the keys of the latter. `Checked` settles the fields of an object, `decode` settles a whole message.
"""

from __future__ import annotations

import typing
from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import partial
from types import GenericAlias
from typing import Annotated, Any, TypeAlias, TypeVar, Union

import msgspec
from msgspec import UNSET, UnsetType, ValidationError
from msgspec.structs import force_setattr

from .structs import JSON, Model, Open

__all__ = [
    "Checked",
    "CheckedMeta",
    "Settle",
    "Settler",
    "decode",
    "decoder",
    "misplaced",
    "settler",
    "shortened",
    "unwrap",
]

T = TypeVar("T")
Settle: TypeAlias = Callable[[Any], Any]


class Settler(ABC):
    """Metadata in an annotation that says how a value is settled."""

    @abstractmethod
    def settle(self, value: Any) -> Any:
        """Return the settled form of *value*, which msgspec decoded.

        Raises:
            msgspec.ValidationError: *value* is not of this type.
        """


class Checked(Model, frozen=True):
    """Base of a class with fields to settle: structural unions and open objects.

    They are settled on construction as well, where a wrong value raises ValueError.
    """

    def __post_init__(self) -> None:
        """Settle the fields."""
        for attribute, wire, settle, is_replaced in _plans[type(self)]:
            value = getattr(self, attribute)
            if value is UNSET:
                continue
            try:
                settled = settle(value)
            except ValidationError as error:
                raise misplaced(error, wire) from None
            if is_replaced:
                force_setattr(self, attribute, settled)


class CheckedMeta(Checked, frozen=True):
    """Base of a class whose only field to settle is ``meta``, which most messages lack."""

    def __post_init__(self: Any) -> None:
        """Settle ``meta``."""
        if self.meta is not UNSET:
            Checked.__post_init__(self)


def misplaced(error: ValidationError, wire: str) -> ValueError:
    """Return the exception that a class raises for *error*, which occurred below its key *wire*.

    It is a plain ValueError: msgspec turns it into a ValidationError and adds the path to the object.
    """
    return ValueError(_placed(error, wire))


class _Plans(dict[Any, tuple[tuple[str, str, Settle, bool], ...]]):
    """By class, the fields to settle: (attribute, key, settler, whether to replace the value); made on first use."""

    def __missing__(self, cls: Any) -> tuple[tuple[str, str, Settle, bool], ...]:
        hints = typing.get_type_hints(cls, localns={}, include_extras=True)
        found: list[tuple[str, str, Settle, bool]] = []
        for attribute, wire in zip(cls.__struct_fields__, cls.__struct_encode_fields__, strict=True):
            settle, is_replaced = _field_settler(hints[attribute])
            if settle is not None:
                found.append((attribute, wire, settle, is_replaced))
        self[cls] = made = tuple(found)
        return made


def _field_settler(annotation: Any) -> tuple[Settle | None, bool]:
    """Return the settler of a field, and whether its result replaces the value of the field.

    An open object stays the same dict. Nearly every message has one, so this check calls no Python function.
    """
    arms = [each for each in typing.get_args(annotation) if each is not UnsetType] if _is_union(annotation) else []
    view = unwrap(arms[0] if len(arms) == 1 else annotation)[1]
    if view is not None:
        return partial(msgspec.convert, type=view), False
    return settler(annotation), True


def _is_union(annotation: Any) -> bool:
    return typing.get_origin(annotation) in (Union, typing.get_origin(int | str))


_plans = _Plans()


def unwrap(annotation: Any) -> tuple[Any, type[Open] | None]:
    """Return the type that msgspec decodes for *annotation*, and for an open object the view to check it with."""
    if typing.get_origin(annotation) is Annotated:
        for each in typing.get_args(annotation)[1:]:
            if isinstance(each, type) and issubclass(each, Open):
                return dict[str, JSON], each
    elif isinstance(annotation, type) and issubclass(annotation, Open):
        return dict[str, JSON], annotation
    return typing.cast("Any", annotation), None


def settler(annotation: Any) -> Settle | None:
    """Return the settler of a value that msgspec decoded as *annotation*; None if there is nothing to settle."""
    _, view = unwrap(annotation)
    if view is not None:
        return view.check
    origin = typing.get_origin(annotation)
    arguments = typing.get_args(annotation)
    if origin is Annotated:
        unions = [each for each in arguments[1:] if isinstance(each, Settler)]
        return unions[0].settle if unions else settler(arguments[0])
    if origin is list and (item := settler(arguments[0])):
        return _list_settler(item)
    if origin is dict and (member := settler(arguments[1])):
        return _dict_settler(member)
    if _is_union(annotation):
        return _union_settler([each for each in arguments if each is not UnsetType])
    return None


def _list_settler(item: Settle) -> Settle:
    def settle(value: Any) -> Any:
        if not isinstance(value, (list, tuple)):
            raise _unlike("array", value)
        settled: list[Any] = []
        try:
            for each in typing.cast("list[Any]", value):
                settled.append(item(each))  # noqa: PERF401 (an error needs the index, which is the length)
        except ValidationError as error:
            raise ValidationError(_placed(error, f"[{len(settled)}]")) from None
        return settled

    return settle


def _dict_settler(member: Settle) -> Settle:
    def settle(value: Any) -> Any:
        if not isinstance(value, dict):
            raise _unlike("object", value)
        try:
            return {key: member(each) for key, each in typing.cast("dict[str, Any]", value).items()}
        except ValidationError as error:
            # msgspec writes [...] too: the key comes from the peer, so its length and content are not bounded.
            raise ValidationError(_placed(error, "[...]")) from None

    return settle


def _unlike(expected: str, value: object) -> ValidationError:
    """Return the error for a wrong *value* on construction; for decoded values, msgspec has checked the JSON type."""
    return ValidationError(f"Expected `{expected}`, got `{type(value).__name__}`")


def _union_settler(arms: list[Any]) -> Settle | None:
    """Return the settler of a union whose arms differ by JSON type; it picks the arm by the type of the value."""
    if len(arms) == 1:
        return settler(arms[0])
    settlers: dict[Any, Settle] = {}
    for arm in arms:
        if settle := settler(arm):
            settlers[_made_of(arm)] = settle
    if None in settlers:  # next to a structural union, msgspec distinguishes nothing
        from .unions import AnyOf  # noqa: PLC0415 (that module imports this one)

        return AnyOf(lambda: tuple(arms)).settle
    if not settlers:
        return None

    def settle_arm(value: Any) -> Any:
        settle = settlers.get(type(value))
        return value if settle is None else settle(value)

    return settle_arm


def _made_of(annotation: Any) -> Any:
    """Return the container class that msgspec creates for *annotation*; None if the value can be of any type."""
    base, _ = unwrap(annotation)
    while typing.get_origin(base) is Annotated:
        base = typing.get_args(base)[0]
    return typing.get_origin(base)


# Values are shown in part only. The place, which is at the end, is shorter than half of this.
_MAX_CHARS = 2000


def shortened(error: ValidationError) -> str:
    """Return the message of *error*, without the middle of a long one: msgspec repeats a wrong value of megabytes."""
    text = str(error)
    return text if len(text) <= _MAX_CHARS else f"{text[: _MAX_CHARS // 2]}…{text[-_MAX_CHARS // 2 :]}"


def _placed(error: ValidationError, wire: str) -> str:
    """Return the message of *error* with the path from the key *wire* on; msgspec adds the path to the object."""
    text, path = _split(shortened(error), " - at `$")
    what, inner = _split(text, " in `")
    below = inner if not inner or inner[0] == "[" else f".{inner}"
    return f"{what} in `{wire}{path}{below}`"


def _split(text: str, mark: str) -> tuple[str, str]:
    """Return what is before the last *mark*, and what is between it and a backtick at the end; nothing if it is not so.

    A pattern that finds the place takes a millisecond, and a recursive union has an error of each arm at each depth.
    """
    if not text.endswith("`"):
        return text, ""
    before, found, rest = text[:-1].rpartition(mark)
    return (before, rest) if found and "`" not in rest else (text, "")


def _opened(annotation: Any) -> Any:
    """Return *annotation* with ``dict`` in place of every open object, so that msgspec does not decode the view.

    Raises:
        TypeError: An open object or a structural union occurs at a place where it cannot be settled.
    """
    base, view = unwrap(annotation)
    if view is not None:
        return Annotated[base, view]
    origin: Any = typing.get_origin(annotation)
    arguments = typing.get_args(annotation)
    if origin is Annotated:
        if any(isinstance(each, Settler) for each in arguments[1:]):
            return annotation
        return Annotated[(_opened(arguments[0]), *arguments[1:])]
    if origin in (list, dict):
        return GenericAlias(origin, tuple(map(_opened, arguments)))
    if _is_union(annotation):
        return Union[tuple(map(_opened, arguments))]  # noqa: UP007 (a tuple made at run time)
    if any(_needs_settling(each) for each in arguments) or _is_left_open(annotation, set()):
        raise TypeError(
            f"{annotation} contains an open object or a structural union, which cannot be decoded inside this type; "
            "write msgspec.Raw in its place, and decode the Raw value with a second call"
        )
    return annotation


def _needs_settling(annotation: Any) -> bool:
    return settler(annotation) is not None or any(map(_needs_settling, typing.get_args(annotation)))


def _is_left_open(annotation: Any, seen: set[Any]) -> bool:
    """Whether *annotation* is a class that was not generated, with fields to settle, and not a `Checked`."""
    if not isinstance(annotation, type) or annotation in seen or issubclass(annotation, Checked):
        return False
    if all(base.__module__.startswith(f"{__package__}.") for base in annotation.__bases__):  # it is generated
        return False
    seen.add(annotation)
    hints = typing.get_type_hints(typing.cast("type[Any]", annotation), include_extras=True).values()
    return any(_needs_settling(hint) or any(_is_left_open(each, seen) for each in _parts(hint)) for hint in hints)


def _parts(annotation: Any) -> list[Any]:
    """Return *annotation* and all types inside it."""
    return [annotation, *(part for each in typing.get_args(annotation) for part in _parts(each))]


class _Decoders(dict[Any, Callable[[bytes | str], Any]]):
    """Decoders by type, made on first use."""

    def __missing__(self, annotation: Any) -> Callable[[bytes | str], Any]:
        opened = _opened(annotation)
        native: Callable[[bytes | str], Any] = msgspec.json.Decoder(opened).decode
        settle = settler(opened)

        def decode_settled(data: bytes | str) -> Any:
            return native(data) if settle is None else settle(native(data))

        self[annotation] = made = native if settle is None else decode_settled
        return made


_decoders = _Decoders()


def decoder(
    type: Any,  # noqa: A002 (the name that msgspec uses)
    *,
    max_tries: int | None = None,
) -> Callable[[bytes | str], Any]:
    """Return the function that `decode` uses for *type*; a loop saves the lookup.

    Like msgspec, it raises RecursionError for JSON that is nested deeper than the interpreter's limit, and
    UnicodeDecodeError for text that is not UTF-8.

    Args:
        type: As for `decode`.
        max_tries: How many arms of structural unions may be tried for a value with all that is in it; None for no
            limit. Each object in such a union is tried as every arm whose required keys it has. A value that needs more
            raises ValidationError.
    """
    if max_tries is None:
        return _decoders[type]
    from .unions import decode_within  # noqa: PLC0415 (that module imports this one)

    return partial(decode_within, max_tries, _decoders[type])


@typing.overload
def decode(data: bytes | str, type: typing.Never) -> Any: ...  # for a type that is Any: pyright would take the next
@typing.overload
def decode(data: bytes | str, type: type[Open]) -> dict[str, object]: ...
@typing.overload
def decode(data: bytes | str, type: type[T]) -> T: ...
@typing.overload
def decode(data: bytes | str, type: Any) -> Any: ...
def decode(data: bytes | str, type: Any) -> Any:  # noqa: A002
    """Decode JSON to any type of this package, unions and open objects included.

    Args:
        data: A JSON value.
        type: A class or alias of `models`, or a type made of them (``list[ContentBlock]``). For an open object the
            result is a ``dict[str, object]`` with all its keys.

    Raises:
        msgspec.ValidationError: The value is not of that type; the message names the place.
        msgspec.DecodeError: *data* is not JSON.
    """
    try:
        return _decoders[type](data)
    except RecursionError:
        raise msgspec.DecodeError("JSON is nested too deeply") from None
    except UnicodeDecodeError as error:
        raise msgspec.DecodeError(f"JSON is not UTF-8: {error.reason}") from None
