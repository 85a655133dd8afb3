"""Which stream of a session gets a message of a task."""

from __future__ import annotations

import json

import anyio
import pytest

from mcpgen.runtime.http.server.event_streams import EventStream
from mcpgen.runtime.http.server.response_buffer import ResponseBuffer
from mcpgen.runtime.http.server.task_streams import TaskStreams, task_mark
from mcpgen.runtime.server.event_store import MemoryEventStore

MANY = 500


class Message(bytes):
    """A message that counts how often it is searched for a part."""

    searches = 0

    def __contains__(self, part: object) -> bool:
        self.searches += 1
        return super().__contains__(part)  # type: ignore[operator]


def stream_of(name: str) -> EventStream:
    return EventStream(name, MemoryEventStore(), ResponseBuffer(1000))


def about(task_id: str, text: str = "") -> Message:
    meta = {"io.modelcontextprotocol/related-task": {"taskId": task_id}}
    return Message(json.dumps({"params": {"data": text, "_meta": meta}}, separators=(",", ":")).encode())


def test_a_message_is_searched_once_however_many_streams_there_are() -> None:
    tasks, get_stream = TaskStreams(), stream_of("0")
    streams = [stream_of(f"s{number}") for number in range(MANY)]
    for number, each in enumerate(streams):
        tasks.add(f"task-{number}", each, get_stream)
    message, other = about("task-7"), about("another", about("task-8").decode())

    assert (tasks.find(message), tasks.find(other)) == (streams[7], None)
    assert message.searches + other.searches < 10


def test_the_newest_stream_with_a_connection_gets_the_messages_of_its_task() -> None:
    tasks, get_stream = TaskStreams(), stream_of("0")
    first, second, third = stream_of("1"), stream_of("2"), stream_of("3")
    for each in (first, second, third):
        tasks.add("task", each, get_stream)
    third.detach()

    assert tasks.find(about("task")) is second
    assert tasks.find(task_mark("task")) is second
    tasks.remove(second)
    assert tasks.find(about("task")) is first


class SlowStore(MemoryEventStore):
    """A store that returns the events when it may."""

    def __init__(self) -> None:
        super().__init__()
        self.is_reading, self.gate = anyio.Event(), anyio.Event()

    async def after(self, stream: str, number: int) -> list[tuple[int, bytes]] | None:
        found = await super().after(stream, number)
        self.is_reading.set()
        await self.gate.wait()
        return found


@pytest.mark.anyio
async def test_a_message_that_is_moved_while_the_get_stream_is_being_resumed_is_sent_once() -> None:
    store, message = SlowStore(), bytes(about("task"))
    get_stream = EventStream("0", store, ResponseBuffer(1000), max_waiting=1, max_waiting_bytes=1000)
    get_stream.start(retry_ms=1)
    get_stream.detach()
    get_stream.write(message)
    again, result = ResponseBuffer(1000), stream_of("1")
    async with anyio.create_task_group() as group:
        group.start_soon(get_stream.resume, again, 1)
        await store.is_reading.wait()
        TaskStreams().add("task", result, get_stream)
        store.gate.set()

    assert result.response is not None
    assert (False, True) == (result.response.is_empty, again.is_empty)
