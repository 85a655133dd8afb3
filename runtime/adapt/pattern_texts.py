"""Refuse texts that are too long for the patterns of a type.

Python's matcher of patterns goes back and tries again. Usual patterns take a time that grows with the square of the
length of a text: `[^@]+@[^@]+` takes 50 ms for 4,000 letters, and hours for 4 MB. So the sum of the squares is limited.
Patterns of classes of another library are not known; `failing_fast` limits those of pydantic.
"""

from __future__ import annotations

import re
import typing
from functools import cache, partial
from inspect import signature
from typing import TYPE_CHECKING, Any, Final, cast

import msgspec
from msgspec import Meta, Struct, ValidationError, inspect

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import ModuleType

    FindTexts = Callable[[object, list[str]], None]
    Decode = Callable[[bytes], Any]

__all__ = ["MAX_CHARS", "MAX_UNION_TRIES", "PatternCheck", "has_decimals", "package_decoder", "pattern_check"]

MAX_CHARS: Final = 4000
"""Of one text for a pattern without `max_length`."""

# Each takes 5 µs. If the message is not valid, it is decoded again for the place, so 10,000 take up to 100 ms.
MAX_UNION_TRIES: Final = 10_000
"""How many arms of unions without a tag are tried for one message of a generated package."""


class PatternCheck:
    """Checks values, which are JSON, for the patterns in a type.

    Args:
        find: Adds the texts in a value that must match a pattern to a list.
        max_chars: The most characters of one.
    """

    def __init__(self, find: FindTexts, max_chars: int) -> None:
        self._find = find
        self._max_chars = max_chars

    def __call__(self, value: object) -> None:
        """Raise `ValidationError` if *value* has texts that are too long."""
        found: list[str] = []
        self._find(value, found)
        if sum(len(each) ** 2 for each in found) > self._max_chars**2:
            what = f"at most {self._max_chars} characters in a text that must match a pattern"
            raise ValidationError(f"Expected {what}, fewer if there are several such texts")


def pattern_check(kind: type) -> PatternCheck | None:
    """Return a check for values of *kind*; None if no text in them must match a pattern.

    It refuses such a text of more than 4,000 characters, and several that have more together, by the squares of their
    lengths. If a pattern has a `max_length`, one text may be as long.
    """
    search = _Search()
    find = search.finder_of(inspect.type_info(kind))
    if find is None or not search.longest:
        return None
    return PatternCheck(find, max(search.longest, MAX_CHARS))


def package_decoder(package: ModuleType) -> Callable[[Any], Decode]:
    """Return what `decoder` of a generated *package* does, for values from a peer.

    Its decoders check the texts for patterns first, and limit the arms of unions that are tried.
    """
    check = _pattern_check_of_package(package.models)
    decoder = _limited(package.decoder)
    return decoder if check is None else lambda kind: partial(_decode_checked, check, decoder(kind))


@cache
def _limited(decoder: Callable[..., Decode]) -> Callable[[Any], Decode]:
    """Return *decoder* with a limit of tries, or as it is, if it knows no limit: an older mcpgen has generated it."""
    takes_limit = "max_tries" in signature(decoder).parameters
    return partial(decoder, max_tries=MAX_UNION_TRIES) if takes_limit else decoder


def _decode_checked(check: PatternCheck, decode: Decode, data: bytes) -> object:
    """Decode the texts that were checked only: JSON may name a member twice, and the last one counts.

    Raises:
        ValidationError: One is too long for a pattern, or *decode* refuses the value.
    """
    value = msgspec.json.decode(data)
    check(value)
    return decode(msgspec.json.encode(value))


@cache
def _pattern_check_of_package(models: ModuleType) -> PatternCheck | None:
    """Return a check for messages of the types in *models* of a generated package; None if no type has a pattern.

    The classes in its unions have no tags. So a text counts if any class has a pattern for a key of its name.
    """
    longest, names = 0, set[str]()
    for kind in vars(models).values():
        if isinstance(kind, type) and issubclass(kind, Struct):
            hints = typing.get_type_hints(kind, localns={}, include_extras=True)
            for attribute, name in zip(kind.__struct_fields__, kind.__struct_encode_fields__, strict=True):
                patterns = _patterns_in(hints[attribute])
                if patterns:
                    names.add(name)
                    longest = max([longest, *(each.max_length or 0 for each in patterns)])
    return PatternCheck(partial(_in_named, frozenset(names)), max(longest, MAX_CHARS)) if names else None


