"""Refuse values that pydantic would read too often, in unions without a discriminator, or for too long, in wide models.

pydantic tries each member of such a union. If two members have a field of the same name, it reads the value of that
field twice; if such unions are nested, four times, eight times, and so on. A message of 1 kB with 30 levels would take
an hour. So each object and each array counts as often as pydantic may read it. A key that no member declares counts,
too, if models forbid it: pydantic makes an error for it in each member.

An object takes longer to read for each member of a union and for each field, also for those that JSON does not have: in
a union of ten models with ten fields, 16,000 small objects took 0.7 s. So an object counts more for such a type.

Each error of a member that does not fit has a copy of the value, also if another member fits. If such unions are nested
without end, a value is copied for each union around it: 12,000 objects at 60 levels took 1.3 s.
"""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import TYPE_CHECKING, Any, Final, cast

from mcpgen.runtime.protocol.core_schemas import WITH_FIELDS, direct_schemas
from mcpgen.runtime.protocol.json_levels import levels
from mcpgen.runtime.protocol.json_texts import has_json_texts, json_in

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

__all__ = ["nesting_check"]

# pydantic reads 50,000 small objects, or refuses as many keys, in 0.1 s.
MAX_READS: Final = 50_000

# A model takes as long to try as 20 of its fields. With 20 fields, it takes 3 µs, for which one read is charged.
_FIELDS_OF_MODEL: Final = 20
_FIELDS_OF_READ: Final = 40

# A copy takes 0.1 µs. One of a text takes longer than that of a number for each 256 characters.
_MAX_COPIES: Final = 4_000_000
_CHARS_OF_COPY: Final = 256

_ARRAYS: Final = frozenset({"deque", "frozenset", "generator", "list", "set", "tuple"})
_ITEMS: Final = object()
_ANY_KEY: Final = object()
_FORBID: Final = "forbid"


def nesting_check(core_schema: object) -> Callable[[object], None] | None:
    """Return a check for values of a type, which are JSON; None if they cannot be read too often.

    It raises `ValueError`.
    """
    search = _Search(core_schema)
    factors: Counter[object] = Counter()
    for union in search.unions:
        keys = Counter(key for arm in search.arms(union) for key in search.keys(arm))
        others = keys[_ANY_KEY]
        factors |= Counter({key: count + others if isinstance(key, str) else count for key, count in keys.items()})
    models = [search.count_models(each) for each in search.unions]
    is_nested = search.is_recursive or sum(each > 1 for each in models) > 1
    if not is_nested or max(factors.values(), default=1) == 1:
        factors.clear()
    arms = max(models, default=0) if search.forbids_keys else 0
    errors = max(map(search.count_errors, search.unions), default=0) if search.is_recursive else 0
    if not factors and arms <= 1 and not errors and search.reads_of_object == 1:
        return None
    checks: list[Callable[[object], None]] = []
    has_texts = has_json_texts(core_schema)
    if factors or arms > 1 or has_texts or search.reads_of_object > 1:  # otherwise, a message has too few values
        checks.append(partial(_check, factors, arms, search, has_texts=has_texts))
    if errors:
        checks.append(partial(_check_copies, errors))
    return partial(_check_all, checks)


def _check_all(checks: Sequence[Callable[[object], None]], value: object) -> None:
    for check in checks:
        check(value)


