"""The server and the client that the suite judges, with each other and in memory, in every revision."""

from __future__ import annotations

import json
from contextlib import asynccontextmanager, nullcontext
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from mcpgen import Client, RequestRefused, Server, UnsupportedByPeer, connect
from mcpgen.generated.registry import REVISIONS
from mcpgen.generated.v2026_07_28 import (
    BlobResourceContents,
    CallToolResult,
    PromptReference,
    Root,
    TextContent,
    TextResourceContents,
)
from tests.conformance import everything_client
from tests.conformance.everything_server import DEPENDENT, PIXEL, server
from tests.patience import PATIENCE_SECONDS

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

LABELS = [each.label for each in REVISIONS]
NO_FORMS = LABELS[:2]  # elicitation came with 2025-06-18
LESS_IN_FORMS = LABELS[:3]  # 2025-11-25 brought lists, and defaults for all fields of a form

ARGUMENTS: dict[str, dict[str, object]] = {
    "greet": {"name": "Ann"},
    "slow_compute": {"seconds": 0},
    "confirm_delete": {"filename": "a.txt"},
    "test_sampling": {"prompt": "Yes?"},
    "test_elicitation": {"message": "Who?"},
    "test_x_mcp_header": {"region": "eu"},
    "json_schema_2020_12_tool": {"name": "Ann", "address": {"city": "Lima"}, "contactMethod": "phone", "phone": "7"},
}

# What comes back as text; of the other blocks, their kinds.
TOLD: dict[str, list[str]] = {
    "test_simple_text": ["This is a simple text response for testing."],
    "test_image_content": ["image"],
    "test_audio_content": ["audio"],
    "test_embedded_resource": ["resource"],
    "test_multiple_content_types": ["Multiple content types test:", "image", "resource"],
    "test_error_handling": ["This tool intentionally returns an error for testing"],
    "test_tool_with_logging": ["Logged three times."],
    "test_logging_tool": ["Logged once."],
    "test_tool_with_progress": ["Done."],
    "test_reconnection": ["This came when you were back."],
    "test_sampling": ["LLM response: Yes."],
    "test_missing_capability": ["conformance is there."],
    "test_input_required_result_sampling": ["Yes."],
    "test_input_required_result_list_roots": ["Roots: file:///home/me"],
    "test_input_required_result_capabilities": ["You gave name, greeting, roots."],
    "test_x_mcp_header": ["This ran in eu."],
    "greet": ["Hello, Ann!"],
    "slow_compute": ["It took 0 seconds."],
    "json_schema_2020_12_tool": ["Ann of Lima is reached by 7."],
}
FORMS: dict[str, list[str]] = {
    "confirm_delete": ["a.txt was deleted."],
    "test_tool_with_task": ["Hello, something!"],
    "test_elicitation": ["User response: action: accept, content: Contact(username='something', email='something')"],
    "test_streaming_elicitation": ["User response: accept"],
    "test_input_required_result_elicitation": ["Hello, something!"],
    "test_input_required_result_request_state": ["state-ok, confirmed: True"],
    "test_input_required_result_tampered_state": ["Confirmed: True"],
    "test_input_required_result_multiple_inputs": ["something, you have answered everything."],
    "test_input_required_result_multi_round": ["something likes something."],
}
FILLED_IN = (
    "Elicitation completed: action=accept, "
    "content=Defaults(name={!r}, age={}, score={}, status='active', verified=True)"
)
CHOICES = "test_elicitation_sep1330_enums"
DEFAULTS = "test_elicitation_sep1034_defaults"
CHANGES = ["test_trigger_tool_change", "test_trigger_prompt_change"]
JOBS = ["protocol_error_job", "multi_input"]
NO_TASKS = LABELS[:3]  # which 2025-11-25 brought


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@asynccontextmanager
async def connected(revision: str, target: Server = server, **options: Any) -> AsyncIterator[Client]:
    given: dict[str, Any] = {
        "elicit": everything_client.fill_in,
        "sample": everything_client.complete,
        "roots": [Root(uri="file:///home/me")],
        **options,
    }
    with anyio.fail_after(PATIENCE_SECONDS):
        async with connect(target, revisions=[revision], **given) as client:
            yield client


def told(result: CallToolResult) -> list[str]:
    return [each.text if isinstance(each, TextContent) else each.type for each in result.content]


@pytest.mark.anyio
@pytest.mark.parametrize("revision", LABELS)
async def test_the_server_offers_all_that_is_tried_here(revision: str) -> None:
    async with connected(revision) as client:
        tools = [tool async for tool in client.tools()]
        prompts = [prompt async for prompt in client.prompts()]

    jobs = JOBS if revision in NO_TASKS else [*JOBS, "failing_job"]
    assert {*TOLD, *FORMS, CHOICES, DEFAULTS, *CHANGES, *jobs} == {tool.name for tool in tools}
    assert all(each.description for each in [*tools, *prompts])
    assert "test_simple_text" == tools[0].name  # which the suite calls without knowing what it is
    assert [DEPENDENT] == [tool.input_schema for tool in tools if tool.name == "json_schema_2020_12_tool"]


