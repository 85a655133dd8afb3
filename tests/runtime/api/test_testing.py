"""`mcpgen.testing`: clients of each revision, scripted answers, the recorder, and transcripts."""

from __future__ import annotations

import subprocess
import sys
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from mcpgen import Context, Limits, RequestRefused, Server, UnknownRevision, UsageError, connect, connect_sync
from mcpgen.generated.registry import REVISIONS as REGISTERED
from mcpgen.runtime.protocol.newest import models
from mcpgen.runtime.transports.memory import Memory
from mcpgen.testing import REVISIONS, Answers, Recorder, connect_as

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence

    from mcpgen import MessageWriter, Spawner

pytestmark = pytest.mark.anyio

revisions = pytest.mark.parametrize("revision", REVISIONS)
ELICITING = ("2025-06-18", "2025-11-25", "2026-07-28")

server = Server("tested", version="1.0")


@server.tool
def add(a: int, b: int) -> int:
    return a + b


@server.tool
async def order(ctx: Context) -> str:
    form: dict[str, Any] = {"type": "object", "properties": {"size": {"type": "integer"}}}
    first = await ctx.elicit("Your size?", form)
    second = await ctx.elicit("Sure?", {"type": "object", "properties": {}})
    return f"{first.action} {first.content} {second.action}"


@server.tool
async def guess(ctx: Context) -> str:
    content = (await ctx.sample("A number?", max_tokens=5)).content
    return content.text if isinstance(content, models.TextContent) else "?"


@server.tool
async def where(ctx: Context) -> list[str]:
    return [each.uri for each in await ctx.roots()]


@server.tool
async def steps(ctx: Context) -> str:
    await ctx.progress(1, 2)
    return "done"


def test_the_revisions_are_all() -> None:
    assert tuple(each.label for each in REGISTERED) == REVISIONS


@revisions
def test_a_client_of_one_revision_takes_one_line(revision: str) -> None:
    with connect_as(server, revision) as client:
        assert revision == client.revision
        assert [models.TextContent(text='{"result":5}')] == client.call_tool("add", {"a": 2, "b": 3}).content


@revisions
async def test_the_same_in_async_functions(revision: str) -> None:
    async with connect_as(server, revision) as client:
        assert revision == client.revision
        assert "add" == (await client.list_tools()).tools[0].name


@pytest.mark.parametrize("revision", ELICITING)
async def test_elicitation_is_answered_as_scripted(revision: str) -> None:
    answers = Answers({"size": 42}, "decline")
    async with connect_as(server, revision, elicit=answers) as client:
        result = await client.call_tool("order")

    assert [models.TextContent(text="accept {'size': 42} decline")] == result.content
    assert ["Your size?", "Sure?"] == [each.message for each in answers.questions]
    assert "<Answers: 2 of 2 used>" == repr(answers)


@revisions
async def test_sampling_and_roots_are_answered_as_scripted(revision: str) -> None:
    roots = [models.Root(uri="file:///work")]
    async with connect_as(server, revision, sample=Answers("seven"), roots=roots) as client:
        assert [models.TextContent(text="seven")] == (await client.call_tool("guess")).content
        assert [models.TextContent(text='{"result":["file:///work"]}')] == (await client.call_tool("where")).content


@pytest.mark.parametrize("revision", ELICITING)
@pytest.mark.parametrize(
    ("answers", "problem"),
    [
        (Answers, "`elicit`: the server asked 1 time, but the script has 0 answers; without an answer: elicitation"),
        (
            lambda: Answers("decline", "cancel", {"a": 1}),
            "asked 2 times, but the script has 3 answers; unused: {'a': 1}",
        ),
    ],
)
async def test_too_few_and_too_many_answers_fail_the_test(revision: str, answers: Any, problem: str) -> None:
    with pytest.raises(AssertionError) as caught:
        async with connect_as(server, revision, elicit=answers()) as client:
            await client.call_tool("order")

    assert problem in "\n".join([str(caught.value), *getattr(caught.value, "__notes__", [])])


