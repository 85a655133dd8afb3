"""Normalise what a peer sends that its revision does not allow, but that other SDKs read.

Theory of operation. The types of a revision say what is allowed at each place of a payload. From a type this module
makes a function that takes a plain JSON value and returns one that fits the type, by a few rules (`Rule`). It notes
each change, and never guesses: a value that no rule fits is refused. The result is then decoded exactly, so the rules
need not know all that the types check.

A payload comes here only after exact decoding has failed. Each rule looks at each value once for each type that its
place allows, so the work is linear in the size of the message, which is bounded already.

Docs: docs/adr/0027-reading-policy.md has the reasons for each rule.
"""

from __future__ import annotations

import typing
from functools import cache
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, NamedTuple

import msgspec
from msgspec import NODEFAULT, Raw, Struct, UnsetType

from mcpgen.generated._support.structs import Open
from mcpgen.generated._support.unions import AnyOf
from mcpgen.generated._support.validation import decoder, unwrap
from mcpgen.runtime.adapt.json_pointer import linked_pointer
from mcpgen.runtime.adapt.payloads import MAX_REASON_CHARS, Payload
from mcpgen.runtime.errors import printable
from mcpgen.runtime.protocol.normalization_rules import (
    SCALARS,
    At,
    Changes,
    Fit,
    Rule,
    Unfit,
    choice,
    fit_list,
    fit_map,
    fit_property_schemas,
    fit_time_to_live,
    is_array,
    is_object,
    keep,
)

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Change", "Normalized", "Rule", "normalize"]


class Change(NamedTuple):
    """What one rule has changed in a payload.

    Attributes:
        rule: The rule.
        pointers: The first places.
        total: How many places there are.
        detail: Of an item that was left out: its name, and what is wrong with it.
    """

    rule: Rule
    pointers: list[str]
    total: int
    detail: str = ""


class Normalized(NamedTuple):
    """A payload that its revision allows, and what was changed."""

    raw: Raw
    changes: list[Change]


# Lists of which one invalid item must not cost the others: those that a user or a model selects from.
_LISTS: Final = frozenset({"prompts", "resourceTemplates", "resources", "tools"})

# A required member without which the rest can be used, and the value that adds nothing, by the class that has it.
_EMPTY: Final[dict[tuple[str, str], object]] = {("CallToolResult", "content"): []}

# 2026-07-28, basic/index, "ResultType": an absent one is "complete", but a client refuses any value that it does not
# know, and null is one.
_NEVER_NULL: Final = "resultType"

_MAX_NAME_CHARS: Final = 80
# What is reported of one payload: enough to find the fault in the peer, and bounded, whatever the peer sends.
_MAX_SUMMARIES: Final = 20
_MAX_DESCRIBED: Final = 1000  # to describe 49,000 items takes as long as to read them
_MAX_POINTERS: Final = 3

_encode: Final = msgspec.json.Encoder().encode
_decode: Final = msgspec.json.Decoder().decode
_UNREADABLE: Final = (msgspec.DecodeError, UnicodeError, RecursionError)


def normalize(payload: Payload, raw: Raw) -> Normalized | None:
    """Return *raw* as its revision allows it; None if no rule helps, or if there is nothing to change."""
    changes = Changes()
    try:
        fitted = _best_of(payload.types)(_decode(raw), (), changes)
        data = _encode(fitted)
    except (Unfit, *_UNREADABLE):
        return None
    if not changes or not any(_is_valid(each, data) for each in payload.decoders):
        return None
    return Normalized(Raw(data), _summary(changes))


def _summary(changes: Changes) -> list[Change]:
    """Return one change for each rule, and one for each of the first items that were left out."""
    places: dict[tuple[Rule, str], list[At]] = {}
    for rule, at, detail in changes:
        key = rule, detail if len(places) < _MAX_SUMMARIES else ""
        places.setdefault(key, []).append(at)
    return [
        Change(rule, [_pointer(at) for at in found[:_MAX_POINTERS]], len(found), detail)
        for (rule, detail), found in places.items()
    ]


