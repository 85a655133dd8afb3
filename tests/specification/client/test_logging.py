"""Entries of the server's log, and which of them the client wants."""

from __future__ import annotations

from typing import Any

import pytest

from mcpgen import UnsupportedByPeer, UsageError
from mcpgen.generated import registry
from tests.specification.citation import LABELS, everywhere, from_every_home, spec, with_handshakes, without_handshakes
from tests.specification.client.scripted_server import META, complete, on_both_loops, opened

pytestmark = pytest.mark.anyio

LEVELS = ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"]


@spec("2024-11-05", "server/utilities/logging#setting-log-level")
@spec("2025-11-25", "server/utilities/logging#setting-log-level")
@with_handshakes
@pytest.mark.parametrize("level", LEVELS)
async def test_in_a_session_the_level_is_set_by_a_request(level: Any, revision: str) -> None:
    async with opened(revision) as own:
        errand, asked = await own.asked(own.client.set_log_level(level))
        own.wire.result(asked, {})
        await errand.outcome()

    assert {"jsonrpc": "2.0", "id": asked["id"], "method": "logging/setLevel", "params": {"level": level}} == asked


@spec("2026-07-28", "server/utilities/logging#per-request-log-level")
@without_handshakes
@pytest.mark.parametrize("level", LEVELS)
@on_both_loops
async def test_without_a_session_the_level_goes_with_each_request_that_follows(level: Any, revision: str) -> None:
    async with opened(revision) as own:
        _, before = await own.asked(own.client.call_tool("x"))
        await own.client.set_log_level(level)
        assert [] == await own.wire.rest()

        _, call = await own.asked(own.client.call_tool("x"))
        _, page = await own.asked(own.client.list_tools())

    key = META + "logLevel"
    assert key not in before["params"]["_meta"]
    assert (level, level) == (call["params"]["_meta"][key], page["params"]["_meta"][key])


@spec("2026-07-28", "server/utilities/logging#per-request-log-level")
@without_handshakes
async def test_the_level_goes_with_a_request_that_is_put_again(revision: str) -> None:
    async with opened(revision) as own:
        await own.client.set_log_level("info")
        _, first = await own.asked(own.client.call_tool("x"))
        own.wire.result(first, {"resultType": "input_required", "requestState": "s"})
        second = await own.wire.hear()

    assert "info" == second["params"]["_meta"][META + "logLevel"]


@spec("2024-11-05", "server/utilities/logging#log-levels")
@spec("2025-11-25", "server/utilities/logging#log-levels")
@spec("2026-07-28", "server/utilities/logging#log-levels")
@everywhere
@pytest.mark.parametrize("level", ["verbose", "", "INFO", None])
async def test_a_level_that_there_is_not_is_refused(level: Any, revision: str) -> None:
    async with opened(revision) as own:
        with pytest.raises(UsageError, match=r"`level` is .*; it must be one of debug, "):
            await own.client.set_log_level(level)

        assert [] == await own.wire.rest()


@spec("2024-11-05", "server/utilities/logging#capabilities")
@spec("2025-11-25", "server/utilities/logging#capabilities")
@spec("2026-07-28", "server/utilities/logging#capabilities")
@pytest.mark.parametrize(
    ("revision", "options"),  # a client that is not strict asks a server of the first two, whatever it has declared
    [*((each, {"strict": True}) for each in LABELS), *((each, {}) for each in LABELS[2:])],
    ids=str,
)
async def test_no_level_is_set_where_nothing_is_logged(options: dict[str, Any], revision: str) -> None:
    async with opened(revision, can={"tools": {}}, **options) as own:
        with pytest.raises(UnsupportedByPeer):
            await own.client.set_log_level("info")
        _, asked = await own.asked(own.client.call_tool("x"))

    assert META + "logLevel" not in asked["params"].get("_meta", {})