def test_answers_for_what_the_revision_lacks_may_be_left() -> None:
    with connect_as(server, "2024-11-05", elicit=Answers("accept")) as client:
        client.ping()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("option", "tool", "answer", "problem"),
    [
        (
            "elicit",
            "order",
            "perhaps",
            "the answer to elicitation must be the content of the form, 'accept', 'decline'",
        ),
        (
            "elicit",
            "order",
            models.CreateMessageResult,
            "an answer must be the content of a form, such as",
        ),
        ("sample", "guess", {"a": 1}, "the answer to sampling must be a text or a CreateMessageResult, not {'a': 1}"),
        ("sample", "guess", LookupError("no model"), "no model"),
    ],
)
def test_an_answer_that_does_not_fit_is_an_error(option: str, tool: str, answer: Any, problem: str) -> None:
    def attempt() -> None:
        options: Any = {option: Answers(answer)}
        with connect_as(server, "2026-07-28", **options) as client:
            client.call_tool(tool)

    with pytest.raises((UsageError, LookupError)) as caught:
        attempt()

    assert problem in str(caught.value)


def test_results_can_be_answers() -> None:
    content = models.ImageContent(data="aGk=", mime_type="image/png")
    drawn = models.CreateMessageResult(role="assistant", content=content, model="m")
    asked = Answers("accept", models.ElicitResult(action="cancel"))
    with connect_as(server, "2026-07-28", sample=Answers(drawn), elicit=asked) as client:
        assert [models.TextContent(text="?")] == client.call_tool("guess").content
        assert [models.TextContent(text="accept {} cancel")] == client.call_tool("order").content


def test_wrong_arguments_are_refused() -> None:
    with pytest.raises(UsageError, match="has no option `revisions`; pass the one revision as `revision`"):
        connect_as(server, "2025-11-25", revisions=["2025-11-25"])
    with pytest.raises(UnknownRevision):
        connect_as(server, "2025-11-26")
    with pytest.raises(UsageError, match="`target` must be a URL"):
        connect_as(7, "2025-11-25")  # type: ignore[arg-type]  # wrong on purpose
    mistyped: Any = {"elict": None}
    with pytest.raises(UsageError, match="did you mean `elicit`"), connect_as(server, "2025-11-25", **mistyped):
        raise AssertionError


class Wrong:
    """A server that answers each request with the next of its results, as it is."""

    name = "wrong"
    limits = Limits()

    def __init__(self, *results: dict[str, Any]) -> None:
        self._results = list(results)

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None]:
        yield

    def connect(self, writer: MessageWriter, spawner: Spawner, /) -> Wrong:
        self._writer = writer
        return self

    def receive(self, frames: Sequence[Any]) -> None:
        for frame in frames:
            message = msgspec.json.decode(frame)
            if "id" in message and self._results:
                body = self._results.pop(0)
                self._writer.write(msgspec.json.encode({"jsonrpc": "2.0", "id": message["id"], **body}))

    def end_of_input(self) -> None:
        pass

    async def wait_finished(self) -> None:
        pass

    def close(self) -> None:
        pass


def initialized(revision: str, **more: object) -> dict[str, Any]:
    info = {"name": "wrong", "version": "1"}
    return {"result": {"protocolVersion": revision, "capabilities": {"tools": {}}, "serverInfo": info, **more}}


@pytest.mark.parametrize(
    ("revision", "result", "problem"),
    [
        (
            "2024-11-05",
            {"result": {"content": [], "structuredContent": {}}},
            "2024-11-05: the response of tools/call to client, at /result/structuredContent: 2024-11-05 has no",
        ),
        (
            "2025-03-26",
            {"result": {"content": [{"type": "text", "text": "hi", "_meta": {}}]}},
            "at /result/content/0/_meta: 2025-03-26 has no `_meta` in TextContent",
        ),
        (
            "2025-11-25",
            {"result": {"content": [], "resultType": "complete"}},
            "at /result/resultType: 2025-11-25 has no `resultType` in CallToolResult (added in 2026-07-28)",
        ),
    ],
)
async def test_a_message_that_violates_its_revision_fails_the_test(
    revision: str, result: dict[str, Any], problem: str
) -> None:
    recorder = Recorder(Memory(Wrong(initialized(revision), result)))
    with pytest.raises(AssertionError) as caught:
        async with connect_as(recorder, revision) as client:
            await client.call_tool("any")

    assert problem in str(caught.value)
    assert msgspec.json.encode(result["result"]).decode() in str(caught.value)  # the message is shown
    with pytest.raises(AssertionError):
        recorder.verify()


