"""Long values are not copied often for the errors of pydantic, and are read as JSON all the same."""

from __future__ import annotations

import datetime as dt
import json
import tracemalloc

import pydantic
import pytest

from mcpgen.runtime.protocol.value_types import pydantic_type


class Wide(pydantic.BaseModel):
    a: int
    b: int
    c: int
    d: int


class Node(pydantic.BaseModel):
    items: list[Node | Wide] = []
    # pydantic reads a date from a text in JSON, but not from one in Python.
    day: dt.date | None = pydantic.Field(None, strict=True)


def test_the_errors_of_a_long_value_have_no_copies_of_it() -> None:
    kind = pydantic_type(Node, "the parameter")
    node: dict[str, object] = {"text": ["x" * 1000] * 100, "items": 3}
    for _ in range(20):
        node = {"items": [node]}
    size = len(json.dumps(node))
    tracemalloc.start()
    with pytest.raises(ValueError, match="Field required"):
        kind.read(node)
    taken = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert taken < 4 * size, f"{taken} bytes for {size} bytes of JSON"

    found = kind.read({"items": [{"day": "2030-01-31", "text": "x" * 1000}]})
    assert found == Node(items=[Node(day=dt.date(2030, 1, 31))])


def test_a_valid_value_is_not_nested_so_that_it_is_copied_a_hundred_times() -> None:
    kind = pydantic_type(Node, "the parameter")

    def nested(depth: int, count: int) -> object:
        node: dict[str, object] = {"items": [{"items": []}] * count}
        for _ in range(depth):
            node = {"items": [node]}
        return node

    assert isinstance(kind.read(nested(10, 10_000)), Node)
    with pytest.raises(ValueError, match="in nested unions; fewer are allowed in unions without a discriminator"):
        kind.read(nested(60, 10_000))