def _pointer(at: At) -> str:
    return linked_pointer(at, MAX_REASON_CHARS)[:MAX_REASON_CHARS]


def _is_valid(decode: Callable[[bytes], object], data: bytes) -> bool:
    try:
        decode(data)
    except _UNREADABLE:
        return False
    return True


# --- from types to functions


@cache
def _best_of(types: tuple[Any, ...]) -> Fit:
    return _fit(types[0]) if len(types) == 1 else _structural_union(types)


def _fit(annotation: Any) -> Fit:
    base, view = unwrap(annotation)
    if view is not None:
        return _object(view)
    if base is Any:
        return keep
    origin, arguments = typing.get_origin(base), typing.get_args(base)
    if origin is Annotated:
        unions = [each for each in arguments[1:] if isinstance(each, AnyOf)]
        return _structural_union(unions[0].declare()) if unions else _fit(arguments[0])
    if origin is list:
        return fit_list(_fit(arguments[0]))
    if origin is dict:
        return fit_map(_fit(arguments[1]))
    if origin is Literal:
        return choice(arguments)
    if arguments:
        return _union(_arms(base))
    if isinstance(base, type) and issubclass(base, Struct):
        return _object(base)
    return SCALARS[base]


def _arms(annotation: Any) -> list[Any]:
    """Return the types of a union without that of absent fields; of any other type, the type itself."""
    if typing.get_origin(annotation) not in (typing.Union, UnionType):
        return [annotation]
    return [each for each in typing.get_args(annotation) if each is not UnsetType]


def _list_without_invalid(annotation: Any) -> Fit:
    """Return a function that leaves out the invalid items of a list, unless all are invalid."""
    [item_type] = typing.get_args(annotation)
    item, decode = _fit(item_type), decoder(item_type)

    def fit(value: Any, at: At, changes: Changes) -> Any:
        if not is_array(value):
            raise Unfit
        kept: list[Any] = []
        for index, each in enumerate(value):
            own = Changes()
            try:
                if _is_valid(decode, _encode(each)):  # most are, and to look at each of their values takes longer
                    kept.append(each)
                    continue
                fitted = item(each, (at, index), own)
                decode(_encode(fitted))
            except (Unfit, *_UNREADABLE):
                detail = _described(each, decode) if len(changes) < _MAX_DESCRIBED else ""
                changes.note(Rule.ITEM, (at, index), detail)
            else:
                kept.append(fitted)
                changes += own
        if value and not kept:
            raise Unfit
        return kept

    return fit


def _described(item: Any, decode: Callable[[bytes], object]) -> str:
    """Return the name of an invalid item, and what is wrong with it."""
    name = item.get("name") if is_object(item) else None
    called = f"{printable(name[:_MAX_NAME_CHARS])}: " if isinstance(name, str) else ""
    try:
        decode(_encode(item))
    except _UNREADABLE as error:
        return called + printable(str(error)[:MAX_REASON_CHARS])
    return called


class _Field(NamedTuple):
    fit: Fit
    is_nullable: bool
    is_required: bool
    default: Any  # for a required one that is missing; NODEFAULT for none
    constant: Any  # the only value; NODEFAULT if there are others


