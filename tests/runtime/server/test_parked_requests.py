"""Handlers that wait for a stateless client to come back: every way that the retry can go.

Spec: 2026-07-28, basic/patterns/mrtr.
"""

from __future__ import annotations

import json
from typing import Any

import anyio
import pytest

from mcpgen import Context, Limits, RequestError, Server, UnsupportedByPeer
from mcpgen.runtime.protocol.newest import NEWEST
from mcpgen.runtime.server import input_required
from tests.harness.server_wire import connected
from tests.patience import PATIENCE_SECONDS

pytestmark = pytest.mark.anyio

FORM = {"type": "object", "properties": {"name": {"type": "string"}}}
KEY = b"k" * 32
ACCEPTED = {"action": "accept", "content": {"name": "Ada"}}


def request(  # noqa: PLR0913 (what a request may have, each by its name)
    identity: int,
    tool: str,
    *,
    arguments: dict[str, Any] | None = None,
    state: str | None = None,
    answers: dict[str, Any] | None = None,
    capabilities: dict[str, Any] | None = None,
    method: str = "tools/call",
    **meta: Any,
) -> bytes:
    """Return the bytes of a `tools/call`; with a state or answers, of a retry."""
    declared = {"elicitation": {}, "roots": {}} if capabilities is None else capabilities
    params: dict[str, Any] = {
        "name": tool,
        "_meta": {
            "io.modelcontextprotocol/protocolVersion": NEWEST,
            "io.modelcontextprotocol/clientCapabilities": declared,
            **meta,
        },
    }
    if arguments is not None:
        params["arguments"] = arguments
    if state is not None:
        params["requestState"] = state
    if answers is not None:
        params["inputResponses"] = answers
    return json.dumps({"jsonrpc": "2.0", "id": identity, "method": method, "params": params}).encode()


def text(message: dict[str, Any]) -> str:
    """Return what a tool said."""
    return message["result"]["content"][0]["text"]


def state_of(message: dict[str, Any]) -> str:
    """Return the state of a demand for input."""
    assert message["result"]["resultType"] == "input_required", message
    return message["result"]["requestState"]


def answers_to(demand: dict[str, Any], **answers: dict[str, Any]) -> dict[str, Any]:
    """Return *answers*, which are named after the kind of question, under the keys of the questions in *demand*."""
    keys = {key.partition("-")[0]: key for key in demand["result"]["inputRequests"]}
    return {keys.get(kind, kind): answer for kind, answer in answers.items()}


def messages_of(demand: dict[str, Any]) -> list[str]:
    """Return what the user is told by the questions in *demand*."""
    return [each["params"]["message"] for each in demand["result"]["inputRequests"].values()]


def kinds_of(demand: dict[str, Any]) -> list[str]:
    """Return what kinds of questions there are in *demand*."""
    return sorted(key.partition("-")[0] for key in demand["result"]["inputRequests"])


def asking_server(**options: Any) -> Server:
    """Return a server with one tool that asks who is there, and one that asks two things at once."""
    server = Server("asking", version="1", **options)

    @server.tool
    async def greet(ctx: Context, greeting: str = "Hello") -> str:
        found = await ctx.elicit("Who is there?", FORM)
        return f"{greeting} {found.content['name'] if found.content else found.action}"

    @server.tool
    async def both(ctx: Context) -> str:
        found: dict[str, Any] = {}

        async def ask_name() -> None:
            found["name"] = await ctx.elicit("Who is there?", FORM)

        async def ask_roots() -> None:
            found["roots"] = await ctx.roots()

        async with anyio.create_task_group() as group:
            group.start_soon(ask_name)
            group.start_soon(ask_roots)
        return f"{found['name'].content['name']} at {found['roots'][0].uri}"

    return server


async def test_a_question_ends_the_request_and_the_retry_gets_the_result() -> None:
    async with connected(asking_server()) as wire:
        (demand,) = await wire.say(request(1, "greet"))

        assert [
            {"method": "elicitation/create", "params": {"message": "Who is there?", "requestedSchema": FORM}}
        ] == list(demand["result"]["inputRequests"].values())

        (result,) = await wire.say(
            request(2, "greet", state=state_of(demand), answers=answers_to(demand, elicitation=ACCEPTED))
        )

        assert (2, "Hello Ada") == (result["id"], text(result))


