"""README's server, reached by its client over stdio and HTTP, and the bounds that ``nox -s floors`` tries this with."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

import anyio
import pytest

from mcpgen import connect
from tests.patience import PATIENCE_SECONDS

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path

EXAMPLE: Final = re.compile(r"^```python\n(?P<source>.*?)^```$", re.MULTILINE | re.DOTALL)
ADDRESS: Final = re.compile(r"http://\S+")
BOUND: Final = re.compile(r"[\w-]+(\[\w+\])?>=[\d.]+(; .*)?")

on_both_loops = pytest.mark.parametrize("loop", ["asyncio", "trio"])


@pytest.fixture(scope="session")
def greeter(checkout: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The first example of the README, in a file."""
    first = EXAMPLE.search((checkout / "README.md").read_text(encoding="utf-8"))
    assert first
    path = tmp_path_factory.mktemp("readme") / "greeter.py"
    path.write_text(first["source"], encoding="utf-8")
    return path


@contextmanager
def served(program: Path) -> Generator[str]:
    """Serve *program* over HTTP, and give its address."""
    command = [sys.executable, "-m", "mcpgen", "serve", str(program), "--http", "127.0.0.1:0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, encoding="utf-8") as running:
        try:
            assert running.stderr
            said = running.stderr.readline()
            found = ADDRESS.search(said)
            assert found, said
            yield found[0]
        finally:
            running.terminate()


async def greeting(target: Any) -> str:
    """Ask the server at *target* to greet Ann, and return what it says."""
    with anyio.fail_after(PATIENCE_SECONDS):
        async with connect(target) as client:
            result = await client.call_tool("greet", {"name": "Ann"})
    return str(result.content[0].text)


@on_both_loops
def test_the_server_of_the_readme_greets_over_stdio(greeter: Path, loop: str) -> None:
    assert "Hello Ann!" == anyio.run(greeting, [sys.executable, str(greeter)], backend=loop)


@on_both_loops
@pytest.mark.slow
def test_the_server_of_the_readme_greets_over_http(greeter: Path, loop: str) -> None:
    with served(greeter) as url:
        assert "Hello Ann!" == anyio.run(greeting, url, backend=loop)


def test_every_bound_names_the_oldest_release_and_nothing_else(checkout: Path) -> None:
    project = tomllib.loads((checkout / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    bounds = [*project["dependencies"], *(each for name in extras if name != "codegen" for each in extras[name])]

    # `nox -s floors` installs these with "==" in place of ">=", and has to know of a new extra.
    assert [] == [each for each in bounds if not BOUND.fullmatch(each)]
    assert {"auth", "codegen", "http", "redis", "reload", "validate"} == set(extras)
