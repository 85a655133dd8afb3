"""What JSON Schema and the bindings say of the same values: both have to say the same."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import jsonschema
import msgspec
import pytest

from mcpgen.codegen.diagnostics import Refused
from tests.codegen.packages import build, build_decoders, load

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

STRING = {"type": "string"}
INTEGER = {"type": "integer"}

# 1.0 is not among them: that it is an integer is a disagreement of its own (docs/oracle.md).
VALUES: list[Any] = [
    None, True, False, 0, 1, 2, 5, 1.5, -1, "", "a", "abc", [], ["a"], [1], [True], {}, {"a": 1}, {"a": "x"},
    {"a": "xyz"}, {"a": True}, {"a": None}, {"a": 5, "b": "y"}, {"a": "x", "b": 1}, {"b": 2}, {"a": {"b": 1}},
    {"a": {"b": "x"}}, {"k": "x"}, {"k": 5}, {"next": {"k": 5}}, {"next": {"k": "x"}}, {"next": None},
    {"next": {"next": {"k": 3}}}, {"next": {"next": {"k": "x"}}}, {"next": 1},
]  # fmt: skip


def obj(**properties: Any) -> dict[str, Any]:
    """Return the schema of an object with *properties*."""
    return {"type": "object", "properties": properties}


def ref(name: str) -> dict[str, Any]:
    """Return a reference to the definition *name*."""
    return {"$ref": f"#/$defs/{name}"}


def verdicts(schema: Any, folder: Path, definitions: Mapping[str, Any]) -> list[tuple[Any, bool, bool]]:
    """Return `VALUES`, each with what JSON Schema and what the bindings of ``X`` say of it, which is *schema*."""
    document = {"$defs": {"X": schema, **definitions}}
    models = load(build(document), folder)
    build_decoders(models)
    validator = jsonschema.Draft202012Validator({**document, **ref("X")})
    return [(value, validator.is_valid(value), _is_taken(models, value)) for value in VALUES]


def assert_exact(schema: Any, folder: Path, **definitions: Any) -> None:
    """Assert that the bindings take what JSON Schema does, which is some of `VALUES`, and nothing else."""
    said = verdicts(schema, folder, definitions)

    assert any(valid for _, valid, _ in said)
    assert [] == [value for value, valid, taken in said if valid != taken]


def refusals(schema: Any, **definitions: Any) -> list[tuple[str, str]]:
    """Return code and place, from ``X`` on, of what refuses a document in which ``X`` is *schema*."""
    with pytest.raises(Refused) as refused:
        build({"$defs": {"X": schema, **definitions}})
    return [
        (each.code, each.pointer.removeprefix("/$defs/X"))
        for each in refused.value.diagnostics
        if each.severity == "error"
    ]


def _is_taken(models: Any, value: object) -> bool:
    try:
        models.decode(json.dumps(value), models.X)
    except msgspec.ValidationError:
        return False
    return True