def _patterns_in(hint: object) -> list[Meta]:
    """Return the patterns of the texts in *hint*, also in the arms of unions, but not in the fields of classes."""
    found: list[Meta] = []
    unions: list[object] = []
    left = [hint]
    while left:
        each = left.pop()
        if isinstance(each, Meta) and each.pattern is not None:
            found.append(each)
        arms: Callable[[], tuple[object, ...]] | None = getattr(each, "declare", None)
        if arms is not None and each not in unions:  # an `AnyOf`, which may be one of its own arms
            unions.append(each)
            left += arms()
        left += typing.get_args(each)
    return found


def _in_named(names: frozenset[str], value: object, found: list[str]) -> None:
    left = [(value, False)]
    while left:
        each, is_named = left.pop()
        if isinstance(each, dict):
            members = cast("dict[str, object]", each)
            left += [(member, is_named or name in names) for name, member in members.items()]
        elif isinstance(each, list):
            left += [(item, is_named) for item in cast("list[object]", each)]
        elif is_named and isinstance(each, str):
            found.append(each)


def has_decimals(kind: type) -> bool:
    """Return whether values of *kind* can have a `Decimal`, which keeps all digits only if it is read from JSON."""
    search = _Search()
    search.finder_of(inspect.type_info(kind))
    return search.has_decimals


class _Search:
    """A search through a type, which may refer to itself.

    Attributes:
        longest: The longest text for one of the patterns that were found; 0 if none was.
        has_decimals: Whether it has found a `Decimal`.
    """

    def __init__(self) -> None:
        self.longest: int = 0
        self.has_decimals: bool = False
        self._fields: dict[type, dict[str, FindTexts | None]] = {}

    def finder_of(self, kind: inspect.Type, *, needs_tag: bool = False) -> FindTexts | None:
        """Return a function that finds the texts in a value of *kind* that must match a pattern; None if none can."""
        match kind:
            case inspect.StrType() if kind.pattern is not None:
                self.longest = max(self.longest, kind.max_length or MAX_CHARS)
                return partial(_itself, kind.max_length)
            case inspect.DecimalType():
                self.has_decimals = True
                return None
            case inspect.Metadata():
                return self.finder_of(kind.type)
            case inspect.UnionType():
                # A value belongs to one class of several, or it would be looked at twice at each level: each has a tag.
                classes = [each for each in kind.types if isinstance(each, inspect.StructType)]
                return _joined([self.finder_of(each, needs_tag=len(classes) > 1) for each in kind.types])
            case inspect.DictType():
                return _of_members(self.finder_of(kind.key_type), self.finder_of(kind.value_type))
            case inspect.TupleType():
                return _of_places([self.finder_of(each) for each in kind.item_types])
            case inspect.ListType() | inspect.SetType() | inspect.FrozenSetType() | inspect.VarTupleType():
                return _of_items(self.finder_of(kind.item_type))
            case inspect.StructType() | inspect.DataclassType() | inspect.TypedDictType() | inspect.NamedTupleType():
                return self._of_fields(kind, needs_tag=needs_tag)
            case _:
                return None

    def _of_fields(
        self,
        kind: inspect.StructType | inspect.DataclassType | inspect.TypedDictType | inspect.NamedTupleType,
        *,
        needs_tag: bool,
    ) -> FindTexts | None:
        fields = self._fields.get(kind.cls)
        is_known = fields is not None  # the class refers to itself, or occurs twice
        if fields is None:
            fields = self._fields[kind.cls] = {}
            matched = _matched_by_attrs(kind.cls)
            for each in kind.fields:
                find, find_matched = self.finder_of(each.type), matched.get(each.name)
                fields[each.encode_name] = _in_all if find_matched is _in_all else _joined([find, find_matched])
                if find_matched is not None:
                    longest = _longest_in(each.type) if find_matched is _in_all else 0
                    self.longest = max(self.longest, MAX_CHARS, longest)
        if not is_known and not any(fields.values()):
            return None
        if isinstance(kind, inspect.NamedTupleType):
            return partial(_in_places, fields, None)
        if isinstance(kind, inspect.StructType) and kind.array_like:
            return partial(_in_places, fields, kind.tag)
        tag = (kind.tag_field, kind.tag) if isinstance(kind, inspect.StructType) and kind.tag_field else None
        return partial(_in_fields, fields, tag, None if needs_tag or tag is None else tag[1])


def _matched_by_attrs(kind: type) -> dict[str, FindTexts]:
    """Return what finds the texts that validators of a class of attrs match, by field: msgspec calls the validators."""
    fields: tuple[Any, ...] = getattr(typing.get_origin(kind) or kind, "__attrs_attrs__", ())
    found = {each.name: _matched_by(each.validator) for each in fields}
    return {name: find for name, find in found.items() if find is not None}


