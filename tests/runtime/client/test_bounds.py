"""What a client holds for its server has bounds in bytes, which errors name."""

from __future__ import annotations

import logging
import sys
from collections import Counter
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, ClassVar, SupportsIndex

import anyio
import anyio.lowlevel
import msgspec
import pytest
from msgspec import Raw

from mcpgen import ClientLimits, Context, InvalidPayload, MemoryTaskStore, RequestError, RequestRefused, Server, connect
from mcpgen.runtime.client import result_cache
from mcpgen.runtime.client.incoming_requests import checked_form
from mcpgen.runtime.client.output_validation import OutputValidator
from mcpgen.runtime.client.result_cache import ResultCache
from mcpgen.runtime.client.result_reader import ResultReader
from mcpgen.runtime.client.subscriptions import Change, ChangeStream, Subscriptions
from mcpgen.runtime.client.task_support import TaskSupport
from mcpgen.runtime.http.client.http_session import HttpSession
from mcpgen.runtime.http.client.incoming_messages import IncomingMessages
from mcpgen.runtime.http.client.response_body import read_events
from mcpgen.runtime.http.sse import EventReader
from mcpgen.runtime.limits import MAX_FORM_FIELDS
from mcpgen.runtime.protocol.codec import codec
from mcpgen.runtime.protocol.newest import models
from mcpgen.runtime.protocol.reading_policy import ReadingPolicy
from mcpgen.runtime.protocol.subscriptions import SubscriptionFilter
from mcpgen.runtime.transports.auto_reset_event import auto_reset_event
from tests.specification.client.scripted_server import STATELESS, opened
from tests.turns import counted_turns

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterator, Sequence


@pytest.mark.anyio
async def test_requests_of_a_server_that_are_too_large_together_are_refused() -> None:
    server = Server("own")
    refused: list[str] = []

    @server.tool
    async def ask(context: Context) -> str:
        async def sample(text: str) -> None:
            try:
                await context.sample(text, max_tokens=1)
            except RequestRefused as error:
                refused.append(error.message)

        for _ in range(2):  # what was answered counts no more
            async with anyio.create_task_group() as group:
                for size in (6000, 6000, 1000):
                    group.start_soon(sample, "x" * size)
        return str(len(refused))

    async def sample(params: object, context: object) -> models.CreateMessageResult:
        await anyio.sleep(0.05)
        text = models.TextContent(text="a")
        return models.CreateMessageResult(role="assistant", content=text, model="m")

    limits = ClientLimits(max_in_flight_bytes=10_000)
    async with connect(server, revisions=["2025-11-25"], limits=limits, sample=sample) as client:
        await client.call_tool("ask")

    assert 2 == len(refused)
    assert all("max_in_flight_bytes" in each for each in refused)


def taken(stream: ChangeStream) -> Sequence[Any]:
    found = []
    while (change := stream.take()) is not None:
        found.append(change)
    return found


@pytest.mark.anyio
async def test_a_change_with_a_long_uri_is_dropped(caplog: pytest.LogCaptureFixture) -> None:
    stream = ChangeStream(SubscriptionFilter(), auto_reset_event(), 10)
    with caplog.at_level(logging.WARNING):
        for size in (8192, 8193, 8193):
            stream.put(Change("resource", "x" * size))

    assert [8192] == [len(each.uri) for each in taken(stream)]
    assert 1 == len(caplog.records)
    assert "8192 characters" in caplog.text


def test_a_long_id_of_a_server_is_not_kept() -> None:
    session = HttpSession()
    for size in (1000, 1001):
        session.add_server_request("x" * size)

    assert ["x" * 1000] == list(session.server_requests)


@pytest.mark.slow
def test_the_tools_that_run_as_tasks_are_kept_up_to_a_size_and_without_invalid_ones() -> None:
    support = TaskSupport()
    names = ["a", "x" * 10_000_000, "y" * 10_000_000]
    tools: list[object] = [{"name": each, "execution": {"taskSupport": "required"}} for each in names]
    support.learn(Raw(msgspec.json.encode({"tools": [{"name": 1}, {"execution": None}, 5, *tools], "nextCursor": "2"})))

    support.is_current = True

    assert [True, True, False] == [support.knows(each) for each in names]
    assert (6, "2", "required", "forbidden") == (support.count, support.cursor, support.of("a"), support.of(names[2]))

    support.learn(Raw(b"[]"))

    assert support.cursor is None


@pytest.mark.slow
def test_names_and_cursors_count_by_their_memory() -> None:
    """One emoji makes each character of a text take four bytes."""
    wide = "x" * 3_000_000 + "\N{SLICE OF PIZZA}"
    support = TaskSupport()
    tools = [{"name": f"{each}{wide}", "execution": {"taskSupport": "required"}} for each in range(3)]
    support.learn(Raw(msgspec.json.encode({"tools": tools})))
    cache = ResultCache(10_000_000)
    cache.put(("tools/list", wide), Raw(b'{"ttlMs":1000000}'), cache.state)
    validator = OutputValidator("strict")
    validator.learn([SimpleNamespace(name=each["name"], output_schema={}) for each in tools])

    assert 1 == len(support._found)
    assert cache.get(("tools/list", wide)) is None
    assert 1 == len(validator._listed)


