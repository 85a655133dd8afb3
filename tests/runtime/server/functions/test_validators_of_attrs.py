"""Tests of the limits for texts that validators of classes of attrs match; msgspec calls these validators."""

from __future__ import annotations

from contextlib import nullcontext
from decimal import Decimal  # noqa: TC003 (a class of attrs has it)
from typing import Annotated, Any

import attrs
import pytest
from attrs import validators
from msgspec import Meta, ValidationError

from mcpgen.runtime.adapt.pattern_texts import has_decimals, pattern_check

matching = validators.matches_re("[^@]+@[^@]+|[a-z]+")


@attrs.define
class Ring:
    """A validator that refers to itself, and has a field without a value."""

    inner: Any = None
    unset: Any = attrs.field(init=False)

    def __call__(self, instance: object, attribute: object, value: object) -> None: ...


ring = Ring()
ring.inner = [ring, matching]


@attrs.define
class Letter:
    to: str = attrs.field(default="a", validator=matching)
    copies: list[str] = attrs.field(
        factory=list[str], validator=[validators.instance_of(list), validators.deep_iterable(matching)]
    )
    text: str = attrs.field(default="", validator=validators.instance_of(str))
    answer_to: str | None = attrs.field(
        default=None, validator=validators.optional([validators.instance_of(str), matching])
    )
    notes: dict[str, str] = attrs.field(
        factory=dict[str, str], validator=validators.deep_mapping(matching, validators.instance_of(str))
    )
    ring: str = attrs.field(default="", validator=ring)


@attrs.define
class Long:
    to: Annotated[str, Meta(max_length=10_000)] | None = attrs.field(validator=validators.optional(matching))


@pytest.mark.parametrize(
    ("kind", "value", "refused"),
    [
        (list[Letter], [{"to": "a" * 4000}], None),
        (list[Letter], [{"to": "a" * 4001}], 4000),
        (Letter, {"copies": ["a" * 4001]}, 4000),
        (Letter, {"text": "a" * 5000}, None),
        (Letter, {"answer_to": "a" * 4001}, 4000),
        (Letter, {"notes": {"a" * 4001: ""}}, 4000),
        (Letter, {"notes": {"a": "b" * 5000}}, None),
        (Letter, {"ring": "a" * 4001}, 4000),
        (Long, {"to": "a" * 10_000}, None),
        (Long, {"to": "a" * 10_001}, 10_000),
    ],
)
def test_texts_that_a_validator_of_attrs_matches_are_limited(kind: Any, value: object, refused: int | None) -> None:
    check = pattern_check(kind)
    assert check is not None

    refusal = pytest.raises(ValidationError, match=f"at most {refused} characters in a text that must match a pattern")
    with nullcontext() if refused is None else refusal:
        check(value)


@attrs.define
class Prices:
    of: dict[str, Decimal] = attrs.field(validator=validators.deep_mapping(matching))


def test_decimals_are_found_in_a_field_with_a_pattern() -> None:
    """Otherwise a number in the arguments of a tool would lose digits before it becomes a `Decimal`."""
    assert has_decimals(Prices)
