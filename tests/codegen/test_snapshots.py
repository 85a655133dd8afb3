"""Every construct, one small schema each: what comes out is as reviewed, works, and satisfies the type checkers.

``cases/<name>.json`` holds a schema with values that it accepts and refuses, ``cases/refused/`` schemas that stop the
build. To see and accept what a change of the generator does: ``pytest tests/codegen/test_snapshots.py
--snapshot-update``, and read the difference.
"""

from __future__ import annotations

import json
import subprocess
import sys
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jsonschema
import msgspec
import pytest
from syrupy.extensions.single_file import SingleFileSnapshotExtension, WriteMode

from mcpgen.codegen.diagnostics import Refused
from mcpgen.codegen.overlay import Overlay, apply_overlay, load_shared
from mcpgen.codegen.pinned import SchemaRoom
from tests.codegen.packages import build, build_decoders, canonical, load, write_files

if TYPE_CHECKING:
    from types import ModuleType

    from syrupy.assertion import SnapshotAssertion

    from mcpgen.codegen.build import Package

CASES = Path(__file__).parent / "cases"

cases = pytest.mark.parametrize("case", sorted(CASES.glob("*.json")), ids=lambda path: path.stem)
refusals = pytest.mark.parametrize("case", sorted((CASES / "refused").glob("*.json")), ids=lambda path: path.stem)


class PythonSource(SingleFileSnapshotExtension):
    file_extension = "py"
    _write_mode = WriteMode.TEXT


class Text(SingleFileSnapshotExtension):
    file_extension = "txt"
    _write_mode = WriteMode.TEXT


def read(case: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(case.read_text(encoding="utf-8"))
    return content


@cache
def built(case: Path) -> Package:
    return build(read(case)["schema"], label=case.stem)


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("packages")


@cache
def door(case: Path, packages: Path) -> ModuleType:
    return load(built(case), packages)


def examples(case: Path, kind: str) -> list[tuple[str, Any]]:
    return [(example["type"], example["value"]) for example in read(case)[kind]]


def oracle(case: Path, name: str) -> jsonschema.Draft202012Validator:
    """Return what JSON Schema says of *name*, in the document with the overlay that all documents share."""
    schema = apply_overlay(read(case)["schema"], Overlay(), load_shared(SchemaRoom().root / "overlay.toml"))
    return jsonschema.Draft202012Validator({"$ref": f"#/$defs/{name}", "$defs": schema["$defs"]})


@cases
@pytest.mark.slow
def test_each_construct_renders_as_reviewed(case: Path, snapshot: SnapshotAssertion) -> None:
    files = built(case).files
    shown = ["models.py", *(["messages.py"] if "class" in files["messages.py"] else [])]
    if case.stem.startswith("methods"):
        shown += ["methods.py", "server.py", "client.py"]

    assert snapshot(extension_class=PythonSource) == "\n\n".join(files[name] for name in shown)


@refusals
def test_each_refusal_reads_as_reviewed(case: Path, snapshot: SnapshotAssertion) -> None:
    with pytest.raises(Refused) as refused:
        build(read(case)["schema"])
    lines = [f"{finding}\n  hint: {finding.hint}" for finding in refused.value.diagnostics]

    assert snapshot(extension_class=Text) == "\n".join(lines) + "\n"


@refusals
def test_each_refusal_names_a_place_and_what_to_do(case: Path) -> None:
    with pytest.raises(Refused) as refused:
        build(read(case)["schema"])

    for finding in refused.value.diagnostics:
        assert finding.pointer.startswith("/$defs/")
        assert finding.hint or finding.severity == "warning"


@cases
@pytest.mark.slow
def test_each_package_imports_and_builds_every_decoder(case: Path, packages: Path) -> None:
    build_decoders(door(case, packages))


@cases
@pytest.mark.slow
def test_what_the_schema_accepts_round_trips(case: Path, packages: Path) -> None:
    models = door(case, packages)
    for name, value in examples(case, "valid"):
        oracle(case, name).validate(value)
        decoded = models.decode(json.dumps(value), getattr(models, name))

        assert canonical(value) == canonical(json.loads(msgspec.json.encode(decoded))), name


@cases
def test_what_the_schema_refuses_is_refused(case: Path, packages: Path) -> None:
    models = door(case, packages)
    for name, value in examples(case, "invalid"):
        assert not oracle(case, name).is_valid(value), (name, value)
        with pytest.raises(msgspec.ValidationError):
            pytest.fail(f"{value} became {models.decode(json.dumps(value), getattr(models, name))}")


@cases
def test_each_class_decodes_without_help_of_models(case: Path, packages: Path) -> None:
    models = door(case, packages)
    for name, value in examples(case, "valid"):
        if isinstance(decoded := models.decode(json.dumps(value), getattr(models, name)), msgspec.Struct):
            assert decoded == msgspec.json.decode(json.dumps(value), type=type(decoded))


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with all packages."""
    folder = tmp_path_factory.mktemp("sources")
    for case in sorted(CASES.glob("*.json")):
        write_files(folder / case.stem, built(case).files)
    return folder


def run(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", *command], check=False, capture_output=True, cwd=folder, encoding="utf-8"
    )


@pytest.mark.skipif(find_spec("mypy") is None, reason="mypy is in the dependency group `types`")
@pytest.mark.slow
def test_all_packages_satisfy_mypy(sources: Path) -> None:
    done = run(sources, "mypy", "--strict", "--config-file=", "--cache-dir=.cache", ".")

    assert 0 == done.returncode, done.stdout + done.stderr


@pytest.mark.skipif(find_spec("pyright") is None, reason="pyright is in the dependency group `types`")
@pytest.mark.slow
def test_all_packages_satisfy_pyright(sources: Path) -> None:
    config = {"include": ["."], "exclude": [".cache"], "typeCheckingMode": "strict", "pythonVersion": "3.11"}
    (sources / "pyrightconfig.json").write_text(json.dumps(config), encoding="utf-8")
    done = run(sources, "pyright", "--pythonpath", sys.executable)

    assert 0 == done.returncode, done.stdout + done.stderr


def test_no_snapshot_is_left_over_from_a_case_that_is_gone() -> None:
    snapshots = Path(__file__).parent / "__snapshots__" / "test_snapshots"
    named = {path.stem.partition("[")[2].rstrip("]") for path in snapshots.iterdir()}

    assert named == {path.stem for path in CASES.rglob("*.json")}
