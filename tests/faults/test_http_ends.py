"""The end of a server: asked for by a signal, whatever is open and whatever runs; and beginnings that fail."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from mcpgen.runtime.errors import UsageError
from tests.faults.event_loop_turns import until
from tests.faults.http_applications import attacked_site, held
from tests.faults.http_faulty_handlers import FAILURES, SECRET, Guest, bad_end, bad_start
from tests.faults.http_leaving_client import Leaver
from tests.faults.http_raw_client import (
    BOTH,
    Closed,
    called,
    calling,
    head,
    initialize,
    joined,
    listened,
    mirrored,
    posted,
    request,
)
from tests.faults.http_server_process import COMMAND, PROGRAM, House
from tests.patience import BUSY_SECONDS, PATIENCE_SECONDS
from tests.specification.http_server.asgi_exchange import Lifespan
from tests.specification.http_server.http_clients import STATELESS, Caller
from tests.specification.http_server.http_clients import joined as shaken
from tests.specification.http_server.revision_sets import on_both_loops

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Generator

    from mcpgen import Server
    from tests.faults.http_raw_client import Line

pytestmark = pytest.mark.slow

on_posix = pytest.mark.skipif(os.name != "posix", reason="signals and descriptors are POSIX's")

PROMPTLY = 2 + BUSY_SECONDS  # two seconds, as promised


@pytest.fixture
def house() -> Generator[House]:
    made = House(COMMAND)
    try:
        yield made
    finally:
        made.kill()


def streams(house: House) -> list[Line]:
    """Open a stream of every kind, and have the first of each answered."""
    found = []
    for data in (called("step", meta={"progressToken": 1}), listened()):
        line = house.line()
        line.send(data)
        found.append(line)
    line = house.line()
    own = joined(line)
    line.send(head("GET", "/mcp", "Accept: text/event-stream", *own))
    found.append(line)
    line = house.line()
    line.send(posted(calling("step", 1, "p"), *own))
    found.append(line)
    line = house.line()
    line.send(head("GET", "/sse", "Accept: text/event-stream"))
    found.append(line)
    for each in found:
        assert 200 == each.head().status
        assert each.chunk()
    return found


@on_posix
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_open_streams_and_the_server_cleanly(house: House, number: int) -> None:
    lines = streams(house)
    begin = time.monotonic()
    house.tell(number)
    for each in lines:
        each.messages()  # to its end, which is told
    status, said, _ = house.end()

    assert 0 == status
    assert time.monotonic() - begin < PROMPTLY
    assert "Traceback" not in said


@on_posix
def test_a_stream_of_changes_is_ended_by_its_result_when_a_signal_comes(house: House) -> None:
    line = house.line()
    line.send(listened("l"))
    line.head()
    line.events()
    house.tell(signal.SIGTERM)
    *_, said = line.messages()

    assert ("l", {}) == (
        said["id"],
        {key: value for key, value in said["result"].items() if key not in ("_meta", "resultType")},
    )
    assert 0 == house.end()[0]


@on_posix
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("tool", ["wait", "stubborn", "block"])
def test_a_signal_ends_a_server_whatever_its_handlers_do(house: House, tool: str, number: int) -> None:
    lines = [house.line() for _ in range(5)]
    own = joined(lines[0])
    for each in lines[:3]:
        each.send(called(tool))
    for identity, each in enumerate(lines[3:]):
        each.send(posted(calling(tool, identity), *own))
    if tool != "block":
        line = house.line()
        waits = "waiting 5,"

        def all_wait() -> bool:
            line.send(called("standing"))
            return waits in line.reply().body.decode()

        house.until(all_wait)
    begin = time.monotonic()
    house.tell(number)
    status, said, _ = house.end()

    assert 0 == status
    assert time.monotonic() - begin < PROMPTLY
    assert "Traceback" not in said


@on_posix
def test_a_signal_ends_a_server_with_clients_that_neither_send_nor_read(house: House) -> None:
    lines = [house.line() for _ in range(40)]
    for each in lines[:10]:
        each.send(b"POST /mcp HTTP/1.1\r\nHo")
    for each in lines[10:20]:
        each.send(called("echo")[:-9])
    for each in lines[20:30]:
        each.send(called("big", size=3_000_000))
    begin = time.monotonic()
    house.tell(signal.SIGTERM)
    status, said, _ = house.end()

    assert 0 == status
    assert time.monotonic() - begin < PROMPTLY
    assert "Traceback" not in said


@on_posix
def test_what_comes_after_the_signal_is_refused_and_no_connection_is_taken(house: House) -> None:
    line, late = house.line(), house.line()
    line.send(called("stubborn"))
    late.send(called("echo")[:-1])
    second = house.line()
    second.send(called("echo"))
    assert 200 == second.reply().status
    house.tell(signal.SIGTERM)
    statuses: set[int] = set()
    try:
        late.send(called("echo")[-1:])
        statuses.add(late.reply().status)
        while True:
            second.send(called("echo"))
            statuses.add(second.reply().status)
    except (OSError, Closed):
        pass

    # uvicorn looks for signals every 100 ms. A fast server takes more calls in that time than the rate limit allows.
    assert statuses <= {200, 429, 503}
    assert 0 == house.end()[0]
    with pytest.raises(OSError):  # noqa: PT011 (refused, by whatever name)
        house.line()


@on_posix
def test_signals_that_keep_coming_change_nothing(house: House) -> None:
    streams(house)
    for _ in range(20):
        for number in (signal.SIGTERM, signal.SIGINT):
            if house.popen.poll() is None:
                house.tell(number)
        time.sleep(0.01)
    status, said, _ = house.end()

    assert 0 == status
    assert "Traceback" not in said


@on_posix
def test_an_address_that_is_taken_is_said_in_a_sentence(house: House) -> None:
    argv = [sys.executable, "-m", "mcpgen", "serve", PROGRAM, "--http", f"127.0.0.1:{house.port}"]
    found = subprocess.run(argv, capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False)

    assert 2 == found.returncode
    assert f"cannot listen on 127.0.0.1:{house.port}" in found.stderr
    assert "Traceback" not in found.stderr


@on_posix
@pytest.mark.parametrize("lifespan", ["bad_start", "bad_end"])
def test_a_lifespan_that_fails_fails_the_command_and_says_so(lifespan: str) -> None:
    given = json.dumps({"lifespan": lifespan})
    if lifespan == "bad_start":
        found = subprocess.run(
            [sys.executable, PROGRAM, given], capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False
        )
        assert 0 != found.returncode
        assert SECRET in found.stderr
        assert "mcpgen: serving" not in found.stderr
        return
    house = House(lifespan=lifespan)
    try:
        house.tell(signal.SIGTERM)
        status, said, _ = house.end()
    finally:
        house.kill()

    assert 0 != status
    assert SECRET in said


# --- in this process


@pytest.mark.anyio
@on_both_loops
@pytest.mark.parametrize("lifespan", [bad_start, bad_end])
async def test_a_lifespan_that_fails_is_reported_to_who_asked_for_it(
    lifespan: Callable[[Server], AsyncGenerator[None]],
) -> None:
    app = Guest(lifespan=lifespan).server.asgi()
    asked = Lifespan(app)
    async with anyio.create_task_group() as group:
        group.start_soon(asked.run)
        said = [await asked.ask("startup")]
        if lifespan is bad_end:
            said.append(await asked.ask("shutdown"))

    kind = "startup" if lifespan is bad_start else "shutdown"
    assert f"lifespan.{kind}.failed" == said[-1]["type"]
    assert {} == held(app)


@pytest.mark.anyio
@on_both_loops
async def test_a_lifespan_that_nobody_began_and_that_fails_fails_each_request_and_piles_nothing_up() -> None:
    app = Guest(lifespan=bad_start).server.asgi()
    body = request(1, "tools/call", {"name": "echo", "arguments": {}})
    lines = [tuple(each.split(": ")) for each in mirrored("tools/call", "echo")]
    lengths = []
    for _ in range(50):
        leaver = Leaver(app, "POST", "/mcp", [("Content-Type", "application/json"), ("Accept", BOTH), *lines], [body])  # type: ignore[list-item] # pairs
        await leaver.run()
        trace, length = leaver.failure.__traceback__ if leaver.failure else None, 0
        while trace is not None:
            trace, length = trace.tb_next, length + 1
        lengths.append(length)
        assert SECRET not in leaver.body.decode()

    assert {} == held(app)
    assert 0 < lengths[-1] <= lengths[1]


@pytest.mark.anyio
@on_both_loops
@pytest.mark.parametrize("revision", ["2025-11-25", STATELESS])
async def test_whatever_a_handler_raises_costs_nobody_else_anything(revision: str) -> None:
    async with attacked_site(Guest().server, fails=True) as web:
        peer = Caller(web, revision)
        peer = peer if peer.is_stateless else await shaken(web, revision)
        for what in FAILURES:
            for when in ("at once", "later"):
                answer = peer.call("throw", f'{{"what":"{what}","when":"{when}"}}')
                said: Any = (await answer.messages())[-1]
                assert "error" in said or said["result"]["isError"]
                assert SECRET not in json.dumps(said)
        assert (
            "hi"
            == (await peer.ask("tools/call", '"name":"echo","arguments":{"text":"hi"}'))["result"]["content"][0]["text"]
        )


@pytest.mark.anyio
@on_both_loops
async def test_an_application_that_has_ended_can_begin_again_with_nothing_of_before() -> None:
    guest = Guest()
    app = guest.server.asgi()
    for _ in range(3):
        async with app.running(), anyio.create_task_group() as group:
            begun = Leaver(
                app, "POST", "/mcp", [("Content-Type", "application/json"), ("Accept", BOTH)], [initialize()]
            )
            await begun.run()
            assert 200 == begun.status
            lines = [("Mcp-Session-Id", begun.headers["mcp-session-id"]), ("Accept", "text/event-stream")]
            stream = Leaver(app, "GET", "/mcp", lines)
            group.start_soon(stream.run)
            await until(lambda: stream.body)  # noqa: B023 (called before the next turn)
            await app.shutdown()
        assert stream.is_complete
        assert {} == held(app)
        assert 0 == len(app._state.sessions)
        refused = Leaver(app, "GET", "/mcp", lines)
        await refused.run()
        assert 404 == refused.status


def test_bounds_that_make_no_sense_are_refused_at_once() -> None:
    from mcpgen.runtime.limits import HttpLimits

    for name in HttpLimits.__struct_fields__:
        for value in (0, -1, float("nan")):
            with pytest.raises(UsageError):
                HttpLimits(**{name: value})
    with pytest.raises(UsageError):
        Guest().server.asgi(limits={"max_open": 1})  # type: ignore[arg-type] # what is tested
