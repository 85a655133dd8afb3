"""What a user's own project needs: a check of its bindings, options in pyproject.toml, templates, and exit codes."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
import tomllib
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from click.testing import CliRunner, Result

from mcpgen.codegen import render
from mcpgen.codegen.build import foreign_source, generate, pinned_source
from mcpgen.codegen.commands import build, check
from mcpgen.codegen.diff_commands import diff
from mcpgen.codegen.extensions import Location, generate_extension, vendored_extension
from mcpgen.codegen.pinned import SchemaRoom
from mcpgen.codegen.render import REPLACEABLE, VARIABLES_VERSION, Templates
from tests.codegen import drafts
from tests.codegen.packages import CHECKOUT

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow

OLDEST = "2024-11-05"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project outside of any checkout; the working directory."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "next.json").write_text(json.dumps(drafts.one_field()), encoding="utf-8")
    return tmp_path


def run(command: Any, *arguments: object) -> Result:
    result = CliRunner().invoke(command, [str(argument) for argument in arguments])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result


def codes(result: Result) -> list[str]:
    return [finding["code"] for finding in json.loads(result.stdout)["diagnostics"]]


DRAFT = ("--schema", "next.json", "--revision", "next", "--based-on", drafts.BASE, "--out", "mcp")


# check


def test_a_copy_that_is_as_built_passes_the_check(project: Path) -> None:
    assert 0 == run(build, "--revision", OLDEST, "--out", project / "mcp").exit_code
    result = run(check, "--out", project / "mcp")

    assert (0, "v2024_11_05: equal to a fresh build\n") == (result.exit_code, result.output)


def test_drift_in_a_copy_is_status_1_and_a_diff(project: Path) -> None:
    run(build, "--revision", OLDEST, "--out", "mcp")
    models = project / "mcp" / "v2024_11_05" / "models.py"
    models.write_text(models.read_text(encoding="utf-8").replace("class Tool(", "class Tools("), encoding="utf-8")
    (project / "mcp" / "v2024_11_05" / "_support" / "own.py").write_text("x = 1\n", encoding="utf-8")
    result = run(check, "--out", "mcp")

    assert 1 == result.exit_code
    assert "-class Tools(" in result.stdout
    assert "+class Tool(" in result.stdout
    assert "own.py is not in a fresh build" in result.stderr
    assert "such as `--adapters`, add them. Otherwise delete the file.\n" in result.stderr
    assert f"hint: Run: mcpgen build --revision {OLDEST} --out mcp\n" in result.stderr
    assert ["MG403", "MG403"] == codes(run(check, "--out", "mcp", "--json"))


def test_a_draft_is_checked_with_the_options_that_built_it(project: Path) -> None:
    assert 0 == run(build, *DRAFT).exit_code
    assert 0 == run(check, *DRAFT).exit_code
    (project / "next.json").write_text(json.dumps(drafts.next_revision()), encoding="utf-8")
    changed = run(check, *DRAFT)
    (hint,) = {line for line in changed.stderr.splitlines() if "hint:" in line}

    assert 1 == changed.exit_code
    assert 0 == run(build, *shlex.split(hint.partition("mcpgen build ")[2])).exit_code
    assert 0 == run(check, *DRAFT).exit_code


def test_a_draft_without_its_options_is_said_to_need_them(project: Path) -> None:
    assert 0 == run(build, *DRAFT).exit_code
    result = run(check, "--out", project / "mcp")

    assert 2 == result.exit_code
    assert "vnext is not a package that mcpgen built from an official revision" in result.stderr


def test_a_folder_without_bindings_has_nothing_to_check(project: Path) -> None:
    assert 2 == run(check, "--out", project / "mcp").exit_code


# The table of pyproject.toml


def test_the_options_of_a_project_are_in_its_pyproject(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (project / "pyproject.toml").write_text(
        """
[[tool.mcpgen]]
schema = "next.json"
revision = "next"
based-on = "2026-07-28"
adapters = true
out = "src/app/mcp"

