"""A schema document is foreign text: whatever it says, nothing of it is executed or written anywhere else."""

from __future__ import annotations

import ast
import builtins
import json
import keyword
import re
import socket
import unicodedata
from typing import TYPE_CHECKING, Any, NoReturn

import msgspec
import pytest
from click.testing import CliRunner
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mcpgen.codegen import names
from mcpgen.codegen.commands import build as build_command
from mcpgen.codegen.diagnostics import CODES, Refused
from mcpgen.codegen.emit import RESERVED
from mcpgen.codegen.nesting import MAX_NESTING
from tests.codegen.packages import FILES, build, build_decoders, canonical, load

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path
    from types import ModuleType

    from mcpgen.codegen.build import Package

pytestmark = pytest.mark.slow

# Would set this attribute if any of it ever ran.
CANARY = "mcpgen_canary"
PLANT = f"__import__('builtins').{CANARY}"
ATTACK = f"setattr(__import__('builtins'), '{CANARY}', 1)"

HOSTILE = [
    '"',
    "'",
    '"""',
    "'''",
    f'"""\n{ATTACK}\n"""',
    f'"); {ATTACK}; ("',
    f"'); {ATTACK}; ('",
    f'\\"""\n{ATTACK}\n',
    "\\",
    "\\\\",
    "ends with a backslash\\",
    'ends with a quote"',
    "\\N{LATIN SMALL LETTER A}",
    "\n",
    f"\n{ATTACK}\n",
    f"\r{ATTACK}",
    f"\x0b\x0c\x1c\x85{ATTACK}",
    f"\u2028{ATTACK}\u2029",
    "{{ 7 * 7 }}",
    "{% raw %}",
    "{% for x in y %}",
    "{# comment",
    "{{ self.__init__.__globals__ }}",
    "%s %(x)s {0} {x}",
    "\u202e\u2066 bidi \u2069",
    "\ufeff",
    "\x00",
    "\x7f",
    "\x1b[31m",
    "../../../etc/passwd",
    "..",
    "/absolute",
    "a/b",
    "a~1b",
    "# type: ignore",
    "# -*- coding: latin-1 -*-",
    "#",
    "x: int = 1",
    "",
    " ",
    "\t",
    "\U0001f600",
    "e\u0301",
    "\u212a",  # the Kelvin sign, which Python's identifiers fold into K
    "\uff41",  # a full-width a, likewise
    "x" * 300,
    "__init__",
    "__class__",
    "__slots__",
    "__struct_fields__",
    "__post_init__",
    "__annotations__",
    "mro",
    "self",
    "cls",
    "return",
    "None",
    "True",
    "type",
    "models",
    "Struct",
    "Annotated",
    "Literal",
    "UNSET",
    "field",
    "const",
    "Open",
    "Checked",
    "AnyOf",
    "TYPE_CHECKING",
    "ValidationError",
    "convert",
    "Meta",
    "UnsetType",
    "Constants",
    "tagged",
    "Any",
    "decode",
    "Exception",
    "NotImplemented",
    "import os",
    PLANT,
    ATTACK,
]

texts = st.sampled_from(HOSTILE) | st.text(st.characters(exclude_categories=["Cs"]), max_size=12)

PROSE = ("comment", "document description", "description", "property description", "request description", "dialect")
VALUES = (
    "constant",
    "identifier",
    "enum",
    "method",
    "default",
    "example",
    "format",
    "title",
    "arm title",
    "document title",
)
PROPERTIES = ("property", "inline property")
NAMES = ("definition", "request")


