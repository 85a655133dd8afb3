"""Demands for input, and the retries that answer them."""

from __future__ import annotations

import json
from typing import Any

import anyio
import pytest

from mcpgen import CacheHint, Context, Server, UnsupportedByPeer
from mcpgen.runtime.protocol.newest import models
from tests.harness.server_wire import connected
from tests.specification.citation import (
    HANDSHAKES,
    LABELS,
    everywhere,
    from_every_home,
    since,
    spec,
    without_handshakes,
)
from tests.specification.server.revision_client import Client, client
from tests.specification.server.revision_server import FORM, handlers, server

pytestmark = pytest.mark.anyio

ABLE = '{"elicitation":{},"roots":{},"sampling":{}}'
ACCEPTED = '{"action":"accept","content":{"name":"octocat"}}'


def retry(demand: Any, params: str, responses: str | None = None) -> str:
    """Return the members of the retry of a request with *params* that answers *demand*."""
    ((key, _),) = demand["result"]["inputRequests"].items()
    answered = f'"inputResponses":{{"{key}":{ACCEPTED}}}' if responses is None else f'"inputResponses":{responses}'
    return f'{params},"requestState":"{demand["result"]["requestState"]}",{answered}'


@spec("2026-07-28", "basic/patterns/mrtr", "852d87a7")
@spec("2026-07-28", "basic/patterns/mrtr#server-requirements-basic-workflow", "d7230e6a")
@spec("2026-07-28", "basic/patterns/mrtr#basic-workflow")
@without_handshakes
@from_every_home
@pytest.mark.parametrize(
    ("method", "params", "holder"),
    [
        ("tools/call", '"name":"ask","arguments":{}', "content"),
        ("resources/read", '"uri":"note://ask"', "contents"),
        ("prompts/get", '"name":"ask"', "messages"),
    ],
)
async def test_what_may_ask_demands_and_goes_on_with_the_answer(
    method: str, params: str, holder: str, native_revision: str, revision: str
) -> None:
    async with client(server(native_revision), revision, ABLE) as peer:
        (demand,) = await peer.ask(method, params)
        assert "input_required" == demand["result"]["resultType"]

        (said,) = await peer.ask(method, retry(demand, params))

    assert "complete" == said["result"]["resultType"]
    assert "octocat" in json.dumps(said["result"][holder])


@spec("2026-07-28", "basic/patterns/mrtr", "852d87a7")
async def test_a_handler_of_a_subscription_sends_no_request_even_to_a_client_that_has_a_session_too() -> None:
    refused: list[str] = []

    async def subscribe(own: Any, params: Any, context: Any) -> Any:
        del own, params
        try:
            await context.roots()
        except UnsupportedByPeer as error:
            refused.append(str(error))
        return {}

    async with client(server(HANDSHAKES[-1], subscribe=subscribe), HANDSHAKES[-1], ABLE) as peer:
        newest = Client(peer.wire, LABELS[-1], ABLE)
        said = await newest.ask("subscriptions/listen", '"notifications":{"resourceSubscriptions":["note://a"]}')

    assert ["notifications/subscriptions/acknowledged"] == [each["method"] for each in said]
    (reason,) = refused
    assert "2026-07-28: in this revision, only handlers of tools/call, prompts/get and resources/read can ask" in reason


@spec("2026-07-28", "server/utilities/caching#cache-key", "129aa0bc")
@pytest.mark.parametrize("own_state", [True, False])
async def test_the_result_of_a_retry_must_not_be_kept(*, own_state: bool) -> None:
    made = Server("demo", version="1")

    @made.resource("note://{name}", cache_hint=CacheHint(ttl_ms=60_000, scope="public"))
    async def note(name: str, ctx: Context) -> str | models.InputRequiredResult:
        if name == "ask" and own_state and ctx.request_state is None:
            return models.InputRequiredResult(request_state="s")
        if name == "ask" and not own_state:
            return (await ctx.elicit("Who?", {"properties": {}})).action
        return "plain"

    async with client(made, LABELS[-1], ABLE) as peer:
        plain = await peer.result("resources/read", '"uri":"note://plain"')
        (demand,) = await peer.ask("resources/read", '"uri":"note://ask"')
        if own_state:
            params = f'"uri":"note://ask","requestState":"{demand["result"]["requestState"]}","inputResponses":{{}}'
        else:
            params = retry(demand, '"uri":"note://ask"')
        retried = await peer.result("resources/read", params)

    assert (60_000, "public") == (plain["ttlMs"], plain["cacheScope"])
    assert (0, "private") == (retried["ttlMs"], retried["cacheScope"])


