"""The oracle finds wrong bindings: each of these has one plausible defect, and each defect is reported."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Annotated, Any, Literal

import msgspec
import pytest
from msgspec import UNSET, Meta, Struct, UnsetType, field

from tests.oracle import disagreements
from tests.oracle.disagreements import Rule, integral_float
from tests.oracle.oracle import Comparison, Disagreement
from tests.oracle.subjects import Bindings

DOCUMENT: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "$defs": {
        "Text": {
            "type": "object",
            "properties": {
                "type": {"const": "text", "type": "string"},
                "mimeType": {"type": "string"},
                "id": {"type": ["string", "integer"]},
                "score": {"type": "number", "minimum": 0, "maximum": 1},
                "level": {"enum": ["high", "low"], "type": "string"},
                "tags": {"type": "array", "items": {"type": "string"}, "maxItems": 2},
                "_meta": {"type": "object", "additionalProperties": {}},
            },
            "required": ["type", "mimeType"],
        }
    },
}


class Open(Struct):
    """Base of views; there are none here."""


LIMITS = Meta(ge=0, le=1)
Score = Annotated[int, LIMITS] | Annotated[float, LIMITS] | UnsetType
Tags = Annotated[list[str], Meta(max_length=2)] | UnsetType
Metadata = dict[str, object] | UnsetType


def text(*forgotten: str, **changed: Any) -> type[Struct]:
    """Return the right class for ``Text``, but for *forgotten* fields and those given as (type, default or field)."""
    fields: dict[str, tuple[Any, Any]] = {
        "type": (Literal["text"], field()),
        "mime_type": (str, field(name="mimeType")),
        "id": (str | int | UnsetType, UNSET),
        "score": (Score, UNSET),
        "level": (Literal["high", "low"] | UnsetType, UNSET),
        "tags": (Tags, UNSET),
        "meta": (Metadata, field(name="_meta", default=UNSET)),
    }
    fields |= changed
    return msgspec.defstruct(
        "Text", [(name, *rest) for name, rest in fields.items() if name not in forgotten], kw_only=True
    )


def decode(data: bytes, target: Any) -> Any:
    return msgspec.json.decode(data, type=target)


def compared(target: Any) -> Comparison:
    models = SimpleNamespace(Text=target, decode=decode)
    return Comparison(DOCUMENT, Bindings(models, open_objects=Open))


def unexplained(comparison: Comparison) -> list[Disagreement]:
    """Return the disagreements but for the one that any bindings have that keep int and float apart."""
    return [each for each in comparison.run().disagreements if each.is_crash or not integral_float(each)]


DEFECTS: dict[str, dict[str, Any]] = {
    "an optional constant": {"type": (Literal["text"], "text")},
    "a constant of any value": {"type": (str, field())},
    "another constant": {"type": (Literal["texts"], field())},
    "string and integer swapped": {"mime_type": (int, field(name="mimeType"))},
    "half a union": {"id": (str | UnsetType, UNSET)},
    "the other half of a union": {"id": (int | UnsetType, UNSET)},
    "a union that is too wide": {"id": (str | float | int | UnsetType, UNSET)},
    "null where the schema has none": {"id": (str | int | None | UnsetType, UNSET)},
    "anything": {"tags": (Any, UNSET)},
    "a float for every number": {"score": (Annotated[float, LIMITS] | UnsetType, UNSET)},
    "integers only": {"score": (Annotated[int, LIMITS] | UnsetType, UNSET)},
    "no minimum": {"score": (Annotated[int, Meta(le=1)] | Annotated[float, Meta(le=1)] | UnsetType, UNSET)},
    "an exclusive maximum": {"score": (Annotated[int, LIMITS] | Annotated[float, Meta(ge=0, lt=1)] | UnsetType, UNSET)},
    "a missing enum value": {"level": (Literal["high"] | UnsetType, UNSET)},
    "any enum value": {"level": (str | UnsetType, UNSET)},
    "no maximal length": {"tags": (list[str] | UnsetType, UNSET)},
    "a length that is too short": {"tags": (Annotated[list[str], Meta(max_length=1)] | UnsetType, UNSET)},
    "items of any type": {"tags": (Annotated[list[Any], Meta(max_length=2)] | UnsetType, UNSET)},
    "an optional property that is required": {"id": (str | int, field())},
    "a required property that is optional": {"mime_type": (str | UnsetType, field(name="mimeType", default=UNSET))},
    "a default that is not on the wire": {"level": (Literal["high", "low"], "low")},
    "a wrong wire name": {"mime_type": (str, field(name="mime_type"))},
    "a wrong wire name of an optional property": {"meta": (Metadata, field(name="meta", default=UNSET))},
    "an open object that is closed": {"meta": (Open | UnsetType, field(name="_meta", default=UNSET))},
    "an open object of strings": {"meta": (dict[str, str] | UnsetType, field(name="_meta", default=UNSET))},
}


@pytest.mark.parametrize("defect", DEFECTS.values(), ids=DEFECTS)
def test_a_defect_is_reported(defect: dict[str, Any]) -> None:
    comparison = compared(text(**defect))

    assert [*map(str, unexplained(comparison)), *comparison.round_trips()]


def test_a_forgotten_property_is_reported() -> None:
    assert list(compared(text("score")).round_trips())


def test_nothing_is_reported_of_the_right_bindings() -> None:
    comparison = compared(text())

    assert list(comparison.round_trips()) == []
    assert unexplained(comparison) == []


def test_a_decoder_that_crashes_is_reported_whatever_the_rules_say(monkeypatch: pytest.MonkeyPatch) -> None:
    def crash(self: Any) -> None:
        raise RuntimeError(self)

    monkeypatch.setitem(disagreements.PREDICATES, "always", lambda _: True)
    target = type("Text", (text(),), {"__post_init__": crash})
    rule = Rule(name="all", predicate="always", reason="none", count={})

    assert disagreements.problems(compared(target).run().disagreements, [rule], revision="any")


def test_a_lost_order_of_keys_is_reported() -> None:
    def sort(self: Any) -> None:
        if self.meta is not UNSET:
            self.meta = dict(sorted(self.meta.items()))

    sorting = type("Text", (text(),), {"__post_init__": sort})

    assert any("keys in the order" in failure for failure in compared(sorting).round_trips())


def test_one_way_to_decode_may_not_hide_the_other() -> None:
    """``models.decode`` and plain msgspec have to agree with the schema each."""
    right, wrong = text(), text(type=(Literal["text"], "text"))
    models = SimpleNamespace(Text=wrong, decode=lambda data, _: msgspec.json.decode(data, type=right))
    found = unexplained(Comparison(DOCUMENT, Bindings(models, open_objects=Open)))

    assert {each.decoder for each in found} == {"msgspec.json.decode"}


INTEGER: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "$defs": {"Text": {"type": "integer"}},
}


def integral_rule(count: int) -> Rule:
    return Rule(name="floats", predicate="integral_float", reason="msgspec", count={"any": count} if count else {})


def test_a_rule_covers_exactly_the_number_it_states() -> None:
    models = SimpleNamespace(Text=int, decode=decode)
    found = Comparison(INTEGER, Bindings(models, open_objects=Open)).run().disagreements
    right = len({each.case for each in found})

    assert found
    assert disagreements.problems(found, [integral_rule(right)], revision="any") == []
    assert disagreements.problems(found, [integral_rule(right + 1)], revision="any")
    assert disagreements.problems(found, [integral_rule(right - 1)], revision="any")
    assert disagreements.problems([], [integral_rule(right)], revision="any")
    assert disagreements.problems([], [integral_rule(right)], revision="another") == []


def test_the_rule_of_integral_floats_covers_nothing_else() -> None:
    found = compared(text(mime_type=(int, field(name="mimeType")))).run().disagreements

    assert disagreements.problems(found, [integral_rule(0)], revision="any")
