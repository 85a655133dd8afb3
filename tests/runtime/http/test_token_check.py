"""What the log says about tokens that cannot be verified."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from mcpgen.runtime.http.server.auth import token_check
from tests.specification.http_server.protected_site import ask, protect, protected

if TYPE_CHECKING:
    from mcpgen import Access

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


async def test_an_issuer_that_is_down_is_logged_once_in_a_while(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fails(_: str) -> Access | None:
        raise TimeoutError

    def logged() -> int:
        return [each.name for each in caplog.records].count("mcpgen.http.auth")

    async with protected(auth=protect(verify=fails)) as web:
        web.overseer.expects_failure = True
        answers = [await ask(web, f"token-{number}", "tools/list") for number in range(5)]
        assert ([503] * 5, 1) == ([each.status for each in answers], logged())
        monkeypatch.setattr(token_check, "_LOG_SECONDS", 0)
        await ask(web, "token", "tools/list")

    assert 2 == logged()