@spec("2026-07-28", "server/utilities/caching#cache-key", "129aa0bc")
async def test_the_result_of_a_retry_must_not_be_kept_if_it_is_a_dict() -> None:
    async def read_resource(_own: Any, _params: Any, context: Any) -> Any:
        await context.elicit("Who?", FORM)
        return {"resultType": "complete", "contents": [], "ttlMs": 60_000, "cacheScope": "public"}

    own = handlers(LABELS[-1], overrides={"read_resource": read_resource})
    async with client(server(LABELS[-1], own=own), LABELS[-1], ABLE) as peer:
        (demand,) = await peer.ask("resources/read", '"uri":"note://a"')
        retried = await peer.result("resources/read", retry(demand, '"uri":"note://a"'))

    assert (0, "private") == (retried["ttlMs"], retried["cacheScope"])


@spec("2026-07-28", "basic/patterns/mrtr#supported-requests", "3f77abc8")
@without_handshakes
@from_every_home
@pytest.mark.parametrize(
    ("name", "method", "params"),
    [
        ("list_tools", "tools/list", ""),
        ("list_prompts", "prompts/list", ""),
        ("list_resources", "resources/list", ""),
        ("list_resource_templates", "resources/templates/list", ""),
    ],
)
async def test_no_other_request_is_answered_by_a_demand(
    name: str, method: str, params: str, native_revision: str, revision: str
) -> None:
    async def ask(own: Any, params: Any, context: Any) -> Any:
        del own, params
        return await context.elicit("Who?", FORM)

    async with client(
        server(native_revision, own=handlers(native_revision, overrides={name: ask})), revision, ABLE
    ) as peer:
        error = await peer.error(method, params)

    assert -32603 == error["code"]


@spec("2026-07-28", "basic/patterns/mrtr#supported-requests", "3f77abc8")
@without_handshakes
@pytest.mark.parametrize("own_state", [True, False])
async def test_a_handler_cannot_demand_where_its_request_may_not(*, own_state: bool, revision: str) -> None:
    demand = models.InputRequiredResult(request_state="mine") if own_state else models.InputRequiredResult()

    async def list_tools(_own: Any, _params: Any, _context: Any) -> Any:
        return demand

    async with client(server(LABELS[-1], list_tools=list_tools), revision, ABLE) as peer:
        assert -32603 == (await peer.error("tools/list"))["code"]


@spec("2026-07-28", "schema#inputrequiredresult", "9ef30f40")
@spec("2026-07-28", "basic/patterns/mrtr#server-requirements-basic-workflow", "f42703d1")
@pytest.mark.parametrize("revision", LABELS)
async def test_a_demand_for_nothing_is_not_sent_and_made_only_once(revision: str) -> None:
    called: list[str] = []

    async def nothing(_own: Any, _arguments: dict[str, Any], _context: Any) -> Any:
        called.append("nothing")
        return models.InputRequiredResult()

    async with client(server(LABELS[-1], tools={"nothing": nothing}), revision, ABLE) as peer:
        (said,) = await peer.call("nothing")

    assert -32603 == said["error"]["code"]
    assert "set one of them" in said["error"]["message"]
    assert ["nothing"] == called


@spec("2026-07-28", "schema#inputrequiredresult", "9ef30f40")
@everywhere
@pytest.mark.parametrize("more", [{}, {"inputRequests": {"a": {"method": "roots/list"}}}])
async def test_a_demand_that_a_handler_returns_as_a_dict_is_not_sent(more: dict[str, Any], revision: str) -> None:
    async def ask(_own: Any, _arguments: dict[str, Any], _context: Any) -> Any:
        return {"resultType": "input_required", **more}

    async with client(server(LABELS[-1], tools={"ask": ask}), revision, "{}") as peer:
        (said,) = await peer.call("ask")

    reason = "the handler returned a dict that asks for input; return an InputRequiredResult"
    assert (-32603, reason) == (said["error"]["code"], said["error"]["message"])


