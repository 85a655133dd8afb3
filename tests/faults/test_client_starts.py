"""Servers that end, are deaf, or dawdle before anything is agreed: a client is told why, in time."""

from __future__ import annotations

import signal
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest
from msgspec.structs import replace

from mcpgen import ClientLimits, McpgenError
from mcpgen.runtime.errors import RequestTimedOut
from mcpgen.runtime.transports.errors import ServerExited
from tests.faults.hostile_server_clients import BUSY_SECONDS, LATE, NEW, OLD, QUICK, Stopwatch, attacked, words

if TYPE_CHECKING:
    from mcpgen import Client

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.usefixtures("nothing_is_left"),
    pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"]),
    pytest.mark.slow,
]


async def connecting(code: str, revision: str | None, **options: Any) -> Exception:
    """Return what comes of connecting to a villain that cannot be connected to."""
    with pytest.raises(McpgenError) as caught:
        async with attacked(code, revision, **{"limits": QUICK, **options}):
            pass
    return caught.value


EARLY = {
    "at once": "os._exit(3)",
    "when asked": "hear()\nos._exit(3)",
    "in the middle of a line": 'hear()\nput(b\'{"jsonrpc":"2.0","id":\')\nos._exit(3)',
    "in the middle of a result": """put(b'{"jsonrpc":"2.0","id":%d,"result":{"a":"b' % hear()["id"])\nos._exit(3)""",
    "behind a banner": "put(b'hi\\n')\nos._exit(3)",
    "by a signal": "hear()\nos.kill(os.getpid(), signal.SIGSEGV)",
    "by an exception": "hear()\nraise ValueError('what happened')",
}


@pytest.mark.parametrize("revision", [OLD, NEW, None])
@pytest.mark.parametrize("when", EARLY)
async def test_a_server_that_ends_before_it_answers_is_reported_with_status_and_last_words(
    when: str, revision: str | None
) -> None:
    with Stopwatch() as watch:
        found = await connecting("os.write(2, b'last words')\n" + EARLY[when], revision)

    assert isinstance(found, ServerExited)
    status = {"by a signal": -signal.SIGSEGV, "by an exception": 1}.get(when, 3)
    assert status == found.status
    assert found.stderr.startswith("last words")
    assert ("what happened" in str(found)) == (when == "by an exception")
    assert watch.seconds < BUSY_SECONDS


async def test_a_server_that_survives_no_question_is_started_anew_and_greeted() -> None:
    code = """
    first = asked()
    if first["method"] != "initialize":
        os._exit(1)
    answer(first, initialized("2025-06-18"))
    serve()
    """
    async with attacked(code, None) as client:
        assert ("2025-06-18", "ok") == (client.revision, words(await client.call_tool("x")))


async def test_a_server_that_a_question_stuns_is_started_anew_and_greeted() -> None:
    code = """
    first = asked()
    if first["method"] != "initialize":
        ignore_all()
    answer(first, initialized("2025-06-18"))
    serve()
    """
    async with attacked(code, None, limits=replace(LATE, probe_seconds=0.5)) as client:
        assert ("2025-06-18", "ok") == (client.revision, words(await client.call_tool("x")))


@pytest.mark.parametrize("revision", [OLD, NEW, None])
@pytest.mark.parametrize("deaf", ["ignore_all()", "forever()"])
async def test_a_server_that_never_answers_is_given_up_in_time(deaf: str, revision: str | None) -> None:
    with Stopwatch() as watch:
        found = await connecting(deaf, revision, limits=ClientLimits(
            probe_seconds=0.1, connect_seconds=0.4, stdin_seconds=0.2, term_seconds=0.2
        ))  # fmt: skip

    assert isinstance(found, RequestTimedOut)
    assert watch.seconds < 0.4 + 2 * 0.4 + BUSY_SECONDS


@pytest.mark.parametrize("revision", [OLD, NEW, None])
@pytest.mark.parametrize("ends", ["ignore_all()", "forever()"])
async def test_a_server_that_closes_its_output_and_goes_on_is_given_up(ends: str, revision: str | None) -> None:
    with Stopwatch() as watch:
        found = await connecting(f"hear()\nos.close(1)\n{ends}", revision)

    assert isinstance(found, ServerExited)
    assert found.status is None
    assert "has closed its output" in str(found)
    assert watch.seconds < 2 * (0.5 + 0.4) + BUSY_SECONDS


@pytest.mark.parametrize("revision", [OLD, NEW])
async def test_a_server_that_closes_its_input_and_goes_on_is_given_up(revision: str) -> None:
    async with attacked("greet()\nos.close(0)\ntell('notifications/message', level='info', data=1)\nforever()",
                        revision, limits=LATE) as client:  # fmt: skip
        with pytest.raises(ServerExited):
            await call_again_and_again(client)


async def call_again_and_again(client: Client) -> None:
    while True:  # what was written before it closed its input is nowhere
        with suppress(RequestTimedOut):
            await client.call_tool("x", timeout_seconds=0.1)


async def test_a_server_that_starts_slowly_and_answers_the_question_late_is_one_of_today() -> None:
    code = """
    first = asked("server/discover")
    second = asked("initialize")  # comes when the time for the first is over
    answer(first, discovered())
    refuse(second)
    serve()
    """
    async with attacked(code, None, limits=LATE) as client:
        assert (NEW, "ok") == (client.revision, words(await client.call_tool("x")))


async def test_a_server_of_before_that_starts_slowly_is_greeted() -> None:
    code = """
    first = asked("server/discover")
    second = asked("initialize")
    refuse(first)
    answer(second, initialized("2025-11-25"))
    serve()
    """
    async with attacked(code, None, limits=LATE) as client:
        assert ("2025-11-25", "ok") == (client.revision, words(await client.call_tool("x")))


@pytest.mark.parametrize("revision", [OLD, NEW, None])
async def test_three_seconds_to_start_are_no_fault(revision: str | None) -> None:
    async with attacked("time.sleep(3)\ngreet()\nserve()", revision, limits=ClientLimits()) as client:
        assert "ok" == words(await client.call_tool("x"))
