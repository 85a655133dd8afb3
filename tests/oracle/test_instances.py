"""The generator keeps its promises: valid, complete, deterministic and bounded."""

from __future__ import annotations

import json
import random
from itertools import islice
from typing import TYPE_CHECKING, Any

import pytest

from tests.oracle import subjects
from tests.oracle.coverage import Arms, unseen
from tests.oracle.instances import Instances, scrambled
from tests.oracle.mutants import Mutations
from tests.oracle.samples import OpenObject
from tests.oracle.shapes import UnsupportedSchema
from tests.oracle.validators import Validators

if TYPE_CHECKING:
    from collections.abc import Iterator

MOST_INSTANCES = 5_000


@pytest.fixture(params=subjects.REVISIONS)
def revision(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


def both_documents(revision: str) -> Iterator[Any]:
    yield subjects.official(revision)
    yield subjects.patched(revision)


def schema(**definitions: Any) -> Instances:
    return Instances({"$defs": definitions})


@pytest.mark.slow
def test_every_systematic_instance_is_valid(revision: str) -> None:
    for document in both_documents(revision):
        instances, validators = Instances(document), Validators(document)
        invalid = [
            (name, json.dumps(instance))
            for name in instances.names
            for instance in instances.systematic(name)
            if not validators.reference_accepts(name, instance)
        ]

        assert invalid == []


@pytest.mark.slow
def test_every_random_instance_is_valid(revision: str) -> None:
    instances, validators = Instances(subjects.patched(revision)), Validators(subjects.patched(revision))
    rng = random.Random(revision)  # noqa: S311  (repeatable on purpose)
    invalid = [
        (name, json.dumps(instance))
        for name in instances.names
        for instance in (instances.random(name, rng) for _ in range(100))
        if not validators.accepts(name, instance)
    ]

    assert invalid == []


@pytest.mark.slow
def test_instances_are_distinct_bounded_and_the_same_every_time(revision: str) -> None:
    document = subjects.patched(revision)
    for name in Instances(document).names:
        once = [json.dumps(instance) for instance in Instances(document).systematic(name)]
        again = [json.dumps(instance) for instance in Instances(document).systematic(name)]

        assert once == again
        assert len(set(once)) == len(once)
        assert 1 <= len(once) <= MOST_INSTANCES


def test_random_instances_follow_the_seed(revision: str) -> None:
    instances = Instances(subjects.patched(revision))
    draws = [
        [json.dumps(instances.random(name, rng)) for name in instances.names]
        for rng in (random.Random(1), random.Random(1), random.Random(2))  # noqa: S311
    ]

    assert draws[0] == draws[1]
    assert draws[0] != draws[2]


def test_a_definition_shows_everything_that_its_body_says(revision: str) -> None:
    """Each optional property alone and with all others, each enum value and list length, unknown keys where open."""
    instances = Instances(subjects.patched(revision))
    missed = [
        f"{name}{pointer}: {what}"
        for name in instances.names
        for pointer, what in unseen(instances.shapes.named(name), list(instances.systematic(name)))
    ]

    assert missed == []


def test_each_arm_of_each_union_is_visited_wherever_it_nests(revision: str) -> None:
    """Behind references too: a context must not hide an arm."""
    document = subjects.patched(revision)
    instances = Instances(document)
    arms = Arms(instances.shapes, Validators(document))
    missed = [
        f"{name}{pointer}: {arm}"
        for name in instances.names
        for pointer, arm in arms.unvisited(name, list(instances.systematic(name)))
    ]

    assert missed == []


def test_these_coverage_checks_bite(revision: str) -> None:
    document = subjects.patched(revision)
    instances = Instances(document)
    smallest = next(instances.systematic("CallToolResult"))

    assert list(unseen(instances.shapes.named("CallToolResult"), [smallest]))
    assert list(Arms(instances.shapes, Validators(document)).unvisited("CallToolResult", [smallest]))


def test_each_optional_property_appears_alone() -> None:
    instances = schema(
        A={
            "type": "object",
            "properties": {"x": {"type": "null"}, "y": {"type": "null"}, "z": {"const": 1}},
            "required": ["z"],
        }
    )
    keys = {tuple(value) for value in instances.systematic("A")}

    assert keys == {("z",), ("x", "z"), ("y", "z"), ("x", "y", "z"), ("z", "y", "x")}


def test_numbers_respect_their_limits() -> None:
    instances = schema(A={"type": "number", "minimum": 0, "maximum": 1}, B={"type": "integer", "minimum": 3})

    expected = {"0", "1", "0.5", "1.0", "0.0", "0.001", "1e-07", "0.30000000000000004"}
    assert expected == {repr(each) for each in instances.systematic("A")}
    assert all(type(each) is int and each >= 3 for each in instances.systematic("B"))


def test_lists_respect_their_limits() -> None:
    instances = schema(A={"type": "array", "items": {"type": "boolean"}, "minItems": 1, "maxItems": 4})

    assert {1, 2, 4} == {len(each) for each in instances.systematic("A")}


def test_recursive_definitions_end() -> None:
    instances = schema(
        Tree={"type": "object", "properties": {"children": {"type": "array", "items": {"$ref": "#/$defs/Tree"}}}},
        Chain={
            "anyOf": [
                {"type": "object", "properties": {"next": {"$ref": "#/$defs/Chain"}}, "required": ["next"]},
                {"type": "null"},
            ]
        },
    )
    values = list(instances.systematic("Chain"))

    assert None in values
    assert {"next": {"next": None}} in values
    assert len(list(instances.systematic("Tree"))) < 20
    for seed in range(100):
        json.dumps(instances.random("Chain", random.Random(seed)))  # noqa: S311


def test_open_objects_are_marked_and_get_unknown_keys() -> None:
    string = {"type": "string"}
    instances = schema(A={"type": "object", "properties": {"x": string, "y": string}, "additionalProperties": {}})
    values = list(instances.systematic("A"))
    orders = [list(value) for value in values]

    assert all(isinstance(value, OpenObject) for value in values)
    assert any(
        order[0] != "x" and order[1] == "x" and order[2] != "y" and order[-1] != "y"
        for order in orders
        if len(order) > 3
    )
    assert any(value["x-unknown"] is None for value in values if "x-unknown" in value)


def test_closed_objects_get_no_unknown_keys() -> None:
    instances = schema(A={"type": "object", "properties": {"x": {"type": "string"}}})

    assert all(value.keys() <= {"x"} for value in instances.systematic("A"))


def test_all_of_is_merged() -> None:
    instances = schema(
        Error={
            "type": "object",
            "properties": {"code": {"type": "integer"}, "message": {"type": "string"}},
            "required": ["code"],
        },
        Mine={
            "allOf": [
                {"$ref": "#/$defs/Error"},
                {
                    "type": "object",
                    "properties": {"code": {"const": -1}},
                    "required": ["message"],
                    "additionalProperties": {},
                },
            ]
        },
    )
    values = list(instances.systematic("Mine"))

    assert all(value["code"] == -1 and isinstance(value["message"], str) for value in values)
    assert any(value.keys() - {"code", "message"} for value in values)


@pytest.mark.parametrize(
    "definition",
    [
        {"type": "string", "pattern": "^a"},
        {"$ref": "https://example.com/schema.json"},
        {"allOf": [{"const": 1}, {"const": 2}]},
        {"type": "object", "required": ["x"], "properties": {"x": False}},
    ],
    ids=["keyword", "remote reference", "contradiction", "false"],
)
def test_what_the_generator_does_not_understand_is_an_error(definition: dict[str, Any]) -> None:
    with pytest.raises(UnsupportedSchema):
        list(schema(A=definition).systematic("A"))


def test_a_key_that_must_be_absent_is_in_no_instance_and_in_a_mutant() -> None:
    closed = {"type": "object", "properties": {"x": {"type": "null"}}, "additionalProperties": False}
    definitions = {"A": {"allOf": [{"type": "object", "properties": {"y": {}}}, closed]}}

    assert [{}, {"x": None}] == list(schema(**definitions).systematic("A"))
    found = Mutations({"$defs": definitions}).of({"x": None}, set())
    assert {"x": None, "y": None} in [mutant.value for mutant in found]


def test_scrambling_reorders_keys_and_nothing_else() -> None:
    value = {"a": [{"x": 1, "y": 2}], "b": {}}

    assert value == scrambled(value)
    assert ["b", "a"] == list(scrambled(value))
    assert ["y", "x"] == list(scrambled(value)["a"][0])


def test_instances_can_be_taken_a_few_at_a_time(revision: str) -> None:
    instances = Instances(subjects.patched(revision))

    assert len(list(islice(instances.systematic("CallToolResult"), 3))) == 3