@spec("2026-07-28", "basic/patterns/mrtr#server-requirements-basic-workflow", "c1594bfc", "d7230e6a")
@without_handshakes
@from_every_home
async def test_what_a_handler_asks_at_once_is_demanded_at_once_under_keys_of_its_own(
    native_revision: str, revision: str
) -> None:
    async def both(own: Any, _arguments: dict[str, Any], context: Any) -> Any:
        found: dict[str, Any] = {}

        async def put(name: str, question: Any) -> None:
            found[name] = await question

        async with anyio.create_task_group() as group:
            group.start_soon(put, "a", context.elicit("A?", FORM))
            group.start_soon(put, "b", context.elicit("B?", FORM))
            group.start_soon(put, "roots", context.roots())
        return own.text(f"{found['a'].content['name']} {found['b'].action} {len(found['roots'])}")

    async with client(server(native_revision, tools={"both": both}), revision, ABLE) as peer:
        (demand,) = await peer.call("both")
        keys = {
            (each.get("params", {}).get("message") or each["method"]): key
            for key, each in demand["result"]["inputRequests"].items()
        }
        responses = (
            f'{{"{keys["A?"]}":{ACCEPTED},"{keys["B?"]}":{{"action":"decline"}},"{keys["roots/list"]}":{{"roots":[]}}}}'
        )
        (said,) = await peer.ask("tools/call", retry_all(demand, '"name":"both","arguments":{}', responses))

    assert "octocat decline 0" == said["result"]["content"][0]["text"]


def retry_all(demand: Any, params: str, responses: str) -> str:
    return f'{params},"requestState":"{demand["result"]["requestState"]}","inputResponses":{responses}'


@spec("2026-07-28", "basic/patterns/mrtr#server-requirements-basic-workflow")
@without_handshakes
@from_every_home
async def test_a_request_may_demand_again_and_again(native_revision: str, revision: str) -> None:
    async def twice(own: Any, _arguments: dict[str, Any], context: Any) -> Any:
        names = [(await context.elicit(f"{each}?", FORM)).content["name"] for each in ("first", "second", "third")]
        return own.text(" ".join(names))

    params = '"name":"twice","arguments":{}'
    async with client(server(native_revision, tools={"twice": twice}), revision, ABLE) as peer:
        (said,) = await peer.ask("tools/call", params)
        keys = set()
        for name in ("a", "b", "c"):
            ((key, asked),) = said["result"]["inputRequests"].items()
            keys.add((key, asked["params"]["message"]))
            answer = f'{{"{key}":{{"action":"accept","content":{{"name":"{name}"}}}}}}'
            (said,) = await peer.ask("tools/call", retry(said, params, answer))

    assert "a b c" == said["result"]["content"][0]["text"]
    assert 3 == len(keys)


@spec("2026-07-28", "basic/patterns/mrtr#error-handling", "fe234d27")
@without_handshakes
@from_every_home
async def test_what_was_asked_and_not_answered_is_demanded_again(native_revision: str, revision: str) -> None:
    params = '"name":"ask","arguments":{}'
    async with client(server(native_revision), revision, ABLE) as peer:
        (demand,) = await peer.call("ask")
        (again,) = await peer.ask("tools/call", retry(demand, params, "{}"))
        assert demand["result"]["inputRequests"] == again["result"]["inputRequests"]

        (said,) = await peer.ask("tools/call", retry(again, params))

    assert "octocat" in said["result"]["content"][0]["text"]


@spec("2026-07-28", "basic/patterns/mrtr#error-handling")
@without_handshakes
async def test_a_retry_without_any_answers_is_asked_again(revision: str) -> None:
    async with client(server(LABELS[-1]), revision, ABLE) as peer:
        (demand,) = await peer.call("ask")
        state = demand["result"]["requestState"]
        (again,) = await peer.ask("tools/call", f'"name":"ask","arguments":{{}},"requestState":"{state}"')

    assert demand["result"]["inputRequests"] == again["result"]["inputRequests"]


@spec("2026-07-28", "basic/patterns/mrtr#error-handling", "298a1024")
@without_handshakes
async def test_answers_to_nothing_are_ignored(revision: str) -> None:
    async with client(server(LABELS[-1]), revision, ABLE) as peer:
        (demand,) = await peer.call("ask")
        ((key, _),) = demand["result"]["inputRequests"].items()
        responses = f'{{"{key}":{ACCEPTED},"other":{{"action":"cancel"}}}}'
        (said,) = await peer.ask("tools/call", retry(demand, '"name":"ask","arguments":{}', responses))

    assert "octocat" in said["result"]["content"][0]["text"]