class _Object:
    """Fits the fields of a class; keys that it does not define are kept."""

    def __init__(self, cls: type[Struct]) -> None:
        self._cls = cls
        self._made: dict[str, _Field] = {}

    @property
    def fields(self) -> dict[str, _Field]:
        """The fields by key; made on first use, since classes may contain each other."""
        if not self._made:
            self._made = {each.encode_name: self._field(each) for each in msgspec.structs.fields(self._cls)}
        return self._made

    def _field(self, field: msgspec.structs.FieldInfo) -> _Field:
        constants: dict[str, object] = getattr(self._cls, "__constants__", {})
        constant = constants.get(field.name, NODEFAULT)
        arms = _arms(field.type)
        bare = arms[0] if len(arms) == 1 else field.type
        is_only = typing.get_origin(field.type) is Literal and len(typing.get_args(field.type)) == 1
        fit = _fit(field.type)
        if issubclass(self._cls, Open) and field.encode_name == "properties" and bare == dict[str, dict[str, Any]]:
            fit = fit_property_schemas
        elif field.encode_name == "ttlMs":
            fit = fit_time_to_live
        elif self._cls.__name__.startswith("List") and field.encode_name in _LISTS:
            fit = _list_without_invalid(bare)
        return _Field(
            fit,
            is_nullable=fit is keep or any(each in (None, NoneType) for each in arms),
            is_required=field.required,
            default=_EMPTY.get((self._cls.__name__, field.encode_name), constant),
            constant=constant if is_only else NODEFAULT,
        )

    def may_be(self, value: dict[str, Any]) -> bool:
        """Whether *value* has the constants of the class, and what it requires besides."""
        return all(
            value.get(key) == field.constant if field.constant is not NODEFAULT else key in value
            for key, field in self.fields.items()
            if field.is_required and (field.constant is not NODEFAULT or field.default is NODEFAULT)
        )

    def count_known(self, value: dict[str, Any]) -> int:
        """Return how many keys of *value* the class defines."""
        return len(value.keys() & self.fields.keys())

    def __call__(self, value: Any, at: At, changes: Changes) -> Any:
        if not is_object(value):
            raise Unfit
        made: dict[str, Any] = dict(value)
        for key, field in self.fields.items():
            if key in made and (made[key] is not None or field.is_nullable):
                made[key] = field.fit(made[key], (at, key), changes)
            elif field.is_required:
                if field.default is NODEFAULT or (key == _NEVER_NULL and key in made):
                    raise Unfit
                made[key] = field.default
                changes.note(Rule.MISSING, (at, key))
            elif key in made:
                del made[key]
                changes.note(Rule.NULL, (at, key))
        return made


@cache
def _object(cls: Any) -> _Object:
    return _Object(cls)


def _union(arms: list[Any]) -> Fit:
    """Return a function for a union that msgspec decodes: of JSON types, or of classes with tags."""
    tagged = {each.__struct_config__.tag: each for each in arms if _tag_of(each) is not None}
    others = [_fit(each) for each in arms if _tag_of(each) is None]
    tag_field: str = next((each.__struct_config__.tag_field for each in tagged.values()), "")
    # An arm is a subclass that only msgspec uses; its base has the fields.
    by_tag: dict[Any, Fit] = {tag: _object(each.__bases__[0]) for tag, each in tagged.items()}
    if not by_tag and len(others) == 1:
        return others[0]

    def fit(value: Any, at: At, changes: Changes) -> Any:
        if by_tag and is_object(value):
            tag = value.get(tag_field)
            if not isinstance(tag, str) or tag not in by_tag:
                raise Unfit
            return by_tag[tag](value, at, changes)
        return _fewest_changes(others, value, at, changes)

    return fit


def _tag_of(annotation: Any) -> object:
    config = getattr(annotation, "__struct_config__", None)
    return None if config is None else config.tag


def _structural_union(arms: tuple[Any, ...]) -> Fit:
    """Return a function for a union that is told apart by its keys: among those that may be meant, the fullest."""
    objects: list[_Object] = []
    others: list[Fit] = []
    for each in map(_fit, arms):
        if isinstance(each, _Object):
            objects.append(each)
        else:
            others.append(each)

    def fit(value: Any, at: At, changes: Changes) -> Any:
        candidates: list[Fit] = list(others)
        if is_object(value):
            meant = [(each.count_known(value), each) for each in objects if each.may_be(value)]
            most = max((count for count, _ in meant), default=0)
            # Not one that knows fewer keys: what is meant as another would be read without its contents.
            candidates = [*others, *(each for count, each in meant if count == most)]
        return _fewest_changes(candidates, value, at, changes)

    return fit


def _fewest_changes(candidates: list[Fit], value: Any, at: At, changes: Changes) -> Any:
    best: tuple[Any, Changes] | None = None
    for each in candidates:
        own = Changes()
        try:
            fitted = each(value, at, own)
        except Unfit:
            continue
        if best is None or len(own) < len(best[1]):
            best = fitted, own
    if best is None:
        raise Unfit
    changes += best[1]
    return best[0]
