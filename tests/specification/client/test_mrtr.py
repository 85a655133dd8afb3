"""Demands for input: what a client does before it asks again, and what it does not do."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from mcpgen import ClientLimits, InvalidPayload, MalformedFrame, RequestError, RequestRefused
from mcpgen.generated import registry
from mcpgen.runtime.protocol.newest import models
from tests.patience import PATIENCE_SECONDS
from tests.specification.citation import HANDSHAKES, LABELS, STATELESS, spec
from tests.specification.client.scripted_server import complete, on_both_loops, opened

pytestmark = pytest.mark.anyio

NEWEST = STATELESS[-1]
SCHEMA = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
FORM = {"method": "elicitation/create", "params": {"mode": "form", "message": "Who?", "requestedSchema": SCHEMA}}
PAGE = {"method": "elicitation/create", "params": {"mode": "url", "message": "In.", "url": "https://example.com/in"}}
MESSAGES = [{"role": "user", "content": {"type": "text", "text": "Why?"}}]
SAMPLE = {"method": "sampling/createMessage", "params": {"messages": MESSAGES, "maxTokens": 10}}
ROOTS = {"method": "roots/list"}
DONE = complete(NEWEST, content=[{"type": "text", "text": "done"}])

CALLS = pytest.mark.parametrize(
    ("call", "result"),
    [
        (lambda client: client.call_tool("x", {"a": 1.5, "b": {"c": [None]}}, meta={"com.example/y": 1}), DONE),
        (lambda client: client.read_resource("a:b"), complete(NEWEST, is_list=True, contents=[])),
        (lambda client: client.get_prompt("p", {"q": "r"}), complete(NEWEST, messages=[])),
    ],
    ids=["tool", "resource", "prompt"],
)


def demand(requests: object = None, state: object = None) -> dict[str, object]:
    members = {"inputRequests": requests, "requestState": state}
    given = {key: each for key, each in members.items() if each is not None}
    return {"resultType": "input_required", **given}


def accept(*_: Any) -> models.ElicitResult:
    return models.ElicitResult(action="accept", content={"name": "octocat"})


def agree(*_: Any) -> models.ElicitResult:
    return models.ElicitResult(action="accept")


def sample(*_: Any) -> models.CreateMessageResult:
    return models.CreateMessageResult(role="assistant", content=models.TextContent(text="Because."), model="m")


ROOT = models.Root(uri="file:///a")
ANSWERS = {
    "form": (FORM, {"elicit": accept}, {"action": "accept", "content": {"name": "octocat"}}),
    "page": (PAGE, {"elicit_url": agree}, {"action": "accept"}),
    "model": (
        SAMPLE,
        {"sample": sample},
        {"role": "assistant", "content": {"type": "text", "text": "Because."}, "model": "m"},
    ),
    "roots": (ROOTS, {"roots": [ROOT]}, {"roots": [{"uri": "file:///a"}]}),
}
ABLE: dict[str, Any] = {"elicit": accept, "elicit_url": agree, "sample": sample, "roots": [ROOT]}


def rest_of(request: Any) -> Any:
    """Return the params of a request without what answers a demand."""
    return {key: each for key, each in request["params"].items() if key not in ("inputResponses", "requestState")}


# --- the way it goes


@spec("2026-07-28", "basic/patterns/mrtr#client-requirements-basic-workflow", "fdd2e3d6")
@spec("2026-07-28", "basic/patterns/mrtr#inputresponses")
@pytest.mark.parametrize("kind", ANSWERS)
@on_both_loops
async def test_a_question_is_answered_under_its_name_and_the_request_put_again(kind: str) -> None:
    question, options, expected = ANSWERS[kind]
    async with opened(NEWEST, **options) as own:
        errand, first = await own.asked(own.client.call_tool("x"))
        own.wire.result(first, demand({"who are you": question}, "s"))
        second = await own.wire.hear("tools/call")
        own.wire.result(second, DONE)
        result = await errand.outcome()

    assert {"who are you": expected} == second["params"]["inputResponses"]
    assert "done" == result.content[0].text


@spec("2026-07-28", "server/tools#input-required-tool-results", "9a22ea5a")
@spec("2026-07-28", "basic/patterns/mrtr#supported-requests")
@spec("2026-07-28", "basic/patterns/mrtr#client-requirements-basic-workflow", "3e6e0bc1")
@CALLS
@on_both_loops
async def test_a_request_is_put_again_under_another_id_with_nothing_else_changed(call: Any, result: object) -> None:
    async with opened(NEWEST, **ABLE) as own:
        errand, first = await own.asked(call(own.client))
        own.wire.result(first, demand({"k": FORM}, "s"))
        second = await own.wire.hear(first["method"])
        own.wire.result(second, result)
        await errand.outcome()

    assert first["id"] != second["id"]
    assert rest_of(first) == rest_of(second) == first["params"]


@spec("2026-07-28", "basic/patterns/mrtr#inputrequiredresult", "64d74641")
@spec("2026-07-28", "basic/patterns/mrtr#client-requirements-basic-workflow", "648317a3", "5bb4ad61")
@pytest.mark.parametrize("state", ["s", "", "0", "null", '{"a": "\\u0000"}', "ä\n\t\u2028\U0001f600", "x" * 100_000])
async def test_the_state_comes_back_exactly(state: str) -> None:
    async with opened(NEWEST, **ABLE) as own:
        _, first = await own.asked(own.client.call_tool("x"))
        own.wire.result(first, demand({"k": FORM}, state))
        second = await own.wire.hear()

    assert state == second["params"]["requestState"]


@spec("2026-07-28", "basic/patterns/mrtr#inputrequiredresult", "64d74641")
async def test_a_state_that_cannot_come_back_exactly_is_refused() -> None:
    async with opened(NEWEST, **ABLE) as own:
        with pytest.raises(MalformedFrame):
            await own.answered(own.client.call_tool("x"), demand({"k": FORM}, "half a pair: \ud83d"))
        own.wire.recorder.violations.clear()  # UTF-8 has no such text

        assert [] == await own.wire.rest()


@spec("2026-07-28", "basic/patterns/mrtr#client-requirements-basic-workflow", "5e6fc645")
async def test_where_there_was_no_state_none_comes_back() -> None:
    async with opened(NEWEST, **ABLE) as own:
        _, first = await own.asked(own.client.call_tool("x"))
        own.wire.result(first, demand({"k": FORM}))
        second = await own.wire.hear()

    assert "requestState" not in second["params"]


@spec("2026-07-28", "basic/patterns/mrtr#client-requirements-basic-workflow")
@on_both_loops
async def test_where_nothing_was_asked_the_request_is_put_again_at_once() -> None:
    async with opened(NEWEST) as own:
        errand, first = await own.asked(own.client.call_tool("x"))
        own.wire.result(first, demand(None, "s"))
        second = await own.wire.hear()
        own.wire.result(second, DONE)
        await errand.outcome()

    assert {**first["params"], "requestState": "s"} == second["params"]


@spec("2026-07-28", "basic/patterns/mrtr#server-requirements-basic-workflow")
async def test_each_round_answers_the_last_demand_alone() -> None:
    rounds = [demand({"a": FORM}, "1"), demand({"b": ROOTS}), demand(None, "3"), demand({"c": SAMPLE}, "4")]
    async with opened(NEWEST, **ABLE) as own:
        errand, asked = await own.asked(own.client.call_tool("x", {"y": 1}))
        first, ids = asked, [asked["id"]]
        for each in rounds:
            own.wire.result(asked, each)
            asked = await own.wire.hear("tools/call")
            ids.append(asked["id"])

            assert set(each.get("inputRequests", {})) == set(asked["params"].get("inputResponses", {}))
            assert each.get("requestState") == asked["params"].get("requestState")
            assert first["params"] == rest_of(asked)

        own.wire.result(asked, DONE)

        assert "done" == (await errand.outcome()).content[0].text
        assert len(set(ids)) == len(ids)


@spec("2026-07-28", "basic/patterns/mrtr#inputrequests")
@on_both_loops
async def test_questions_that_come_together_are_answered_at_the_same_time() -> None:
    asked_both = {"form": anyio.Event(), "model": anyio.Event()}

    async def meet(one: str, other: str, answer: Any) -> Any:
        asked_both[one].set()
        await asked_both[other].wait()
        return answer()

    async with opened(
        NEWEST,
        elicit=lambda *_: meet("form", "model", accept),
        sample=lambda *_: meet("model", "form", sample),
        roots=[ROOT],
    ) as own:
        _, first = await own.asked(own.client.call_tool("x"))
        own.wire.result(first, demand({"f": FORM, "m": SAMPLE, "r": ROOTS, "r2": ROOTS}))
        second = await own.wire.hear()

    assert ["f", "m", "r", "r2"] == list(second["params"]["inputResponses"])


@spec("2026-07-28", "basic/patterns/mrtr#client-requirements-basic-workflow", "d658ce30")
@on_both_loops
async def test_demands_of_requests_that_run_at_the_same_time_are_kept_apart() -> None:
    async with opened(NEWEST, **ABLE) as own:
        errands, firsts = zip(*[await own.asked(own.client.call_tool(name)) for name in "abc"], strict=True)
        for each in reversed(firsts):
            own.wire.result(each, demand(None, each["params"]["name"]))
        seconds = [await own.wire.hear() for _ in firsts]
        for each in seconds:
            own.wire.result(each, complete(NEWEST, content=[{"type": "text", "text": each["params"]["requestState"]}]))
        found = [(await each.outcome()).content[0].text for each in errands]

    assert all(each["params"]["name"] == each["params"]["requestState"] for each in seconds)
    assert ["a", "b", "c"] == found


@spec("2026-07-28", "client/elicitation#response-actions")
@pytest.mark.parametrize("action", ["decline", "cancel"])
async def test_that_the_user_does_not_want_to_is_an_answer_too(action: Any) -> None:
    async with opened(NEWEST, elicit=lambda *_: models.ElicitResult(action=action)) as own:
        _, first = await own.asked(own.client.call_tool("x"))
        own.wire.result(first, demand({"k": FORM}))
        second = await own.wire.hear()

    assert {"k": {"action": action}} == second["params"]["inputResponses"]


@spec("2026-07-28", "client/roots#listing-roots")
@pytest.mark.parametrize("native_revision", LABELS)
async def test_handlers_of_any_home_answer_a_demand(native_revision: str) -> None:
    bindings = registry.revision(native_revision).bindings()

    async def list_roots(own: Any, params: Any, context: Any) -> Any:
        del own, params
        assert (NEWEST, "roots/list") == (context.peer.revision, context.method)

        return bindings.models.ListRootsResult(roots=[bindings.models.Root(uri="file:///a")])

    handlers = type("Handlers", (bindings.client.ClientHandlers,), {"list_roots": list_roots})()
    async with opened(NEWEST, native_revision=native_revision, handlers=handlers) as own:
        methods = bindings.client.ClientMethods(own.client)
        meta = {"meta": own.client.meta} if native_revision == NEWEST else {}
        params = bindings.models.CallToolRequestParams(name="x", **meta)
        errand, first = await own.asked(methods.call_tool(params))
        own.wire.result(first, demand({"k": ROOTS}))
        second = await own.wire.hear()
        own.wire.result(second, DONE)
        await errand.outcome()

    assert {"k": {"roots": [{"uri": "file:///a"}]}} == second["params"]["inputResponses"]


@spec("2026-07-28", "basic/patterns/mrtr#inputrequiredresult")
async def test_a_demand_is_handed_over_as_it_is_to_who_wants_json() -> None:
    async with opened(NEWEST, **ABLE) as own:
        found = await own.answered(own.client.request_json("tools/call", {"name": "x"}), demand({"k": FORM}, "s"))

        assert demand({"k": FORM}, "s") == found
        assert [] == await own.wire.rest()


# --- bounds


@spec("2026-07-28", "basic/patterns/mrtr#server-requirements-basic-workflow")
@pytest.mark.parametrize("most", [1, 3])
async def test_a_server_that_is_never_satisfied_is_given_up(most: int) -> None:
    async with opened(NEWEST, limits=ClientLimits(max_rounds=most)) as own:
        errand, asked = await own.asked(own.client.call_tool("x"))
        for _ in range(most):
            own.wire.result(asked, demand(None, "s"))
            asked = await own.wire.hear("tools/call")
        own.wire.result(asked, demand(None, "s"))
        with pytest.raises(InvalidPayload, match="required input"):
            await errand.outcome()

        assert [] == await own.wire.rest()


@spec("2026-07-28", "basic/patterns/mrtr#supported-requests")
@pytest.mark.parametrize(
    "call",
    [
        lambda client: client.list_tools(),
        lambda client: client.list_prompts(),
        lambda client: client.list_resources(),
        lambda client: client.list_resource_templates(),
        lambda client: client.complete(models.PromptReference(name="p"), "a", ""),
    ],
    ids=["tools", "prompts", "resources", "templates", "complete"],
)
async def test_no_other_request_may_be_answered_by_a_demand(call: Any) -> None:
    async with opened(NEWEST, **ABLE) as own:
        with pytest.raises(InvalidPayload, match="the server requires input, but the protocol does not allow that"):
            await own.answered(call(own.client), demand({"k": FORM}, "s"))

        assert [] == await own.wire.rest()


@spec("2026-07-28", "basic/patterns/mrtr#server-requirements-basic-workflow")
@pytest.mark.parametrize("kind", ANSWERS)
async def test_a_question_that_the_client_has_not_declared_fails_that_request_alone(kind: str) -> None:
    question, options, _ = ANSWERS[kind]
    others = {key: each for key, each in ABLE.items() if key not in options}
    async with opened(NEWEST, **others) as own:
        other, asked = await own.asked(own.client.call_tool("y"))
        with pytest.raises(InvalidPayload) as failure:
            await own.answered(own.client.call_tool("x"), demand({"k": question}, "s"))
        assert "/inputRequests/k" == failure.value.pointer

        own.wire.result(asked, DONE)

        assert "done" == (await other.outcome()).content[0].text
        assert [] == await own.wire.rest()


@spec("2026-07-28", "basic/patterns/mrtr#server-requirements-basic-workflow")
async def test_of_questions_of_which_one_may_not_be_asked_none_is() -> None:
    asked: list[Any] = []
    async with opened(NEWEST, elicit=lambda *given: asked.append(given)) as own:
        with pytest.raises(InvalidPayload):
            await own.answered(own.client.call_tool("x"), demand({"f": FORM, "r": ROOTS}))

    assert [] == asked


@spec("2026-07-28", "basic/patterns/mrtr#inputrequiredresult")
@spec("2026-07-28", "basic/patterns/mrtr#server-requirements-basic-workflow")
@pytest.mark.parametrize(
    "broken",
    [
        demand(),
        demand(5),
        demand([FORM]),
        demand({"k": 5}),
        demand({"k": {"params": {}}}),
        demand({"k": {"method": "ping"}}),
        demand({"k": {"method": "tools/list"}}),
        demand({"k": {"method": "elicitation/create"}}),
        demand({"k": {"method": "elicitation/create", "params": {"mode": "url", "message": "x"}}}),
        demand({"k": {"method": "elicitation/create", "params": {"mode": "voice", "message": "x"}}}),
        demand({"k": {"method": "sampling/createMessage", "params": {"messages": 5, "maxTokens": 1}}}),
        demand(None, 5),
        demand({"k": FORM}, ["s"]),
        {"resultType": "input_required", "inputRequests": None, "requestState": None},
    ],
    ids=str,
)
async def test_a_demand_that_is_malformed_fails_its_request_alone(broken: Any) -> None:
    async with opened(NEWEST, **ABLE) as own:
        with pytest.raises(InvalidPayload, match="tools/call"):
            await own.answered(own.client.call_tool("x"), broken)
        assert [] == await own.wire.rest()

        assert "done" == (await own.answered(own.client.call_tool("x"), DONE)).content[0].text


NULLS = [{**demand({"k": FORM}), "requestState": None}, {**demand(None, "s"), "inputRequests": None}]


@spec("2026-07-28", "basic/patterns/mrtr#inputrequiredresult")
@pytest.mark.parametrize("sloppy", NULLS, ids=str)
async def test_null_in_a_demand_is_read_as_absent(sloppy: Any) -> None:
    async with opened(NEWEST, **ABLE) as own:
        errand, first = await own.asked(own.client.call_tool("x"))
        own.wire.result(first, sloppy)
        second = await own.wire.hear("tools/call")
        own.wire.result(second, DONE)

        assert "done" == (await errand.outcome()).content[0].text

    wanted = {"inputRequests": "inputResponses", "requestState": "requestState"}
    expected = {name for key, name in wanted.items() if sloppy[key] is not None}
    assert expected == second["params"].keys() & set(wanted.values())


@spec("2026-07-28", "basic/patterns/mrtr#inputrequiredresult")
@pytest.mark.parametrize("sloppy", NULLS, ids=str)
async def test_a_strict_client_refuses_null_in_a_demand(sloppy: Any) -> None:
    async with opened(NEWEST, **ABLE, strict=True) as own:
        with pytest.raises(InvalidPayload, match="tools/call"):
            await own.answered(own.client.call_tool("x"), sloppy)
        assert [] == await own.wire.rest()


@spec("2026-07-28", "client/sampling#error-handling")
@spec("2026-07-28", "client/roots#error-handling")
@pytest.mark.parametrize("failure", [ValueError("no"), RequestError(-1, "no")], ids=repr)
@on_both_loops
async def test_an_error_of_a_handler_is_the_callers_and_nothing_is_sent(failure: Any) -> None:
    is_cancelled = anyio.Event()

    async def wait(*_: Any) -> Any:
        try:
            await anyio.sleep_forever()
        finally:
            is_cancelled.set()

    def fail(*_: Any) -> Any:
        raise failure

    async with opened(NEWEST, elicit=wait, sample=fail) as own:
        with pytest.raises(type(failure)) as raised:
            await own.answered(own.client.call_tool("x"), demand({"f": FORM, "s": SAMPLE}, "s"))
        assert failure is raised.value
        assert is_cancelled.is_set()

        assert [] == await own.wire.rest()
        assert "done" == (await own.answered(own.client.call_tool("x"), DONE)).content[0].text


@spec("2026-07-28", "basic/patterns/mrtr#server-requirements-basic-workflow")
@on_both_loops
async def test_a_caller_who_is_cancelled_while_the_user_thinks_takes_the_question_along() -> None:
    is_asked, is_cancelled = anyio.Event(), anyio.Event()

    async def wait(*_: Any) -> Any:
        is_asked.set()
        try:
            await anyio.sleep_forever()
        finally:
            is_cancelled.set()

    async with opened(NEWEST, elicit=wait) as own:
        errand, first = await own.asked(own.client.call_tool("x"))
        own.wire.result(first, demand({"f": FORM}))
        with anyio.fail_after(PATIENCE_SECONDS):
            await is_asked.wait()
        await errand.cancel()

        assert is_cancelled.is_set()
        assert [] == await own.wire.rest()


@spec("2026-07-28", "basic/index#resulttype", "31476f83")
@pytest.mark.parametrize("kind", ["task", "", "INPUT_REQUIRED", None, 1])
async def test_a_type_of_result_that_nobody_knows_is_invalid(kind: object) -> None:
    async with opened(NEWEST) as own:
        with pytest.raises(InvalidPayload) as failure:
            await own.answered(own.client.call_tool("x"), {"resultType": kind, "content": []})

    assert "/resultType" == failure.value.pointer


@spec("2026-07-28", "changelog#major-changes", "7e61fc74")
@spec("2026-07-28", "schema#result", "8ef35f96")
@spec("2026-07-28", "basic/index#resulttype", "2cbe7384")
async def test_a_result_without_a_type_is_complete() -> None:
    async with opened(NEWEST) as own:
        assert [] == (await own.answered(own.client.call_tool("x"), {"content": []})).content


@spec("2025-11-25", "basic/index#result-responses")
@pytest.mark.parametrize("revision", HANDSHAKES)
async def test_a_session_knows_no_demands(revision: str) -> None:
    async with opened(revision, roots=[ROOT]) as own:
        result = {**demand({"k": ROOTS}), "content": []}

        assert [] == (await own.answered(own.client.call_tool("x"), result)).content
        assert [] == await own.wire.rest()


# --- pages that have to be visited first, in 2025-11-25


def pages(*modes: str) -> dict[str, Any]:
    made = []
    for number, mode in enumerate(modes):
        page = {"mode": "url", "message": "In.", "url": "https://example.com/in", "elicitationId": f"e{number}"}
        made.append(page if mode == "url" else {"mode": "form", "message": "?", "requestedSchema": SCHEMA})
    return {"elicitations": made}


@spec("2025-11-25", "client/elicitation#url-elicitation-required-error")
@CALLS
@on_both_loops
async def test_what_wants_pages_visited_first_is_put_again_once_the_user_agreed(call: Any, result: object) -> None:
    visited: list[Any] = []

    def visit(params: Any, _: Any) -> models.ElicitResult:
        visited.append(params.url)
        return models.ElicitResult(action="accept")

    async with opened("2025-11-25", elicit_url=visit) as own:
        errand, first = await own.asked(call(own.client))
        own.wire.error(first, -32042, "first this", data=pages("url", "url"))
        second = await own.wire.hear(first["method"])
        own.wire.result(second, result)
        await errand.outcome()

    assert first["params"] == second["params"]
    assert first["id"] != second["id"]
    assert ["https://example.com/in"] * 2 == visited


@spec("2025-11-25", "client/elicitation#response-actions")
@pytest.mark.parametrize("action", ["decline", "cancel"])
async def test_a_user_who_does_not_visit_a_page_leaves_the_caller_with_the_error(action: Any) -> None:
    async with opened("2025-11-25", elicit_url=lambda *_: models.ElicitResult(action=action)) as own:
        errand, first = await own.asked(own.client.call_tool("x"))
        own.wire.error(first, -32042, "first this", data=pages("url"))
        with pytest.raises(RequestRefused) as failure:
            await errand.outcome()
        assert (-32042, pages("url")) == (failure.value.code, failure.value.data)

        assert [] == await own.wire.rest()


@spec("2025-11-25", "client/elicitation#url-elicitation-required-error")
@pytest.mark.parametrize(
    ("options", "data"),
    [
        ({}, pages("url")),
        ({"elicit": accept}, pages("url")),
        ({"elicit": accept, "elicit_url": agree}, pages("form")),
        ({"elicit": accept, "elicit_url": agree}, pages("url", "form")),
        ({"elicit_url": agree}, pages()),
        ({"elicit_url": agree}, {}),
        ({"elicit_url": agree}, {"elicitations": 5}),
        ({"elicit_url": agree}, {"elicitations": [{"mode": "url"}]}),
        ({"elicit_url": agree}, 5),
    ],
)
async def test_pages_that_cannot_be_visited_leave_the_caller_with_the_error(options: Any, data: Any) -> None:
    async with opened("2025-11-25", **options) as own:
        errand, first = await own.asked(own.client.call_tool("x"))
        own.wire.error(first, -32042, "first this", data=data)
        with pytest.raises(RequestRefused, match="first this"):
            await errand.outcome()

        assert [] == await own.wire.rest()


@spec("2025-11-25", "client/elicitation#url-elicitation-required-error")
async def test_a_server_that_always_wants_pages_visited_first_is_given_up() -> None:
    async with opened("2025-11-25", elicit_url=agree, limits=ClientLimits(max_rounds=2)) as own:
        errand, asked = await own.asked(own.client.call_tool("x"))
        own.wire.error(asked, -32042, data=pages("url"))
        own.wire.error(await own.wire.hear("tools/call"), -32042, data=pages("url"))
        with pytest.raises((InvalidPayload, RequestRefused)):
            await errand.outcome()

        assert [] == await own.wire.rest()


@spec("2026-07-28", "basic/index#error-codes")
@pytest.mark.parametrize("revision", [each for each in LABELS if each != "2025-11-25"])
async def test_no_other_revision_wants_pages_visited_first(revision: str) -> None:
    async with opened(revision, elicit_url=agree) as own:
        errand, asked = await own.asked(own.client.call_tool("x"))
        own.wire.error(asked, -32042, data=pages("url"))
        with pytest.raises(RequestRefused):
            await errand.outcome()

        assert [] == await own.wire.rest()


@spec("2026-07-28", "client/elicitation#elicitation-requests", "ea746a2e")
async def test_a_question_without_a_mode_is_a_form() -> None:
    params = {key: each for key, each in FORM["params"].items() if key != "mode"}
    async with opened(NEWEST, elicit=accept, elicit_url=agree) as own:
        _, first = await own.asked(own.client.call_tool("x"))
        own.wire.result(first, demand({"k": {**FORM, "params": params}}, "s"))
        second = await own.wire.hear("tools/call")

    assert {"k": {"action": "accept", "content": {"name": "octocat"}}} == second["params"]["inputResponses"]


@spec("2026-07-28", "schema#createmessagerequestparams", "3ee07d69")
async def test_tools_for_a_model_fail_the_request_if_the_client_has_not_declared_them() -> None:
    tools = [{"name": "t", "inputSchema": {"type": "object"}}]
    question = {**SAMPLE, "params": {**SAMPLE["params"], "tools": tools}}
    async with opened(NEWEST, sample=sample) as own:
        with pytest.raises(InvalidPayload, match=r"sampling\.tools"):
            await own.answered(own.client.call_tool("x"), demand({"k": question}, "s"))

        assert [] == await own.wire.rest()