@spec("2026-07-28", "basic/patterns/mrtr#error-handling")
@without_handshakes
async def test_answers_without_a_state_begin_the_request_anew(revision: str) -> None:
    async with client(server(LABELS[-1]), revision, ABLE) as peer:
        responses = f'"inputResponses":{{"elicitation-1":{ACCEPTED}}}'
        (said,) = await peer.ask("tools/call", f'"name":"ask","arguments":{{}},{responses}')

    assert "input_required" == said["result"]["resultType"]


@spec("2026-07-28", "basic/patterns/mrtr#error-handling", "c967987e", "85497a97")
@without_handshakes
@pytest.mark.parametrize(
    "responses", ["[]", '"all"', "7", '{"KEY":7}', '{"KEY":[]}', '{"KEY":{"action":"maybe"}}', '{"KEY":{}}']
)
async def test_answers_that_cannot_be_read_are_an_error_and_can_be_given_again(responses: str, revision: str) -> None:
    params = '"name":"ask","arguments":{}'
    async with client(server(LABELS[-1]), revision, ABLE) as peer:
        (demand,) = await peer.call("ask")
        ((key, _),) = demand["result"]["inputRequests"].items()
        (refused,) = await peer.ask("tools/call", retry(demand, params, responses.replace("KEY", key)))
        (said,) = await peer.ask("tools/call", retry(demand, params))

    assert -32602 == refused["error"]["code"]
    assert "octocat" in json.dumps(said)


@spec("2026-07-28", "basic/patterns/mrtr#server-requirements-basic-workflow")
@without_handshakes
async def test_capabilities_are_those_of_the_request_that_is_open(revision: str) -> None:
    """A retry may declare less than the request before it; then what comes next is not demanded."""

    async def two(_own: Any, _arguments: dict[str, Any], context: Any) -> Any:
        await context.elicit("Who?", FORM)
        await context.roots()

    params = '"name":"two","arguments":{}'
    async with client(server(LABELS[-1], tools={"two": two}), revision, ABLE) as peer:
        (demand,) = await peer.ask("tools/call", params)
        less = Client(peer.wire, revision, '{"elicitation":{}}')
        (said,) = await peer.wire.say(less.request(100, "tools/call", retry(demand, params)))

    assert (-32021, {"requiredCapabilities": {"roots": {}}}) == (said["error"]["code"], said["error"]["data"])


@spec("2026-07-28", "basic/patterns/progress#behavior-requirements")
@spec("2026-07-28", "server/utilities/logging#per-request-log-level")
@without_handshakes
async def test_progress_and_log_entries_go_to_the_request_that_is_open(revision: str) -> None:
    async def two(own: Any, _arguments: dict[str, Any], context: Any) -> Any:
        await context.progress(1)
        await context.elicit("Who?", FORM)
        await context.progress(2)
        await context.log("error", "now")
        return own.text("done")

    params = '"name":"two","arguments":{}'
    async with client(server(LABELS[-1], tools={"two": two}), revision, ABLE) as peer:
        progress, demand = await peer.ask("tools/call", params, '"progressToken":"first"')
        meta = '"progressToken":"second","io.modelcontextprotocol/logLevel":"debug"'
        *told, said = await peer.ask("tools/call", retry(demand, params), meta)

    assert {"progressToken": "first", "progress": 1} == progress["params"]
    assert [{"progressToken": "second", "progress": 2}, {"level": "error", "data": "now"}] == [
        each["params"] for each in told
    ]
    assert "complete" == said["result"]["resultType"]


@spec("2026-07-28", "basic/patterns/progress#behavior-requirements", "782e355e")
@without_handshakes
async def test_nothing_is_told_while_no_request_is_open(revision: str) -> None:
    gate = anyio.Event()

    async def busy(own: Any, _arguments: dict[str, Any], context: Any) -> Any:
        async def tell() -> None:
            await gate.wait()
            await context.progress(1)
            await context.log("emergency", "nobody listens")

        async with anyio.create_task_group() as group:
            group.start_soon(tell)
            await context.elicit("Who?", FORM)
        return own.text("done")

    async with client(server(LABELS[-1], tools={"busy": busy}), revision, ABLE) as peer:
        await peer.call("busy", meta='"progressToken":1,"io.modelcontextprotocol/logLevel":"debug"')
        gate.set()

        assert [] == await peer.wire.rest()


