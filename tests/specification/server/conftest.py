"""What the tests of the protocol share."""

from __future__ import annotations

import pytest


@pytest.fixture
def anyio_backend() -> str:
    """Run on asyncio: what differs between event loops is tested with the seam between them."""
    return "asyncio"
