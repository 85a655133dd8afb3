"""``mcpgen check`` finds every way in which generated/ can differ from what schema/ says."""

from __future__ import annotations

import json
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from mcpgen.codegen.commands import build, check
from tests.codegen.packages import CHECKOUT, FILES, small_checkout

pytestmark = pytest.mark.slow

# One revision is enough to find drift in, and five times as fast as five.
REVISION = "2024-11-05"
FOLDER = "v2024_11_05"
# In a checkout, the support package is not a part of each revision, nor generated.
GENERATED_FILES = [name for name in FILES if not name.startswith("_support/")]


@pytest.fixture(scope="module")
def pristine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkout of one revision, which is built."""
    root = tmp_path_factory.mktemp("pristine") / "checkout"
    small_checkout(root, REVISION)
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.chdir(root)
        assert 0 == CliRunner().invoke(build, ["--all"]).exit_code
    return root


@pytest.fixture
def checkout(pristine: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy to tamper with; the working directory."""
    root = tmp_path / "checkout"
    shutil.copytree(pristine, root)
    monkeypatch.chdir(root)
    return root


def run(*arguments: str) -> Result:
    result = CliRunner().invoke(check, arguments)
    assert result.exception is None or isinstance(result.exception, SystemExit)
    return result


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), encoding="utf-8")


@pytest.mark.parametrize(
    "options", [["--revision", REVISION], ["--schema", "draft.json", "--revision", "draft"], ["--id", "com.example/a"]]
)
def test_an_option_that_has_no_effect_without_a_folder_is_refused(checkout: Path, options: list[str]) -> None:
    result = run(*options)

    assert 2 == result.exit_code
    assert "needs `--out DIR`. Add `--out DIR`, or leave these options out." in result.output


def test_outside_a_checkout_a_folder_is_the_only_advice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    result = run("--revision", REVISION)

    assert 2 == result.exit_code
    assert result.output.endswith("needs `--out DIR`. Add `--out DIR`.\n")


def test_no_drift_is_status_0_and_a_line_for_each_folder(checkout: Path) -> None:
    result = run()

    folders = ["generated", "adapters", "extensions", FOLDER]
    assert (0, "") == (result.exit_code, result.stderr)
    assert [f"{each}: equal to a fresh build" for each in folders] == result.stdout.splitlines()
    assert {"diagnostics": []} == json.loads(run("--json").stdout)
    assert checkout == Path.cwd()


def test_each_edited_file_is_shown_as_a_difference(checkout: Path) -> None:
    paths = [checkout / "generated" / FOLDER / name for name in GENERATED_FILES]
    for path in paths:
        path.write_text(path.read_text(encoding="utf-8") + f"EDITED = '{path.name}'\n", encoding="utf-8")
    result = run()

    assert 1 == result.exit_code
    for path in paths:
        assert f"-EDITED = '{path.name}'" in result.stdout
        assert f"{path} differs from a fresh build" in result.stderr
    assert "hint: Run: mcpgen build --all\n" in result.stderr


def test_what_an_edited_file_contains_does_not_control_the_terminal(checkout: Path) -> None:
    path = checkout / "generated" / FOLDER / "models.py"
    path.write_text(path.read_text(encoding="utf-8") + "X = '\x1b[2J\u202e'\n", encoding="utf-8")

    assert "-X = '\\x1b[2J\\u202e'\n" in run().stdout


def test_each_missing_file_is_drift(checkout: Path) -> None:
    paths = [checkout / "generated" / name for name in ("__init__.py", "registry.py", f"{FOLDER}/models.py")]
    for path in paths:
        path.unlink()
    result = run("--json")

    assert 1 == result.exit_code
    assert sorted(("MG403", f"{path} is missing") for path in paths) == sorted(
        (finding["code"], finding["message"]) for finding in json.loads(result.stdout)["diagnostics"]
    )


def test_a_folder_in_place_of_a_file_is_said_to_be_one(checkout: Path) -> None:
    path = checkout / "generated" / FOLDER / "models.py"
    path.unlink()
    path.mkdir()
    result = run()

    assert (1, "") == (result.exit_code, result.stdout)
    assert f"{path} is a folder\n  hint: Remove it. Then run: mcpgen build --all\n" in result.stderr


def test_a_missing_revision_is_drift_in_all_its_files(checkout: Path) -> None:
    shutil.rmtree(checkout / "generated" / FOLDER)
    result = run("--json")

    assert (1, len(GENERATED_FILES)) == (result.exit_code, len(json.loads(result.stdout)["diagnostics"]))