@spec("2026-07-28", "basic/patterns/cancellation#behavior-requirements")
@without_handshakes
async def test_a_retry_can_be_cancelled_and_its_handler_with_it(revision: str) -> None:
    async def then_wait(own: Any, _arguments: dict[str, Any], context: Any) -> Any:
        await context.elicit("Who?", FORM)
        try:
            await own.gate.wait()
        except BaseException:
            own.given_up += 1
            raise

    params = '"name":"then_wait","arguments":{}'
    own = handlers(LABELS[-1], tools={"then_wait": then_wait})
    async with client(server(LABELS[-1], own=own), revision, ABLE) as peer:
        (demand,) = await peer.ask("tools/call", params)
        assert [] == await peer.wire.say(peer.request(50, "tools/call", retry(demand, params)))

        said = await peer.wire.say(b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":50}}')

    assert [] == said
    assert 1 == own.given_up


@spec("2026-07-28", "basic/patterns/mrtr#inputrequiredresult")
@spec("2025-11-25", "client/elicitation#elicitation-requests")
@pytest.mark.parametrize("revision", [each for each in since("2025-06-18") if each in HANDSHAKES])
async def test_a_handler_that_demands_itself_works_for_sessions_too(revision: str) -> None:
    async def call_tool(own: Any, params: Any, context: Any) -> Any:
        del context
        if isinstance(params.input_responses, dict):
            return own.text(f"{params.request_state} {params.input_responses['name'].content['name']}")
        form = models.ElicitRequestFormParams(message="Who?", requested_schema=FORM)
        return models.InputRequiredResult(
            input_requests={"name": models.ElicitRequest(params=form)}, request_state="my state"
        )

    async with client(server(LABELS[-1], call_tool=call_tool), revision, '{"elicitation":{}}') as peer:
        (asked,) = await peer.call("own")
        assert "elicitation/create" == asked["method"]

        (said,) = await peer.answer(asked, ACCEPTED)

    assert "my state octocat" == said["result"]["content"][0]["text"]


RETRY = (
    b'{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"ask","arguments":{},%s"_meta":{'
    b'"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":%s}}}'
)


@spec("2026-07-28", "basic/index#statelessness", "1c40dfac")
@pytest.mark.parametrize("rounds", [1, 2])
async def test_a_retry_that_lacks_a_capability_decides_nothing_about_the_next_one(rounds: int) -> None:
    own = Server("curious", version="1")

    @own.tool
    async def ask(ctx: Context) -> str:
        found = [await ctx.elicit(f"{number}?", bool) for number in range(rounds)]
        return str(found)

    def retried(number: int, demand: Any, capabilities: bytes, responses: bytes = b"") -> bytes:
        state = b'"requestState":"%s",' % demand["result"]["requestState"].encode()
        return RETRY % (number, state + responses, capabilities)

    def answers(demand: Any) -> bytes:
        (key,) = demand["result"]["inputRequests"]
        accepted = b'{"action":"accept","content":{"value":true}}'
        return b'"inputResponses":{"%s":%s},' % (key.encode(), accepted)

    async with connected(own) as wire:
        (demand,) = await wire.say(RETRY % (1, b"", b'{"elicitation":{}}'))
        given = b"" if rounds == 1 else answers(demand)
        (lacking,) = await wire.say(retried(2, demand, b"{}", given))
        (said,) = await wire.say(retried(3, demand, b'{"elicitation":{}}', answers(demand)))

    assert -32021 == lacking["error"]["code"]
    if rounds == 1:
        assert "complete" == said["result"]["resultType"]
    else:  # the first retry has ended the function, which asked more of it
        assert -32602 == said["error"]["code"]
        assert "ended" in said["error"]["data"]["reason"]


@spec("2026-07-28", "basic/patterns/mrtr#server-requirements-basic-workflow", "81edb4ae")
@without_handshakes
async def test_what_a_handler_demands_itself_is_held_against_what_the_client_declared(revision: str) -> None:
    async def call_tool(_own: Any, _params: Any, _context: Any) -> Any:
        return models.InputRequiredResult(input_requests={"r": models.ListRootsRequest()})

    async with client(server(LABELS[-1], call_tool=call_tool), revision, '{"elicitation":{}}') as peer:
        (said,) = await peer.call("own")

    assert (-32021, {"requiredCapabilities": {"roots": {}}}) == (said["error"]["code"], said["error"]["data"])


CALL_BOTH = (
    b'{"jsonrpc":"2.0","id":7,"method":"%s","params":{"name":"both","_meta":{'
    b'"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}'
)


@spec("2026-07-28", "basic/index#meta", "af558e3c")
@pytest.mark.parametrize("method", [b"tools/call", b"prompts/get"])
async def test_the_error_lists_all_capabilities_that_questions_asked_at_once_need(method: bytes) -> None:
    own = Server("curious", version="1")

    @own.tool
    @own.prompt
    async def both(ctx: Context) -> str:
        async with anyio.create_task_group() as group:
            group.start_soon(ctx.roots)
            group.start_soon(ctx.elicit, "Really?", bool)
        return "unreachable"

    async with connected(own) as wire:
        (said,) = await wire.say(CALL_BOTH % method)

    assert -32021 == said["error"]["code"]
    assert {"requiredCapabilities": {"roots": {}, "elicitation": {"form": {}}}} == said["error"]["data"]


@spec("2026-07-28", "basic/index#meta", "af558e3c")
async def test_the_error_lists_all_capabilities_that_an_input_required_result_needs() -> None:
    own = Server("curious", version="1")

    @own.tool
    async def both() -> models.InputRequiredResult:
        sample = models.CreateMessageRequestParams(max_tokens=5, messages=[], tools=[])
        plain = models.CreateMessageRequestParams(max_tokens=5, messages=[])
        return models.InputRequiredResult(
            input_requests={
                "a": models.ListRootsRequest(),
                "b": models.CreateMessageRequest(params=sample),
                "c": models.CreateMessageRequest(params=plain),
            }
        )

    async with connected(own) as wire:
        (said,) = await wire.say(CALL_BOTH % b"tools/call")

    assert -32021 == said["error"]["code"]
    assert {"requiredCapabilities": {"roots": {}, "sampling": {"tools": {}}}} == said["error"]["data"]


@spec("2025-11-25", "server/tools#error-handling")
async def test_the_result_names_all_that_questions_asked_at_once_need() -> None:
    own = Server("curious", version="1")

    @own.tool
    async def both(ctx: Context) -> None:
        async with anyio.create_task_group() as group:
            group.start_soon(ctx.roots)
            group.start_soon(ctx.elicit, "Really?", bool)

    async with client(own, "2025-11-25") as peer:
        (said,) = await peer.ask("tools/call", '"name":"both"')

    assert said["result"]["isError"]
    assert (
        "roots/list, elicitation/create, which cannot be sent to this client: " in said["result"]["content"][0]["text"]
    )


@spec("2025-11-25", "server/tools#error-handling")
@spec("2026-07-28", "basic/index#meta", "af558e3c")
@pytest.mark.parametrize("revision", since("2025-06-18"))
async def test_nothing_is_asked_if_the_client_does_not_support_another_question(revision: str) -> None:
    own = Server("curious", version="1")

    @own.tool
    async def together(ctx: Context) -> None:
        async with anyio.create_task_group() as group:
            group.start_soon(ctx.elicit, "Really?", bool)
            group.start_soon(ctx.roots)

    @own.tool
    async def returned() -> models.InputRequiredResult:
        form = models.ElicitRequestFormParamsRequestedSchema(properties={})
        question = models.ElicitRequest(params=models.ElicitRequestFormParams(message="?", requested_schema=form))
        return models.InputRequiredResult(input_requests={"a": question, "b": models.ListRootsRequest()})

    # In a session, each question that a function makes by itself is a message of its own.
    tools = ["together", "returned"] if revision == LABELS[-1] else ["returned"]
    async with client(own, revision, '{"elicitation":{}}') as peer:
        said = [await peer.ask("tools/call", f'"name":"{each}"') for each in tools]

    for (each,) in said:
        assert "roots" in json.dumps(each.get("error", {}) if revision == LABELS[-1] else each["result"]["content"])