[[tool.mcpgen]]
revision = ["2024-11-05"]
out = "src/app/mcp"
""",
        encoding="utf-8",
    )
    (project / "deep").mkdir()
    monkeypatch.chdir(project / "deep")
    result = run(build)
    folder = project / "src" / "app" / "mcp"

    assert 0 == result.exit_code, result.output
    assert ["v2024_11_05", "vnext"] == sorted(path.name for path in folder.iterdir())
    assert (folder / "vnext" / "adapter.py").is_file()
    assert 0 == run(check).exit_code
    (folder / "vnext" / "models.py").unlink()
    assert 1 == run(check).exit_code


@pytest.mark.parametrize(
    ("table", "code", "expected"),
    [
        ('outt = "x"', "MG319", "unknown key `outt` (table 1)"),
        ('out = "x"\nrevision = 5', "MG319", "(table 1, key revision)"),
        ("", "MG319", "no field `out` (table 1)"),
        ('out = ""\nall = true', "MG319", "length >= 1 (table 1, key out)"),
        (
            'out = "x"\nextension = "x.json"',
            "",
            "needs `--id ID`, `--base R` and `--out DIR`. The options are those of table 1",
        ),
        ('out = "x"\nall = true\ntemplates = "\\u0000"', "MG319", "a path contains a null character (table 1)"),
        ('out = "x"', "", "A table `[tool.mcpgen]` in pyproject.toml needs `revision`"),
    ],
)
def test_a_wrong_table_says_which_key_is_wrong(table: str, code: str, expected: str, project: Path) -> None:
    (project / "pyproject.toml").write_text(f"[tool.mcpgen]\n{table}\n", encoding="utf-8")
    result = run(build)

    assert 2 == result.exit_code
    assert code in result.stderr
    assert expected in result.stderr


@pytest.mark.parametrize("table", ['outt = "x"', "out = 1", 'out = "x"\nrevision = 5', ""])
def test_a_wrong_table_is_refused(table: str, project: Path) -> None:
    (project / "pyproject.toml").write_text(f"[tool.mcpgen]\n{table}\n", encoding="utf-8")

    assert (2, ["MG319"]) == ((result := run(build, "--json")).exit_code, codes(result))


def test_a_wrong_table_names_the_key_and_a_wrong_file_the_place(project: Path) -> None:
    (project / "pyproject.toml").write_text('[tool.mcpgen]\nfoo = 1\nout = "x"\n', encoding="utf-8")
    assert "pyproject.toml is not valid: unknown key `foo` (table 1)\n" in run(build).stderr

    (project / "pyproject.toml").write_text("[tool.mcpgen\n", encoding="utf-8")
    assert "pyproject.toml is not valid TOML: Expected ']'" in run(build).stderr


def test_options_of_the_command_line_count_instead_of_the_table(project: Path) -> None:
    (project / "pyproject.toml").write_text('[tool.mcpgen]\nrevision = "x"\nout = "other"\n', encoding="utf-8")

    assert 0 == run(build, "--revision", OLDEST, "--out", "mcp").exit_code
    assert not (project / "other").exists()


def test_the_hook_of_pre_commit_installs_what_the_extra_installs() -> None:
    hook = (CHECKOUT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8")
    extras = tomllib.loads((CHECKOUT / "pyproject.toml").read_text(encoding="utf-8"))["project"][
        "optional-dependencies"
    ]

    assert extras["codegen"] == re.findall(r'"([^"]+==[^"]+)"', hook)
    assert "entry: mcpgen check\n" in hook


# diff --exit-code


@pytest.mark.parametrize("output", ["text", "md", "json"])
def test_differences_are_a_status_on_request(output: str) -> None:
    assert 0 == run(diff, "2024-11-05", "2025-03-26", "--format", output).exit_code
    assert 1 == run(diff, "2024-11-05", "2025-03-26", "--format", output, "--exit-code").exit_code
    assert 0 == run(diff, "2024-11-05", "2024-11-05", "--format", output, "--exit-code").exit_code


# --templates

HEAD = "{# mcpgen templates 1 #}\n"


def ours(template: str) -> str:
    return files("mcpgen").joinpath("templates", f"{template}.py.jinja").read_text(encoding="utf-8")


def templates(project: Path, **content: str) -> tuple[str, Path]:
    folder = project / "templates"
    folder.mkdir()
    for name, text in content.items():
        (folder / f"{name}.py.jinja").write_text(text, encoding="utf-8")
    return "--templates", folder


def test_a_template_of_ones_own_replaces_ours(project: Path) -> None:
    replaced = templates(project, init=HEAD + ours("init").replace("typed bindings.", "bindings of our house."))
    assert 0 == run(build, "--revision", OLDEST, "--out", "mcp", *replaced).exit_code

    assert "bindings of our house." in (project / "mcp" / "v2024_11_05" / "__init__.py").read_text(encoding="utf-8")
    assert 0 == run(check, "--out", "mcp", *replaced).exit_code
    assert 1 == run(check, "--out", "mcp").exit_code


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("init", HEAD + "\n{{ nothing }}\n", "init.py.jinja, line 3: there is no variable `nothing`"),
        ("init", HEAD + "{% if False %}{{ nothing }}{% endif %}\n", "line 2: there is no variable `nothing`"),
        (
            "init",
            HEAD + "\n\n{{ module.nothing }}\n",
            "init.py.jinja, line 4: there is no variable `nothing` in this place",
        ),
        ("models", HEAD + "{{ models.nothing }}", "models.py.jinja, line 2: "),
        ("init", HEAD + "{% if %}", "init.py.jinja, line 2: "),
        ("init", HEAD + "\nx = = 1\n", "its output is not Python: line 1 of the output is 'x = = 1'"),
        ("init", HEAD + "{{ 1 / 0 }}", "init.py.jinja, line 2: ZeroDivisionError"),
        ("init", "{# mcpgen templates 2 #}\n", "is for version 2 of the variables"),
        ("init", "", "does not name a version of the variables"),
        ("registry", HEAD, "registry.py.jinja replaces no template"),
    ],
)
def test_a_template_with_a_fault_is_refused_with_its_line(name: str, text: str, expected: str, project: Path) -> None:
    result = run(build, "--revision", OLDEST, "--out", "mcp", *templates(project, **{name: text}))

    assert 1 == result.exit_code
    assert "MG320" in result.stderr
    assert expected in result.stderr
    assert not (project / "mcp").exists()


def flattened(path: str, value: object, found: set[str]) -> None:
    """Add the names of the variables in *value*, which a template reaches by *path*."""
    if isinstance(value, msgspec.Struct):
        value = {name: getattr(value, name) for name in value.__struct_fields__}
    if isinstance(value, dict):
        for name, each in value.items():
            flattened(f"{path}.{name}", each, found)
    elif isinstance(value, (list, tuple)) and value and isinstance(value[0], msgspec.Struct):
        for each in value:
            flattened(f"{path}[]", each, found)
    else:
        found.add(path)


def test_every_variable_is_documented_and_there_are_no_others(monkeypatch: pytest.MonkeyPatch) -> None:
    used: dict[str, set[str]] = {}
    original = Templates.render

    def record(self: Templates, template: str, **views: object) -> str:
        for name, view in views.items():
            flattened(name, view, used.setdefault(template, set()))
        return original(self, template, **views)

    monkeypatch.setattr(render.Templates, "render", record)
    room = SchemaRoom()
    for revision in room.revisions[-2:]:
        generate(pinned_source(room, revision))
    generate(foreign_source(room, {"$defs": {"A": {"type": "string"}}}, "a"))
    for name in room.extensions:
        extension = vendored_extension(room, name)
        generate_extension(room, extension, Location.in_generated(extension.base))
    page = (CHECKOUT / "docs" / "templates.md").read_text(encoding="utf-8")
    sections = re.split(r"^## `", page, flags=re.MULTILINE)[1:]
    documented = {
        section.partition("`")[0]: set(re.findall(r"^\| `([^`]+)` \|", section, re.MULTILINE)) for section in sections
    }

    assert set(REPLACEABLE) == set(documented)
    for template, names in documented.items():
        found = used[template]
        shown = {name for name in found if not any(each.startswith((f"{name}.", f"{name}[]")) for each in found)}
        assert shown == names, template
    assert f"version {VARIABLES_VERSION}" in page


def test_the_entry_of_the_hook_is_a_command() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "mcpgen", "check", "--help"], check=True, capture_output=True, encoding="utf-8"
    )

    assert "[tool.mcpgen]" in done.stdout
