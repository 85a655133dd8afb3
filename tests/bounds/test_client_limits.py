"""The limits of a client (docs/guide/limits.md), each made small, against a hostile server in a process of its own."""

from __future__ import annotations

import json
import socket
import tracemalloc
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from mcpgen import ClientLimits, McpgenError, RequestTimedOut, connect
from mcpgen.generated.v2026_07_28.models import CreateMessageResult, Root, TextContent
from mcpgen.runtime.client.pending_request import PendingRequest, Progress
from mcpgen.runtime.client.subscriptions import Change, Subscriptions
from mcpgen.runtime.protocol.subscriptions import SubscriptionFilter
from mcpgen.runtime.transports.auto_reset_event import auto_reset_event
from tests.faults.hostile_server_clients import NEW, OLD, attacked, villain
from tests.harness import child_programs
from tests.patience import PATIENCE_SECONDS

if TYPE_CHECKING:
    from collections.abc import Generator

    from mcpgen import Client
    from mcpgen.generated.v2026_07_28 import models
    from tests.bounds.conftest import Victims

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

LIST = '{"tools": [], "resultType": "complete", "ttlMs": 0, "cacheScope": "private", "nextCursor": str(request["id"])}'
ITEM = '{"name": "n", "description": "x" * 100, "inputSchema": {"type": "object"}}'
MANY = LIST.replace("[]", f"[{ITEM}] * 20")
ASKS = '{"resultType": "input_required", "inputRequests": {"r": {"method": "roots/list"}}, "requestState": "s"}'
TOLD = "notifications/message"
PROGRESS = """
greet()
token = asked()["params"]["_meta"]["progressToken"]
for number in range(10**9):
    time.sleep(0.02)
    tell("notifications/progress", progressToken=token, progress=number)
"""

# The limit, its value, what the server does, what the client does, and the revision.
FAIL: dict[str, tuple[float, str, str, str]] = {
    "max_frame_bytes": (10_000, 'greet(); text(asked(), "x" * 20_000); serve()', "call", OLD),
    "max_rounds": (3, f"greet()\nwhile True: answer(asked(), {ASKS})", "call", NEW),
    "max_pages": (3, f"greet()\nwhile True:\n request = asked(); answer(request, {LIST})", "list", OLD),
    "max_values": (1000, 'greet(); text(asked(), "ok"); answer(asked(), {"x": [0] * 2000}); serve()', "calls", OLD),
    "max_items": (30, f"greet()\nwhile True:\n request = asked(); answer(request, {MANY})", "list", OLD),
    "max_list_bytes": (30_000, f"greet()\nwhile True:\n request = asked(); answer(request, {MANY})", "list", OLD),
    "call_seconds": (0.3, "greet(); ignore_all()", "call", OLD),
    "max_call_seconds": (
        0.5,
        PROGRESS,
        "progress",
        OLD,
    ),
    "connect_seconds": (0.5, "ignore_all()", "call", OLD),
}

# The errors of the others say what the server did wrong, or how long it took.
NAMED = {"max_rounds", "max_pages", "max_items", "max_list_bytes", "max_values"}


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def no_process() -> Generator[None]:
    """See that no process is left."""
    yield
    assert [] == child_programs.clear()


async def act(client: Client, what: str) -> None:
    if what == "list":
        async for _ in client.tools():
            pass
    elif what == "calls":
        for _ in range(2):
            await client.call_tool("x")
    elif what == "progress":
        await client.call_tool("x", progress=lambda *_: None)
    else:
        await client.call_tool("x")


@pytest.mark.parametrize("limit", FAIL)
async def test_a_call_beyond_a_limit_fails(limit: str) -> None:
    value, code, what, revision = FAIL[limit]
    # Without `strict`, a list that goes on is cut, and the log says so.
    strict: dict[str, Any] = {key: {"strict": True} for key in ("max_pages", "max_items")}
    options: dict[str, Any] = {"max_rounds": {"roots": [Root(uri="file:///a")]}, **strict}.get(limit, {})
    with pytest.raises(McpgenError, match=limit if limit in NAMED else None):
        async with attacked(code, revision, limits=ClientLimits(**{limit: value}), **options) as client:
            await act(client, what)