async def test_questions_that_are_asked_together_are_one_demand() -> None:
    async with connected(asking_server()) as wire:
        (demand,) = await wire.say(request(1, "both"))

        assert ["elicitation", "roots"] == kinds_of(demand)

        answers = answers_to(demand, elicitation=ACCEPTED, roots={"roots": [{"uri": "file:///home"}]})
        (result,) = await wire.say(request(2, "both", state=state_of(demand), answers=answers))

        assert text(result) == "Ada at file:///home"


async def test_what_the_client_leaves_out_is_asked_again() -> None:
    async with connected(asking_server()) as wire:
        (demand,) = await wire.say(request(1, "both"))
        (again,) = await wire.say(
            request(2, "both", state=state_of(demand), answers=answers_to(demand, elicitation=ACCEPTED))
        )

        assert ["roots"] == kinds_of(again)

        answers = answers_to(again, roots={"roots": [{"uri": "file:///home"}]})
        (result,) = await wire.say(request(3, "both", state=state_of(again), answers=answers))

        assert text(result) == "Ada at file:///home"


async def test_answers_that_nobody_asked_for_are_ignored() -> None:
    async with connected(asking_server()) as wire:
        (demand,) = await wire.say(request(1, "greet"))
        answers = answers_to(demand, elicitation=ACCEPTED, weather={"action": "accept", "content": {"x": 1}})
        (result,) = await wire.say(request(2, "greet", state=state_of(demand), answers=answers))

        assert text(result) == "Hello Ada"


async def test_an_answer_that_is_not_valid_is_refused_and_the_client_may_try_again() -> None:
    async with connected(asking_server()) as wire:
        (demand,) = await wire.say(request(1, "greet"))
        wrong = answers_to(demand, elicitation={"action": "perhaps"})
        (refused,) = await wire.say(request(2, "greet", state=state_of(demand), answers=wrong))

        assert refused["error"]["code"] == -32602

        (result,) = await wire.say(
            request(3, "greet", state=state_of(demand), answers=answers_to(demand, elicitation=ACCEPTED))
        )

        assert text(result) == "Hello Ada"


@pytest.mark.parametrize(
    ("tool", "arguments", "spoil"),
    [
        ("greet", None, lambda state: state[:-2] + ("AA" if state[-2:] != "AA" else "BB")),
        ("greet", None, lambda _: "no state at all"),
        ("greet", None, lambda _: ""),
        ("both", None, lambda state: state),
        ("greet", {"greeting": "Bye"}, lambda state: state),
    ],
    ids=["forged", "nonsense", "empty", "other tool", "other arguments"],
)
async def test_a_state_that_is_not_ours_or_not_for_this_request_is_refused(
    tool: str, arguments: dict[str, Any] | None, spoil: Any
) -> None:
    async with connected(asking_server()) as wire:
        (demand,) = await wire.say(request(1, "greet"))
        state = spoil(state_of(demand))
        (refused,) = await wire.say(
            request(2, tool, arguments=arguments, state=state, answers=answers_to(demand, elicitation=ACCEPTED))
        )

        assert refused["error"]["code"] == -32602


async def test_a_state_that_is_used_twice_gets_the_recorded_answer_and_runs_nothing() -> None:
    server = asking_server()
    runs: list[int] = []

    @server.tool
    async def count(ctx: Context) -> str:
        await ctx.elicit("Really?", FORM)
        runs.append(1)
        return "done"

    async with connected(server) as wire:
        (demand,) = await wire.say(request(1, "count"))
        retry = {"state": state_of(demand), "answers": answers_to(demand, elicitation=ACCEPTED)}
        (first,) = await wire.say(request(2, "count", **retry))
        (second,) = await wire.say(request(3, "count", **retry))

        assert first["result"] == second["result"]
        assert (3, [1]) == (second["id"], runs)


async def test_a_retry_that_comes_twice_while_the_handler_runs_gets_one_answer_each() -> None:
    server = asking_server()
    gate = anyio.Event()

    @server.tool
    async def slow(ctx: Context) -> str:
        await ctx.elicit("Really?", FORM)
        await gate.wait()
        return "done"

    async with connected(server) as wire:
        (demand,) = await wire.say(request(1, "slow"))
        retry = {"state": state_of(demand), "answers": answers_to(demand, elicitation=ACCEPTED)}
        assert [] == await wire.say(request(2, "slow", **retry), request(3, "slow", **retry))
        gate.set()
        answers = await wire.rest()

        assert [2, 3] == sorted(each["id"] for each in answers)
        assert ["done", "done"] == [text(each) for each in answers]


