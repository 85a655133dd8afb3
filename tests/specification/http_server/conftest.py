"""What the tests of the server over HTTP share."""

from __future__ import annotations

import pytest


@pytest.fixture
def anyio_backend() -> str:
    """Run on asyncio, unless a test says `on_both_loops`."""
    return "asyncio"