@pytest.mark.parametrize("limit", ["max_batch_length"])
async def test_a_batch_beyond_the_limit_is_not_served(limit: str) -> None:
    code = """
    greet()
    call = asked()
    say([{"jsonrpc": "2.0", "id": each, "method": "ping"} for each in range(5)])
    ask("last", "ping")
    text(call, json.dumps(hear()))
    serve()
    """
    async with attacked(code, "2025-03-26", limits=ClientLimits(**{limit: 3})) as client:
        said = str((await client.call_tool("x")).content[0])

    assert '"id": 4' not in said


async def test_responses_to_a_batch_beyond_the_limit_are_errors_with_its_name() -> None:
    async def sample(params: object, context: object) -> models.CreateMessageResult:
        return CreateMessageResult(role="assistant", content=TextContent(text="x" * 4000), model="m")

    code = """
    greet()
    call = asked()
    ask = {"method": "sampling/createMessage", "params": {"messages": [], "maxTokens": 1}}
    say([{"jsonrpc": "2.0", "id": each, **ask} for each in range(5)])
    text(call, json.dumps(hear()))
    serve()
    """
    async with attacked(code, "2025-03-26", limits=ClientLimits(max_batch_bytes=10_000), sample=sample) as client:
        said = json.loads((await client.call_tool("x")).text)
    errors = [each["error"]["message"] for each in said if "error" in each]

    assert (5, 3) == (len(said), len(errors))
    assert all("max_batch_bytes" in each for each in errors)


LONG = ("n", '{"messages": [], "maxTokens": 1, "systemPrompt": "x" * 4000}')


@pytest.mark.parametrize(
    ("identity", "params", "limits", "refused"),
    [
        (*LONG, {"max_in_flight_bytes": 10_000}, "234"),
        (*LONG, {}, ""),
        ('str(n) + "x" * 4000', '{"messages": [], "maxTokens": 1}', {"max_in_flight_bytes": 10_000}, "234"),
        # 15 kB of JSON, whose values take a megabyte of memory.
        (
            "n",
            '{"messages": [], "maxTokens": 1, "metadata": {"a": [{}] * 5000}}',
            {"max_in_flight_bytes": 2_500_000},
            "234",
        ),
    ],
    ids=["params", "defaults", "ids", "values"],
)
async def test_requests_that_hold_more_memory_than_allowed_are_refused(
    identity: str, params: str, limits: dict[str, int], refused: str
) -> None:
    async def sample(params: object, context: object) -> models.CreateMessageResult:
        await anyio.sleep_forever()
        raise AssertionError

    code = f"""
    greet()
    call = asked()
    for n in range(5):
        ask({identity}, "sampling/createMessage", {params})
    ask("last", "ping")
    said = [hear() for _ in range({len(refused) + 1})]
    text(call, json.dumps(said))
    serve()
    """
    async with attacked(code, limits=ClientLimits(**limits), sample=sample) as client:
        said = json.loads((await client.call_tool("x")).text)
    errors = {str(each["id"])[0]: each["error"]["message"] for each in said if "error" in each}

    assert refused == "".join(sorted(errors))
    assert all("max_in_flight_bytes" in each for each in errors.values())


async def test_values_of_a_list_count_by_their_memory() -> None:
    code = """
    greet()
    answer(asked(), {"tools": [{"name": "n", "inputSchema": {"type": "object", "x": [{}] * 5000}}]})
    serve()
    """
    with pytest.raises(McpgenError, match="max_list_bytes"):
        async with attacked(code, limits=ClientLimits(max_list_bytes=500_000)) as client:
            await act(client, "list")


STATE = """{
    "taskId": "t", "status": "input_required", "createdAt": "2026-01-01T00:00:00Z", "ttlMs": None,
    "lastUpdatedAt": "2026-01-01T00:00:00Z", "pollIntervalMs": 1}"""