@pytest.mark.anyio
@pytest.mark.parametrize("revision", LABELS)
@pytest.mark.parametrize("name", TOLD)
async def test_a_tool_does_what_it_says(revision: str, name: str) -> None:
    async with connected(revision) as client:
        result = await client.call_tool(name, ARGUMENTS.get(name))

    wanted = TOLD[name]
    if revision == LABELS[0] and name == "test_audio_content":
        wanted = ["resource"]  # which has audio in it
    if revision in NO_FORMS and name == "test_input_required_result_capabilities":
        wanted = ["You gave greeting, roots."]
    assert wanted == told(result)
    assert (name == "test_error_handling") is (result.is_error is True)


@pytest.mark.anyio
@pytest.mark.parametrize("revision", [each for each in LABELS if each not in NO_TASKS])
async def test_its_jobs_run_as_tasks(revision: str) -> None:
    async with connected(revision, tasks=True) as client:
        failed = await client.call_tool("failing_job")
        both = await client.call_tool("multi_input")
        with pytest.raises(RequestRefused, match="This job fails intentionally"):
            await client.call_tool("protocol_error_job")

    assert (True, ["This job fails intentionally."]) == (failed.is_error, told(failed))
    assert ["You answered accept, accept."] == told(both)


@pytest.mark.anyio
@pytest.mark.parametrize("revision", LABELS)
@pytest.mark.parametrize("name", FORMS)
async def test_a_tool_asks_the_user_where_that_is_possible(revision: str, name: str) -> None:
    async with connected(revision) as client:
        if revision in NO_FORMS:
            result = await client.call_tool(name, ARGUMENTS.get(name))
            assert result.is_error
            assert "the client's revision has no such request" in told(result)[0]
            return
        result = await client.call_tool(name, ARGUMENTS.get(name))

    assert FORMS[name] == told(result)


@pytest.mark.anyio
@pytest.mark.parametrize("revision", LABELS[2:])
async def test_a_form_comes_with_defaults_where_forms_can_say_them(revision: str) -> None:
    async with connected(revision) as client:
        result = await client.call_tool(DEFAULTS)

    typed = ("something", 1, 1.5) if revision in LESS_IN_FORMS else ("John Doe", 30, 95.5)
    assert [FILLED_IN.format(*typed)] == told(result)


@pytest.mark.anyio
@pytest.mark.parametrize("revision", LABELS[2:])
async def test_a_choice_is_of_several_where_forms_can_say_that(revision: str) -> None:
    seen: list[Any] = []

    def choose(params: Any, context: Any) -> Any:
        seen.append(params.requested_schema["properties"])
        return everything_client.ElicitResult(action="accept", content={"untitledSingle": "option2"})

    async with connected(revision, elicit=choose) as client:
        result = await client.call_tool(CHOICES)

    assert ["Elicitation completed: action=accept, content={'untitledSingle': 'option2'}"] == told(result)
    assert ["option1", "option2", "option3"] == seen[0]["untitledSingle"]["enum"]
    assert ("string" if revision in LESS_IN_FORMS else "array") == seen[0]["titledMulti"]["type"]


@pytest.mark.anyio
@pytest.mark.parametrize("revision", LABELS)
async def test_a_client_that_can_answer_nothing_is_told_so(revision: str) -> None:
    async with connected(revision, elicit=None, sample=None, roots=None) as client:
        for name in ("test_missing_capability", "test_elicitation", "test_input_required_result_list_roots"):
            if revision != LABELS[-1]:
                assert (await client.call_tool(name, ARGUMENTS.get(name))).is_error
                continue
            with pytest.raises(RequestRefused) as refused:
                await client.call_tool(name, ARGUMENTS.get(name))
            assert -32021 == refused.value.code
        result = await client.call_tool("test_input_required_result_capabilities")

    assert ["You gave nothing."] == told(result)


@pytest.mark.anyio
@pytest.mark.parametrize("revision", LABELS)
async def test_tools_and_prompts_come_and_go(revision: str) -> None:
    async with connected(revision) as client, client.listen(tools=True, prompts=True) as changes:
        for is_there in (True, False):
            for name in CHANGES:
                await client.call_tool(name)
            assert {"tools", "prompts"} == {(await anext(changes)).kind, (await anext(changes)).kind}
            assert is_there is ("test_passing_tool" in {tool.name async for tool in client.tools()})
            assert is_there is ("test_passing_prompt" in {prompt.name async for prompt in client.prompts()})
            if is_there:
                assert ["Here today, gone tomorrow."] == told(await client.call_tool("test_passing_tool"))
                assert 1 == len((await client.get_prompt("test_passing_prompt")).messages)


