"""That the judge of HTTP bites: exchanges that break one rule each, and some that break none."""

from __future__ import annotations

import pytest

from tests.specification.http_server.exchange_text import judged
from tests.specification.http_server.http_clients import BOTH, STREAM, caller
from tests.specification.http_server.revision_sets import on_both_loops
from tests.specification.http_server.sample_exchanges import BROKEN, FINE, NEW
from tests.specification.http_server.stream_tools import demo

pytestmark = pytest.mark.anyio


async def test_exchanges_within_the_rules_pass() -> None:
    found = {name: await judged(script) for name, script in FINE.items()}

    assert {} == {name: said for name, said in found.items() if said}


@pytest.mark.slow
async def test_a_broken_rule_is_reported() -> None:
    found = {name: await judged(script) for name, (script, _) in BROKEN.items()}

    assert {} == {name: said for name, said in found.items() if not any(BROKEN[name][1] in each for each in said)}


# --- through the harness, with a server that is broken on purpose


@on_both_loops
async def test_a_test_whose_server_leaves_a_header_out_fails_at_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    from mcpgen.runtime.http.server import responses

    monkeypatch.setattr(responses, "_EVENTS", responses._EVENTS[:2])
    with pytest.raises(AssertionError, match="X-Accel-Buffering"):
        async with caller(demo(), "2026-07-28") as peer:
            await peer.call("progress", meta='"progressToken":"p"').complete()


async def test_a_test_whose_server_gives_one_number_twice_fails_at_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    from mcpgen.runtime.http.server import event_streams

    monkeypatch.setattr(event_streams, "event_id", lambda stream, number: f"{stream}:{number // 2}")
    with pytest.raises(AssertionError, match="was used before"):
        async with caller(demo(), NEW) as peer:
            await peer.call("progress", meta='"progressToken":"p"').complete()


async def test_a_test_whose_server_calls_everything_200_fails_at_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    from mcpgen.runtime.http.server import post_request

    monkeypatch.setattr(post_request, "http_status", lambda message, is_complete: 200)
    with pytest.raises(AssertionError, match="-32601 has the status 404"):
        async with caller(demo(), "2026-07-28") as peer:
            await peer.send("no/such").complete()


async def test_a_test_that_fails_for_its_own_reasons_says_so() -> None:
    async def fail() -> None:
        async with caller(demo(), NEW) as peer:
            peer.web.overseer.is_closing = False
            await peer.web.ask("GET", "/mcp", [STREAM, BOTH])
            raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        await fail()