FORM = '{"mode": "form", "message": "m", "requestedSchema": {"type": "object", "properties": {}}}'
# Each time with a new key or id of a megabyte.
KEYS = f"""
tasks = {{"tools": {{}}, "extensions": {{"io.modelcontextprotocol/tasks": {{}}}}}}
answer(asked(), discovered(capabilities=tasks))
number = 0
while True:
    request = asked()
    if request["method"] == "tools/call":
        answer(request, {{"resultType": "task", **{STATE}}})
    elif request["method"] == "tasks/get":
        number += 1
        requests = {{str(number) * 1_000_000: {{"method": "elicitation/create", "params": {FORM}}}}}
        answer(request, {{"resultType": "complete", "inputRequests": requests, **{STATE}}})
    elif request["method"] == "subscriptions/listen":
        refuse(request)
    else:
        answer(request, {{"resultType": "complete"}})
"""
URLS = """
greet()
for number in range(1, 100):
    each = {"mode": "url", "message": "m", "url": "https://a/", "elicitationId": str(number) * 1_000_000}
    refuse(asked(), -32042, "visit", data={"elicitations": [each]})
"""


@pytest.mark.parametrize(("code", "revision"), [(KEYS, NEW), (URLS, "2025-11-25")], ids=["keys", "ids"])
async def test_what_a_server_has_asked_for_is_not_kept_whole(code: str, revision: str) -> None:
    async def accept(params: object, context: object) -> dict[str, object]:
        return {"action": "accept"} if revision != NEW else {"action": "accept", "content": {}}

    options: dict[str, Any] = {"elicit": accept, "elicit_url": accept, "tasks": True}
    async with attacked(code, revision, **options) as client:
        tracemalloc.start()
        try:
            with pytest.raises(McpgenError, match="max_rounds"):
                await client.call_tool("x")
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()

    assert peak < 25_000_000  # with 32 texts of 1 MB or 2 MB, it was more than 32 MB


def test_progress_that_waits_is_kept_up_to_a_total_length() -> None:
    request = PendingRequest(1, "tools/call", auto_reset_event(), token=1)
    for number in range(1, 100):
        request.add_progress(Progress(number, None, "x" * 10_000))
    kept = request.progress or ()

    assert [94, 95, 96, 97, 98, 99] == [each.progress for each in kept]

    request.add_progress(Progress(100, None, "x" * 1_000_000))

    assert [100] == [each.progress for each in request.progress or ()]


async def test_the_start_of_a_long_progress_text_is_kept() -> None:
    texts: list[str | None] = []
    code = """
    greet()
    call = asked()
    token = call["params"]["_meta"]["progressToken"]
    tell("notifications/progress", progressToken=token, progress=1, message="x" * 1_000_000)
    text(call, "ok")
    serve()
    """
    async with attacked(code) as client:
        await client.call_tool("x", on_progress=lambda _, __, text: texts.append(text))

    assert ["x" * 65_536] == texts


async def test_notifications_before_the_handshake_count_with_their_methods() -> None:
    code = f"""
    first = asked()
    for _ in range(30):
        tell("x" * 1_000_000)
    answer(first, initialized({OLD!r}))
    heard("notifications/initialized")
    serve()
    """
    tracemalloc.start()
    try:
        async with attacked(code) as client:
            await client.call_tool("x")
            _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert peak < 15_000_000


async def test_requests_beyond_the_limit_are_refused() -> None:
    async def sample(params: object, context: object) -> models.CreateMessageResult:
        await anyio.sleep_forever()
        raise AssertionError

    code = """
    greet()
    call = asked()
    for n in range(5):
        ask(n, "sampling/createMessage", {"messages": [], "maxTokens": 1})
    text(call, sorted(hear()["id"] for _ in range(2)))
    serve()
    """
    async with attacked(code, limits=ClientLimits(max_in_flight=3), sample=sample) as client:
        assert "[3, 4]" in str((await client.call_tool("x")).content[0])


