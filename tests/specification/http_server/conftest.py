"""What the tests of the server over HTTP share.

With ``MCPGEN_WORKERS=4``, as in ``nox -s workers``, each server of these tests is four workers, each of which gets
every fourth request. They share a Redis on asyncio, and a `MemoryCluster` on trio.
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.harness.redis_servers import redis_server
from tests.specification.http_server import http_site

if TYPE_CHECKING:
    from collections.abc import Generator

# Which tests cannot hold for several workers, and why.
_UNSHARED = Path(__file__).parent / "unshared.toml"


@pytest.fixture
def anyio_backend() -> str:
    """Run on asyncio, unless a test says `on_both_loops`."""
    return "asyncio"


@pytest.fixture(scope="session", autouse=http_site.WORKERS > 1)
def redis_of_workers(tmp_path_factory: pytest.TempPathFactory) -> Generator[None]:
    """Run the Redis that workers share."""
    with redis_server(tmp_path_factory.mktemp("redis")) as http_site.REDIS:
        yield


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Expect the tests to fail that `unshared.toml` lists; one that passes is an error."""
    if http_site.WORKERS == 1:
        return
    own = [each for each in items if Path(__file__).parent in each.path.parents]
    for item in own:  # a test that fails, as is expected below, leaves the connections of its workers open
        item.add_marker(pytest.mark.filterwarnings("ignore::ResourceWarning"))
        item.add_marker(pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"))
    for each in tomllib.loads(_UNSHARED.read_text(encoding="utf-8"))["unshared"]:
        for name in each["tests"]:
            for item in own:
                if f"{item.path.name}::{item.name}".startswith(name):
                    item.add_marker(pytest.mark.xfail(reason=each["reason"], strict=True))
