"""``generated/`` says nothing twice at length: what all revisions share is in its support package."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

GENERATED = Path(str(files("mcpgen"))) / "generated"
MOST_EQUAL_LINES = 20


def repetitions(texts: Mapping[str, str]) -> Iterator[str]:
    """Yield the places of each block of more than `MOST_EQUAL_LINES` lines that occurs a second time in *texts*."""
    length = MOST_EQUAL_LINES + 1
    seen: dict[tuple[str, ...], str] = {}
    for name, text in texts.items():
        lines = text.splitlines()
        for index in range(len(lines) - length + 1):
            place = f"{name}:{index + 1}"
            if (first := seen.setdefault(tuple(lines[index : index + length]), place)) != place:
                yield f"{place} repeats {first}"


def test_no_block_of_more_than_twenty_lines_occurs_twice_in_generated() -> None:
    texts = {path.relative_to(GENERATED).as_posix(): path.read_text("utf-8") for path in GENERATED.rglob("*.py")}

    assert len(texts) > 5
    assert [] == list(repetitions(texts))


@pytest.mark.parametrize(
    ("lines", "found"), [(20, []), (21, ["b:1 repeats a:2"]), (22, ["b:1 repeats a:2", "b:2 repeats a:3"])]
)
def test_a_block_that_occurs_twice_is_found_from_twenty_one_lines_on(lines: int, found: list[str]) -> None:
    block = "".join(f"line {index}\n" for index in range(lines))

    assert found == list(repetitions({"a": f"first\n{block}", "b": f"{block}last\n"}))


def test_a_block_that_occurs_twice_in_one_file_is_found() -> None:
    block = "".join(f"line {index}\n" for index in range(21))

    assert ["a:23 repeats a:1"] == list(repetitions({"a": f"{block}between\n{block}"}))