async def test_responses_that_wait_in_batches_count() -> None:
    asked: list[object] = []

    async def sample(params: object, context: object) -> models.CreateMessageResult:
        asked.append(params)
        await anyio.sleep_forever()
        raise AssertionError

    code = """
    greet()
    call = asked()
    for n in range(10):
        params = {"messages": [], "maxTokens": 1}
        wanted = {"jsonrpc": "2.0", "id": n, "method": "sampling/createMessage", "params": params}
        say([{"jsonrpc": "2.0", "id": str(n) * 10_000, "method": "unknown"}, wanted])
    text(call, "ok")
    serve()
    """
    limits = ClientLimits(max_in_flight_bytes=35_000)
    async with attacked(code, "2025-03-26", limits=limits, sample=sample) as client:
        await client.call_tool("x")

        assert 3 == len(asked)


@pytest.mark.parametrize(
    ("limits", "refused"), [({"max_in_flight": 3}, 2), ({"max_in_flight_bytes": 10_000}, 3), ({}, 0)]
)
async def test_the_requests_in_the_results_of_several_calls_count_together(
    limits: dict[str, int], refused: int
) -> None:
    answered = anyio.Event()

    async def sample(params: object, context: object) -> models.CreateMessageResult:
        await answered.wait()
        return CreateMessageResult(role="assistant", model="m", content=TextContent(text="hi"))

    code = """
    greet()
    ask = {"method": "sampling/createMessage", "params": {"messages": [], "maxTokens": 1, "systemPrompt": "x" * 4000}}
    for call in [asked() for _ in range(5)]:
        answer(call, {"resultType": "input_required", "inputRequests": {"a": ask}, "padding": "x" * 20_000})
    while True:
        text(asked(), "ok")
    """
    said: list[str] = []
    async with attacked(code, NEW, limits=ClientLimits(**limits), sample=sample) as client:

        async def call() -> None:
            try:
                said.append((await client.call_tool("x")).text)
            except McpgenError as error:
                said.append(str(error))

        async with anyio.create_task_group() as group:
            for _ in range(5):
                group.start_soon(call)
            while len(said) < refused:  # noqa: ASYNC110 (another task makes it so, without an event)
                await anyio.sleep(0.01)
            answered.set()
        session = client._engine.session

    refusals = [each for each in said if each != "ok"]
    assert (refused, 5) == (len(refusals), len(said))
    assert all(f"`{limit}`" in each for limit in limits for each in refusals)
    assert (0, 0) == (session.input_count, session.input_bytes)


@pytest.mark.parametrize(("most", "result"), [(5, "ok"), (4, RequestTimedOut)])
@pytest.mark.slow
async def test_requests_beyond_the_limit_do_not_stop_the_time_of_a_call(most: int, result: object) -> None:
    async def sample(params: object, context: object) -> models.CreateMessageResult:
        await anyio.sleep_forever()
        raise AssertionError

    code = """
    greet()
    call = asked()
    for n in range(5):
        ask(n, "sampling/createMessage", {"messages": [], "maxTokens": 1})
    time.sleep(8)
    text(call, "ok")
    serve()
    """
    found: object = None
    async with attacked(code, limits=ClientLimits(max_pauses=most, call_seconds=5), sample=sample) as client:
        try:
            found = (await client.call_tool("x")).text
        except RequestTimedOut as error:
            found = type(error)

    assert result == found


@pytest.mark.parametrize(("limit", "value"), [("max_notices", 10), ("max_notices_bytes", 10_000)])
async def test_notifications_beyond_the_limit_are_dropped_while_a_handler_is_slow(limit: str, value: int) -> None:
    gate, seen = anyio.Event(), []

    async def note(params: Any, context: Any) -> None:
        seen.append(params)
        await gate.wait()

    code = f"""
    greet()
    call = asked()
    for n in range(1000):
        tell("{TOLD}", level="error", data="x" * 1000)
    text(call, "told")
    serve()
    """
    async with attacked(code, limits=ClientLimits(**{limit: value}), log=note) as client:
        await client.call_tool("x")
        gate.set()
        for _ in range(5):
            await client.call_tool("x")

    assert 1 <= len(seen) <= 12


