"""What users get: an sdist, a wheel built from it, and both ways to install the package, each tried for real."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tarfile
import venv
import zipfile
from email.parser import HeaderParser
from pathlib import Path, PurePosixPath

import pytest

# Slow, and the same on every Python: once, in a session of their own.
pytestmark = pytest.mark.package

ROOMS = ("codegen", "generated", "runtime", "schema", "templates")
BY_NAME = (
    "mcpgen/__init__.py",
    "mcpgen/cli.py",
    "mcpgen/codegen/commands.py",
    "mcpgen/generated/registry.py",
    "mcpgen/generated/v2025_11_25/models.py",
    "mcpgen/py.typed",
    "mcpgen/runtime/__init__.py",
    "mcpgen/schema/2025-11-25/overlay.toml",
    "mcpgen/schema/2025-11-25/schema.json",
    "mcpgen/schema/PINNED.toml",
    "mcpgen/schema/docs.toml",
    "mcpgen/templates/models.py.jinja",
)


def run(*command: str | Path, cwd: Path, check: bool = True) -> subprocess.CompletedProcess[str]:
    """Run a program that knows of this environment neither its variables nor its working directory."""
    env = {name: value for name, value in os.environ.items() if not name.startswith(("COVERAGE", "PYTHON", "VIRTUAL"))}
    done = subprocess.run(command, check=False, capture_output=True, cwd=cwd, encoding="utf-8", env=env)
    if check:
        assert done.returncode == 0, done.stdout + done.stderr
    return done


class Installed:
    """A virtual environment into which the package was installed."""

    def __init__(self, folder: Path, *pip_arguments: str) -> None:
        venv.create(folder, with_pip=True)
        scripts = folder / ("Scripts" if os.name == "nt" else "bin")
        self.cwd = folder
        self.python = scripts / "python"
        self.mcpgen = scripts / "mcpgen"
        run(self.python, "-m", "pip", "install", "--disable-pip-version-check", *pip_arguments, cwd=folder)

    def evaluate(self, expression: str, *, imports: str) -> object:
        """Return the value, a JSON one, of *expression* in that environment."""
        program = f"import json, {imports}; print(json.dumps({expression}))"
        return json.loads(run(self.python, "-I", "-c", program, cwd=self.cwd).stdout)


@pytest.fixture(scope="session")
def distributions(checkout: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with an sdist and the wheel that was built from it."""
    folder = tmp_path_factory.mktemp("distributions")
    run(sys.executable, "-m", "build", "--outdir", folder, checkout, cwd=folder)
    return folder


@pytest.fixture(scope="session")
def sdist(distributions: Path) -> Path:
    (path,) = distributions.glob("*.tar.gz")
    return path


@pytest.fixture(scope="session")
def wheel(distributions: Path) -> Path:
    (path,) = distributions.glob("*.whl")
    return path


@pytest.fixture(scope="session")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """The wheel without extras."""
    return Installed(tmp_path_factory.mktemp("installed"), str(wheel))


