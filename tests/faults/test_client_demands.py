"""Servers that demand too much, without end, or what makes no sense (2026-07-28)."""

from __future__ import annotations

import json
from typing import Any

import anyio
import pytest

from mcpgen import ClientLimits, InvalidPayload, RequestRefused
from mcpgen.runtime.protocol.newest import models
from tests.faults.hostile_questions import DEMAND, FORM, accept
from tests.faults.hostile_server_clients import NEW, OLD, attacked, judged, words

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.usefixtures("nothing_is_left"),
    pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"]),
]

REF = models.PromptReference(name="x")


@pytest.mark.parametrize("demand", [DEMAND, {"resultType": "input_required", "requestState": "x"}])
async def test_demands_without_end_have_one(demand: object) -> None:
    code = f"greet()\nn = 0\nwhile True:\n    answer(asked(), json.loads({json.dumps(demand)!r}))"
    async with judged(code, NEW, elicit=accept) as client:
        with pytest.raises(InvalidPayload, match="32"):
            await client.call_tool("x")


@pytest.mark.parametrize("count", [100, 101, 1000, 10_000])
async def test_only_so_many_questions_are_answered_at_once(count: int) -> None:
    running, most = 0, 0

    async def elicit(params: object, context: object) -> models.ElicitResult:
        nonlocal running, most
        del params, context
        running += 1
        most = max(most, running)
        await anyio.sleep(0.001)
        running -= 1
        return models.ElicitResult(action="decline")

    code = f"""
    greet()
    wish = {{"method": "elicitation/create", "params": {FORM!r}}}
    put(json.dumps(result({{"resultType": "input_required", "inputRequests":
        {{str(n): wish for n in range({count})}}}})(asked()), separators=(",", ":")).replace(
        '"message":"?"', '"message":""').encode() + b"\\n")
    serve()
    """
    async with attacked(
        code, NEW, elicit=elicit, limits=ClientLimits(max_frame_bytes=1 << 24, max_values=1 << 20)
    ) as client:
        if count <= 100:
            assert "ok" == words(await client.call_tool("x"))
        else:
            with pytest.raises(InvalidPayload):
                await client.call_tool("x")
        assert "ok" == words(await client.call_tool("x"))

    assert most == (count if count <= 100 else 0)


ODD_DEMANDS: dict[str, object] = {
    "of nothing": {},
    "of null": {"inputRequests": None},
    "of a list": {"inputRequests": []},
    "of numbers": {"inputRequests": {"a": 1}},
    "without a method": {"inputRequests": {"a": {"params": FORM}}},
    "of an unknown method": {"inputRequests": {"a": {"method": "what/ever", "params": {}}}},
    "of what is asked of servers": {"inputRequests": {"a": {"method": "tools/call", "params": {"name": "x"}}}},
    "of what was not declared": {
        "inputRequests": {"a": {"method": "sampling/createMessage", "params": {"messages": [], "maxTokens": 1}}}
    },
    "of a mode that was not declared": {
        "inputRequests": {
            "a": {
                "method": "elicitation/create",
                "params": {"mode": "url", "message": "", "url": "http://x", "elicitationId": "x"},
            }
        }
    },
    "without params": {"inputRequests": {"a": {"method": "elicitation/create"}}},
    "with params that are a list": {"inputRequests": {"a": {"method": "elicitation/create", "params": []}}},
    "with a schema that is text": {
        "inputRequests": {"a": {"method": "elicitation/create", "params": {**FORM, "requestedSchema": "x"}}}
    },
    "with a schema of unknown types": {
        "inputRequests": {
            "a": {
                "method": "elicitation/create",
                "params": {
                    **FORM,
                    "requestedSchema": {
                        "type": "object",
                        "properties": {"a": {"type": "array", "items": {"$ref": "#"}}},
                    },
                },
            }
        }
    },
    "with a state that is a number": {"requestState": 1},
    "with a state that is null": {"requestState": None},
    "under a name of 100 KB": {"inputRequests": {"x" * 100_000: {"method": "what/ever"}}},
    "under a name of terminal codes": {"inputRequests": {"\x1b[2J": {"method": "\x1b[2J"}}},
}