def document(said: Mapping[str, str]) -> dict[str, Any]:
    """Return a document that says *said*, by place."""

    def at(place: str, usual: str) -> str:
        return said.get(place, usual)

    thing, request = at("definition", "Thing"), f"{at('request', 'Call')}Request"
    properties = {
        "kind": {"const": at("constant", "thing")},
        at("property", "value"): {
            "type": "string",
            "description": at("property description", "A value."),
            "default": at("default", "x"),
            "examples": [at("example", "x")],
            "format": at("format", "uri"),
        },
        at("inline property", "inline"): {"type": "object", "properties": {"a": {"type": "string"}}},
        "choice": {"enum": [at("enum", "on"), "off"]},
        "matched": {"type": "string", "pattern": at("pattern", "a")},
        "union": {
            "anyOf": [
                {"type": "object", "title": at("arm title", "One"), "properties": {"one": {}}},
                {"type": "object", "title": "Other", "properties": {"other": {}}},
            ]
        },
    }
    return {
        "$schema": at("dialect", "https://json-schema.org/draft/2020-12/schema"),
        "$comment": at("comment", "none"),
        "title": at("document title", "Schema"),
        "$id": at("identifier", "schema.json"),
        "description": at("document description", "A schema."),
        "$defs": {
            thing: {
                "type": "object",
                "title": at("title", "Thing"),
                "description": at("description", "A thing."),
                "properties": properties,
                "required": ["kind"],
            },
            "Other": {"type": "object", "properties": {"kind": {"const": "other"}}, "required": ["kind"]},
            "Either": {"anyOf": [{"$ref": f"#/$defs/{thing}"}, {"$ref": "#/$defs/Other"}]},
            request: {
                "type": "object",
                "description": at("request description", "A request."),
                "properties": {"method": {"const": at("method", "tools/call")}, "params": {"type": "object"}},
                "required": ["method"],
            },
            "ClientRequest": {"anyOf": [{"$ref": f"#/$defs/{request}"}]},
        },
    }


def is_plain(text: str) -> bool:
    """Whether *text* is a name that a definition may have."""
    return text.isascii() and text.isidentifier() and not keyword.iskeyword(text) and not text.startswith("__")


def is_shown(character: str) -> bool:
    # What has no meaning to this Python may be a letter to the next, and the output is the same with both.
    return character.isprintable() or character == "\n" or unicodedata.category(character) == "Cn"


def package_of(said: Mapping[str, str]) -> Package | None:
    """Build the document that says *said*; None if it is refused, as it must be: with codes."""
    try:
        return build(document(said), label=said.get("label", "test"))
    except Refused as refused:
        for finding in refused.diagnostics:
            assert finding.code in CODES
            assert finding.message
        return None


def assert_harmless(package: Package, folder: Path) -> ModuleType:
    """Import *package*; assert that its source holds no code but the generator's own."""
    assert FILES == sorted(package.files)
    for name, source in package.files.items():
        # What an editor would not show, or show elsewhere than where it is (bidi controls), is escaped.
        assert all(is_shown(character) for character in source), name
        tree = ast.parse(source)
        called = {
            node.func.id for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
        }
        assert not called & {"setattr", "__import__", "eval", "exec"}, name
        assert all(isinstance(node.value, ast.Constant) for node in tree.body if isinstance(node, ast.Expr)), name
    door = load(package, folder)
    build_decoders(door)

    assert not hasattr(builtins, CANARY)
    return door


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("hostile")


def test_the_attack_would_be_noticed() -> None:
    exec(ATTACK)  # noqa: S102 proves that the canary sings

    assert hasattr(builtins, CANARY)
    delattr(builtins, CANARY)


def test_prose_and_values_may_say_anything(folder: Path) -> None:
    definitions: dict[str, Any] = {}
    for index, text in enumerate(HOSTILE):
        said = dict.fromkeys((*PROSE, *VALUES), text)
        said |= {"pattern": re.escape(text), "definition": f"Thing{index}", "request": f"Call{index}"}
        found = document(said)["$defs"]
        definitions |= {f"Thing{index}": found[f"Thing{index}"], f"Call{index}Request": found[f"Call{index}Request"]}
    definitions["ClientRequest"] = {"anyOf": [{"$ref": f"#/$defs/Call{index}Request"} for index in range(len(HOSTILE))]}
    definitions["Either"] = {"anyOf": [{"$ref": f"#/$defs/Thing{index}"} for index in range(len(HOSTILE))]}
    door = assert_harmless(build({"$defs": definitions}), folder)

    assert sorted(HOSTILE) == list(door.methods.CLIENT_REQUESTS)
    for index, text in enumerate(HOSTILE):
        value = {"kind": text, "value": text, "choice": text, "matched": text}
        decoded = door.decode(json.dumps(value), door.Either)

        assert isinstance(decoded, getattr(door.models, f"Thing{index}"))
        assert canonical(value) == canonical(json.loads(msgspec.json.encode(decoded)))
        with pytest.raises(msgspec.ValidationError):
            door.decode(json.dumps({"kind": f"{text}!"}), door.Either)


@pytest.mark.parametrize("text", ['"', "\n", "", "{{ x }}", "../x", "None", "\x00", f'"""\n{ATTACK}'], ids=ascii)
def test_a_document_may_have_any_title(text: str) -> None:
    assert package_of(dict.fromkeys(("document title", "identifier", "dialect"), text)) is not None