async def test_cancelling_a_retry_cancels_the_handler_and_answers_those_who_asked_the_same() -> None:
    server = asking_server()
    given_up = anyio.Event()

    @server.tool
    async def slow(ctx: Context) -> str:
        await ctx.elicit("Really?", FORM)
        try:
            await anyio.sleep_forever()
        finally:
            given_up.set()
        return "never"

    async with connected(server) as wire:
        (demand,) = await wire.say(request(1, "slow"))
        retry = {"state": state_of(demand), "answers": answers_to(demand, elicitation=ACCEPTED)}
        await wire.say(request(2, "slow", **retry), request(3, "slow", **retry))
        answers = await wire.say(b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}')

        assert given_up.is_set()
        assert [(3, -32603)] == [(each["id"], each["error"]["code"]) for each in answers]


async def test_a_client_may_come_back_on_another_connection() -> None:
    server = asking_server()
    async with connected(server) as first, connected(server) as second:
        (demand,) = await first.say(request(1, "greet"))
        (result,) = await second.say(
            request(1, "greet", state=state_of(demand), answers=answers_to(demand, elicitation=ACCEPTED))
        )

        assert text(result) == "Hello Ada"
        assert [] == await first.rest()


async def test_nobody_comes_back_in_time_and_the_handler_is_cancelled() -> None:
    server = Server("asking", version="1", limits=Limits(waiting_seconds=0.02))
    given_up = anyio.Event()

    @server.tool
    async def greet(ctx: Context) -> str:
        try:
            await ctx.elicit("Who is there?", FORM)
        finally:
            given_up.set()
        return "never"

    async with connected(server) as wire:
        (demand,) = await wire.say(request(1, "greet"))
        with anyio.fail_after(PATIENCE_SECONDS):
            await given_up.wait()
        (late,) = await wire.say(
            request(2, "greet", state=state_of(demand), answers=answers_to(demand, elicitation=ACCEPTED))
        )

        assert (-32602, True) == (late["error"]["code"], "expired" in late["error"]["message"])


async def test_when_nothing_waits_any_more_no_connection_goes_on_looking(monkeypatch: pytest.MonkeyPatch) -> None:
    server = Server("asking", version="1", limits=Limits(waiting_seconds=0.02))
    given_up = anyio.Event()
    looks: list[int] = []
    expire = input_required.expire_parked
    monkeypatch.setattr(input_required, "expire_parked", lambda service: looks.append(1) or expire(service))

    @server.tool
    async def greet(ctx: Context) -> str:
        try:
            await ctx.elicit("Who is there?", FORM)
        finally:
            given_up.set()
        return "never"

    async with connected(server) as first, connected(server) as second:
        await first.say(request(1, "greet"))
        with anyio.fail_after(PATIENCE_SECONDS):
            await given_up.wait()
        await second.rest()
        before = len(looks)
        for _ in range(100):
            await anyio.lowlevel.checkpoint()

        assert before == len(looks)


async def demand_of(server: Server, tool: str) -> dict[str, Any]:
    """Return the demand of a server that then ends."""
    async with connected(server) as wire:
        (demand,) = await wire.say(request(1, tool))
        return demand


async def test_after_a_restart_a_handler_is_not_run_again_by_itself() -> None:
    demand = await demand_of(asking_server(state_keys=[KEY]), "greet")
    async with connected(asking_server(state_keys=[KEY])) as wire:
        (refused,) = await wire.say(
            request(2, "greet", state=state_of(demand), answers=answers_to(demand, elicitation=ACCEPTED))
        )

        assert {
            "code": -32602,
            "message": "The requestState belongs to a handler in another process of this server, and that process may "
            "have ended; send the request to that process, or without the requestState",
            "data": {"reason": "elsewhere"},
        } == refused["error"]


async def test_the_state_of_a_handler_that_has_ended_says_so() -> None:
    server = asking_server(state_keys=[KEY])
    async with connected(server) as wire:
        (demand,) = await wire.say(request(1, "greet"))
        (parked,) = server._engine.parked._rounds.values()
        server._engine.parked.forget(parked)
        (refused,) = await wire.say(
            request(2, "greet", state=state_of(demand), answers=answers_to(demand, elicitation=ACCEPTED))
        )

    assert {
        "code": -32602,
        "message": "The requestState belongs to a handler that has ended; send the request without it",
        "data": {"reason": "ended"},
    } == refused["error"]