@pytest.mark.parametrize("case", ODD_DEMANDS)
async def test_a_demand_that_is_not_valid_is_refused_and_nobody_is_asked(case: str) -> None:
    def elicit(params: object, context: object) -> models.ElicitResult:
        raise AssertionError

    demand = json.dumps({"resultType": "input_required", **ODD_DEMANDS[case]})  # type: ignore[dict-item]
    code = f"greet()\nanswer(asked(), json.loads({demand!r}))\nserve()"
    async with judged(code, NEW, elicit=elicit) as client:
        with pytest.raises(InvalidPayload) as caught:
            await client.call_tool("x")
        assert "ok" == words(await client.call_tool("x"))

    assert len(str(caught.value)) < 2000


@pytest.mark.parametrize("name", ["^(a+)+$", "(" * 1000, "x" * 100_000, "\\"])
async def test_hostile_schemas_are_handed_over_as_they_are(name: str) -> None:
    seen = []

    def elicit(params: Any, context: object) -> models.ElicitResult:
        del context
        seen.append(params.requested_schema)
        return models.ElicitResult(action="accept", content={"a": "b", "zzz": "a" * 100_000 + "b"})

    code = f"""
    greet()
    schema = {{"type": "object", "properties": {{"a": {{"type": "string", "title": {name!r}, "maxLength": 1}},
               "constructor": {{"type": "string"}}, "__proto__": {{"type": "number"}}}}, "required": ["zzz", "a", "a"]}}
    form = {{"mode": "form", "message": "?", "requestedSchema": schema}}
    answer(asked(), {{"resultType": "input_required", "requestState": "s" * 3_000_000,
                      "inputRequests": {{"a": {{"method": "elicitation/create", "params": form}}}}}})
    again = asked()
    text(again, [len(again["params"]["requestState"]), list(again["params"]["inputResponses"])])
    serve()
    """
    async with judged(code, NEW, elicit=elicit) as client:
        assert "[3000000, ['a']]" == words(await client.call_tool("x"))
    assert 1 == len(seen)


@pytest.mark.parametrize(
    ("method", "call"),
    [
        ("tools/list", lambda client: client.list_tools()),
        ("completion/complete", lambda client: client.complete(REF, "x", "y")),
    ],
)
async def test_what_may_not_demand_does_not_get_an_answer(method: str, call: Any) -> None:
    code = f"greet()\nanswer(asked({method!r}), json.loads({json.dumps(DEMAND)!r}))\nserve()"
    async with judged(code, NEW, elicit=accept) as client:
        with pytest.raises(InvalidPayload):
            await call(client)


@pytest.mark.parametrize("revision", [OLD, "2025-11-25"])
async def test_a_server_of_before_cannot_demand(revision: str) -> None:
    code = f"greet()\nanswer(asked(), json.loads({json.dumps(DEMAND)!r}))\nserve()"
    async with judged(code, revision, elicit=accept, strict=True) as client:
        with pytest.raises(InvalidPayload):
            await client.call_tool("x")


@pytest.mark.parametrize(
    "data",
    [
        "{}",
        "None",
        "[]",
        "{'elicitations': None}",
        "{'elicitations': []}",
        "{'elicitations': [1]}",
        "{'elicitations': [{}]}",
    ],
)
async def test_an_error_that_names_no_page_is_an_error_and_the_call_is_made_once(data: str) -> None:
    code = f"""
    greet()
    n = 0
    while True:
        call = asked()
        n += 1
        os.write(2, b"%d\\n" % n)
        refuse(call, -32042, "visit", data={data})
    """
    async with judged(code, "2025-11-25", elicit_url=accept) as client:
        with pytest.raises(RequestRefused):
            await client.call_tool("x")

        assert "1" == client.stderr.strip()
