"""Laws of diffs, on schemas that nobody would write."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any, Literal

import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from mcpgen.codegen import ir
from mcpgen.codegen.diff import Edition, compare, mirrored
from mcpgen.codegen.diff.schema_pair import SchemaPair
from mcpgen.codegen.methods import Method

if TYPE_CHECKING:
    from collections.abc import Callable

NAMES = [f"{stem}{suffix}" for stem in ("Tool", "Prompt") for suffix in ("", "Result", "Params", "ResultParams")]
KEYS = ["a", "b", "type"]
CONSTANTS: list[ir.Constant] = ["a", "b", 1, 2, True, None]
BOUNDS: list[tuple[tuple[str, int], ...]] = [(), (), (("ge", 0),), (("ge", 0), ("le", 5)), (("gt", 0),), (("lt", 5),)]
# hypothesis draws a seed and no schema: it would be slow at structures of this size.
seeds = st.integers(0, 2**32)
unhurried = settings(deadline=None)  # a busy machine is no failure


class Schemas:
    """Makes schemas; objects may mention anything, aliases only what comes before: none is an alias of itself."""

    def __init__(self, seed: int, names: list[str] = NAMES) -> None:
        self._random = random.Random(seed)  # noqa: S311 - to be reproducible is the point
        self._names = names

    def schema(self) -> ir.Schema:
        names = self._random.sample(self._names, self._random.randint(1, 6))
        return ir.Schema(definitions={name: self._definition(name, names, at) for at, name in enumerate(names)})

    def edition(self) -> Edition:
        schema = self.schema()
        defined = sorted(schema.definitions)
        methods = {}
        for _ in range(self._random.randint(0, 4)):
            method = self._method(defined)
            methods[method.name, method.sender, method.kind == "notification"] = method
        return Edition(
            label=self._random.choice("xy"),
            schema=schema,
            methods=tuple(methods.values()),
            era=self._random.choice([None, "handshake", "stateless"]),
        )

    def type(self, names: list[str], depth: int = 2) -> ir.TypeRef:
        """Return a type that mentions only *names*."""
        leaves: list[Callable[[], ir.TypeRef]] = [
            ir.Anything,
            lambda: ir.Scalar(kind=self._random.choice(["string", "boolean", "null"])),
            lambda: ir.Scalar(kind=self._random.choice(["integer", "number"]), bounds=self._random.choice(BOUNDS)),
            lambda: ir.Fixed(values=tuple(self._random.sample(CONSTANTS, self._random.randint(1, 3)))),
            *([lambda: ir.Named(name=self._random.choice(names))] * 2 if names else []),
        ]
        nested: list[Callable[[], ir.TypeRef]] = [
            lambda: ir.Array(item=self.type(names, depth - 1), bounds=self._random.choice([(), (("max_length", 1),)])),
            lambda: ir.Mapping(value=self.type(names, depth - 1)),
            lambda: self._union(names, depth - 1),
        ]
        return self._random.choice(leaves + nested if depth else leaves)()

    def _union(self, names: list[str], depth: int) -> ir.TypeRef:
        arms = dict.fromkeys(self.type(names, depth) for _ in range(3))
        flat = [arm for arm in arms if not isinstance(arm, ir.Union)]
        return ir.Union(arms=tuple(flat)) if len(flat) > 1 else ir.Anything()

    def _definition(self, name: str, names: list[str], at: int) -> ir.Definition:
        pointer, anonymous = f"/$defs/{name}", self._random.random() < 0.3
        if self._random.random() < 0.4:
            return ir.Alias(name=name, pointer=pointer, anonymous=anonymous, type=self.type(names[:at]))
        keys = sorted(self._random.sample(KEYS, self._random.randint(0, 3)))
        properties = [
            ir.Property(
                wire=key, pointer=f"{pointer}/{key}", type=self.type(names, 1), required=self._random.random() < 0.5
            )
            for key in keys
        ]
        options: list[Literal["kept", "dropped", "refused"]] = ["kept", "dropped", "refused"]
        unknown = self._random.choice(options)
        return ir.Object(name=name, pointer=pointer, anonymous=anonymous, properties=tuple(properties), unknown=unknown)

    def _method(self, names: list[str]) -> Method:
        kinds: list[Literal["request", "input", "notification"]] = ["request", "input", "notification"]
        kind = self._random.choice(kinds)
        name = self._random.choice(["go", "stop"])
        return Method(
            name=f"notifications/{name}" if kind == "notification" else name,
            definition=self._random.choice(names),
            python_name="go",
            sender=self._random.choice(["client", "server"]),
            kind=kind,
            params=self.type(names),
            params_required=self._random.random() < 0.5,
            result=None if kind == "notification" else self.type(names),
        )


@pytest.mark.slow
@unhurried
@given(seed=seeds)
def test_nothing_differs_from_itself(seed: int) -> None:
    assert () == compare(Schemas(seed).edition(), Schemas(seed).edition()).changes


@unhurried
@given(first=seeds, second=seeds)
@pytest.mark.slow
def test_there_and_back_are_mirror_images(first: int, second: int) -> None:
    old, new = Schemas(first).edition(), Schemas(second).edition()
    found = compare(old, new)

    assert mirrored(found) == compare(new, old)
    assert mirrored(mirrored(found)) == found


@unhurried
@example(first=9637, second=2**32 - 1)  # an arm that a union and one inside it have
@given(first=seeds, second=seeds)
@pytest.mark.slow
def test_no_two_changes_have_one_kind_and_id(first: int, second: int) -> None:
    changes = compare(Schemas(first).edition(), Schemas(second).edition()).changes

    assert len({(each.kind, each.id) for each in changes}) == len(changes)


@unhurried
@given(seed=seeds)
@pytest.mark.slow
def test_order_that_means_nothing_makes_no_difference(seed: int) -> None:
    edition = Schemas(seed).edition()

    assert () == compare(edition, reordered(edition)).changes


@unhurried
@given(first=seeds, second=seeds)
@pytest.mark.slow
def test_the_order_of_definitions_and_messages_does_not_show(first: int, second: int) -> None:
    old, new = Schemas(first).edition(), Schemas(second).edition()
    turned = [
        msgspec.structs.replace(
            each,
            schema=ir.Schema(definitions=dict(reversed(each.schema.definitions.items()))),
            methods=each.methods[::-1],
        )
        for each in (old, new)
    ]

    assert compare(old, new) == compare(*turned)


@settings(deadline=None, max_examples=400)
@given(first=seeds, second=seeds)
@pytest.mark.slow
def test_what_widened_takes_every_old_value_and_what_narrowed_had_every_new_one(first: int, second: int) -> None:
    # No name in common: a name that both know stands for itself, whatever became of it.
    before, after = Schemas(first, [f"Old{n}" for n in range(6)]), Schemas(second, [f"New{n}" for n in range(6)])
    old, new = before.schema(), after.schema()
    one, other = before.type(sorted(old.definitions)), after.type(sorted(new.definitions))
    effect = SchemaPair(old, new, {}).effect(one, other)

    if effect in {"widened", "same"}:
        assert [] == [value for value in values(old, one) if not holds(new, other, value)]
    if effect in {"narrowed", "same"}:
        assert [] == [value for value in values(new, other) if not holds(old, one, value)]


def test_a_chain_of_definitions_of_any_length_is_compared() -> None:
    def chain(stem: str) -> Edition:
        links = [f"{stem}{n}" for n in range(2_000)]
        definitions: dict[str, ir.Definition] = {
            name: ir.Object(
                name=name,
                pointer=f"/$defs/{name}",
                unknown="dropped",
                properties=(
                    ir.Property(wire=f"k{n}", pointer="", type=ir.Named(name=links[(n + 1) % 2_000]), required=True),
                    ir.Property(wire="z", pointer="", type=ir.Scalar(kind="string"), required=True),
                ),
            )
            for n, name in enumerate(links)
        }
        start = ir.Alias(name="Start", pointer="", type=ir.Named(name=links[0]))
        return Edition(label=stem, schema=ir.Schema(definitions={**definitions, "Start": start}), methods=())

    (change,) = (each for each in compare(chain("Old"), chain("New")).changes if each.id == "Start")

    assert "changed" == change.effect  # what is not shown within reasonable bounds counts as not shown


def reordered(edition: Edition) -> Edition:
    """Return *edition* with the arms of unions and the values of enumerations the other way round."""
    definitions: dict[str, ir.Definition] = {}
    for name, each in edition.schema.definitions.items():
        if isinstance(each, ir.Alias):
            definitions[name] = msgspec.structs.replace(each, type=turned(each.type))
        else:
            keys = (msgspec.structs.replace(key, type=turned(key.type)) for key in each.properties)
            definitions[name] = msgspec.structs.replace(each, properties=tuple(keys))
    return msgspec.structs.replace(edition, schema=ir.Schema(definitions=definitions))


def turned(ref: ir.TypeRef) -> ir.TypeRef:
    match ref:
        case ir.Union(arms=arms):
            return ir.Union(arms=tuple(turned(arm) for arm in reversed(arms)))
        case ir.Fixed(values=fixed):
            return ir.Fixed(values=tuple(reversed(fixed)))
        case ir.Array(item=item, bounds=bounds):
            return ir.Array(item=turned(item), bounds=bounds)
        case ir.Mapping(value=value):
            return ir.Mapping(value=turned(value))
        case _:
            return ref


# What a type means, spelt out once more and differently: by its values.

SCALARS: list[Any] = ["", "a", "b", "z", -3, 0, 1, 2, 5, 7, 0.5, 4.5, True, False, None]
EXAMPLES: list[Any] = [*SCALARS, [], ["a"], [1, 2], [None, "a"], {}, {"a": 1}, {"b": "a", "z": 0}, {"type": None}]


def values(schema: ir.Schema, ref: ir.TypeRef) -> list[Any]:
    """Return values of *ref*: known ones that happen to be, and objects made of such."""
    made = list(EXAMPLES)
    for each in schema.objects():
        options = {key.wire: [v for v in SCALARS if holds(schema, key.type, v)][:3] for key in each.properties}
        for at in range(3):
            full = {wire: found[at % len(found)] for wire, found in options.items() if found}
            made += [full, {key.wire: full[key.wire] for key in each.properties if key.required and key.wire in full}]
            made += [{**full, "z": 1}, [full]]
    return [value for value in made if holds(schema, ref, value)]


def holds(schema: ir.Schema, ref: ir.TypeRef | ir.Object, value: Any) -> bool:
    """Whether *value* is one of *ref*, where an object that is not open has its known keys and no others."""
    match ref:
        case ir.Anything():
            return True
        case ir.Scalar(kind=kind, bounds=bounds):
            return is_scalar(kind, value) and all(WITHIN[bound](value, limit) for bound, limit in bounds)
        case ir.Fixed(values=fixed):
            return any(type(value) is type(each) and value == each for each in fixed)
        case ir.Array(item=item, bounds=bounds):
            short = all(len(value) <= limit for _, limit in bounds) if isinstance(value, list) else False
            return short and all(holds(schema, item, each) for each in value)
        case ir.Mapping(value=inner):
            return isinstance(value, dict) and all(holds(schema, inner, each) for each in value.values())
        case ir.Named(name=name):
            target = schema.definitions[name]
            return holds(schema, target if isinstance(target, ir.Object) else target.type, value)
        case ir.Union(arms=arms):
            return any(holds(schema, arm, value) for arm in arms)
        case ir.Object(properties=properties, unknown=unknown):
            known = {key.wire: key for key in properties}
            return (
                isinstance(value, dict)
                and all(key.wire in value for key in properties if key.required)
                and all(
                    holds(schema, known[key].type, value[key]) if key in known else unknown == "kept" for key in value
                )
            )


WITHIN: dict[str, Callable[[Any, Any], bool]] = {
    "ge": lambda value, limit: bool(value >= limit),
    "gt": lambda value, limit: bool(value > limit),
    "le": lambda value, limit: bool(value <= limit),
    "lt": lambda value, limit: bool(value < limit),
}


def is_scalar(kind: str, value: Any) -> bool:
    kinds: dict[str, tuple[type, ...]] = {
        "string": (str,),
        "integer": (int,),
        "number": (int, float),
        "boolean": (bool,),
    }
    return type(value) in kinds.get(kind, (type(None),))