async def test_a_server_that_does_not_read_has_little_buffered_for_it() -> None:
    limits = ClientLimits(max_buffered_bytes=100_000, call_seconds=1)
    async with attacked("greet(); forever()", limits=limits) as client:
        failures = 0
        for _ in range(3):
            try:
                await client.call_tool("x", {"text": "x" * 100_000})
            except McpgenError:
                failures += 1

        assert 3 == failures


async def test_changes_beyond_the_limit_are_dropped(caplog: pytest.LogCaptureFixture) -> None:
    code = """
    greet()
    answer(asked(), {})
    for n in range(100):
        tell("notifications/resources/updated", uri=f"mem://x/{n}")
    serve()
    """
    limits = ClientLimits(max_changes=5)
    async with attacked(code, limits=limits) as client, client.listen(uris=["mem://x"]) as changes:
        await client.call_tool("x")
        for _ in range(5):
            await anext(changes)
        with anyio.move_on_after(0.2) as scope:
            await anext(changes)

    assert scope.cancelled_caught
    assert "more than 5 changes (max_changes), or more than 5120 characters of their URIs" in caplog.text


async def test_changes_that_were_not_requested_are_not_reported_when_a_stream_is_opened_again() -> None:
    code = """
    listen = asked()
    if listen["method"] == "server/discover":
        answer(listen, discovered())
        listen = asked("subscriptions/listen")
    meta = {"io.modelcontextprotocol/subscriptionId": listen["id"]}
    many = {"resourceSubscriptions": [f"mem://{n}" for n in range(5000)]}
    tell("notifications/subscriptions/acknowledged", notifications=many, _meta=meta)
    asked("tools/call")
    os._exit(1)
    """
    uris: list[str | None] = []
    async with attacked(code, NEW, max_restarts=1) as client, client.listen(uris=["mem://1"]) as changes:
        with pytest.raises(McpgenError):
            await client.call_tool("x")
        uris.append((await anext(changes)).uri)
        with anyio.move_on_after(0.2):
            uris.append((await anext(changes)).uri)

    assert ["mem://1"] == uris


def test_changes_that_wait_are_kept_up_to_a_total_length() -> None:
    stream = Subscriptions(1000).new_stream(SubscriptionFilter(resource_subscriptions=["mem://x"]), auto_reset_event())
    for number in range(1000):
        stream.put(Change("resource", f"mem://x/{number}/".ljust(8000, "x")))
    kept = [each.uri or "" for each in iter(stream.take, None)]
    stream.put(Change("resource", "mem://x/later"))

    assert 1_000_000 < sum(map(len, kept)) <= 1000 * 1024
    assert Change("resource", "mem://x/later") == stream.take()


async def test_an_acknowledgement_that_cannot_repeat_the_request_is_not_kept() -> None:
    code = """
    greet()
    listen = asked("subscriptions/listen")
    meta = {"io.modelcontextprotocol/subscriptionId": listen["id"]}
    filter = {**listen["params"]["notifications"], "x/y": "x" * 1_000_000}
    tell("notifications/subscriptions/acknowledged", notifications=filter, _meta=meta)
    serve()
    """
    async with attacked(code, NEW) as client, client.listen(uris=["mem://x"]) as changes:
        assert ["mem://x"] == changes.acknowledged.resource_subscriptions
        assert {} == changes.accepted


