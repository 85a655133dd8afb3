"""Text of documents: what of it is shown is the same on every release of Python."""

from __future__ import annotations

import unicodedata
from typing import TYPE_CHECKING, Any

import pytest

from mcpgen.codegen.docstrings import prose
from tests.codegen.packages import build, load

if TYPE_CHECKING:
    from pathlib import Path

# Two faces, in Unicode since 1.1 and since 15.0, which Python 3.11 does not know, and two code points that not even
# Unicode 16 has given a character.
FACES = ["\u263a", "\U0001fae8", "\u0c5c", "\U0001faff"]
UNSEEN = {"Cc", "Cs", "Co", "Zl", "Zp", "Zs"}


@pytest.mark.parametrize("face", FACES)
def test_what_a_release_of_python_does_not_know_is_shown(face: str) -> None:
    assert f"a {face} b" == prose(f"a {face} b")


@pytest.mark.parametrize("face", FACES)
@pytest.mark.slow
def test_a_document_with_such_characters_becomes_the_same_everywhere(face: str, tmp_path: Path) -> None:
    keys: dict[str, Any] = {"a": {"const": face}, "b": {"enum": [face, "x"]}, "c": {"type": "string", "default": face}}
    keys |= {face: {"type": "string"}, "d": {"type": "string", "pattern": face}}
    definition = {"description": f"Says {face}.", "type": "object", "properties": keys, "required": ["a", "c"]}
    package = build({"$defs": {"Face": definition}})
    text = package.files["models.py"]

    assert 1 == text.count(face)
    assert f'"""Says {face}."""' in text
    assert 6 == text.count(ascii(face).strip("'"))
    models = load(package, tmp_path)
    assert (face, face) == ((made := models.Face()).a, made.c)


@pytest.mark.slow
def test_what_nobody_sees_becomes_a_blank() -> None:
    unseen = [each for each in map(chr, range(0x110000)) if each.isspace() or unicodedata.category(each) in UNSEEN]

    assert ["a b"] == sorted({prose(f" {each}a{each} {each}b{each}") for each in unseen})


@pytest.mark.parametrize(
    "character", ["\xad", "\u061c", "\u200b", "\u202e", "\u2066", "\ufeff", "\ufff9", "\uffff", "\ufdd0", "\U000e0041"]
)
def test_what_steers_or_marks_text_becomes_a_blank(character: str) -> None:
    assert "a b" == prose(f"a{character}b")


def test_a_character_that_everybody_sees_is_kept() -> None:
    shown = "Zoë, Ω, ж, 語, ق, 한, ß, e\u0301, …, —, €, \U0001f600"

    assert shown == prose(shown)


@pytest.mark.parametrize(
    ("text", "expected"),
    [("", ""), (" \n ", ""), ('"', '\\"'), ('"""', "'''"), ("\\", "\\\\"), ("a\n\nb", "a b"), ("a\t\x00 b", "a b")],
)
def test_a_docstring_cannot_be_ended(text: str, expected: str) -> None:
    assert expected == prose(text)
