"""schema/docs.toml: every type of every revision has our words, and none of our words are about nothing."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import pytest

from mcpgen.codegen import ir
from mcpgen.codegen.diagnostics import Refused
from mcpgen.codegen.docs import load_docs, spec_url
from mcpgen.codegen.overlay import patched_document
from mcpgen.codegen.parse import parse
from mcpgen.codegen.pinned import SchemaRoom

if TYPE_CHECKING:
    from pathlib import Path

ROOM = SchemaRoom()
DOCS = load_docs(ROOM.root / "docs.toml")


@cache  # while tests are collected, this would take a second
def schema(revision: str) -> ir.Schema:
    return parse(patched_document(revision, ROOM))


def keys(revision: str, name: str) -> set[str]:
    definition = schema(revision).definitions.get(name)
    return {each.wire for each in definition.properties} if isinstance(definition, ir.Object) else set()


@pytest.mark.parametrize(
    ("revision", "reference", "url"),
    [
        ("2025-11-25", "server/tools#calling-tools", "2025-11-25/server/tools#calling-tools"),
        ("2025-11-25", "basic/index#meta", "2025-11-25/basic#meta"),
        ("2024-11-05", "basic/messages", "2024-11-05/basic/messages"),
        ("2024-11-05", "index#overview", "2024-11-05#overview"),
        ("DRAFT-2026-v1", "server/tools", "draft/server/tools"),
        ("2025-11-25/../x", "server/tools", "draft/server/tools"),
    ],
)
def test_a_reference_becomes_the_url_of_its_page(revision: str, reference: str, url: str) -> None:
    assert f"https://modelcontextprotocol.io/specification/{url}" == spec_url(revision, reference)


@pytest.mark.parametrize("revision", ROOM.revisions)
def test_every_type_has_our_words_and_its_place_in_the_specification(revision: str) -> None:
    silent = [
        name
        for name in schema(revision).definitions
        if not (DOCS.about(name, revision).text and DOCS.about(name, revision).spec)
    ]

    assert [] == silent


def test_no_words_are_about_a_type_that_no_revision_has() -> None:
    known = {name for revision in ROOM.revisions for name in schema(revision).definitions}

    assert [] == sorted(DOCS.names() - known)


def test_no_override_is_for_a_revision_without_the_type() -> None:
    dead = [
        (name, revision)
        for name in sorted(DOCS.names())
        for revision in DOCS.overridden(name)
        if name not in schema(revision).definitions
    ]

    assert [] == dead


def test_no_words_are_about_a_key_that_does_not_exist() -> None:
    dead = [
        (name, key)
        for name in sorted(DOCS.names())
        for key in {key for revision in ROOM.revisions for key in DOCS.about(name, revision).fields}
        if not any(key in keys(revision, name) for revision in ROOM.revisions)
    ]

    assert [] == dead


@pytest.mark.parametrize("content", ["[Tool", "[Tool]\nwords = 'x'", "Tool = 1"])
def test_a_file_that_cannot_be_understood_is_refused(content: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    file = tmp_path_factory.mktemp("docs") / "docs.toml"
    file.write_text(content, encoding="utf-8")

    with pytest.raises(Refused, match="MG314"):
        load_docs(file)


def test_a_file_that_is_nested_too_deeply_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "docs.toml"
    file.write_text(f"x = {'[' * 3000}{']' * 3000}", encoding="utf-8")

    with pytest.raises(Refused, match=r"MG314 error: docs\.toml: it is nested too deeply"):
        load_docs(file)


def test_the_file_has_to_be_there(tmp_path: Path) -> None:
    with pytest.raises(Refused, match=r"MG314 error: cannot read .*docs\.toml: No such file"):
        load_docs(tmp_path / "docs.toml")