async def test_a_violation_is_noted_on_the_error_of_the_test() -> None:
    wrong = Memory(Wrong(initialized("2024-11-05", instructions=7)))
    with pytest.raises(Exception, match=r"instructions") as caught:
        async with connect_as(wrong, "2024-11-05"):
            raise AssertionError("connected")

    assert "AssertionError" != type(caught.value).__name__


async def test_a_failed_test_keeps_its_own_error() -> None:
    wrong = Memory(Wrong(initialized("2024-11-05"), {"result": {"content": [], "structuredContent": {}}}))

    async def attempt() -> None:
        async with connect_as(wrong, "2024-11-05") as client:
            await client.call_tool("any")
            raise LookupError("of the test")

    with pytest.raises(LookupError, match="of the test") as caught:
        await attempt()

    assert "has no `structuredContent`" in caught.value.__notes__[0]


@revisions
def test_a_transcript_is_the_same_in_each_run(revision: str) -> None:
    def run() -> str:
        recorder = Recorder(server)
        options: Any = {"elicit": Answers("decline", "cancel")} if revision in ELICITING else {}
        with connect_as(recorder, revision, sample=Answers("x"), **options) as client:
            client.call_tool("steps", on_progress=print)
            client.call_tool("guess")
            if options:
                client.call_tool("order")
            list(client.tools())
            with pytest.raises(RequestRefused):
                client.call_tool("missing")
        return recorder.transcript()

    first = run()

    assert first == run()
    assert "→ tools/call #" in first
    assert "<token 1>" in first


@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
def test_a_transcript_has_no_id_of_a_task(revision: str) -> None:
    tasks = Server("tasks")
    tasks.tool(task=True)(add)
    recorder = Recorder(tasks)
    with connect_as(recorder, revision, tasks=True) as client:
        task = client.start_tool("add", {"a": 1, "b": 2})
        task.result()

    assert task.task_id not in recorder.transcript()
    assert "<task 1>" in recorder.transcript()


def test_a_transcript_reads_as_the_conversation_was() -> None:
    recorder = Recorder(server)
    with connect_as(recorder, "2025-11-25", roots=[models.Root(uri="file:///work")]) as client:
        client.call_tool("where")
        client.ping()

    content = [{"text": '{"result":["file:///work"]}', "type": "text"}]
    result = {"content": content, "structuredContent": {"result": ["file:///work"]}}
    answered = msgspec.json.encode(result).decode()
    lines = recorder.transcript().splitlines()
    assert '→ initialize #1 {"capabilities":{"roots":{}},"clientInfo":{"name":"test","version":"1"},' in lines[0]
    assert lines[1].startswith('← result #1 of initialize {"capabilities":{')
    assert [
        "→ notifications/initialized",
        '→ tools/call #2 {"name":"where"}',
        "← server roots/list #1",
        '→ server result #1 of roots/list {"roots":[{"uri":"file:///work"}]}',
        f"← result #2 of tools/call {answered}",
        "→ ping #3",
        "← result #3 of ping {}",
    ] == lines[2:]


@pytest.mark.slow
def test_a_recorder_records_for_any_client() -> None:
    recorder = Recorder([sys.executable, "-c", "from mcpgen import Server; Server('child').run()"])
    with connect_sync(recorder) as client:
        client.ping()
    recorder.verify()

    assert "<Recorder of " in repr(recorder)
    assert "child" in recorder.transcript()


async def test_values_of_the_program_are_not_replaced() -> None:
    echoing = Server("echoing")

    @echoing.tool
    def echo(cursor: str) -> dict[str, str]:
        return {"cursor": cursor}

    recorder = Recorder(echoing)
    async with connect_as(recorder, "2025-11-25") as client:
        await client.call_tool("echo", {"cursor": "mine"})

    assert '"arguments":{"cursor":"mine"}' in recorder.transcript()
    assert '"structuredContent":{"cursor":"mine"}' in recorder.transcript()


async def test_the_recorder_is_a_transport_for_connect_as_well() -> None:
    recorder = Recorder(server)
    async with connect(recorder) as client:
        await client.ping()

    assert "server/discover" in recorder.transcript()


def test_importing_it_imports_no_test_framework() -> None:
    program = "import sys, mcpgen.testing; sys.exit('pytest' in sys.modules or '_pytest' in sys.modules)"

    assert 0 == subprocess.run([sys.executable, "-c", program], check=False).returncode