@pytest.mark.parametrize("place", PROPERTIES)
def test_a_property_of_any_name_works_or_is_refused(place: str, folder: Path) -> None:
    definitions: dict[str, Any] = {}
    kept: dict[str, str] = {}
    for index, text in enumerate(HOSTILE):
        if not text or any(character in '"\\' or character < " " for character in text):
            assert package_of({place: text}) is None
            continue
        kept[f"Thing{index}"] = text
        said = {place: text, "definition": f"Thing{index}", "constant": f"Thing{index}"}
        definitions[f"Thing{index}"] = document(said)["$defs"][f"Thing{index}"]
    definitions["Either"] = {"anyOf": [{"$ref": f"#/$defs/{name}"} for name in kept]}
    door = assert_harmless(build({"$defs": definitions}), folder)

    for name, text in kept.items():
        value = {"kind": name, text: "x" if place == "property" else {"a": "x"}}
        decoded = door.decode(json.dumps(value), door.Either)

        assert canonical(value) == canonical(json.loads(msgspec.json.encode(decoded)))
        with pytest.raises(msgspec.ValidationError):
            door.decode(json.dumps({"kind": name, text: 1}), door.Either)


def test_a_definition_of_any_name_works_or_is_refused(folder: Path) -> None:
    every = dict.fromkeys([*HOSTILE, *keyword.kwlist, *keyword.softkwlist, *dir(builtins)[::3], *RESERVED])
    fine = [text for text in every if is_plain(text) and text not in RESERVED]
    for text in every.keys() - set(fine):
        assert package_of({"definition": text}) is None
    definitions: dict[str, Any] = {}
    for text in fine:
        definitions[text] = document({"definition": text, "constant": text})["$defs"][text]
    definitions["Either_"] = {"anyOf": [{"$ref": f"#/$defs/{text}"} for text in fine]}
    door = assert_harmless(build({"$defs": definitions}), folder)

    for text in fine:
        decoded = door.decode(json.dumps({"kind": text}), door.Either_)
        assert (text, text) == (type(decoded).__name__, decoded.kind)


def test_a_request_of_any_name_works_or_is_refused(folder: Path) -> None:
    taken: dict[str, str] = {}
    for text in dict.fromkeys([*HOSTILE, *keyword.kwlist, *dir(builtins)[::3]]):
        if not is_plain(f"{text}Request"):
            assert package_of({"request": text}) is None
        elif text not in {"UNSET", "models"}:
            taken.setdefault(names.attribute(text), text)
    definitions: dict[str, Any] = {}
    for text in taken.values():
        definitions[f"{text}Request"] = document({"request": text, "method": text})["$defs"][f"{text}Request"]
    definitions["ClientRequest"] = {"anyOf": [{"$ref": f"#/$defs/{text}Request"} for text in taken.values()]}
    door = assert_harmless(build({"$defs": definitions}), folder)

    assert sorted(taken.values()) == list(door.methods.CLIENT_REQUESTS)
    for name in taken:
        assert callable(getattr(door.server.ServerHandlers, name))
        assert callable(getattr(door.client.ClientMethods, name))


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(said=st.dictionaries(st.sampled_from([*PROSE, *VALUES, *PROPERTIES, *NAMES, "label"]), texts, max_size=6))
def test_hostile_texts_do_no_harm_together(said: dict[str, str], folder: Path) -> None:
    package = package_of(said)
    if package is not None:
        assert_harmless(package, folder)


@pytest.mark.parametrize("text", HOSTILE, ids=ascii)
def test_a_label_cannot_lead_out_of_the_output_folder(text: str, tmp_path: Path) -> None:
    (tmp_path / "schema.json").write_text('{"$defs": {"A": {"type": "string"}}}', encoding="utf-8")
    (tmp_path / "deep" / "out").mkdir(parents=True)
    arguments = [
        "--schema",
        str(tmp_path / "schema.json"),
        f"--revision={text}",
        "--based-on=none",
        "--out",
        str(tmp_path / "deep" / "out"),
    ]
    result = CliRunner().invoke(build_command, arguments)
    written = {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*") if path.is_file()} - {
        "schema.json"
    }

    if result.exit_code != 0:
        assert isinstance(result.exception, SystemExit), result.exception
        assert result.exit_code in {1, 2}
        assert set() == written
        return
    assert all(re.fullmatch(r"deep/out/v[A-Za-z0-9_]+/(_support/)?[a-z_]+\.py", path) for path in written)
    assert FILES == sorted(path.split("/", 3)[3] for path in written)