def _check_copies(errors: int, value: object) -> None:
    """Count the copies of *value* in the *errors* of each object or array around its values."""
    copies = 0
    for depth, level in enumerate(levels([value]), 1):
        chars = sum(len(each) // _CHARS_OF_COPY for each in level if isinstance(each, str))
        copies += (len(level) + chars) * depth * errors
        if copies > _MAX_COPIES:
            problem = "it has too many values in nested unions; fewer are allowed in unions without a discriminator"
            raise ValueError(problem)


def _check(factors: Counter[object], arms: int, search: _Search, value: object, *, has_texts: bool) -> None:
    """Count the reads of *value*, with a key that no model declares as often as a union has *arms*."""
    others = factors[_ANY_KEY] or 1
    reads = 0.0
    rest: list[tuple[object, int]] = [(value, 1)]
    while rest:
        each, times = rest.pop()
        if has_texts and isinstance(each, str):
            each = json_in(each)
        if isinstance(each, dict):
            members = cast("dict[str, object]", each)
            rest.extend((inner, times * (factors[name] or others)) for name, inner in members.items())
            reads += times * search.reads_of_object
            if arms:
                reads += times * arms * len(members.keys() - search.declared_keys)
        elif isinstance(each, list):
            rest.extend((inner, times * (factors[_ITEMS] or 1)) for inner in cast("list[object]", each))
            reads += times
        if reads > MAX_READS:
            fewer = "fewer are allowed for models with many fields, and in unions without a discriminator"
            raise ValueError(f"it has too many objects, arrays or keys; {fewer}")


class _Search:
    """A search through the schema from which pydantic makes a validator.

    Attributes:
        unions: The unions without a discriminator.
        declared_keys: The names of all fields in JSON.
        reads_of_object: As how many reads an object counts.
        forbids_keys: Whether an object must not have other keys.
    """

    def __init__(self, core_schema: object) -> None:
        self.unions: list[dict[str, Any]] = []
        self.declared_keys: set[str] = set()
        self.forbids_keys: bool = False
        self._named: dict[str, dict[str, Any]] = {}
        self._references: dict[str, set[str]] = {}  # the names in each schema with a name
        self._most_fields: int = 0  # of a model, with what it takes itself
        self._find(core_schema, ())
        fields = [self._most_fields, *(sum(map(_fields_to_try, self.arms(each))) for each in self.unions)]
        self.reads_of_object: float = max(1.0, max(fields) / _FIELDS_OF_READ)

    @property
    def is_recursive(self) -> bool:
        """Whether a part of the type refers to itself."""
        rest = dict(self._references)
        while ends := [name for name, inner in rest.items() if not inner & rest.keys()]:
            for each in ends:
                del rest[each]
        return bool(rest)

    def _find(self, schema: object, outer: tuple[str, ...]) -> None:
        if isinstance(schema, (list, tuple)):
            for each in cast("list[object]", schema):
                self._find(each, outer)
        if not isinstance(schema, dict):
            return
        members = cast("dict[str, Any]", schema)
        name = members.get("ref")
        if isinstance(name, str):
            self._named[name] = members
            self._references[name] = set()
            outer = (*outer, name)
        config = cast("dict[str, Any]", members.get("config") or {})
        self.forbids_keys |= _FORBID in (members.get("extra_behavior"), config.get("extra_fields_behavior"))
        if members.get("type") == "union":
            self.unions.append(members)
        elif members.get("type") in WITH_FIELDS:
            self.declared_keys |= _field_keys(members)
            self._most_fields = max(self._most_fields, _fields_to_try(members))
        elif members.get("type") == "definition-ref":
            for each in outer:
                self._references[each].add(members["schema_ref"])
        for inner in direct_schemas(members):
            self._find(inner, outer)

    def arms(self, schema: dict[str, Any], seen: frozenset[str] = frozenset()) -> Iterator[dict[str, Any]]:
        """Yield the schemas that pydantic tries for a value of *schema*, without what wraps them."""
        kind = schema["type"]
        if kind == "definition-ref":
            name = schema["schema_ref"]
            if name in self._named and name not in seen:
                yield from self.arms(self._named[name], seen | {name})
        elif kind == "union":
            choices: list[dict[str, Any] | tuple[dict[str, Any], str]] = schema["choices"]  # with labels, or without
            for each in choices:
                yield from self.arms(each[0] if isinstance(each, tuple) else each, seen)
        elif kind in WITH_FIELDS:
            yield schema
        else:
            inner = schema.get("schema") or schema.get("lax_schema") or schema.get("json_schema")
            yield from [schema] if inner is None else self.arms(inner, seen)

    def keys(self, arm: dict[str, Any]) -> set[object]:
        """Return the keys at which a value of *arm* has other values."""
        kind = arm["type"]
        if kind == "tagged-union":
            return {key for each in arm["choices"].values() for inner in self.arms(each) for key in self.keys(inner)}
        if kind == "dict":
            return {_ANY_KEY}
        if kind in _ARRAYS:
            return {_ITEMS}
        return set(_field_keys(arm)) if kind in WITH_FIELDS else set()

    def count_models(self, union: dict[str, Any]) -> int:
        """Return how many members of *union* are objects with fields."""
        return sum(arm["type"] in WITH_FIELDS or arm["type"] == "tagged-union" for arm in self.arms(union))

    def count_errors(self, union: dict[str, Any]) -> int:
        """Return how many errors about a value itself the members of *union* make that do not fit."""
        found = [_count_required(arm) if arm["type"] in WITH_FIELDS else 1 for arm in self.arms(union)]
        return sum(found) - min(found, default=0)


def _fields_to_try(schema: dict[str, Any]) -> int:
    """Return what a member of a union takes if it is tried, in fields; 0 if it is not an object with fields."""
    return _FIELDS_OF_MODEL + len(schema["fields"]) if schema["type"] in WITH_FIELDS else 0


def _count_required(schema: dict[str, Any]) -> int:
    fields: dict[str, dict[str, Any]] | list[dict[str, Any]] = schema["fields"]
    return sum(map(_is_required, fields.values() if isinstance(fields, dict) else fields))


def _is_required(field: dict[str, Any]) -> bool:
    return bool(field.get("required", field["schema"]["type"] != "default"))


def _field_keys(schema: dict[str, Any]) -> set[str]:
    if schema["type"] == "dataclass-args":
        return {key for each in schema["fields"] for key in _names(each["name"], each)}
    return {key for name, each in schema["fields"].items() for key in _names(name, each)}


def _names(name: str, field: dict[str, Any]) -> Iterator[str]:
    """Yield the names that a field may have in JSON."""
    yield name
    alias = field.get("validation_alias")
    if isinstance(alias, str):
        yield alias
    elif isinstance(alias, list):
        yield from (each[0] if isinstance(each, list) else each for each in cast("Iterable[Any]", alias))
