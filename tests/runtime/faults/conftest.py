"""What the tests of faults share."""

from __future__ import annotations

import pytest

from mcpgen.generated.registry import REVISIONS


@pytest.fixture
def anyio_backend() -> str:
    """Run on asyncio: what differs between event loops is tested with processes."""
    return "asyncio"


@pytest.fixture(params=[each.label for each in REVISIONS])
def revision(request: pytest.FixtureRequest) -> str:
    """Return each revision that there is."""
    return str(request.param)
