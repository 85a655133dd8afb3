"""Wire names become Python names by one rule each."""

from __future__ import annotations

import keyword

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpgen.codegen import names


@pytest.mark.parametrize(
    ("wire", "attribute"),
    [
        ("name", "name"),
        ("inputSchema", "input_schema"),
        ("mimeType", "mime_type"),
        ("URLValue", "url_value"),
        ("uriTemplate", "uri_template"),
        ("ttlMs", "ttl_ms"),
        ("x-y z", "x_y_z"),
        ("_meta", "meta"),
        ("$schema", "schema"),
        ("__init__", "init"),
        ("io.modelcontextprotocol/clientInfo", "client_info"),
        ("a/b", "a_b"),  # no dot: no prefix
        ("com.example/", "com_example"),  # no name after the prefix
        ("class", "class_"),
        ("from", "from_"),
        ("None", "none"),
        ("list", "list_"),
        ("str", "str_"),
        ("type", "type"),
        ("id", "id"),
        ("view", "view_"),
        ("check", "check_"),
        ("asDict", "as_dict_"),
        ("2fa", "field_2fa"),
        ("\u00fcber", "ber"),
        ("\u4e2d\u6587", "u4e2d_6587"),
        ("\U0001f600", "u1f600"),
        ("/", "u002f"),
    ],
)
def test_a_key_becomes_an_attribute(wire: str, attribute: str) -> None:
    assert attribute == names.attribute(wire)


@pytest.mark.slow
@given(st.text(min_size=1))
def test_an_attribute_is_always_a_public_identifier(wire: str) -> None:
    attribute = names.attribute(wire)

    assert attribute.isidentifier()
    assert attribute.isascii()
    assert not keyword.iskeyword(attribute)
    assert not attribute.startswith("_")
    assert attribute not in dir(msgspec.Struct)


@pytest.mark.parametrize(
    ("wire", "name"),
    [
        ("elicitation", "Elicitation"),
        ("mimeType", "MimeType"),
        ("x-y", "XY"),
        ("_meta", "Meta"),
        ("com.example/aKey", "AKey"),
        ("Left side", "LeftSide"),
        ("\u4e2d", ""),
        ("a" * 5000, "A" + "a" * 199),
    ],
)
def test_a_key_becomes_part_of_a_class_name(wire: str, name: str) -> None:
    assert name == names.pascal(wire)


@pytest.mark.slow
@given(st.text(max_size=20))
def test_part_of_a_class_name_never_ends_it(wire: str) -> None:
    assert f"Tool{names.pascal(wire)}".isidentifier()
    assert names.pascal(wire).isascii()


@pytest.mark.parametrize("name", ["input_schema", "a_b_c", "name", "list_"])
def test_camel_is_what_msgspec_makes_of_an_attribute(name: str) -> None:
    made = msgspec.defstruct("Made", [(name, int)], rename="camel")

    assert names.camel(name) in {made.__struct_encode_fields__[0], None}
    assert names.camel("list_") is None  # where its rule is not obvious, the wire name is given


@pytest.mark.slow
@given(st.from_regex(r"[a-z]+(_[a-z]+)*", fullmatch=True))
def test_camel_is_what_msgspec_makes_of_any_plain_attribute(name: str) -> None:
    made = msgspec.defstruct("Made", [(f"{name}", int)], rename="camel") if not keyword.iskeyword(name) else None

    assert made is None or made.__struct_encode_fields__ == (names.camel(name),)


@pytest.mark.parametrize(
    ("label", "folder"),
    [("2025-11-25", "v2025_11_25"), ("draft", "vdraft"), ("../a b", "v___a_b"), ("DRAFT-2026-v1", "vDRAFT_2026_v1")],
)
def test_a_label_becomes_a_folder(label: str, folder: str) -> None:
    assert folder == names.package(label)


@pytest.mark.slow
@given(st.text(min_size=1, max_size=30))
def test_a_folder_is_one_identifier(label: str) -> None:
    assert names.package(label).isidentifier()
    assert names.package(label).isascii()
