"""OpenTelemetry instruments of a server: what it holds, what it refuses, and how long requests take.

These tests run in a process of their own (`test_server_metrics.py`): importing OpenTelemetry switches spans on.
"""

from __future__ import annotations

from typing import Any

import anyio
import pytest
from opentelemetry import metrics
from opentelemetry.metrics import NoOpMeterProvider
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader

from mcpgen import Context, HttpLimits, RateLimit, Server, ToolError
from mcpgen.runtime.http.server.responses import REFUSALS
from mcpgen.runtime.protocol import spans
from tests.specification.http_server.http_clients import STATELESS, joined
from tests.specification.http_server.http_site import site

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def reader(monkeypatch: pytest.MonkeyPatch) -> InMemoryMetricReader:
    found = InMemoryMetricReader()
    provider = MeterProvider([found])
    monkeypatch.setattr(metrics, "get_meter_provider", lambda: provider)
    return found


def points(reader: InMemoryMetricReader) -> dict[str, list[Any]]:
    """Return the data points of each instrument."""
    data = reader.get_metrics_data()
    found: dict[str, list[Any]] = {}
    for resource in data.resource_metrics if data else ():
        for scope in resource.scope_metrics:
            for each in scope.metrics:
                found[each.name] = list(each.data.data_points)
    return found


def demo() -> Server:
    server = Server("demo", version="1")

    @server.tool
    def add(a: int, b: int) -> int:
        return a + b

    @server.tool
    def fail() -> str:
        raise ToolError("no")

    @server.tool
    async def ask(ctx: Context) -> str:
        return (await ctx.elicit("Who?", {"properties": {"name": {"type": "string"}}})).action

    return server


async def test_what_a_server_holds_is_shown(reader: InMemoryMetricReader) -> None:
    async with site(demo()) as web:
        peers = [await joined(web, "2025-11-25") for _ in range(3)]
        await peers[0].listen().begun()
        modern = await joined(web, STATELESS)
        modern.capabilities = '{"elicitation":{"form":{}}}'
        await modern.call("ask").complete()
        found = points(reader)
        for name, number in (("sessions", 3), ("streams", 1), ("waiting", 1)):
            (point,) = found[f"mcpgen.server.{name}"]
            assert (number, {"mcpgen.server.name": "demo"}) == (point.value, dict(point.attributes))
        kept = {each.attributes["mcpgen.kind"]: each.value for each in found["mcpgen.server.kept"]}

        assert web.app.kept_bytes == kept  # type: ignore[attr-defined]  # an application of ours


async def test_requests_are_timed(reader: InMemoryMetricReader) -> None:
    async with site(demo()) as web:
        peer = await joined(web, "2025-11-25")
        for _ in range(3):
            await peer.call("add", '{"a":1,"b":2}').complete()
        await peer.call("fail").complete()
        found = {
            (each.attributes["gen_ai.tool.name"], each.attributes.get("error.type")): each
            for each in points(reader)["mcp.server.operation.duration"]
            if each.attributes["mcp.method.name"] == "tools/call"
        }

    assert {("add", None): 3, ("fail", "tool_error"): 1} == {name: each.count for name, each in found.items()}
    assert 0 < found["add", None].sum < 60
    assert "2025-11-25" == found["add", None].attributes["mcp.protocol.version"]
    assert not any("request.id" in name for each in found.values() for name in each.attributes)


async def test_a_client_cannot_make_instruments_keep_names(
    reader: InMemoryMetricReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spans, "_measured_names", set[str]())
    monkeypatch.setattr(spans, "_MAX_MEASURED_NAMES", 2)
    async with site(demo()) as web:
        peer = await joined(web, "2025-11-25")
        for name in ("add", "fail", *(f"unknown{number}" for number in range(10))):
            await peer.call(name, '{"a":1,"b":2}').complete()
        for name in ("add", "ask"):  # one more would be too many
            await peer.call(name, '{"a":1,"b":2}').complete()
        found = points(reader)["mcp.server.operation.duration"]

    names = [each.attributes.get("gen_ai.tool.name") for each in found]
    assert {"add", "fail", None} == set(names)
    assert 5 >= len(names)


async def test_refusals_are_counted(reader: InMemoryMetricReader) -> None:
    before = dict(REFUSALS)
    limits = HttpLimits(rate_limit=RateLimit(per_second=0.01, burst=1), max_sessions=1, max_sessions_bytes=1)
    async with site(demo(), limits=limits) as web:
        web.overseer.expects_failure = True
        modern = await joined(web, STATELESS)
        statuses = [(await modern.call("add", '{"a":1,"b":2}').complete()).status for _ in range(3)]
        found = {
            each.attributes["http.response.status_code"]: each.value
            for each in points(reader)["mcpgen.server.refusals"]
        }

    assert [200, 429, 429] == statuses
    assert {429: before[429] + 2, 503: before[503]} == found


async def test_two_applications_are_told_apart_and_one_that_is_gone_is_not_shown(
    reader: InMemoryMetricReader,
) -> None:
    app = demo().asgi()
    async with app.running(), Server("other").asgi().running():
        names = {each.attributes["mcpgen.server.name"] for each in points(reader)["mcpgen.server.sessions"]}
    assert {"demo", "other"} == names
    del app
    import gc

    gc.collect()
    assert "mcpgen.server.sessions" not in points(reader)


async def test_without_a_provider_nothing_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    provider = NoOpMeterProvider()
    monkeypatch.setattr(metrics, "get_meter_provider", lambda: provider)
    async with site(demo()) as web:
        assert 200 == (await (await joined(web, STATELESS)).call("add", '{"a":1,"b":2}').complete()).status
    await anyio.lowlevel.checkpoint()
