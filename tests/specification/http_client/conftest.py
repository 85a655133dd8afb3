"""What the tests of the client over HTTP share."""

from __future__ import annotations

import pytest

from mcpgen.runtime.http.client import exchange_choice


@pytest.fixture
def anyio_backend() -> str:
    """Run on asyncio, unless a test says `on_both_loops`: how the client waits is not the same on trio."""
    return "asyncio"


@pytest.fixture(params=["asyncio", "httpx"], autouse=True)
def library(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Make the requests with each of the two libraries. On trio, both are httpx."""
    found: str = request.param
    if found == "httpx":
        monkeypatch.setattr(exchange_choice, "_is_plain", _never)
    return found


def _never(*_arguments: object) -> bool:
    return False