@pytest.mark.parametrize(
    "reference", ["https://example.invalid/a.json", "//example.invalid/a", "file:///etc/passwd", "a.json"]
)
@pytest.mark.parametrize("identifier", ["https://example.invalid/b.json", "file:///etc/"])
def test_nothing_is_fetched(reference: str, identifier: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_arguments: object, **_options: object) -> NoReturn:
        pytest.fail("the network was asked for something")

    for name in ("socket", "create_connection", "getaddrinfo"):
        monkeypatch.setattr(socket, name, refuse)
    with pytest.raises(Refused) as refused:
        build({"$id": identifier, "$defs": {"A": {"$ref": reference}}})
    assert ["MG106"] == [finding.code for finding in refused.value.diagnostics]
    fine = {
        "$id": identifier,
        "$defs": {"A": {"type": "string"}, "B": {"type": "array", "items": {"$ref": "#/$defs/A"}}},
    }

    assert "list[A]" in build(fine).files["models.py"]


LINKS: dict[str, tuple[int, Callable[[Any], Any], Callable[[Any], Any]]] = {
    "object": (1, lambda held: {"properties": {"a": held}}, lambda value: {"a": value}),
    "required": (1, lambda held: {"properties": {"a": held}, "required": ["a"]}, lambda value: {"a": value}),
    "open": (1, lambda held: {"properties": {"a": held}, "additionalProperties": {}}, lambda value: {"a": value}),
    "items": (1, lambda held: {"items": held, "type": "array"}, lambda value: [value]),
    "members": (1, lambda held: {"type": "object", "additionalProperties": held}, lambda value: {"k": value}),
    "list": (2, lambda held: {"properties": {"a": {"items": held, "type": "array"}}}, lambda value: {"a": [value]}),
    "inline": (2, lambda held: {"properties": {"a": {"properties": {"b": held}}}}, lambda value: {"a": {"b": value}}),
    "union": (2, lambda held: {"properties": {"a": {"anyOf": [held, {"type": "null"}]}}}, lambda value: {"a": value}),
    "structural union": (
        2,
        lambda held: {"properties": {"a": {"anyOf": [held, {"$ref": "#/$defs/Other"}]}}},
        lambda value: {"a": value},
    ),
}
"""How one definition holds the next: the levels of that, the definition, and a value of it."""


@pytest.mark.parametrize("link", LINKS)
def test_the_longest_chain_of_definitions_works_and_a_longer_one_is_refused(link: str, folder: Path) -> None:
    levels, holder, wrap = LINKS[link]
    # Told apart after decoding, so that the stacks of msgspec and of settling are both needed to the end.
    text = {"type": "object", "properties": {"x": {"items": {"type": "string"}, "type": "array"}}, "required": ["x"]}
    other = {"type": "object", "properties": {"y": {"type": "string"}}, "required": ["y"]}
    last = {"anyOf": [{"$ref": "#/$defs/Other"}, text]}
    length = (MAX_NESTING - 4) // levels  # the last has 4 levels itself
    chain: dict[str, Any] = {f"A{index}": holder({"$ref": f"#/$defs/A{index + 1}"}) for index in range(length)}
    door = load(build({"$defs": {**chain, f"A{length}": last, "Other": other}}), folder)
    build_decoders(door)
    value: Any = {"x": ["the end"]}
    for _ in range(length):
        value = wrap(value)

    decoded = door.decode(json.dumps(value), door.A0)

    assert canonical(value) == canonical(json.loads(msgspec.json.encode(decoded)))
    chain[f"A{length}"] = holder({"$ref": f"#/$defs/A{length + 1}"})
    with pytest.raises(Refused) as refused:
        build({"$defs": {**chain, f"A{length + 1}": last, "Other": other}})
    errors = [each for each in refused.value.diagnostics if each.severity == "error"]
    assert [("MG006", "/$defs/A0")] == [(each.code, each.pointer) for each in errors]


def test_the_largest_circle_of_definitions_works(folder: Path) -> None:
    chain = {
        f"A{index}": {
            "properties": {"a": {"$ref": f"#/$defs/A{(index + 1) % MAX_NESTING}"}},
            "additionalProperties": True,
        }
        for index in range(MAX_NESTING)
    }
    door = load(build({"$defs": chain}), folder)
    build_decoders(door)

    assert {"a": {"a": {}}} == door.decode('{"a": {"a": {}}}', door.A0)