@spec("2024-11-05", "server/utilities/logging#log-message-notifications")
@spec("2025-11-25", "server/utilities/logging#log-message-notifications")
@spec("2026-07-28", "server/utilities/logging#log-message-notifications")
@everywhere
@pytest.mark.parametrize("is_async", [False, True])
@on_both_loops
async def test_entries_are_handed_over_in_their_order(*, is_async: bool, revision: str) -> None:
    entries: list[Any] = []

    def note(params: Any, context: Any) -> None:
        entries.append((params.level, params.data, params.logger, context.peer.revision))

    async def later(params: Any, context: Any) -> None:
        note(params, context)

    async with opened(revision, log=later if is_async else note) as own:
        own.wire.tell("notifications/message", level="error", logger="database", data={"a": [1, None]})
        own.wire.tell("notifications/message", level="info", logger="x", data="up")
        await own.wire.rest()

    assert [("error", {"a": [1, None]}, "database", revision), ("info", "up", "x", revision)] == entries


@spec("2025-11-25", "basic/index#meta", "248bd872")
@with_handshakes
@pytest.mark.parametrize("value", ["x", 5, None, {}], ids=str)
async def test_in_a_session_the_key_of_a_stream_may_have_any_value(value: object, revision: str) -> None:
    entries: list[Any] = []
    async with opened(revision, log=lambda params, _: entries.append(params.data)) as own:
        own.wire.tell("notifications/message", level="info", data="up", _meta={META + "subscriptionId": value})
        await own.wire.rest()

    assert ["up"] == entries


@spec("2025-11-25", "server/utilities/logging#log-message-notifications")
@everywhere
@from_every_home
async def test_handlers_of_any_home_take_entries(native_revision: str, revision: str) -> None:
    entries: list[Any] = []

    async def logging_message(own: Any, params: Any, context: Any) -> None:
        del own, context
        entries.append((params.level, params.data))

    base = registry.revision(native_revision).bindings().client.ClientHandlers
    handlers = type("Handlers", (base,), {"logging_message": logging_message})()
    async with opened(revision, native_revision=native_revision, handlers=handlers) as own:
        own.wire.tell("notifications/message", level="error", data=5)
        await own.wire.rest()

    assert [("error", 5)] == entries


@spec("2025-11-25", "server/utilities/logging#error-handling")
@everywhere
@pytest.mark.parametrize(
    "params", [{}, {"level": "loud", "data": 1}, {"level": "info"}, {"level": 5, "data": 1}], ids=str
)
async def test_an_entry_that_is_malformed_is_ignored(params: Any, revision: str) -> None:
    entries: list[Any] = []
    async with opened(revision, log=lambda *given: entries.append(given)) as own:
        own.wire.tell("notifications/message", **params)

        assert [] == await own.wire.rest()

    assert [] == entries


@spec("2025-11-25", "basic/index#notifications")
@spec("2026-07-28", "basic/index#notifications")
@everywhere
@on_both_loops
async def test_a_function_that_fails_costs_nobody_anything(revision: str, caplog: pytest.LogCaptureFixture) -> None:
    def fail(*_: Any) -> None:
        raise ValueError("hunter2")

    async with opened(revision, log=fail) as own:
        own.wire.tell("notifications/message", level="info", data=1)
        assert [] == await own.wire.rest()

        assert [] == (await own.answered(own.client.call_tool("x"), complete(revision, content=[]))).content

    assert "hunter2" in caplog.text


@spec("2025-11-25", "basic/index#notifications")
@spec("2026-07-28", "basic/index#notifications", "a01ffb96")
@pytest.mark.parametrize("revision", LABELS)
@pytest.mark.parametrize("method", ["notifications/no/such", "notifications/initialized", "", "tools/list"])
async def test_a_notification_that_nobody_knows_is_ignored(method: str, revision: str) -> None:
    async with opened(revision) as own:
        own.wire.tell(method)

        assert [] == await own.wire.rest()
        assert [] == (await own.answered(own.client.call_tool("x"), complete(revision, content=[]))).content