@pytest.mark.parametrize("audience", [None, "both"])
async def test_a_server_refuses_the_states_of_another_with_the_same_keys(audience: str | None) -> None:
    def made(name: str) -> Server:
        server = Server(name, version="1", state_keys=[KEY], state_audience=audience)

        @server.tool(replay=True)
        async def greet(ctx: Context) -> str:
            return str((await ctx.elicit("Who is there?", FORM)).content)

        return server

    demand = await demand_of(made("shop"), "greet")
    async with connected(made("bank")) as wire:
        (answer,) = await wire.say(
            request(2, "greet", state=state_of(demand), answers=answers_to(demand, elicitation=ACCEPTED))
        )

    if audience is None:
        assert {"reason": "invalid"} == answer["error"]["data"]
    else:
        assert "{'name': 'Ada'}" == text(answer)


async def test_after_a_restart_without_the_key_a_state_is_worth_nothing() -> None:
    demand = await demand_of(asking_server(), "greet")
    async with connected(asking_server()) as wire:
        (refused,) = await wire.say(
            request(2, "greet", state=state_of(demand), answers=answers_to(demand, elicitation=ACCEPTED))
        )

        assert refused["error"]["code"] == -32602


def replaying_server(second_question: str = "And where?") -> Server:
    """Return a server whose tool may be run again with the answers that it got."""
    server = Server("replaying", version="1", state_keys=[KEY])

    @server.tool(replay=True)
    async def visit(ctx: Context) -> str:
        name = await ctx.elicit("Who is there?", FORM)
        place = await ctx.elicit(second_question, FORM)
        return f"{name.content and name.content['name']} at {place.content and place.content['name']}"

    return server


async def test_a_handler_that_may_run_again_goes_on_after_a_restart_with_the_answers_so_far() -> None:
    demand = await demand_of(replaying_server(), "visit")
    async with connected(replaying_server()) as wire:
        (demand,) = await wire.say(
            request(2, "visit", state=state_of(demand), answers=answers_to(demand, elicitation=ACCEPTED))
        )

        assert ["And where?"] == messages_of(demand)

    async with connected(replaying_server()) as wire:
        answers = answers_to(demand, elicitation={"action": "accept", "content": {"name": "Home"}})
        (result,) = await wire.say(request(3, "visit", state=state_of(demand), answers=answers))

        assert text(result) == "Ada at Home"


async def test_an_answer_is_not_taken_for_one_to_another_question() -> None:
    demand = await demand_of(replaying_server(), "visit")
    async with connected(replaying_server()) as wire:
        (demand,) = await wire.say(
            request(2, "visit", state=state_of(demand), answers=answers_to(demand, elicitation=ACCEPTED))
        )
    async with connected(replaying_server("And when?")) as wire:
        answers = answers_to(demand, elicitation={"action": "accept", "content": {"name": "Home"}})
        (demand,) = await wire.say(request(3, "visit", state=state_of(demand), answers=answers))

        assert ["And when?"] == messages_of(demand)


async def test_the_capabilities_of_the_retry_are_checked_anew() -> None:
    async with connected(asking_server()) as wire:
        (demand,) = await wire.say(request(1, "both"))
        (refused,) = await wire.say(
            request(
                2, "both", state=state_of(demand), answers=answers_to(demand, elicitation=ACCEPTED), capabilities={}
            )
        )

        assert -32021 == refused["error"]["code"]
        assert {"requiredCapabilities": {"roots": {}}} == refused["error"]["data"]


async def test_nothing_is_asked_that_the_client_has_not_declared() -> None:
    async with connected(asking_server()) as wire:
        (refused,) = await wire.say(request(1, "greet", capabilities={"roots": {}}))

        assert -32021 == refused["error"]["code"]
        assert {"requiredCapabilities": {"elicitation": {"form": {}}}} == refused["error"]["data"]


async def test_a_handler_can_do_without_what_the_client_cannot() -> None:
    server = asking_server()

    @server.tool
    async def polite(ctx: Context) -> str:
        try:
            await ctx.elicit("Who is there?", FORM)
        except UnsupportedByPeer as error:
            return f"Hello stranger ({error.required})"
        return "never"

    async with connected(server) as wire:
        (result,) = await wire.say(request(1, "polite", capabilities={}))

        assert text(result) == "Hello stranger ({'elicitation': {'form': {}}})"


