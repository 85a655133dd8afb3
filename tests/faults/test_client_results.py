"""Servers whose results are messages, but not what they should be: of a wrong type, or lists without end."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from mcpgen import ClientLimits, InvalidPayload, McpgenError
from mcpgen.runtime.protocol.newest import models
from tests.faults.hostile_server_clients import NEW, OLD, judged, words

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.usefixtures("nothing_is_left"),
    pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"]),
]

REF = models.PromptReference(name="x")
CALLS: dict[str, tuple[Callable[[Any], Awaitable[Any]], str]] = {
    "tools/call": (lambda client: client.call_tool("x"), "content"),
    "tools/list": (lambda client: client.list_tools(), "tools"),
    "prompts/list": (lambda client: client.list_prompts(), "prompts"),
    "prompts/get": (lambda client: client.get_prompt("x"), "messages"),
    "resources/list": (lambda client: client.list_resources(), "resources"),
    "resources/templates/list": (lambda client: client.list_resource_templates(), "resourceTemplates"),
    "resources/read": (lambda client: client.read_resource("mem://x"), "contents"),
    "completion/complete": (lambda client: client.complete(REF, "x", "y"), "completion"),
}
MEMBERS: dict[str, object] = {
    "nothing": None,
    "null": {"@": None},
    "a number": {"@": 1},
    "text": {"@": "x"},
    "true": {"@": True},
    "a list of null": {"@": [None]},
    "a list of numbers": {"@": [1]},
    "a list of empty objects": {"@": [{}]},
    "a list of lists": {"@": [[]]},
    "a list of what is unknown": {"@": [{"type": "hologram", "name": 1, "uri": 2}]},
    "an object of lists": {"@": {"values": 1}},
    "a cursor that is a number": {"@": "right", "nextCursor": 1},
    "metadata that is a list": {"@": "right", "_meta": []},
}
RIGHT: dict[str, object] = {"completion": {"values": []}}


def member(method: str, kind: str) -> dict[str, object]:
    """Return a result of *method* that is wrong as *kind* says."""
    name, found = CALLS[method][1], MEMBERS[kind]
    if found is None:
        return {"resultType": "complete"}
    more = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
    right = RIGHT.get(name, [])
    assert isinstance(found, dict)
    return {**more, **{name if key == "@" else key: right if each == "right" else each for key, each in found.items()}}


@pytest.mark.parametrize("revision", [OLD, NEW])
@pytest.mark.parametrize("method", CALLS)
async def test_results_of_a_wrong_type_are_refused_one_by_one(method: str, revision: str) -> None:
    if method == "completion/complete":
        kinds = [each for each in MEMBERS if each != "a cursor that is a number"]
    else:
        kinds = [each for each in MEMBERS if not (each.startswith("a cursor") and not method.endswith("/list"))]
    wrong = [member(method, each) for each in kinds]
    code = f"greet()\nfor each in json.loads({json.dumps(wrong)!r}):\n    answer(asked(), each)\nserve()"
    async with judged(code, revision, strict=True) as client:
        for kind in kinds:
            with pytest.raises(InvalidPayload) as caught:
                pytest.fail(f"{kind}: {await CALLS[method][0](client)}")
            assert revision == caught.value.revision
            assert len(str(caught.value)) < 2000
        assert "ok" == words(await client.call_tool("x"))


@pytest.mark.parametrize("revision", [OLD, NEW])
async def test_a_number_that_python_does_not_read_is_refused_where_nothing_else_is_checked(revision: str) -> None:
    code = """
    import sys
    sys.set_int_max_str_digits(0)
    greet()
    answer(asked(), {"resultType": "complete", "n": 10**5000})
    serve()
    """
    async with judged(code, revision, strict=True) as client:
        with pytest.raises(InvalidPayload, match="the result of tools/list is not valid in"):
            await client.request_json("tools/list")
        assert "ok" == words(await client.call_tool("x"))


async def test_a_result_of_unknown_type_is_refused() -> None:
    code = """
    greet()
    for kind in ["x" * 100_000, "", "Complete", "task"]:
        answer(asked(), {"content": [], "resultType": kind})
    for kind in [1, None, [], True]:
        answer(asked(), {"content": [], "resultType": kind})
    serve()
    """
    async with judged(code, NEW, strict=True) as client:
        for _ in range(8):
            with pytest.raises(InvalidPayload) as caught:
                await client.call_tool("x")
            assert len(str(caught.value)) < 1000
        assert "ok" == words(await client.call_tool("x"))


async def test_what_is_said_in_another_revision_than_agreed_is_judged_by_the_one_agreed() -> None:
    code = """
    greet()
    answer(asked(), {"content": [{"type": "hologram", "data": "", "mimeType": "audio/x"}]})
    serve()
    """
    async with judged(code, "2024-11-05") as client:
        with pytest.raises(InvalidPayload):
            await client.call_tool("x")
        assert "ok" == words(await client.call_tool("x"))


async def test_a_call_that_makes_no_sense_is_refused_before_it_is_sent() -> None:
    async with judged("greet()\nserve()") as client:
        for seconds in (0, -1, float("nan")):
            with pytest.raises(McpgenError):
                await client.call_tool("x", timeout_seconds=seconds)
        assert {} == client._engine.session.pending
        assert "ok" == words(await client.call_tool("x"))


# --- lists without end


@pytest.mark.parametrize("revision", [OLD, NEW])
@pytest.mark.parametrize(
    ("method", "cursor"),
    [
        *(("tools", each) for each in ("'x'", "''", "str(n)", "str(n % 7)", "'x' * 10_000 + str(n)")),
        *((each, "str(n)") for each in ("prompts", "resources", "resource_templates")),
    ],
)
async def test_a_list_without_end_has_one(cursor: str, method: str, revision: str) -> None:
    name = "resourceTemplates" if method == "resource_templates" else method
    code = f"""
    greet()
    n = 0
    while True:
        n += 1
        answer(asked(), {{{name!r}: [], "nextCursor": {cursor}, "resultType": "complete", "ttlMs": 0,
                          "cacheScope": "private"}})
    """
    limits = ClientLimits(max_pages=30, stdin_seconds=0.2, term_seconds=0.2)
    async with judged(code, revision, limits=limits, strict=True) as client:
        with pytest.raises(
            InvalidPayload, match=f"the list of {method} was refused at /nextCursor: it has more than 30 pages"
        ):
            await seek(getattr(client, method)())


async def seek(listing: AsyncIterator[object]) -> None:
    async for _ in listing:
        pytest.fail("there are none")


async def test_a_cursor_that_is_odd_is_sent_back_as_it_is() -> None:
    cursor = '\x00\n"\\ü\u2028' + "x" * 100_000
    code = """
    greet()
    answer(asked(), {"tools": [], "nextCursor": '\\x00\\n"\\\\ü\\u2028' + "x" * 100_000})
    text_of = asked()["params"]["cursor"]
    answer({"id": 3}, {"tools": [], "nextCursor": text_of})
    serve()
    """
    async with judged(code) as client:
        first = await client.list_tools()
        second = await client.list_tools(first.next_cursor)

    assert cursor == first.next_cursor == second.next_cursor