@pytest.mark.anyio
@pytest.mark.parametrize("limits", [{"max_items": 25}, {"max_list_bytes": 1000}, {"max_pages": 3}])
async def test_a_call_looks_for_its_tool_in_no_more_pages_than_a_list_has(limits: dict[str, int]) -> None:
    server = Server("many", page_size=10, tasks=MemoryTaskStore())
    asked: list[str] = []

    @server.middleware
    async def note(params: Any, context: Any, call_next: Any) -> Any:
        asked.append(context.method)
        return await call_next(params, context)

    async def done() -> str:
        return "done"

    for number in range(100):
        server.tool(name=f"tool{number:03}", task=number == 99)(done)
    limited = ClientLimits(**limits)
    async with connect(server, revisions=["2025-11-25"], limits=limited, tasks=True) as client:
        assert "done" == (await client.call_tool("tool099")).text

    assert 3 >= asked.count("tools/list")


FIELDS = {f"field{number}": {"type": "string"} for number in range(MAX_FORM_FIELDS + 1)}


@pytest.mark.parametrize("again", [{}, {"requestedSchema": {"type": "object", "properties": {}}}])
def test_a_form_with_too_many_fields_is_refused_before_it_is_decoded(again: dict[str, object]) -> None:
    form = {"message": "m", "requestedSchema": {"type": "object", "properties": FIELDS}}
    written = msgspec.json.encode(form)
    if again:  # the last one of equal keys counts
        written = written[:-1] + b"," + msgspec.json.encode(again)[1:]
        assert len(written) > 2 * len(checked_form(Raw(written)))
    else:
        with pytest.raises(RequestError, match="has 501 fields; this client reads at most 500"):
            checked_form(Raw(written))


@pytest.mark.anyio
@pytest.mark.parametrize("properties", [None, 1])
async def test_a_long_form_whose_properties_are_no_object_is_refused(properties: object) -> None:
    form = {"message": "m" * 100_000, "requestedSchema": {"type": "object", "properties": properties}}
    asks = {"form": {"method": "elicitation/create", "params": form}}
    async with opened(STATELESS, elicit=lambda *_: models.ElicitResult(action="decline")) as own:
        errand, asked = await own.asked(own.client.call_tool("x"))
        own.wire.result(asked, {"resultType": "input_required", "inputRequests": asks})
        with pytest.raises(InvalidPayload, match="at /requestedSchema/properties: Expected `object`"):
            await errand.outcome()


@pytest.mark.anyio
async def test_a_result_that_is_not_valid_is_read_in_several_turns() -> None:
    tools = [{"name": "good", "inputSchema": {"type": "object"}}, {"name": 1}]
    reader = ResultReader("2026-07-28", "2024-11-05", ReadingPolicy("the server"))
    ask = codec("2026-07-28", "2024-11-05", "client").outgoing_request("tools/list")
    async with counted_turns() as turns:
        found = await reader.read(ask, Raw(msgspec.json.encode({"tools": tools})))

    assert ["good"] == [each.name for each in found.tools]
    assert turns.count >= 4  # one for each of three later revisions, and one to normalise it


class Body:
    """A response of one chunk."""

    headers: ClassVar[dict[str, str]] = {}

    def __init__(self, chunk: bytes) -> None:
        self.chunk = chunk

    async def chunks(self) -> AsyncGenerator[bytes]:
        yield self.chunk


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("chunk", "least"),
    [
        (b"data:x\n\n" * 1000, 6),
        (b":\n" * 100_000, 40),
        (b"\r" * 100_000, 20),
        (b"data:x\n\n", 0),
        ((b"data:" + b"x" * 10_000 + b"\n\n") * 6, 4),
    ],
)
async def test_a_long_chunk_of_a_stream_is_read_in_several_turns(chunk: bytes, least: int) -> None:
    events = 0

    def receive(_: object) -> bool:
        nonlocal events
        events += 1
        return False

    response: Any = Body(chunk)
    async with counted_turns() as turns:
        await read_events(response, EventReader(), receive, IncomingMessages(ClientLimits()).ready)

    assert chunk.count(b"data") == events
    assert turns.count >= least


@pytest.mark.anyio
async def test_a_received_event_is_not_kept_until_the_next_one() -> None:
    received: list[object] = []
    references: list[int] = []

    class Stream(Body):
        async def chunks(self) -> AsyncGenerator[bytes]:
            yield self.chunk
            references.append(sys.getrefcount(received[0]))

    response: Any = Stream(b"data:x\n\n")
    await read_events(response, EventReader(), lambda each: received.append(each) or False, anyio.sleep)

    assert [sys.getrefcount(received[0])] == references


