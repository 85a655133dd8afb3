"""What definitions are called whose names are no identifiers, or which have no name of their own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from mcpgen.codegen import names
from mcpgen.codegen.diagnostics import Refused
from tests.codegen.packages import build, load

if TYPE_CHECKING:
    from pathlib import Path

STRING = {"type": "string"}


def refusals(**definitions: Any) -> list[tuple[str, str]]:
    with pytest.raises(Refused) as caught:
        build({"$defs": definitions})
    return [(each.code, each.pointer) for each in caught.value.diagnostics]


@pytest.mark.parametrize(
    ("name", "called"),
    [
        ("Record<string,string>", "Record_string_string"),
        ("Record<string, unknown>", "Record_string_unknown"),
        ("Record<string,Record<string,unknown>>", "Record_string_Record_string_unknown"),
        ("Tool", "Tool"),
        ("Tool_", "Tool_"),
        ("a b", "a b"),
        ("a<b", "a<b"),
        ("a<>", "a<>"),
        ('a<"">', 'a<"">'),
        ("<a>", "<a>"),
    ],
)
def test_an_applied_generic_type_is_called_by_its_words(name: str, called: str) -> None:
    assert called == names.definition(name)


@pytest.mark.parametrize("reference", ["#/$defs/Record<string,string>", "#/$defs/Record%3Cstring%2Cstring%3E"])
def test_an_applied_generic_type_can_be_referred_to(reference: str, tmp_path: Path) -> None:
    holder = {"type": "object", "properties": {"a": {"$ref": reference}}, "required": ["a"]}
    record = {"type": "object", "additionalProperties": STRING}
    models = load(build({"$defs": {"Record<string,string>": record, "Holder": holder}}), tmp_path)

    assert {"k": "v"} == msgspec.json.decode(b'{"a":{"k":"v"}}', type=models.Holder).a
    assert {"k": "v"} == models.decode(b'{"k":"v"}', models.Record_string_string)
    with pytest.raises(msgspec.ValidationError):
        models.decode(b'{"k":1}', models.Record_string_string)


def test_definitions_that_would_be_called_alike_are_refused() -> None:
    found = refusals(**{"A<b>": STRING, "A_b": STRING, "C<d,e>": STRING, "C<d, e>": STRING})

    assert [
        ("MG201", "/$defs/A<b>"),
        ("MG201", "/$defs/A_b"),
        ("MG201", "/$defs/C<d, e>"),
        ("MG201", "/$defs/C<d,e>"),
    ] == found


def test_an_inline_type_gives_way_to_a_definition(tmp_path: Path) -> None:
    inline = {"type": "object", "properties": {"b": STRING}, "required": ["b"]}
    holder = {"type": "object", "properties": {"content": inline}, "required": ["content"]}
    definitions = {"Holder": holder, "HolderContent": STRING, "HolderContentInline": STRING}
    models = load(build({"$defs": definitions}), tmp_path)
    found = msgspec.json.decode(b'{"content":{"b":"x"}}', type=models.Holder)

    assert "HolderContentInlineInline" == type(found.content).__name__
    assert "x" == models.decode(b'"x"', models.HolderContent)


def test_inline_types_that_would_be_called_alike_are_refused() -> None:
    inline = {"type": "object", "properties": {"b": STRING}}
    other = {"type": "object", "properties": {"c": STRING}}
    found = refusals(
        A={"type": "object", "properties": {"bC": inline}},
        AB={"type": "object", "properties": {"c": other}},
    )

    assert [("MG210", "/$defs/AB/properties/c")] == found