async def test_a_state_is_not_kept_while_its_retry_waits() -> None:
    sizes: list[int] = []

    def measure(*_: object) -> None:
        sizes.append(tracemalloc.get_traced_memory()[0])

    code = """
    greet()
    answer(asked(), {"resultType": "input_required", "requestState": "x" * 4_000_000 + chr(0x1F600)})
    retry = asked()
    token = retry["params"]["_meta"]["progressToken"]
    tell("notifications/progress", progressToken=token, progress=1)
    text(retry, "ok")
    serve()
    """
    async with attacked(code, NEW) as client:
        tracemalloc.start()
        try:
            await client.call_tool("x", on_progress=measure)
        finally:
            tracemalloc.stop()

    assert max(sizes) < 15_000_000  # with the text, whose characters take four bytes each, it was more than 20 MB


async def test_a_long_cursor_is_refused() -> None:
    code = f"""
    greet()
    while True:
        request = asked()
        answer(request, {LIST.replace('str(request["id"])', '"x" * 100_000')})
    """
    async with attacked(code) as client:
        with pytest.raises(McpgenError, match="65,536 characters"):
            await act(client, "list")


async def test_the_end_of_what_a_server_prints_is_kept() -> None:
    code = 'os.write(2, b"x" * 100_000 + b"the end\\n"); os._exit(3)'
    with pytest.raises(McpgenError) as failure:
        async with attacked(code, limits=ClientLimits(max_stderr_bytes=1000)):
            pass

    assert "the end" in str(failure.value)
    assert len(str(failure.value)) < 5000


async def test_a_server_that_does_not_answer_a_probe_is_asked_to_initialize() -> None:
    code = 'while (first := asked())["method"] != "initialize": pass\nanswer(first, initialized("2025-11-25")); serve()'
    async with attacked(code, None, limits=ClientLimits(probe_seconds=0.2)) as client:
        assert "2025-11-25" == client.revision


@pytest.mark.parametrize(("limit", "third"), [(3000, "2"), (6000, "0")])
async def test_a_client_keeps_results_up_to_a_total_size(limit: int, third: str) -> None:
    code = """
    greet()
    for number in range(10):
        read = asked("resources/read")
        contents = [{"uri": read["params"]["uri"], "text": f"{number} " + "x" * 1500}]
        answer(read, {"contents": contents, "resultType": "complete", "ttlMs": 10**6, "cacheScope": "private"})
    """
    async with attacked(code, NEW, limits=ClientLimits(max_cached_bytes=limit), cache_results=True) as client:
        read = [await client.read_resource(uri) for uri in ("file:///a", "file:///b", "file:///a")]

    texts = [each.contents[0] for each in read]
    assert ["0", "1", third] == [each.text[0] for each in texts if hasattr(each, "text")]


@pytest.mark.parametrize("code", ["forever()", "on_term(lambda: 0)"], ids=["stdin_seconds", "term_seconds"])
async def test_a_server_that_does_not_end_is_killed(code: str, no_process: None) -> None:
    limits = ClientLimits(stdin_seconds=0.2, term_seconds=0.2)
    with anyio.fail_after(PATIENCE_SECONDS):
        async with connect(villain(f"greet(); {code}; forever()"), revisions=[OLD], limits=limits):
            pass


async def test_a_client_has_some_requests_under_way_at_once(victims: Victims) -> None:
    http = victims.http()
    limits = ClientLimits(max_connections=3, call_seconds=PATIENCE_SECONDS)
    with victims.watch(http, honest=False) as seen:
        url = f"http://127.0.0.1:{http.port}/mcp"
        async with connect(url, limits=limits) as client, anyio.create_task_group() as group:
            for _ in range(50):
                group.start_soon(client.call_tool, "drowse", {"seconds": 0.05})

    assert seen.threads <= 16


async def test_a_server_that_does_not_take_connections_is_given_up() -> None:
    with socket.socket() as deaf:
        deaf.bind(("127.0.0.1", 0))
        deaf.listen(0)
        url = f"http://127.0.0.1:{deaf.getsockname()[1]}/mcp"
        with pytest.raises(McpgenError), anyio.fail_after(PATIENCE_SECONDS):
            async with connect(url, limits=ClientLimits(open_seconds=0.3, connect_seconds=2, probe_seconds=0.5)):
                pass