@pytest.mark.anyio
@pytest.mark.parametrize(("size", "most"), [(50_000, 1), (10_000, 1), (1_000, 14), (0, 128)])
async def test_messages_that_arrive_at_once_in_many_responses_are_delivered_in_several_turns(
    size: int, most: int
) -> None:
    incoming = IncomingMessages(ClientLimits())
    delivered: Counter[int] = Counter()  # in each turn

    async def deliver() -> None:
        await incoming.ready(size)
        delivered[turns.count] += 1

    async with counted_turns() as turns, anyio.create_task_group() as group:
        for _ in range(100):
            group.start_soon(deliver)

    assert 100 == sum(delivered.values())
    assert max(delivered.values()) <= most


@pytest.mark.parametrize(("uri", "is_kept"), [("mem://other", True), ("mem://" + "x" * 8192, False)])
def test_a_change_with_a_long_uri_is_compared_with_no_result_that_is_kept(uri: str, *, is_kept: bool) -> None:
    cache = ResultCache(10_000)
    cache.put(("resources/read", "mem://a"), Raw(b'{"ttlMs":1000000}'), cache.state)
    cache.changed(Change("resource", uri))

    assert is_kept == (cache.get(("resources/read", "mem://a")) is not None)


def test_a_flood_of_changes_is_not_compared_with_all_results_that_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    compared: list[str] = []
    monkeypatch.setattr(result_cache, "_clock", lambda: now)
    monkeypatch.setattr(result_cache, "_overlap", lambda uri, _: bool(compared.append(uri)))
    monkeypatch.setattr(result_cache, "_MAX_COMPARED", 1000)
    cache = ResultCache(10_000_000)
    for number in range(100):
        cache.put(("resources/read", f"mem://{number}"), Raw(b'{"ttlMs":1000000}'), cache.state)
    for _ in range(10):
        cache.changed(Change("resource", "mem://x"))
    now = 2.0
    cache.changed(Change("resource", "mem://x"))
    compared_slowly = len(compared)
    for _ in range(1000):
        cache.changed(Change("resource", "mem://x"))

    assert 1100 == compared_slowly
    assert 2000 == len(compared)
    assert cache.get(("resources/read", "mem://1")) is None


class Uris(list[str]):
    """URIs that count how often they were iterated over."""

    reads = 0

    def __iter__(self) -> Iterator[str]:
        self.reads += 1
        return super().__iter__()


def test_a_reported_change_is_not_compared_with_each_uri_of_a_stream() -> None:
    uris = Uris(f"mem://{number}/" for number in range(1000))
    subscriptions = Subscriptions(1000)
    stream = subscriptions.new_stream(SubscriptionFilter(resource_subscriptions=uris), auto_reset_event())
    subscriptions.shared[stream] = None
    made = uris.reads
    for uri in ("mem://7/", "mem://7//a", "mem://7", "mem://x", "mem://7/" + "a" * 8190, *["mem://y"] * 100):
        subscriptions.dispatch(Change("resource", uri), "notifications/resources/updated", None)

    assert [Change("resource", "mem://7/"), Change("resource", "mem://7//a"), None] == [stream.take() for _ in range(3)]
    assert uris.reads == made


@pytest.mark.anyio
@pytest.mark.parametrize(("data", "least"), [(b"1", 1), (b"1" * 2000, 10)])
async def test_notifications_of_many_bytes_are_handled_in_several_turns(data: bytes, least: int) -> None:
    told = turns = 0
    go_on = anyio.Event()

    async def log(*_: object) -> None:
        nonlocal told
        if not told:  # all others wait for the first
            await go_on.wait()
        told += 1

    async with connect(Server("own"), log=log, revisions=["2025-11-25"]) as client:
        inner = client._engine.connection
        handler = inner.session.features.notification_handler("2025-11-25", "notifications/message")
        assert handler is not None
        for _ in range(100):
            inner.queue_notification(handler, Raw(b'{"level":"info","data":"%s"}' % data))
        go_on.set()
        while told < 100:
            await anyio.lowlevel.checkpoint()
            turns += 1

    assert least <= turns <= least + 10


def test_few_characters_of_a_uri_with_many_slashes_are_copied_for_a_listener() -> None:
    copied: list[int] = []

    class Counted(str):
        __slots__ = ()

        def __getitem__(self, key: SupportsIndex | slice) -> str:
            part = super().__getitem__(key)
            copied.append(len(part))
            return part

    stream = ChangeStream(SubscriptionFilter(resource_subscriptions=["a:b", "a:c/d"]), auto_reset_event(), 10)
    method = "notifications/resources/updated"

    assert stream.wants(Change("resource", "a:c/d/e/f"), method)
    assert not stream.wants(Change("resource", "a:c/de"), method)
    assert not stream.wants(Change("resource", Counted("a:x" + "/" * 8000)), method)
    assert sum(copied) < 100