@pytest.mark.anyio
@pytest.mark.parametrize("revision", LABELS)
async def test_resources_are_read_and_prompts_filled_in(revision: str) -> None:
    async with connected(revision) as client:
        contents = {
            uri: (await client.read_resource(uri)).contents[0]
            for uri in [*[each.uri async for each in client.resources()], "test://template/123/data"]
        }
        prompt = await client.get_prompt("test_prompt_with_arguments", {"arg1": "hello", "arg2": "world"})
        shown = await client.get_prompt("test_prompt_with_embedded_resource", {"resourceUri": "test://x"})
        pictured = await client.get_prompt("test_prompt_with_image")
        completion = await client.complete(PromptReference(name="test_prompt_with_arguments"), "arg1", "par")

    assert ["test://static-text", "test://static-binary", "test://watched-resource", "test://template/123/data"] == [
        *contents
    ]
    assert isinstance(contents["test://static-binary"], BlobResourceContents)
    assert PIXEL == contents["test://static-binary"].blob
    assert isinstance(contents["test://template/123/data"], TextResourceContents)
    made = {"id": "123", "templateTest": True, "data": "Data for ID: 123"}
    assert made == json.loads(contents["test://template/123/data"].text)
    assert [TextContent(text="Prompt with arguments: arg1='hello', arg2='world'")] == [
        each.content for each in prompt.messages
    ]
    assert ["resource", "text"] == [each.content.type for each in shown.messages]
    assert ["image", "text"] == [each.content.type for each in pictured.messages]
    assert ["paris", "park", "party"] == completion.values


@pytest.mark.anyio
@pytest.mark.parametrize("revision", LABELS[2:])
async def test_a_prompt_demands_input(revision: str) -> None:
    async with connected(revision) as client:
        result = await client.get_prompt("test_input_required_result_prompt")

    assert [TextContent(text="Use this context: something")] == [each.content for each in result.messages]


@pytest.mark.anyio
@pytest.mark.parametrize("revision", LABELS)
@pytest.mark.slow
async def test_progress_and_log_reach_who_wants_them(revision: str) -> None:
    entries: list[Any] = []
    steps: list[float] = []
    done = anyio.Event()

    def note(params: Any, context: Any) -> None:
        entries.append(params.data)
        if len(entries) == 3:
            done.set()

    async with connected(revision, log=note) as client:
        await client.call_tool(
            "test_tool_with_progress", on_progress=lambda progress, total, message: steps.append(progress)
        )
        await client.set_log_level("info")
        await client.call_tool("test_tool_with_logging")
        await done.wait()

    assert [0, 50, 100] == steps
    assert ["Tool execution started", "Tool processing data", "Tool execution completed"] == entries


# --- The client


@pytest.mark.anyio
@pytest.mark.parametrize(("scenario", "said"), [("any", "The scenario was gone through.\n"), ("sse-retry", "")])
async def test_the_client_says_so_when_it_comes_to_its_end(
    scenario: str, said: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def in_memory(url: str, **options: Any) -> Any:
        return connect(Server("empty"), **options)

    monkeypatch.setattr(everything_client, "connect", in_memory)
    monkeypatch.setenv("MCP_CONFORMANCE_SCENARIO", scenario)
    with anyio.fail_after(PATIENCE_SECONDS), pytest.raises(UnsupportedByPeer) if not said else nullcontext():
        await everything_client.main("http://localhost:1/mcp", "2025-06-18")

    assert said == capsys.readouterr().out


def mock(*tools: Any) -> Server:
    made = Server("mock")
    for tool in tools:
        made.tool(tool)
    return made


@pytest.mark.anyio
@pytest.mark.parametrize("revision", LABELS)
async def test_the_client_gives_each_tool_what_it_needs(revision: str) -> None:
    called: list[Any] = []

    def add_numbers(a: float, b: float, c: int = 7) -> str:
        called.append((a, b, c))
        return "added"

    def greet(name: str, loudly: bool) -> str:  # noqa: FBT001 (an argument of a tool)
        called.append((name, loudly))
        return "greeted"

    async with connected(revision, mock(add_numbers, greet)) as client:
        await everything_client.look_around(client)

    assert [(1.5, 1.5, 7), ("something", True)] == called


@pytest.mark.anyio
@pytest.mark.parametrize("revision", LABELS)
async def test_the_client_echoes_a_schema_as_it_came(revision: str) -> None:
    echoed: list[Any] = []

    def json_schema_2020_12_tool(name: str = "") -> str:
        return name

    def json_schema_echo(schema: dict[str, object]) -> str:
        echoed.append(schema)
        return "echoed"

    made = mock(json_schema_2020_12_tool, json_schema_echo)
    async with connected(revision, made) as client:
        await everything_client.echo_a_schema(client)

    assert [made._registry.tools.entries["json_schema_2020_12_tool"].definition.input_schema] == echoed


@pytest.mark.anyio
async def test_the_client_calls_the_tools_that_the_suite_names(monkeypatch: pytest.MonkeyPatch) -> None:
    called: list[str] = []

    def locate(region: str) -> str:
        called.append(region)
        return region

    calls = [{"name": "locate", "arguments": {"region": "eu"}}]
    monkeypatch.setenv("MCP_CONFORMANCE_CONTEXT", json.dumps({"toolCalls": calls}))
    async with connected(LABELS[-1], mock(locate)) as client:
        await everything_client.call_as_told(client)

    assert ["eu"] == called
