"""Docstrings, taken apart: three styles, mixed ones, and what is in none of them."""

from __future__ import annotations

import pytest

from mcpgen.runtime.server.functions.docstrings import Docstring, parse

GOOGLE = """Add two numbers.

    The sum is exact.

    Args:
        a: The first.
        b (int, optional): The second, which
            may be left out.

            Really.
        *rest: More.

    Returns:
        The sum.

    Raises:
        ValueError: If not.

    Note:
        Kept.
    """

NUMPY = """Add two numbers.

    The sum is exact.

    Parameters
    ----------
    a : int
        The first.
    b, c : int, optional
        The others,
        in order.
    d
        One without a type.

    Returns
    -------
    int
        The sum.
    """

SPHINX = """Add two numbers.

    The sum is exact.

    :param a: The first.
    :param int b: The second, which
        may be left out.
    :type a: int
    :returns: The sum.
    :raises ValueError: If not.
    """


def test_google_style_is_understood() -> None:
    expected = Docstring(
        "Add two numbers.\n\nThe sum is exact.\n\nNote:\n    Kept.",
        {"a": "The first.", "b": "The second, which may be left out. Really.", "rest": "More."},
    )

    assert expected == parse(GOOGLE)


def test_numpy_style_is_understood() -> None:
    expected = Docstring(
        "Add two numbers.\n\nThe sum is exact.",
        {"a": "The first.", "b": "The others, in order.", "c": "The others, in order.", "d": "One without a type."},
    )

    assert expected == parse(NUMPY)


def test_sphinx_style_is_understood() -> None:
    expected = Docstring(
        "Add two numbers.\n\nThe sum is exact.",
        {"a": "The first.", "b": "The second, which may be left out."},
    )

    assert expected == parse(SPHINX)


@pytest.mark.parametrize("text", [None, "", "   \n  "])
def test_no_docstring_says_nothing(text: str | None) -> None:
    assert Docstring("", {}) == parse(text)


@pytest.mark.parametrize(
    "text",
    [
        "One line.",
        "Choose:\n\n    this\n\nor that",
        "Args:",
        "See ``a: b``.\n\nx: y",
        "A title\n\n---\n\nprose",
        ":hint: not a field",
    ],
)
def test_what_is_in_no_section_is_prose(text: str) -> None:
    assert Docstring(text, {}) == parse(text)


def test_a_line_that_is_no_parameter_is_passed_over() -> None:
    assert {"a": "One."} == parse("X.\n\nArgs:\n    just prose\n    a: One.\n    b:").parameters


def test_a_line_of_a_numpy_section_that_is_no_name_is_passed_over() -> None:
    assert {"a": "One."} == parse("X.\n\nParameters\n----------\n(none)\na : int\n    One.").parameters


def test_a_section_at_the_very_top_leaves_no_description() -> None:
    assert Docstring("", {"a": "One."}) == parse("\n    Args:\n        a: One.\n    ")
