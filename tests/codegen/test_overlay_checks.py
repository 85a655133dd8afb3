"""What overlays claim that is not so is refused, whichever table says it."""

from __future__ import annotations

import tomllib
from typing import Any

import msgspec
import pytest

from mcpgen.codegen.build import Source, generate, pinned_source
from mcpgen.codegen.diagnostics import Refused
from mcpgen.codegen.diff import edition
from mcpgen.codegen.overlay import Overlay, SharedOverlay
from mcpgen.codegen.pinned import SchemaRoom

pytestmark = pytest.mark.slow

NEWEST = SchemaRoom().revisions[-1]


def source(text: str) -> Source:
    """Return the newest revision with one more table in its overlay."""
    found = pinned_source(SchemaRoom(), NEWEST)
    more: dict[str, Any] = msgspec.to_builtins(msgspec.convert(tomllib.loads(text), Overlay))
    ours: dict[str, Any] = msgspec.to_builtins(found.overlay)
    for key in ("deprecated", "errors"):
        ours[key] += more[key]
    ours["methods"] |= more["methods"]
    return msgspec.structs.replace(found, overlay=msgspec.convert(ours, Overlay))


def refusals(text: str) -> list[tuple[str, str]]:
    with pytest.raises(Refused) as built:
        generate(source(text))
    with pytest.raises(Refused) as compared:
        edition(source(text), vendored=True)
    assert built.value.diagnostics == compared.value.diagnostics
    return [(each.code, each.message) for each in built.value.diagnostics]


def deprecated(name: str) -> str:
    return f"[[deprecated]]\nnames = [{name!r}]\nreason = 'r'"


def error(code: int, name: str) -> str:
    return f"[[errors]]\ncode = {code}\nname = {name!r}\ntext = 't'"


@pytest.mark.parametrize("name", ["NoSuch", "Tool.nosuch", "Tool.input_schema", "NoSuch.name", "Cursor.x", ""])
def test_what_is_deprecated_is_there(name: str) -> None:
    assert [("MG315", f"the overlay deprecates {name}, which does not exist (r)")] == refusals(deprecated(name))


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("[methods.'no/such']", "a method that no request or notification has"),
        ("[methods.'tools/call']\nresult = 'Nope'", "the result Nope, which does not exist"),
        ("[methods.'tools/call']\ntask_result = 'Nope'", "the result Nope, which does not exist"),
    ],
)
def test_methods_and_their_results_are_there(text: str, part: str) -> None:
    ((code, message),) = refusals(text)

    assert "MG315" == code
    assert message.endswith(part)


@pytest.mark.parametrize(
    ("code", "name", "said"),
    [
        (-32020, "X", "the error code -32020 has two names: HEADER_MISMATCH and X"),
        (-32601, "X", "the error code -32601 has two names: METHOD_NOT_FOUND and X"),  # of the shared overlay
        (-32020, "HEADER_MISMATCH", "the error code -32020 has two names: HEADER_MISMATCH and HEADER_MISMATCH"),
        (-32023, "HEADER_MISMATCH", "the error HEADER_MISMATCH has two codes: -32020 and -32023"),
    ],
)
def test_a_code_has_one_name_and_a_name_one_code(code: int, name: str, said: str) -> None:
    assert [("MG316", said)] == refusals(error(code, name))


def test_what_is_so_is_not_refused() -> None:
    text = f"{deprecated('Tool.icons')}\n{error(-32023, 'NEW')}\n[methods.'tools/call']\nresult = 'CallToolResult'"
    package = generate(source(text))

    assert "NEW = -32023" in package.files["methods.py"]
    assert "Deprecated: r" in package.files["models.py"]


def test_what_is_said_of_all_documents_need_not_be_so_of_each() -> None:
    found = pinned_source(SchemaRoom(), NEWEST)
    shared = msgspec.to_builtins(found.shared) | {"methods": {"no/such": {"result": "Nope"}}}

    assert generate(msgspec.structs.replace(found, shared=msgspec.convert(shared, SharedOverlay))).types
