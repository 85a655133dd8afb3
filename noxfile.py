"""The checks, in three words.

* ``nox`` takes a few minutes: lint, types, the fast tests, and whether the committed bindings are up to date.
* ``nox -s full`` runs the rest that decides whether a commit is good: slow tests, packages, peers from PyPI and npm.
* ``nox -s endurance`` is started by hand: fuzzing, soaks and benchmarks, which write result pages.

The other sessions are the parts of these three. All but lint check a built wheel, which is what users install.
Every session installs what it needs from the package index with pip alone.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

import nox

nox.needs_version = ">=2025.2.9"  # the first with nox.project.dependency_groups
nox.options.default_venv_backend = "virtualenv"  # no other tool than nox itself has to be installed
nox.options.download_python = "never"  # an interpreter is the user's to choose
nox.options.error_on_missing_interpreters = False  # one Python is enough to work here; `.ci/run` names those missing
nox.options.stop_on_first_error = False

HERE: Final = Path(__file__).parent
PROJECT: Final = nox.project.load_toml(HERE / "pyproject.toml")
CURRENT: Final = f"{sys.version_info.major}.{sys.version_info.minor}"
# The interpreter that runs nox always exists, so the tests can never come out as nothing but skipped.
PYTHONS: Final = list(dict.fromkeys([*nox.project.python_versions(PROJECT), CURRENT]))

# `nox -s tests` runs the fast tests on every Python that is installed; `nox`, which has to be quick, on its own.
nox.options.sessions = ["lint", "types", f"tests-{CURRENT}", "check"]
FULL: Final = ["strict", "slow", "floors", "package", "docs", "interop", "conformance", "workers"]

# Python would put the working directory (-c, -m) or the script's on sys.path; the checkout's rooms, which have names
# as common as "schema", must not be importable from there by their bare names.
SAFE: Final = {"PYTHONSAFEPATH": "1", "PYTHONUTF8": "1"}


# What `floors` runs: each side, over stdio and HTTP, the schemas of functions, which msgspec writes, and what of HTTP
# httptools and uvicorn decide.
FLOORS: Final = (
    "tests/house/test_oldest_dependencies.py",
    "tests/faults/test_http_heads.py",
    "tests/faults/test_http_pipelines.py",
    "tests/runtime/server/cluster/test_clusters.py",
    "tests/runtime/server/functions/test_schemas.py",
    "tests/runtime/http/test_asyncio_exchange.py",
    "tests/specification/http_client/test_connections.py",
    "tests/specification/http_client/test_failures.py",
    "tests/runtime/http/test_http11_connection.py",
    "tests/runtime/cli/test_reload.py",
    "tests/runtime/transports/test_stdio.py",
)

# Many tests wait for a server or a process, so more run at once than there are processors.
SEVERAL: Final = f"--numprocesses={2 * (os.cpu_count() or 1)}"

# One wheel for all sessions of a run. Two runs can be at work in one checkout, as in `.ci/run`.
WHEELS: Final = tempfile.TemporaryDirectory(prefix="mcpgen-wheel-")


def wheel(session: nox.Session) -> Path:
    """Return the path of the wheel, built by the first session that asks."""
    folder = Path(WHEELS.name)
    if not any(folder.iterdir()):
        session.run("pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(folder), str(HERE))
    (built,) = folder.iterdir()
    return built


def install(session: nox.Session, *groups: str) -> None:
    """Install the wheel with all its extras, and the dependency groups named."""
    wanted = f"mcpgen[auth,codegen,http,redis,reload,validate] @ {wheel(session).as_uri()}"
    # An environment that is used again (nox -r) holds a wheel of the same version already, and pip would keep it.
    session.run("pip", "uninstall", "-qq", "--yes", "mcpgen")
    # Python compiles what it imports, which is little of what pip would compile.
    session.install("--no-compile", wanted, *nox.project.dependency_groups(PROJECT, *groups))


@nox.session
def lint(session: nox.Session) -> None:
    """Check style and formatting."""
    session.install(*nox.project.dependency_groups(PROJECT, "lint"))
    session.run("ruff", "check", *session.posargs)
    session.run("ruff", "format", "--check")


# Only so that pyright does not ask the index whether a newer pyright exists.
PYRIGHT: Final = SAFE | {"PYRIGHT_PYTHON_IGNORE_WARNINGS": "1"}


@nox.session
def types(session: nox.Session) -> None:
    """Check the installed package with mypy, its public types with pyright, and consumers with both; all strict."""
    install(session, "types")
    with ThreadPoolExecutor() as pool:  # each checker uses one processor
        pyright = pool.submit(_pyright_of_consumers, session)
        session.run("mypy", "--strict", "-p", "mcpgen", env=SAFE)
        session.run("mypy", "--strict", "tests/typing", env=SAFE)
    pyright.result()


def _pyright_of_consumers(session: nox.Session) -> None:
    session.run("pyright", "--verifytypes", "mcpgen", "--ignoreexternal", env=PYRIGHT)
    session.run("pyright", "--project", "pyproject.toml", env=PYRIGHT)


@nox.session
def strict(session: nox.Session) -> None:
    """Check the whole installed package with pyright, strict, which takes as long as all that `types` does."""
    install(session, "types")
    session.run("pyright", "--project", str(_package_project(session)), env=PYRIGHT)


def _package_project(session: nox.Session) -> Path:
    # pyright reports nothing about files in site-packages, so it gets the wheel's in a project of their own.
    project = HERE / ".nox" / "types-package"
    shutil.rmtree(project, ignore_errors=True)
    with zipfile.ZipFile(wheel(session)) as archive:
        archive.extractall(project)
    (project / "pyrightconfig.json").write_text(
        '{"include": ["mcpgen"], "exclude": [], "typeCheckingMode": "strict", "pythonVersion": "3.11"}',
        encoding="utf-8",
    )
    return project


@nox.session(python=PYTHONS)
def tests(session: nox.Session) -> None:
    """Run the fast tests."""
    install(session, "test")
    _pytest(session, "-m", "not slow and not package and not docs", SEVERAL)


@nox.session
def slow(session: nox.Session) -> None:
    """Run the slow tests, those included that have mypy and pyright judge generated packages and the guide."""
    install(session, "types")
    _pytest(session, "-m", "slow and not package and not docs", SEVERAL)


@nox.session
def coverage(session: nox.Session) -> None:
    """Run the fast and the slow tests with branch coverage of the installed package, which takes twice as long."""
    install(session, "types")
    _pytest(session, "-m", "not package and not docs", "--numprocesses=auto", "--cov", "--cov-report=term")


def _pytest(session: nox.Session, *options: str) -> None:
    # The script rather than "python -m pytest", which would put the checkout's rooms on sys.path.
    # Not session.create_tmp(), which would also put the tests' temporary folders inside this checkout.
    env = SAFE | {"COVERAGE_FILE": str(HERE / ".nox" / "coverage")}
    session.run("pytest", *options, "--quiet", "--dist=worksteal", *session.posargs, env=env)


@nox.session(python=PYTHONS[0])  # for newer ones, the oldest releases have no wheels
def floors(session: nox.Session) -> None:
    """Run some of the tests with the oldest releases that our dependencies allow."""
    install(session, "test")
    project = PROJECT["project"]
    extras = project["optional-dependencies"]
    # Those of codegen are exact.
    bounds = [*project["dependencies"], *(each for name in extras if name != "codegen" for each in extras[name])]
    # After the tests' own tools, some of which come with newer ones.
    session.install("--only-binary=:all:", *(bound.replace(">=", "==", 1) for bound in bounds))
    session.run("pytest", *(session.posargs or FLOORS), "--numprocesses=auto", env=SAFE)


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
def interop(session: nox.Session) -> None:
    """Let real clients and servers from PyPI and npm talk to ours, and write what came of it into docs/interop.md."""
    install(session, "test")
    # As in bench: the runner's own modules come from the checkout, what it starts of ours from the wheel alone.
    session.run("python", "-m", "tests.interop", *session.posargs, env=SAFE | {"PYTHONPATH": str(HERE)})


@nox.session
def packages(session: nox.Session) -> None:
    """Let servers, clients, bridges and implementations of tasks from PyPI and npm work with ours."""
    install(session, "test")
    # As in interop.
    env = SAFE | {"PYTHONPATH": str(HERE)}
    session.run("python", "-m", "tests.interop.packages.runs", *session.posargs, env=env)
    if not session.posargs:
        session.run("python", "-m", "tests.interop.tasks.runs", env=env)


@nox.session
def sloppy(session: nox.Session) -> None:
    """Let the SDKs read what sloppy servers and clients send, and write readings.json and their part of the page."""
    install(session, "test")
    # As in interop.
    env = SAFE | {"PYTHONPATH": str(HERE)}
    session.run("python", "-m", "tests.interop.sloppy.runs", *session.posargs, env=env)


@nox.session
def conformance(session: nox.Session) -> None:
    """Let the official suite, from npm, judge server and client over HTTP, and compare docs/conformance.md."""
    install(session, "test")
    # As in interop.
    session.run("python", "-m", "tests.conformance", *session.posargs, env=SAFE | {"PYTHONPATH": str(HERE)})


# The attacks that mean the same for several workers. Others fill one process exactly, or look into it.
WORKER_BOUNDS = (
    "tests/bounds/test_lockouts.py",
    *(
        f"tests/bounds/test_http_limits.py::{name}"
        for name in (
            "test_a_session_that_is_silent_for_too_long_ends",
            "test_a_body_that_does_not_arrive_in_time_is_refused",
            "test_an_answer_that_takes_longer_becomes_a_stream",
            "test_a_silent_stream_gets_a_comment",
            "test_a_stream_says_when_to_come_back",
            "test_a_session_without_a_stream_has_some_messages_kept_for_it",
            "test_events_within_the_limits_are_there",
        )
    ),
)


@nox.session
def workers(session: nox.Session) -> None:
    """Judge a server that several workers serve, each of which gets the next request, as one process is judged."""
    if not shutil.which("redis-server") and not shutil.which("valkey-server"):
        session.skip("redis-server is a program of the system (apt-get install redis-server), and not here")
    install(session, "test")
    cases = ("tests/specification/http_server", "--quiet", "--numprocesses=auto")
    session.run("pytest", *cases, *session.posargs, env=SAFE | {"MCPGEN_WORKERS": "4"})
    if not session.posargs:
        env = SAFE | {"MCPGEN_WORKERS": "4"}
        session.run("pytest", *WORKER_BOUNDS, "-m", "", "--quiet", "--numprocesses=2", env=env)
        # As in interop.
        env = SAFE | {"PYTHONPATH": str(HERE)}
        session.run("python", "-m", "tests.conformance", "--workers", env=env)
        # Those of the official SDKs: of Python and TypeScript, before and since 2026-07-28.
        session.run("python", "-m", "tests.interop", "--workers", "--peer", "SDK", env=env)


@nox.session(python=False)
def full(session: nox.Session) -> None:
    """Run the rest of the checks, but for those named behind ``--``: with `nox`, this is what CI runs."""
    for name in FULL:
        if name not in session.posargs:
            session.notify(name, [])


@nox.session(python=False)
def endurance(session: nox.Session) -> None:
    """Run for hours what is too long for CI, and write docs/endurance.md and docs/benchmarks*.md."""
    session.notify("fuzz")
    session.notify("soak")
    session.notify("attack")
    session.notify("packages")
    session.notify("sloppy")
    session.notify("bench", ["--write"])
    session.notify("scaling", ["--write"])


@nox.session
def fuzz(session: nox.Session) -> None:
    """Try the laws of the adapters with 10,000 instances of each type for each pair of revisions; takes an hour."""
    install(session, "test")
    env = {"MCPGEN_FUZZ": os.environ.get("MCPGEN_FUZZ", "10000")}
    _endure(session, "fuzz", "pytest", "tests/adapters/test_properties.py", "--quiet", "--numprocesses=auto", env=env)


@nox.session
def soak(session: nox.Session) -> None:
    """Have servers and clients make a million calls; fail if they grow, and write docs/endurance.md."""
    install(session, "bench")
    _endure(session, "soak", "python", "-m", "tests.bench", "--sustained")


@nox.session
def attack(session: nox.Session) -> None:
    """Attack a server with random hostile traffic for an hour, beside an honest client; write docs/endurance.md."""
    install(session, "test")
    minutes = os.environ.get("MCPGEN_MINUTES", "60")
    env = {"MCPGEN_MINUTES": minutes}
    _endure(session, "attack", "python", "-m", "tests.bounds.endurance", "--minutes", minutes, env=env)


def _endure(session: nox.Session, name: str, *command: str, env: dict[str, str] | None = None) -> None:
    # As in bench: the modules of tests/ come from the checkout, the package from the wheel.
    env = SAFE | {"PYTHONPATH": str(HERE)} | (env or {})
    session.run("python", "-m", "tests.endurance", name, "--", *command, *session.posargs, env=env)


@nox.session
def scaling(session: nox.Session) -> None:
    """Measure several workers with and without Redis beside other servers; needs a machine that does nothing else."""
    install(session, "test", "bench")
    # As in bench.
    session.run("python", "-m", "tests.bench.workers", *session.posargs, env=SAFE | {"PYTHONPATH": str(HERE)})


@nox.session
def bench(session: nox.Session) -> None:
    """Time bindings, adapters, the generator, servers and clients, beside mcp and FastMCP in the same run."""
    install(session, "bench")
    # The harness imports its own modules from the checkout; what it measures is in processes that see the wheel alone,
    # or is found as "mcpgen", which no room is called.
    session.run("python", "-m", "tests.bench", *session.posargs, env=SAFE | {"PYTHONPATH": str(HERE)})
