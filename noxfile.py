"""The checks. ``nox`` runs them; ``nox -s bench docs fuzz`` the slower rest.

Everything but lint runs against a built wheel, never against the checkout: what is checked is what users install.
Every session installs what it needs from the package index with pip alone.
"""

from __future__ import annotations

import os
import shutil
import sys
import zipfile
from pathlib import Path
from typing import Final

import nox

nox.needs_version = ">=2025.2.9"  # the first with nox.project.dependency_groups
nox.options.default_venv_backend = "virtualenv"  # no other tool than nox itself has to be installed
nox.options.download_python = "never"  # an interpreter is the user's to choose
nox.options.error_on_missing_interpreters = False  # one Python is enough to work here; the CI of releases has all
nox.options.stop_on_first_error = False
nox.options.sessions = ["lint", "types", "tests", "floors", "check", "package", "interop", "conformance"]

HERE: Final = Path(__file__).parent
PROJECT: Final = nox.project.load_toml(HERE / "pyproject.toml")
CURRENT: Final = f"{sys.version_info.major}.{sys.version_info.minor}"
# The interpreter that runs nox always exists, so the tests can never come out as nothing but skipped.
PYTHONS: Final = list(dict.fromkeys(["3.11", "3.12", "3.13", CURRENT]))

# Python would put the working directory (-c, -m) or the script's on sys.path; the checkout's rooms, which have names
# as common as "schema", must not be importable from there by their bare names.
SAFE: Final = {"PYTHONSAFEPATH": "1", "PYTHONUTF8": "1"}


# What `floors` runs: each side, over stdio and HTTP, the schemas of functions, which msgspec writes, and what of HTTP
# httptools and uvicorn decide.
FLOORS: Final = (
    "tests/house/test_floors.py",
    "tests/runtime/faults/test_http_heads.py",
    "tests/runtime/faults/test_http_pipelines.py",
    "tests/runtime/functions/test_schemas.py",
    "tests/runtime/http/client/test_connections.py",
    "tests/runtime/http/client/test_failures.py",
    "tests/runtime/test_stdio.py",
)

BUILT: Final[list[Path]] = []  # one wheel for all sessions of a run


