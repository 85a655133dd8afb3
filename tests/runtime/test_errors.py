"""The tree of exceptions in the header of `errors`, and the list of other bounds in the header of `limits`."""

from __future__ import annotations

import importlib
import re
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import mcpgen
from mcpgen import runtime
from mcpgen.runtime import errors, limits
from mcpgen.runtime.errors import InvalidPayload, McpgenError, RequestError, RequestRefused, UnsupportedByPeer

if TYPE_CHECKING:
    import pytest

DRAWN = re.compile(r"(?P<indent>(?:│   |    )*)(?:├── |└── )(?P<name>\w+)(?:.*\((?P<module>mcpgen\.[\w.]+)\))?")


def drawn() -> dict[str, tuple[str, str]]:
    """Return the parent and the module of each exception in the tree."""
    path = ["McpgenError"]
    found: dict[str, tuple[str, str]] = {}
    for line in (errors.__doc__ or "").splitlines():
        if match := DRAWN.match(line):
            depth = len(match["indent"]) // 4 + 1
            path[depth:] = [match["name"]]
            found[match["name"]] = (path[depth - 1], match["module"] or errors.__name__)
    return found


def test_each_exception_in_the_tree_is_a_subclass_of_its_parent() -> None:
    tree = drawn()
    classes = {name: getattr(importlib.import_module(module), name) for name, (_, module) in tree.items()}
    classes["McpgenError"] = McpgenError

    assert {name: parent for name, (parent, _) in tree.items()} == {
        name: next(base.__name__ for base in classes[name].__bases__ if issubclass(base, McpgenError)) for name in tree
    }


def test_the_tree_has_every_exception_of_errors_and_every_public_one() -> None:
    public = {
        name
        for name in mcpgen.__all__
        if isinstance(value := getattr(mcpgen, name), type) and issubclass(value, McpgenError)
    }
    own = {name for name, value in vars(errors).items() if isinstance(value, type) and issubclass(value, McpgenError)}

    assert public | own == (public | own) & {"McpgenError", *drawn()}


def test_an_error_without_a_revision_names_none() -> None:
    invalid = InvalidPayload(revision="", pointer="/data", what="an error of rooms/list", reason="no JSON")
    unsupported = UnsupportedByPeer(revision="", what="roots/list", reason="the client has not sent initialize")

    assert "an error of rooms/list is not valid at /data: no JSON" == str(invalid)
    assert "roots/list cannot be sent to this peer: the client has not sent initialize" == str(unsupported)


def test_each_control_character_of_a_long_error_is_escaped_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server can send millions of them, also as lines of one character."""
    calls: list[str] = []
    escape: Any = vars(errors)["_escaped"]

    def counted(character: str) -> str:
        calls.append(character)
        return str(escape(character))

    monkeypatch.setattr(errors, "_escaped", counted)
    refused = RequestRefused("tools/call", RequestError(1, "a\x7f\r\n\x1b\n" * 1000))

    assert "tools/call was answered with an error: " + "\n".join(["a\\x7f", "\\x1b"] * 1000) + " (1)" == str(refused)
    assert len(calls) < 10


def test_the_modules_that_limits_refers_to_exist() -> None:
    named = re.findall(r"`([\w/]+\.py)`", limits.__doc__ or "")

    assert named
    assert [] == [each for each in named if not files(runtime).joinpath(each).is_file()]


def test_the_header_of_limits_names_every_limits_class() -> None:
    classes = [name for name, value in vars(limits).items() if name.endswith("Limits") and isinstance(value, type)]

    assert len(classes) == len(re.findall(r"`(\w*Limits)`", (limits.__doc__ or "").partition("Other bounds")[0]))
