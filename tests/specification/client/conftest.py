"""What the tests of the client share."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def anyio_backend() -> str:
    """Run on asyncio, unless a test says `on_both_loops`: how the client waits is not the same on trio."""
    return "asyncio"


@pytest.fixture(autouse=True)
def every_message_is_handled(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """Fail a test in which a message of the server made the client stumble, even if it went on."""
    yield
    assert [] == [each.exc_text for each in caplog.get_records("call") if "could not be handled" in each.getMessage()]
