"""Log entries: levels of sessions, and of single requests."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from mcpgen.runtime.errors import UsageError
from tests.specification.citation import (
    LABELS,
    everywhere,
    from_every_home,
    spec,
    with_handshakes,
    without_handshakes,
)
from tests.specification.server.revision_client import client
from tests.specification.server.revision_server import CAPABILITIES, server

pytestmark = pytest.mark.anyio

LEVELS = ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"]
ALL = '{"levels":["debug","info","notice","warning","error","critical","alert","emergency"]}'


def told(said: list[Any]) -> list[str]:
    return [each["params"]["level"] for each in said if each.get("method") == "notifications/message"]


def wanting(level: str) -> str:
    return f'"io.modelcontextprotocol/logLevel":"{level}"'


@spec("2024-11-05", "server/utilities/logging#log-message-notifications")
@spec("2025-11-25", "server/utilities/logging#log-message-notifications")
@with_handshakes
@from_every_home
async def test_an_entry_has_a_level_a_logger_and_any_data(native_revision: str, revision: str) -> None:
    async with client(server(native_revision), revision) as peer:
        said = await peer.call("log", '{"levels":["error"]}')

    assert {
        "jsonrpc": "2.0",
        "method": "notifications/message",
        "params": {"level": "error", "logger": "tests", "data": {"said": "error"}},
    } == said[0]


@spec("2026-07-28", "server/utilities/logging#log-message-notifications")
@without_handshakes
@from_every_home
async def test_an_entry_comes_before_the_answer_to_the_request_that_wants_it(
    native_revision: str, revision: str
) -> None:
    async with client(server(native_revision), revision) as peer:
        said = await peer.call("log", '{"levels":["error"]}', wanting("info"))

    assert {
        "jsonrpc": "2.0",
        "method": "notifications/message",
        "params": {"level": "error", "logger": "tests", "data": {"said": "error"}},
    } == said[0]
    assert "result" in said[1]


@spec("2024-11-05", "server/utilities/logging#setting-log-level")
@spec("2025-03-26", "server/utilities/logging#setting-log-level")
@spec("2025-06-18", "server/utilities/logging#setting-log-level")
@spec("2025-11-25", "server/utilities/logging#setting-log-level")
@with_handshakes
@from_every_home
@pytest.mark.parametrize("level", LEVELS)
async def test_a_session_gets_entries_of_the_level_that_it_set_and_above(
    level: str, native_revision: str, revision: str
) -> None:
    async with client(server(native_revision), revision) as peer:
        assert {} == await peer.result("logging/setLevel", f'"level":"{level}"')

        said = await peer.call("log", ALL)

    assert LEVELS[LEVELS.index(level) :] == told(said)


@spec("2024-11-05", "server/utilities/logging#message-flow")
@spec("2025-11-25", "server/utilities/logging#message-flow")
@with_handshakes
async def test_a_level_can_be_changed(revision: str) -> None:
    async with client(server(LABELS[-1]), revision) as peer:
        await peer.result("logging/setLevel", '"level":"error"')
        await peer.result("logging/setLevel", '"level":"debug"')

        assert LEVELS == told(await peer.call("log", ALL))


@spec("2024-11-05", "server/utilities/logging#error-handling")
@spec("2025-11-25", "server/utilities/logging#error-handling", "48a0a34e")
@with_handshakes
@pytest.mark.parametrize("params", ['"level":"loud"', '"level":"DEBUG"', '"level":3', '"level":null', ""])
async def test_a_level_that_there_is_not_is_refused_and_changes_nothing(params: str, revision: str) -> None:
    async with client(server(LABELS[-1]), revision) as peer:
        await peer.result("logging/setLevel", '"level":"alert"')

        assert -32602 == (await peer.error("logging/setLevel", params))["code"]
        assert ["alert", "emergency"] == told(await peer.call("log", ALL))


@spec("2025-11-25", "server/utilities/logging#setting-log-level")
@with_handshakes
async def test_each_session_has_its_own_level(revision: str) -> None:
    made = server(LABELS[-1])
    async with client(made, revision) as quiet, client(made, revision) as loud:
        await quiet.result("logging/setLevel", '"level":"emergency"')
        await loud.result("logging/setLevel", '"level":"debug"')

        assert LEVELS == told(await loud.call("log", ALL))
        assert ["emergency"] == told(await quiet.call("log", ALL))


@spec("2026-07-28", "server/utilities/logging#per-request-log-level")
@without_handshakes
@from_every_home
@pytest.mark.parametrize("level", LEVELS)
async def test_a_request_gets_entries_of_the_level_that_it_names_and_above(
    level: str, native_revision: str, revision: str
) -> None:
    async with client(server(native_revision), revision) as peer:
        said = await peer.call("log", ALL, wanting(level))

    assert LEVELS[LEVELS.index(level) :] == told(said)


@spec("2026-07-28", "changelog#major-changes", "bf19d398")
@spec("2026-07-28", "schema#requestmetaobject", "3157e3b6")
@spec("2026-07-28", "server/utilities/logging#per-request-log-level", "19d1bac2")
@without_handshakes
async def test_a_request_that_names_no_level_gets_no_entries_whatever_another_has_named(revision: str) -> None:
    async with client(server(LABELS[-1]), revision) as peer:
        await peer.call("log", ALL, wanting("debug"))
        said = await peer.call("log", ALL)

    assert ["result"] == [key for each in said for key in each if key in ("result", "method")]


@spec("2026-07-28", "server/utilities/logging#error-handling", "1faf822a")
@without_handshakes
@pytest.mark.parametrize("level", ['"loud"', '"DEBUG"', "3", "{}"])
async def test_a_request_with_a_level_that_there_is_not_is_refused(level: str, revision: str) -> None:
    async with client(server(LABELS[-1]), revision) as peer:
        error = await peer.error("tools/call", '"name":"log"', f'"io.modelcontextprotocol/logLevel":{level}')

    assert -32602 == error["code"]


@spec("2026-07-28", "server/utilities/logging#per-request-log-level", "fca1134c")
@without_handshakes
async def test_no_entry_is_told_on_a_stream(revision: str) -> None:
    async with client(server(LABELS[-1]), revision) as peer:
        listen = peer.request("stream", "subscriptions/listen", '"notifications":{"toolsListChanged":true}')
        await peer.wire.say(listen)
        said = await peer.call("log", ALL, wanting("debug"))

    assert [True] * 8 == ["_meta" not in each["params"] for each in said if "method" in each]


@spec("2024-11-05", "server/utilities/logging#capabilities")
@spec("2025-11-25", "server/utilities/logging#capabilities")
@spec("2026-07-28", "server/utilities/logging#capabilities", "094ca3c4")
@everywhere
async def test_a_server_that_has_not_declared_logging_sends_no_entries(
    revision: str, caplog: pytest.LogCaptureFixture
) -> None:
    refused: list[Exception] = []

    async def log(own: Any, arguments: dict[str, Any], context: Any) -> Any:
        del arguments
        try:
            await context.log("emergency", "fire")
        except UsageError as error:
            refused.append(error)
        return own.text("done")

    declared = {key: each for key, each in CAPABILITIES.items() if key != "logging"}
    with caplog.at_level(logging.CRITICAL):
        async with client(server(LABELS[-1], capabilities=declared, tools={"log": log}), revision) as peer:
            said = await peer.call("log", meta=wanting("debug") if peer.is_stateless else "")

    assert [] == told(said)
    assert 1 == len(refused)


@spec("2025-11-25", "server/utilities/logging#log-message-notifications")
@with_handshakes
@pytest.mark.parametrize("data", ['"text"', "null", "[1, 2.5, false]", '{"a": {"b": null}}', "0"])
async def test_the_data_of_an_entry_is_any_json(data: str, revision: str) -> None:
    import json

    async def log(own: Any, arguments: dict[str, Any], context: Any) -> Any:
        await context.log("error", arguments["data"])
        return own.text("done")

    async with client(server(LABELS[-1], tools={"log": log}), revision) as peer:
        said = await peer.call("log", f'{{"data":{data}}}')

    assert {"level": "error", "data": json.loads(data)} == said[0]["params"]