@pytest.fixture(scope="session")
def editable(checkout: Path, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """The checkout in editable mode, without extras."""
    return Installed(tmp_path_factory.mktemp("editable"), "--editable", str(checkout))


def names_in(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return {name for name in archive.namelist() if not name.endswith("/")}


@pytest.mark.parametrize("room", ROOMS)
def test_the_checkout_links_each_room_into_the_package(checkout: Path, room: str) -> None:
    link = checkout / ".package" / "mcpgen" / room

    # A plain file here: git checked out without core.symlinks (CONTRIBUTING.md).
    assert link.is_symlink()
    assert PurePosixPath("../..", room) == PurePosixPath(link.readlink().as_posix())


def test_the_wheel_installs_one_package_and_nothing_beside_it(wheel: Path) -> None:
    top = {name.partition("/")[0] for name in names_in(wheel)}

    assert {"mcpgen", "mcpgen-" + wheel.name.split("-")[1] + ".dist-info"} == top


@pytest.mark.parametrize("room", ROOMS)
def test_every_file_of_a_room_is_in_the_wheel(checkout: Path, wheel: Path, room: str) -> None:
    expected = {
        f"mcpgen/{path.relative_to(checkout).as_posix()}": path.read_bytes()
        for path in (checkout / room).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    with zipfile.ZipFile(wheel) as archive:
        actual = {name: archive.read(name) for name in names_in(wheel) if name.startswith(f"mcpgen/{room}/")}

    assert expected.keys() == actual.keys()
    assert [] == [name for name, data in expected.items() if data != actual[name]]


@pytest.mark.parametrize("name", BY_NAME)
def test_the_wheel_holds_what_its_users_ask_for_by_name(wheel: Path, name: str) -> None:
    assert name in names_in(wheel)


def test_a_wheel_from_the_checkout_equals_the_one_from_the_sdist(checkout: Path, wheel: Path, tmp_path: Path) -> None:
    run(sys.executable, "-m", "build", "--wheel", "--outdir", tmp_path, checkout, cwd=tmp_path)
    (direct,) = tmp_path.glob("*.whl")

    assert names_in(wheel) == names_in(direct)


def test_the_sdist_holds_files_and_no_links(sdist: Path) -> None:
    with tarfile.open(sdist) as archive:
        members = archive.getmembers()

    assert [] == [member.name for member in members if member.issym() or member.islnk()]
    assert {"LICENSE", "README.md", "noxfile.py", "pyproject.toml", "tests"} <= {
        member.name.split("/")[1] for member in members
    }


def test_every_tracked_file_is_in_the_sdist(checkout: Path, sdist: Path) -> None:
    if not (checkout / ".git").exists() or shutil.which("git") is None:
        pytest.skip("only git knows what is tracked, and this is no clone or has no git")
    listed = run("git", "ls-files", "-z", cwd=checkout).stdout.rstrip("\0").split("\0")
    links = {f".package/mcpgen/{room}" for room in ROOMS}  # these are folders there
    rooms = tuple(f"{room}/" for room in ROOMS)
    expected = {f".package/mcpgen/{name}" if name.startswith(rooms) else name for name in listed} - links
    with tarfile.open(sdist) as archive:
        actual = {member.name.partition("/")[2] for member in archive.getmembers()}

    assert set() == expected - actual


def test_the_wheel_needs_three_packages_and_offers_three_extras(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        metadata = HeaderParser().parsestr(archive.read(name).decode("utf-8"))
    required = [line for line in metadata.get_all("Requires-Dist", []) if "extra ==" not in line]

    assert ["anyio", "click", "msgspec"] == sorted(line.partition(">")[0] for line in required)
    extras = ["auth", "codegen", "http", "redis", "reload", "validate"]
    assert extras == sorted(metadata.get_all("Provides-Extra", []))
    assert "MIT" == metadata["License-Expression"]


@pytest.mark.parametrize("way", ["installed", "editable"])
def test_the_command_says_its_version(way: str, request: pytest.FixtureRequest) -> None:
    installed: Installed = request.getfixturevalue(way)
    version = installed.evaluate("importlib.metadata.version('mcpgen')", imports="importlib.metadata")

    assert f"mcpgen {version}\n" == run(installed.mcpgen, "--version", cwd=installed.cwd).stdout


@pytest.mark.parametrize("way", ["installed", "editable"])
def test_the_bindings_import_and_decode(way: str, request: pytest.FixtureRequest) -> None:
    installed: Installed = request.getfixturevalue(way)
    text = """models.decode(b'{"type": "text", "text": "hi"}', models.TextContent).text"""

    assert "hi" == installed.evaluate(text, imports="mcpgen.generated.v2025_11_25.models as models")


@pytest.mark.parametrize("way", ["installed", "editable"])
def test_the_data_of_the_rooms_is_found(way: str, request: pytest.FixtureRequest) -> None:
    installed: Installed = request.getfixturevalue(way)
    found = "[(importlib.resources.files('mcpgen') / name).is_file() for name in {}]"
    names = ["schema/PINNED.toml", "schema/2025-11-25/schema.json", "templates/models.py.jinja"]

    assert [True, True, True] == installed.evaluate(found.format(names), imports="importlib.resources")


def test_without_its_extra_a_command_says_what_to_install(installed: Installed) -> None:
    done = run(installed.mcpgen, "build", "--revision", "2025-11-25", "--out", "out", cwd=installed.cwd, check=False)

    assert 2 == done.returncode
    assert 'pip install "mcpgen[codegen]"' in done.stderr


def test_an_editable_install_reads_the_checkout(checkout: Path, editable: Installed) -> None:
    path = editable.evaluate("os.path.realpath(mcpgen.codegen.__file__)", imports="os, mcpgen.codegen")

    assert str((checkout / "codegen" / "__init__.py").resolve()) == path


@pytest.mark.parametrize("way", ["installed", "editable"])
@pytest.mark.parametrize("room", ROOMS)
def test_an_install_offers_no_room_under_its_bare_name(way: str, room: str, request: pytest.FixtureRequest) -> None:
    installed: Installed = request.getfixturevalue(way)

    assert installed.evaluate(f"importlib.util.find_spec({room!r}) is None", imports="importlib.util") is True
