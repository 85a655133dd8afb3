"""The same document gives the same bytes, whatever surrounds the build."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcpgen.codegen.pinned import SchemaRoom
from tests.codegen.packages import build

pytestmark = pytest.mark.slow

REVISION = "2025-11-25"
CASES = sorted((Path(__file__).parent / "cases").glob("*.json"))
SAFE = ("-c", "from mcpgen.cli import main; main(prog_name='mcpgen')")


def shuffled(value: Any, order: random.Random) -> Any:
    """Return *value* with the keys of all its objects in another order; arrays stay as they are."""
    match value:
        case dict():
            keys = list(value)
            order.shuffle(keys)
            return {key: shuffled(value[key], order) for key in keys}
        case list():
            return [shuffled(item, order) for item in value]
        case _:
            return value


def built(folder: Path, schema: Path, *, seed: str = "0", out: str = "out") -> dict[str, bytes]:
    """Build *schema* in a process of its own that works in *folder*; return what it wrote."""
    environment = {**os.environ, "PYTHONHASHSEED": seed}
    options = ["--schema", str(schema), "--revision", "draft", "--based-on", "none", "--out", out]
    command = [sys.executable, *SAFE, "build", *options]
    subprocess.run(command, check=True, cwd=folder, env=environment, stdout=subprocess.DEVNULL)
    return {path.name: path.read_bytes() for path in (folder / out / "vdraft").iterdir() if path.is_file()}


@pytest.fixture(scope="module")
def schema(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A whole document, in a file."""
    path = tmp_path_factory.mktemp("schema") / "schema.json"
    path.write_text(json.dumps(SchemaRoom().document(REVISION)), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def expected(schema: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    return built(tmp_path_factory.mktemp("first"), schema)


@pytest.mark.parametrize("seed", ["1", "4242"])
def test_the_hash_seed_does_not_matter(seed: str, schema: Path, expected: dict[str, bytes], tmp_path: Path) -> None:
    assert expected == built(tmp_path, schema, seed=seed)


def test_the_order_of_keys_and_the_layout_of_the_file_do_not_matter(
    schema: Path, expected: dict[str, bytes], tmp_path: Path
) -> None:
    document = shuffled(json.loads(schema.read_text(encoding="utf-8")), random.Random(7))  # noqa: S311 not a secret
    other = tmp_path / "elsewhere" / schema.name  # headers show the name of the file, and never its folder
    other.parent.mkdir()
    other.write_text(json.dumps(document, indent=7), encoding="utf-8")

    assert expected == built(tmp_path, other)


def test_a_foreign_pyproject_in_the_working_directory_does_not_matter(
    schema: Path, expected: dict[str, bytes], tmp_path: Path
) -> None:
    settings_of_others = (
        "[tool.black]\nline-length = 40\nskip-string-normalization = true\ntarget-version = ['py313']\n"
    )
    (tmp_path / "pyproject.toml").write_text(settings_of_others, encoding="utf-8")
    (tmp_path / ".editorconfig").write_text("root = true\n[*]\nend_of_line = crlf\nindent_size = 2\n", encoding="utf-8")

    assert expected == built(tmp_path, schema, out="other/out")


def test_what_is_there_already_does_not_matter(schema: Path, expected: dict[str, bytes], tmp_path: Path) -> None:
    built(tmp_path, schema)

    assert expected == built(tmp_path, schema)


def test_no_path_and_no_time_is_in_the_output(expected: dict[str, bytes], schema: Path) -> None:
    for content in expected.values():
        assert str(schema.parent).encode() not in content
        assert b"out/vdraft" not in content


def test_line_ends_are_the_same_everywhere(expected: dict[str, bytes]) -> None:
    assert not any(b"\r" in content for content in expected.values())


@settings(max_examples=6, deadline=None)
@given(case=st.sampled_from(CASES), seed=st.integers(0, 2**32))
def test_every_construct_is_built_the_same_from_any_order_of_keys(case: Path, seed: int) -> None:
    document = json.loads(case.read_text(encoding="utf-8"))["schema"]

    assert build(document) == build(shuffled(document, random.Random(seed)))  # noqa: S311 not a secret