def _matched_by(validator: object) -> FindTexts | None:
    """Return what finds the texts that a *validator* matches.

    The validators that attrs has are attrs classes themselves, so their fields are searched for patterns.
    A pattern in the `key_validator` of a validator matches the keys in a value; any other one, all texts in it.
    """
    found: FindTexts | None = None
    seen: set[tuple[int, bool]] = set()  # a validator may refer to itself
    left: list[tuple[object, bool]] = [(validator, False)]
    while left:
        each, is_of_keys = left.pop()
        if (id(each), is_of_keys) in seen:
            continue
        seen.add((id(each), is_of_keys))
        if isinstance(each, re.Pattern):
            if not is_of_keys:
                return _in_all
            found = _in_keys
        elif isinstance(each, list | tuple):
            left += [(one, is_of_keys) for one in cast("list[object] | tuple[object, ...]", each)]
        else:
            inside: tuple[Any, ...] = getattr(type(each), "__attrs_attrs__", ())
            left += [(getattr(each, one.name, None), is_of_keys or one.name == "key_validator") for one in inside]
    return found


def _longest_in(kind: inspect.Type) -> int:
    """Return the largest `max_length` of the texts in *kind*, but not in the fields of classes; 0 if none has one."""
    own = kind.max_length if isinstance(kind, inspect.StrType) else None
    inner: list[Any] = [getattr(kind, name, None) for name in ("item_type", "value_type", "type")]
    inner += getattr(kind, "types", ())
    return max([own or 0, *(_longest_in(each) for each in inner if isinstance(each, inspect.Type))])


def _in_all(value: object, found: list[str]) -> None:
    left = [value]
    while left:
        each = left.pop()
        if isinstance(each, str):
            found.append(each)
        elif isinstance(each, list):
            left += cast("list[object]", each)
        elif isinstance(each, dict):
            members = cast("dict[str, object]", each)
            left += [*members, *members.values()]


def _in_keys(value: object, found: list[str]) -> None:
    left = [value]
    while left:
        each = left.pop()
        if isinstance(each, list):
            left += cast("list[object]", each)
        elif isinstance(each, dict):
            members = cast("dict[str, object]", each)
            found += members
            left += members.values()


def _itself(max_length: int | None, value: object, found: list[str]) -> None:
    if isinstance(value, str) and (max_length is None or len(value) <= max_length):  # else it is refused unread
        found.append(value)


def _joined(parts: list[FindTexts | None]) -> FindTexts | None:
    finders = [each for each in parts if each is not None]
    return partial(_in_each, finders) if finders else None


def _in_each(finders: list[FindTexts], value: object, found: list[str]) -> None:
    for each in finders:
        each(value, found)


def _of_items(find: FindTexts | None) -> FindTexts | None:
    return None if find is None else partial(_in_items, find)


def _in_items(find: FindTexts, value: object, found: list[str]) -> None:
    if isinstance(value, list):
        for each in cast("list[object]", value):
            find(each, found)


def _of_members(keys: FindTexts | None, values: FindTexts | None) -> FindTexts | None:
    return None if keys is None and values is None else partial(_in_members, keys, values)


def _in_members(keys: FindTexts | None, values: FindTexts | None, value: object, found: list[str]) -> None:
    if isinstance(value, dict):
        for name, each in cast("dict[str, object]", value).items():
            if keys is not None:
                keys(name, found)
            if values is not None:
                values(each, found)


def _of_places(finders: list[FindTexts | None]) -> FindTexts | None:
    return partial(_in_places, dict(enumerate(finders)), None) if any(finders) else None


def _in_places(finders: Mapping[Any, FindTexts | None], tag: str | int | None, value: object, found: list[str]) -> None:
    if isinstance(value, list):
        items = cast("list[object]", value)
        if tag is not None and items[:1] != [tag]:
            return
        for find, each in zip(finders.values(), items if tag is None else items[1:], strict=False):
            if find is not None:
                find(each, found)


def _in_fields(
    fields: dict[str, FindTexts | None],
    tag: tuple[str, str | int | None] | None,
    default_tag: str | int | None,
    value: object,
    found: list[str],
) -> None:
    if isinstance(value, dict):
        members = cast("dict[str, object]", value)
        if tag is not None and members.get(tag[0], default_tag) != tag[1]:
            return
        for name, find in fields.items():
            if find is not None and name in members:
                find(members[name], found)