def wheel(session: nox.Session) -> Path:
    """Return the path of the wheel, built by the first session that asks."""
    if not BUILT:
        folder = HERE / ".nox" / "wheel"
        for stale in folder.glob("*.whl"):
            stale.unlink()
        session.run("pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(folder), str(HERE))
        BUILT.extend(folder.glob("*.whl"))
    (built,) = BUILT
    return built


def install(session: nox.Session, *groups: str) -> None:
    """Install the wheel with all its extras, and the dependency groups named."""
    built = wheel(session)
    extras = "codegen,http,validate"
    session.install(f"mcpgen[{extras}] @ {built.as_uri()}", *nox.project.dependency_groups(PROJECT, *groups))
    # An environment that is used again (nox -r) holds a wheel of the same version already, and pip would keep it.
    session.install("--quiet", "--no-deps", "--force-reinstall", str(built))


@nox.session
def lint(session: nox.Session) -> None:
    """Check style and formatting."""
    session.install(*nox.project.dependency_groups(PROJECT, "lint"))
    session.run("ruff", "check", *session.posargs)
    session.run("ruff", "format", "--check")


@nox.session
def types(session: nox.Session) -> None:
    """Check the installed package, and consumers of it, with mypy and pyright, both strict."""
    install(session, "types")
    # Only so that pyright does not ask the index whether a newer pyright exists.
    env = SAFE | {"PYRIGHT_PYTHON_IGNORE_WARNINGS": "1"}
    session.run("mypy", "--strict", "-p", "mcpgen", env=env)
    session.run("pyright", "--verifytypes", "mcpgen", "--ignoreexternal", env=env)
    _pyright_on_the_package(session, env)
    session.run("mypy", "--strict", "tests/typing", env=env)
    session.run("pyright", "--project", "pyproject.toml", env=env)
    # What snapshot tests generate and the guide shows, which the tests session has no type checkers for.
    session.run("pytest", "tests/codegen/test_snapshots.py", "tests/runtime/test_guide.py", "-k", "satisfy", env=env)


def _pyright_on_the_package(session: nox.Session, env: dict[str, str]) -> None:
    # pyright reports nothing about files in site-packages, so it gets the wheel's in a project of their own.
    project = HERE / ".nox" / "types-package"
    shutil.rmtree(project, ignore_errors=True)
    with zipfile.ZipFile(wheel(session)) as archive:
        archive.extractall(project)
    (project / "pyrightconfig.json").write_text(
        '{"include": ["mcpgen"], "exclude": [], "typeCheckingMode": "strict", "pythonVersion": "3.11"}',
        encoding="utf-8",
    )
    session.run("pyright", "--project", str(project), env=env)


@nox.session(python=PYTHONS)
def tests(session: nox.Session) -> None:
    """Run the tests, with branch coverage of the installed package."""
    install(session, "test")
    session.run(
        # The script rather than "python -m pytest", which would put the checkout's rooms on sys.path.
        "pytest",
        "-m",
        "not package and not docs",
        "--numprocesses=auto",
        "--cov",
        "--cov-report=term",
        *session.posargs,
        # Not session.create_tmp(), which would also put the tests' temporary folders inside this checkout.
        env=SAFE | {"COVERAGE_FILE": str(HERE / ".nox" / f"coverage-{session.python}")},
    )


@nox.session(python=PYTHONS[0])  # for newer ones, the oldest releases have no wheels
def floors(session: nox.Session) -> None:
    """Run some of the tests with the oldest releases that our dependencies allow."""
    install(session, "test")
    project = PROJECT["project"]
    extras = project["optional-dependencies"]
    bounds = [*project["dependencies"], *extras["http"], *extras["validate"]]  # codegen's are exact
    # After the tests' own tools, some of which come with newer ones.
    session.install("--only-binary=:all:", *(bound.replace(">=", "==", 1) for bound in bounds))
    session.run("pytest", *(session.posargs or FLOORS), "--numprocesses=auto", env=SAFE)


@nox.session
def fuzz(session: nox.Session) -> None:
    """Try the laws of the adapters with 10,000 instances of each type for each pair of revisions; takes an hour."""
    install(session, "test")
    session.run(
        "pytest",
        "tests/adapters/test_properties.py",
        "--numprocesses=auto",
        *session.posargs,
        env={**SAFE, "MCPGEN_FUZZ": os.environ.get("MCPGEN_FUZZ", "10000")},
    )


@nox.session
def check(session: nox.Session) -> None:
    """Verify the pinned schemas, rebuild in memory, and fail if the committed bindings differ."""
    install(session)
    session.run("mcpgen", "check", *session.posargs, env=SAFE)


@nox.session
def package(session: nox.Session) -> None:
    """Build sdist and wheel, look into both, and install them: as a wheel and in editable mode."""
    install(session, "test", "package")
    session.run("pytest", "-m", "package", "tests/house", *session.posargs, env=SAFE)


@nox.session
def docs(session: nox.Session) -> None:
    """Execute the examples in the documentation."""
    install(session, "test")
    session.run("pytest", "-m", "docs", "tests/house", *session.posargs, env=SAFE)


@nox.session
def bench(session: nox.Session) -> None:
    """Time bindings, adapters, the generator, servers and clients, beside mcp and FastMCP in the same run."""
    install(session, "bench")
    # The harness imports its own modules from the checkout; what it measures is in processes that see the wheel alone,
    # or is found as "mcpgen", which no room is called.
    session.run("python", "-m", "tests.bench", *session.posargs, env=SAFE | {"PYTHONPATH": str(HERE)})


@nox.session
def interop(session: nox.Session) -> None:
    """Let real clients and servers from PyPI and npm talk to ours, and write what came of it into docs/interop.md."""
    install(session, "test")
    # As in bench: the runner's own modules come from the checkout, what it starts of ours from the wheel alone.
    session.run("python", "-m", "tests.interop", *session.posargs, env=SAFE | {"PYTHONPATH": str(HERE)})


@nox.session
def conformance(session: nox.Session) -> None:
    """Let the official suite, from npm, judge server and client over HTTP, and compare docs/conformance.md."""
    install(session, "test")
    # As in interop.
    session.run("python", "-m", "tests.conformance", *session.posargs, env=SAFE | {"PYTHONPATH": str(HERE)})
