"""What every test relies on."""

from __future__ import annotations

import gc
import os
import tempfile
import zlib
from collections import defaultdict
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

import black
import pytest
from hypothesis import HealthCheck, settings

from mcpgen.codegen.checkout import find_checkout

if TYPE_CHECKING:
    from collections.abc import Generator

# Commands remember servers in the user's cache folder, and logins in the one for state. Tests leave both alone: nothing
# can be written here.
os.environ["XDG_CACHE_HOME"] = os.devnull
os.environ["XDG_STATE_HOME"] = os.devnull

# Machines are busy and slow at times, and no property here is about time.
settings.register_profile("any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any machine")

# Tests build almost the same packages again and again, and most of the time of a build is black's.
black.format_str = lru_cache(200)(black.format_str)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Keep the garbage collector from the collected tests.

    They are a million objects, of which it frees none. To look at all of them takes half a second, in which a test that
    waits for something does not go on.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


# A slow test with fewer cases than this, beside asyncio and trio, runs all of them on both.
FEWEST_CASES = 4


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Run each case of a slow test on asyncio or on trio; on both if `MCPGEN_EVERY_CASE` is set.

    Half of the cases run on each. Otherwise, `nox -s slow` would take a quarter longer. All other cases on trio are
    slow, too: the fast tests run on asyncio.
    """
    slow = {item for item in items if item.get_closest_marker("slow") is not None}
    for item in items:
        if _backend(item) == "trio" and item not in slow:
            item.add_marker(pytest.mark.slow)
    if os.environ.get("MCPGEN_EVERY_CASE"):
        return
    tests: dict[str, dict[str, dict[str, pytest.Item]]] = defaultdict(lambda: defaultdict(dict))
    for item in slow:
        backend = _backend(item)
        if backend in ("asyncio", "trio"):
            tests[item.nodeid.partition("[")[0]][item.name.replace(backend, "")][backend] = item
    dropped = {
        each[("asyncio", "trio")[zlib.crc32(case.encode()) % 2]]
        for cases in tests.values()
        if len(cases) >= FEWEST_CASES
        for case, each in cases.items()
        if len(each) > 1
    }
    if dropped:
        config.hook.pytest_deselected(items=[each for each in items if each in dropped])
        items[:] = [each for each in items if each not in dropped]


def _backend(item: pytest.Item) -> object:
    called = getattr(item, "callspec", None)
    params = {} if called is None else called.params
    return params.get("anyio_backend", params.get("backend"))


@pytest.fixture(scope="session", autouse=True)
def temporary_folders_are_outside_of_every_checkout() -> None:
    """Stop before a command under test takes this checkout for the one that the test meant, and writes to it."""
    folder = Path(tempfile.gettempdir())
    assert find_checkout(folder) is None, f"set TMPDIR to a folder outside of the checkout; it is {folder}"