def test_a_blocking_client_that_differs_from_its_source_is_drift(checkout: Path) -> None:
    for name in ("runtime/client/base_client.py", "runtime/api/client.py", "runtime/api/hosts/client_group.py"):
        (checkout / name).parent.mkdir(parents=True)
        shutil.copy(CHECKOUT / name, checkout / name)
    before = run()
    assert 0 == CliRunner().invoke(build, ["--all"]).exit_code
    built = run()
    edit(checkout / "runtime/api/client.py", "async def read_resource(", "async def fetch_resource(")
    edited = run()

    path = checkout / "runtime" / "api" / "sync_client.py"
    assert (1, 0, 1) == (before.exit_code, built.exit_code, edited.exit_code)
    assert f"{path} is missing" in before.stderr
    assert "+    def fetch_resource(" in edited.stdout


def test_each_file_that_nothing_generates_is_named(checkout: Path) -> None:
    generated = checkout / "generated"
    for path in (generated / "stray.py", generated / FOLDER / "stray.py", generated / "v1999_01_01" / "models.py"):
        path.parent.mkdir(exist_ok=True)
        path.touch()
    result = run()

    assert 1 == result.exit_code
    for path in (generated / "stray.py", generated / FOLDER / "stray.py", generated / "v1999_01_01"):
        assert f"{path} is not in a fresh build" in result.stderr


def test_what_interpreters_and_tools_leave_behind_is_no_drift(checkout: Path) -> None:
    for name in ("__pycache__", ".mypy_cache", ".ruff_cache", ".pytest_cache"):
        (checkout / "generated" / name).mkdir()
        (checkout / "generated" / FOLDER / name).mkdir()

    assert 0 == run().exit_code


def test_line_ends_of_another_system_are_drift(checkout: Path) -> None:
    path = checkout / "generated" / FOLDER / "models.py"
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))

    assert 1 == run().exit_code


def test_a_changed_overlay_is_drift(checkout: Path) -> None:
    with (checkout / "schema" / REVISION / "overlay.toml").open("a", encoding="utf-8") as overlay:
        overlay.write('\n[[deprecated]]\nnames = ["Tool"]\nreason = "For the test."\n')
    result = run()

    assert 1 == result.exit_code
    assert "+    Deprecated: For the test." in result.stdout


def test_changed_words_are_drift(checkout: Path) -> None:
    edit(checkout / "schema" / "docs.toml", '[Annotated]\ntext = "', '[Annotated]\ntext = "Reworded: ')
    result = run()

    assert 1 == result.exit_code
    assert "Reworded: " in result.stdout


def test_a_tampered_document_stops_the_check(checkout: Path) -> None:
    edit(checkout / "schema" / REVISION / "schema.json", '"tools/call"', '"tools/cast"')
    result = run("--json")

    assert 1 == result.exit_code
    assert ["MG301"] == [finding["code"] for finding in json.loads(result.stdout)["diagnostics"]]


def test_a_check_writes_nothing(checkout: Path) -> None:
    (checkout / "generated" / FOLDER / "models.py").unlink()
    before = sorted(checkout.rglob("*"))
    run()

    assert before == sorted(checkout.rglob("*"))


def test_the_status_tells_where_nothing_else_can(checkout: Path) -> None:
    command = shlex.join([sys.executable, "-I", "-c", "from mcpgen.cli import main; main()", "check"])

    def status(closed: str) -> int:
        return subprocess.run(f"exec {command} {closed}", shell=True, check=False).returncode  # noqa: S602 (ours)

    assert [0, 0] == [status(">&-"), status(">/dev/null 2>&-")]
    edit(checkout / "generated" / FOLDER / "models.py", "Generated by", "Edited by")
    assert [1, 1] == [status(">&- 2>/dev/null"), status(">/dev/null 2>&-")]


def test_outside_of_a_checkout_there_is_nothing_to_check(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    result = run()

    assert 2 == result.exit_code
    assert "MG404" in result.stderr


def test_what_a_killed_build_left_is_drift_and_goes_with_the_next(checkout: Path) -> None:
    folder = checkout / "generated" / FOLDER
    with subprocess.Popen([sys.executable, "-c", ""]) as killed:
        killed.wait()
    folder.rename(folder.with_name(f".{FOLDER}.{killed.pid}.old"))

    assert 1 == run().exit_code
    assert 0 == CliRunner().invoke(build, ["--all"]).exit_code
    assert 0 == run().exit_code