async def test_progress_and_log_go_to_the_request_that_is_open() -> None:
    server = asking_server()

    @server.tool
    async def work(ctx: Context) -> str:
        await ctx.progress(1)
        await ctx.elicit("Go on?", FORM)
        await ctx.progress(2)
        await ctx.log("info", "going on")
        return "done"

    async with connected(server) as wire:
        first, demand = await wire.say(request(1, "work", progressToken="one"))
        retry = {"state": state_of(demand), "answers": answers_to(demand, elicitation=ACCEPTED)}
        logs = {"io.modelcontextprotocol/logLevel": "debug"}
        second, entry, result = await wire.say(request(2, "work", progressToken="two", **retry, **logs))

        assert ["one", "two"] == [each["params"]["progressToken"] for each in (first, second)]
        assert ("notifications/message", "done") == (entry["method"], text(result))


async def test_what_a_handler_returns_while_nobody_is_there_is_kept_for_the_retry() -> None:
    server = asking_server()
    ended = anyio.Event()
    gate = anyio.Event()

    @server.tool
    async def impatient(ctx: Context) -> str:
        async def ask() -> None:
            await ctx.elicit("Who is there?", FORM)

        async with anyio.create_task_group() as group:
            group.start_soon(ask)
            await gate.wait()
            group.cancel_scope.cancel()
        ended.set()
        return "without you"

    async with connected(server) as wire:
        (demand,) = await wire.say(request(1, "impatient"))
        gate.set()
        assert [] == await wire.rest()
        assert ended.is_set()
        (result,) = await wire.say(
            request(2, "impatient", state=state_of(demand), answers=answers_to(demand, elicitation=ACCEPTED))
        )

        assert text(result) == "without you"


async def test_no_more_handlers_wait_than_may() -> None:
    async with connected(asking_server(limits=Limits(max_waiting=1))) as wire:
        (demand,) = await wire.say(request(1, "greet"))
        (refused,) = await wire.say(request(2, "greet"))

        assert (-32603, True) == (refused["error"]["code"], "too many" in refused["error"]["message"])

        (result,) = await wire.say(
            request(3, "greet", state=state_of(demand), answers=answers_to(demand, elicitation=ACCEPTED))
        )

        assert text(result) == "Hello Ada"

        (demand,) = await wire.say(request(4, "greet"))  # a recorded answer makes room

        assert demand["result"]["resultType"] == "input_required"


async def test_a_handler_cannot_ask_for_ever() -> None:
    server = Server("asking", version="1", limits=Limits(max_rounds=2))

    @server.tool
    async def curious(ctx: Context) -> str:
        while True:
            await ctx.elicit("And then?", FORM)

    async with connected(server) as wire:
        (answer,) = await wire.say(request(1, "curious"))
        for number in (1, 2):
            answers = answers_to(answer, elicitation=ACCEPTED)
            (answer,) = await wire.say(request(1 + number, "curious", state=state_of(answer), answers=answers))

        assert (-32603, True) == (answer["error"]["code"], "too often" in answer["error"]["message"])


async def test_only_three_methods_may_ask() -> None:
    from mcpgen.runtime.protocol.newest import ServerHandlers, models

    class Nosy(ServerHandlers[Context]):
        async def list_tools(self, params: models.PaginatedRequestParams, context: Context) -> models.ListToolsResult:
            del params
            with pytest.raises(UnsupportedByPeer):
                await context.elicit("Who is there?", FORM)
            return models.ListToolsResult(tools=[], ttl_ms=0, cache_scope="private")

    async with connected(Server("nosy", version="1", handlers=Nosy())) as wire:
        (result,) = await wire.say(request(1, "unused", method="tools/list"))

        assert [] == result["result"]["tools"]


async def test_a_client_that_answers_with_an_object_of_the_wrong_shape_is_told() -> None:
    async with connected(asking_server()) as wire:
        (demand,) = await wire.say(request(1, "greet"))
        frame = request(2, "greet", state=state_of(demand)).replace(
            b'"requestState"', b'"inputResponses": [], "requestState"'
        )
        (refused,) = await wire.say(frame)

        assert refused["error"]["code"] == -32602


async def test_a_handler_that_fails_after_its_question_fails_the_retry() -> None:
    server = asking_server()

    @server.prompt
    async def ask(ctx: Context) -> str:
        await ctx.elicit("Who is there?", FORM)
        raise RequestError(-32602, "nobody")

    async with connected(server) as wire:
        (demand,) = await wire.say(request(1, "ask", method="prompts/get"))
        retry = {"state": state_of(demand), "answers": answers_to(demand, elicitation=ACCEPTED)}
        (refused,) = await wire.say(request(2, "ask", method="prompts/get", **retry))

        assert (2, "nobody") == (refused["id"], refused["error"]["message"])
