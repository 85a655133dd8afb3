"""Text for people: nothing in it steers a terminal, and lines break where people would break them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpgen.runtime.cli import terminal_text
from mcpgen.runtime.cli.terminal_text import (
    as_json,
    display_width,
    escaped_line,
    escaped_text,
    join_words,
    lay_out,
    wrap,
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain", "plain"),
        ("\x1b[31m", "\\x1b[31m"),
        ("\x9b1A", "\\x9b1A"),
        ("a\rb\nc\x7f", "a\\rb\\nc\\x7f"),
        ("\u202eesrever", "\\u202eesrever"),
        ("zero\u200bwidth", "zero\\u200bwidth"),
        ("日本　語 é", "日本　語 é"),
        ("\ud800", "\\ud800"),
    ],
)
def test_what_could_steer_a_terminal_is_shown_as_an_escape(text: str, expected: str) -> None:
    assert expected == escaped_line(text)


def test_text_keeps_its_lines_and_tabs() -> None:
    assert "a\tb\nc\\x1b\nd\\re" == escaped_text("a\tb\r\nc\x1b\nd\re")


@given(st.text())
def test_no_control_character_comes_through(text: str) -> None:
    assert all(each.isprintable() or each in "\n\t" or each.isspace() for each in escaped_text(text))
    assert not set("\x1b\x9b\r\x08\x07\u202e") & set(escaped_text(text))


@given(st.text(st.sampled_from("ab 日\u0301"), max_size=60), st.integers(20, 40))
def test_no_line_is_wider_than_the_terminal_and_nothing_gets_lost(text: str, width: int) -> None:
    lines = list(wrap(text, width, indent="  ", hang="    "))

    assert all(display_width(line) <= width for line in lines)
    assert text.replace(" ", "") == "".join(lines).replace(" ", "")


def test_a_long_word_is_measured_once(monkeypatch: pytest.MonkeyPatch) -> None:
    measured: list[str] = []
    monkeypatch.setattr(terminal_text, "_width", lambda character: measured.append(character) or 1)

    assert ["é" * 16] * 500 == list(wrap("é" * 8000, 16))
    assert len(measured) < 30_000


def test_an_indent_of_a_server_is_not_repeated_without_bound() -> None:
    for begin in (" " * 10_000, "-" + " " * 10_000):
        lines = list(lay_out(f"first\nsecond\n{begin}{'word ' * 1000}", 80))

        assert sum(map(len, lines)) < 20_000


def test_lines_hang_below_their_first_and_without_a_width_there_is_one() -> None:
    text = "aaaa bbbb cccc dddd eeee ffff"

    assert ["- aaaa bbbb cccc", "  dddd eeee ffff"] == list(wrap(text, 18, indent="- ", hang="  "))
    assert ["- " + "word " * 50 + "end"] == list(wrap("word " * 50 + "end", None, indent="- "))


def test_a_docstring_is_laid_out_in_paragraphs_and_lists() -> None:
    text = "First.\n\n    Second line of a paragraph.\n\n\n      - an item that is long\n    end\n\n"

    expected = """
  First.

  Second line of a
  paragraph.

    - an item that is
      long
  end
"""
    assert expected.strip("\n") == "\n".join(lay_out(text, 22, "  "))


def test_json_is_ascii_and_says_the_same() -> None:
    assert '{"a":"\\u001b\\u00e9\\ud83d\\ude00\\u007f"}' == as_json({"a": "\x1bé😀\x7f"}, is_pretty=False)
    assert '{\n  "a": 1\n}' == as_json({"a": 1}, is_pretty=True)


@pytest.mark.parametrize(
    ("parts", "expected"), [([], ""), (["a"], "a"), (["a", "b"], "a or b"), (["a", "b", "c"], "a, b or c")]
)
def test_a_list_reads_like_a_sentence(parts: list[str], expected: str) -> None:
    assert expected == join_words(parts)


def test_each_word_of_a_line_is_measured_once(monkeypatch: pytest.MonkeyPatch) -> None:
    measured: list[int] = []

    def display_width(text: str) -> int:
        measured.append(len(text))
        return 0

    monkeypatch.setattr(terminal_text, "display_width", display_width)
    text = " ".join(["\u0301" * 1000] * 30)

    assert [text] == list(wrap(text, 80))
    assert sum(measured) <= len(text)
