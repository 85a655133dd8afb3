"""What authors give is judged each time that it is sent: types, and what types do not express."""

from __future__ import annotations

import enum
import logging
from typing import TYPE_CHECKING, Annotated, Any, NewType

import jsonschema_rs
import pydantic
import pytest
from msgspec import Meta

from mcpgen import Context, Server
from mcpgen.generated import registry
from mcpgen.generated.v2026_07_28 import InputRequiredResult
from mcpgen.runtime.errors import RequestError
from tests.specification.citation import LABELS, everywhere, since, spec, without_handshakes
from tests.specification.server.revision_client import client
from tests.specification.server.revision_server import CAPABILITIES, server

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.anyio

REFUSED = (-32603, "the server failed to handle this request")
ABLE = '{"roots":{},"sampling":{"tools":{}},"elicitation":{"form":{},"url":{}}}'
PARENT = "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01"


def models_of(revision: str) -> Any:
    return registry.revision(revision).bindings().models


def listing(*results: Any) -> Server:
    """Return a server of the newest revision whose `tools/list` returns *results*, one after the other."""
    left = list(results)

    async def list_tools(*_: Any) -> Any:
        return left.pop(0)

    return server(LABELS[-1], overrides={"list_tools": list_tools})


def prompting(revision: str, *contents: Any, role: Any = "user") -> Server:
    """Return a server whose prompt consists of each of *contents* in turn, with the last one's *role*."""
    left, models = list(contents), models_of(revision)

    async def get_prompt(*_: Any) -> Any:
        content = left.pop(0)
        return models.GetPromptResult(messages=[models.PromptMessage(role="user" if left else role, content=content)])

    return server(revision, overrides={"get_prompt": get_prompt})


def error_of(said: list[Any]) -> tuple[int, str]:
    return said[-1]["error"]["code"], said[-1]["error"]["message"]


@spec("2026-07-28", "basic/index#resulttype", "e5f5e7e3")
@without_handshakes
@pytest.mark.parametrize("kind", ["task", "com.example/later", ""])
async def test_a_type_of_results_that_no_declared_extension_has_is_refused_each_time(kind: str, revision: str) -> None:
    models = models_of(LABELS[-1])
    good, bad = (
        models.ListToolsResult(tools=[], ttl_ms=0, cache_scope="private", result_type=each)
        for each in ("complete", kind)
    )
    async with client(listing(bad, good, bad), revision) as peer:
        assert REFUSED == error_of(await peer.ask("tools/list"))
        assert [] == (await peer.result("tools/list"))["tools"]
        assert REFUSED == error_of(await peer.ask("tools/list"))


@spec("2026-07-28", "server/utilities/caching#time-to-live-ttl-field", "597d4710")
@without_handshakes
async def test_a_negative_lifetime_is_refused_in_every_result(revision: str) -> None:
    models = models_of(LABELS[-1])
    good, bad = (models.ListToolsResult(tools=[], ttl_ms=each, cache_scope="private") for each in (5, -5))
    async with client(listing(good, bad, good, bad), revision) as peer:
        assert [5, REFUSED, 5, REFUSED] == [
            (await peer.result("tools/list"))["ttlMs"],
            error_of(await peer.ask("tools/list")),
            (await peer.result("tools/list"))["ttlMs"],
            error_of(await peer.ask("tools/list")),
        ]


@spec("2025-11-25", "server/tools#output-schema", "a51d20f1")
@everywhere
async def test_a_result_of_wrong_types_is_refused_and_the_log_says_where(
    revision: str, caplog: pytest.LogCaptureFixture
) -> None:
    models = models_of(LABELS[-1])
    good = models.CallToolResult(content=[models.TextContent(text="fine")])
    results = [good, models.CallToolResult(content="nonsense"), good]

    async def give(*_: Any) -> Any:
        return results.pop(0)

    async with client(server(LABELS[-1], tools={"give": give}), revision) as peer:
        first, second, third = [(await peer.call("give"))[-1] for _ in range(3)]

    assert "fine" == first["result"]["content"][0]["text"] == third["result"]["content"][0]["text"]
    assert REFUSED == error_of([second])
    assert "at /content" in caplog.text
    assert "tools/call 'give' failed" in caplog.text


class Order(pydantic.BaseModel):
    item: str = pydantic.Field(min_length=2)


class Basket(pydantic.BaseModel):
    orders: list[Order]


async def assigned(item: str) -> Order:
    order = Order(item="tea")
    order.item = item
    return order


async def copied(item: str) -> Order:
    return Order(item="tea").model_copy(update={"item": item})


async def listed(item: str) -> list[Order]:
    return [Order.model_construct(item=item)]


async def nested(item: str) -> Basket:
    return Basket(orders=await listed(item))


@spec("2026-07-28", "server/tools#output-schema", "a51d20f1")
@pytest.mark.parametrize("revision", since("2025-06-18"))
@pytest.mark.parametrize("function", [assigned, copied, listed, nested])
async def test_a_model_that_was_never_checked_is_refused_and_the_log_says_where(
    function: Callable[[str], Any], revision: str, caplog: pytest.LogCaptureFixture
) -> None:
    server = Server("orders", version="1")
    server.tool(function, name="order")
    async with client(server, revision) as peer:
        (sent,) = await peer.call("order", '{"item":"soup"}')
        (refused,) = await peer.call("order", '{"item":"x"}')

    assert "soup" in str(sent["result"]["structuredContent"])
    assert refused["result"]["isError"] is True
    assert "structuredContent" not in refused["result"]
    assert "item`: String should have at least 2 characters" in caplog.text


Prices = Annotated[dict[str, int], Meta(min_length=1)]
PricesOrQuestion = Prices | InputRequiredResult


@spec("2026-07-28", "server/tools#output-schema", "a51d20f1")
@pytest.mark.parametrize("revision", since("2025-06-18"))
async def test_an_object_with_too_few_keys_for_its_annotation_is_refused(revision: str) -> None:
    server = Server("shop", version="1")

    @server.tool
    async def prices(found: dict[str, int]) -> Prices:
        return found

    @server.tool
    async def asked(found: dict[str, int]) -> PricesOrQuestion:
        return found

    async with client(server, revision) as peer:
        tools = (await peer.result("tools/list"))["tools"]
        sent = [(await peer.call(each["name"], '{"found":{"tea":9}}'))[0]["result"] for each in tools]
        refused = [(await peer.call(each["name"], '{"found":{}}'))[0]["result"] for each in tools]

    assert [1, 1] == [each["outputSchema"]["minProperties"] for each in tools]
    assert [{"tea": 9}] * 2 == [each["structuredContent"] for each in sent]
    assert [True, True] == [each["isError"] and "structuredContent" not in each for each in refused]


class Access(enum.IntFlag):
    READ = 1
    WRITE = 2


Key = NewType("Key", Access)


class Door(pydantic.BaseModel):
    access: Access


async def access() -> Access:
    return Access.READ | Access.WRITE


async def key() -> Key:
    return Key(Access.READ | Access.WRITE)


async def door() -> Door:
    return Door(access=Access.READ | Access.WRITE)


async def doors() -> dict[str, list[Access]]:
    return {"front": [Access(0), Access.READ | Access.WRITE]}


@spec("2025-06-18", "server/tools#output-schema", "a51d20f1")
@spec("2025-11-25", "server/tools#output-schema", "a51d20f1")
@spec("2026-07-28", "server/tools#output-schema", "a51d20f1")
@pytest.mark.parametrize("revision", since("2025-06-18"))
async def test_flags_together_conform_to_the_schema_of_the_tool(revision: str) -> None:
    server = Server("doors", version="1")
    for function in (access, key, door, doors):
        server.tool(function)
    async with client(server, revision) as peer:
        for tool in (await peer.result("tools/list"))["tools"]:
            (said,) = await peer.call(tool["name"])
            jsonschema_rs.Draft202012Validator(tool["outputSchema"]).validate(said["result"]["structuredContent"])


@spec("2026-07-28", "client/sampling#messages", "7b856663")
@pytest.mark.parametrize("revision", LABELS)
async def test_a_role_that_no_revision_has_is_refused(revision: str) -> None:
    models = models_of(LABELS[-1])

    async def ask(own: Any, _arguments: Any, context: Any) -> Any:
        for role in ("user", "system"):
            message = models.SamplingMessage(role=role, content=models.TextContent(text="hi"))
            await context.sample([message], max_tokens=5)
        return own.text("never")

    async with client(server(LABELS[-1], tools={"ask": ask}), revision, ABLE) as peer:
        said = await peer.call("ask")
        answer = '{"role":"assistant","content":{"type":"text","text":"x"},"model":"m"}'
        if peer.is_stateless:
            ((key, asked),) = said[0]["result"]["inputRequests"].items()
            state = said[0]["result"]["requestState"]
            retry = f'"inputResponses":{{"{key}":{answer}}},"requestState":"{state}"'
            said = await peer.ask("tools/call", f'"name":"ask","arguments":{{}},{retry}')
        else:
            asked = said[0]
            said = await peer.answer(asked, answer)

    assert "user" == asked["params"]["messages"][0]["role"]
    assert REFUSED == error_of(said)


@spec("2025-11-25", "server/prompts#promptmessage")
@everywhere
async def test_a_prompt_of_another_role_is_refused(revision: str) -> None:
    text = models_of(revision).TextContent(text="hi")
    async with client(prompting(revision, text, text, role="system"), revision) as peer:
        assert "messages" in await peer.result("prompts/get", '"name":"x"')
        assert REFUSED == error_of(await peer.ask("prompts/get", '"name":"x"'))


BAD_MEDIA = [{"data": "%%%"}, {"data": "QUI"}, {"data": "QU JD"}, {"mime_type": "nonsense"}, {"mime_type": "a/b/c"}]


@spec("2025-11-25", "server/prompts#image-content", "09ac4c8b")
@everywhere
@pytest.mark.parametrize("bad", BAD_MEDIA, ids=str)
async def test_an_image_has_base64_and_a_mime_type(revision: str, bad: dict[str, str]) -> None:
    good, kind = {"data": "QUJD", "mime_type": "image/png"}, models_of(revision).ImageContent
    async with client(prompting(revision, kind(**good), kind(**{**good, **bad})), revision) as peer:
        assert "messages" in await peer.result("prompts/get", '"name":"x"')
        assert REFUSED == error_of(await peer.ask("prompts/get", '"name":"x"'))


@spec("2025-11-25", "server/prompts#audio-content", "ced4b2f5")
@pytest.mark.parametrize("revision", since("2025-03-26"))
@pytest.mark.parametrize("bad", BAD_MEDIA, ids=str)
async def test_a_sound_has_base64_and_a_mime_type(revision: str, bad: dict[str, str]) -> None:
    good, kind = {"data": "QUJD", "mime_type": "audio/wav"}, models_of(revision).AudioContent
    async with client(prompting(revision, kind(**good), kind(**{**good, **bad})), revision) as peer:
        assert "messages" in await peer.result("prompts/get", '"name":"x"')
        assert REFUSED == error_of(await peer.ask("prompts/get", '"name":"x"'))


@spec("2025-11-25", "server/prompts#embedded-resources", "8d8b8f4b", "fa47f34a", "38511e5e")
@everywhere
async def test_an_embedded_resource_has_a_uri_a_mime_type_and_base64(revision: str) -> None:
    models = models_of(revision)

    def text(**fields: Any) -> Any:
        return models.EmbeddedResource(resource=models.TextResourceContents(text="a", **fields))

    def blob(data: str) -> Any:
        contents = models.BlobResourceContents(uri="file:///a", mime_type="text/plain", blob=data)
        return models.EmbeddedResource(resource=contents)

    bad = [
        text(uri="not a uri", mime_type="text/plain"),
        text(uri="x:%zz", mime_type="text/plain"),
        text(uri="file:///a"),
        text(uri="file:///a", mime_type="plain"),
        blob("%%%"),
    ]
    good = [text(uri="file:///a", mime_type="text/plain"), blob("QUJD")]
    async with client(prompting(revision, *good, *bad), revision) as peer:
        for _ in good:
            assert "messages" in await peer.result("prompts/get", '"name":"x"')
        for each in bad:
            assert REFUSED == error_of(await peer.ask("prompts/get", '"name":"x"')), each


@spec("2025-11-25", "server/resources#custom-uri-schemes", "172bca6c")
@pytest.mark.parametrize("revision", since("2025-06-18"))
@pytest.mark.parametrize("uri", ["not a uri", "x:%zz", "http://[::1", "x:\xe4", "x:a\\b", "1x:a"])
async def test_a_resource_with_an_invalid_uri_is_not_listed(revision: str, uri: str) -> None:
    models, left = models_of(revision), ["note://a", "urn:x:%20y", uri]

    async def list_resources(own: Any, *_: Any) -> Any:
        listed = models.Resource(uri=left.pop(0), name="a")
        more = {"ttl_ms": 0, "cache_scope": "private"} if revision == LABELS[-1] else {}
        return models.ListResourcesResult(resources=[listed], **more)

    async with client(server(revision, overrides={"list_resources": list_resources}), revision) as peer:
        assert "resources" in await peer.result("resources/list")
        assert "resources" in await peer.result("resources/list")
        assert REFUSED == error_of(await peer.ask("resources/list"))


@spec("2025-11-25", "server/resources#custom-uri-schemes", "172bca6c")
@pytest.mark.parametrize("revision", since("2025-06-18"))
@pytest.mark.parametrize("is_whole", [False, True])
async def test_a_resource_function_returns_contents_with_valid_uris(is_whole: bool, revision: str) -> None:  # noqa: FBT001
    own, models, left = Server("demo"), models_of(LABELS[-1]), ["a:c", "a_b://c", "a:\xe4"]

    @own.resource("a:{name}")
    async def read(name: str) -> Any:
        del name
        contents = [models.TextResourceContents(uri=left.pop(0), text="x")]
        return models.ReadResourceResult(contents=contents, ttl_ms=0, cache_scope="private") if is_whole else contents

    async with client(own, revision) as peer:
        assert "contents" in await peer.result("resources/read", '"uri":"a:b"')
        assert REFUSED == error_of(await peer.ask("resources/read", '"uri":"a:b"'))
        assert "contents" in await peer.result("resources/read", '"uri":"a:\xe4"')  # the client has written it


@spec("2025-11-25", "server/resources#custom-uri-schemes", "172bca6c")
@pytest.mark.parametrize("revision", since("2025-06-18"))
async def test_a_handler_returns_contents_with_valid_uris(revision: str) -> None:
    models, left = models_of(revision), ["a:c", "a_b://c", "a:\xe4"]

    async def read_resource(*_: Any) -> Any:
        contents = [models.TextResourceContents(uri=left.pop(0), text="x")]
        more = {"ttl_ms": 0, "cache_scope": "private"} if revision == LABELS[-1] else {}
        return models.ReadResourceResult(contents=contents, **more)

    async with client(server(revision, overrides={"read_resource": read_resource}), revision) as peer:
        assert "contents" in await peer.result("resources/read", '"uri":"a:b"')
        assert REFUSED == error_of(await peer.ask("resources/read", '"uri":"a:b"'))
        assert "contents" in await peer.result("resources/read", '"uri":"a:\xe4"')  # the client has written it


def with_meta(revision: str, *metas: dict[str, Any]) -> Server:
    left, models = list(metas), models_of(revision)

    async def give(*_: Any) -> Any:
        return models.CallToolResult(content=[], meta=left.pop(0))

    return server(revision, tools={"give": give})


@spec("2025-11-25", "basic/index#meta", "186c45da", "25ec8ba5", "350d4d51")
@spec("2026-07-28", "schema#metaobject", "5d1afdf8", "afeba099", "beeda7d4")
@pytest.mark.parametrize("revision", since("2025-06-18"))
@pytest.mark.parametrize(
    "key", ["-bad/x y!", "a b", "-a", "a-", ".a", "a_", "/a", "1a/b", "a-/b", "a..b/c", "a/b/c", "a/-b", "\xe4"]
)
async def test_a_key_of_the_metadata_has_the_form_that_the_specification_gives(revision: str, key: str) -> None:
    good = {"com.example/a_b-c.d1": 1, "a-1.b/": 2, "x": 3, "7": 4, "": 5}
    async with client(with_meta(revision, good, {key: 1}), revision) as peer:
        assert good.items() <= (await peer.call("give"))[-1]["result"]["_meta"].items()
        assert REFUSED == error_of(await peer.call("give"))


@spec("2026-07-28", "basic/index#meta", "5b240290")
@without_handshakes
@pytest.mark.parametrize(
    "bad",
    [
        {"traceparent": "zzz"},
        {"traceparent": f"ff{PARENT[2:]}"},
        {"traceparent": f"00-{'0' * 32}-00f067aa0ba902b7-01"},
        {"traceparent": PARENT.upper()},
        {"traceparent": 7},
        {"traceparent": None},
        {"tracestate": "Vendor=1"},
        {"tracestate": "a"},
        {"tracestate": "a=1,b=2, a=3"},
        {"tracestate": ",".join(f"k{each}=1" for each in range(33))},
        {"baggage": "a b"},
        {"baggage": "a=\xe4"},
        {"baggage": ""},
        {"baggage": None},
    ],
    ids=str,
)
async def test_trace_context_has_the_form_of_the_w3c(revision: str, bad: dict[str, Any]) -> None:
    good = {"traceparent": PARENT, "tracestate": "rojo=00f067aa,t@v=1", "baggage": "user=alice;p=1, b = c%20d"}
    async with client(with_meta(revision, good, bad), revision) as peer:
        assert good.items() <= (await peer.call("give"))[-1]["result"]["_meta"].items()
        assert REFUSED == error_of(await peer.call("give"))


@spec("2026-07-28", "basic/versioning#extension-negotiation", "3c7bc6e8")
@without_handshakes
@pytest.mark.parametrize("name", ["noprefix", "-a/b", "a/b c", "a/"])
async def test_an_extension_that_handlers_declare_has_an_identifier_with_a_prefix(revision: str, name: str) -> None:
    good, bad = ({**CAPABILITIES, "extensions": {each: {}}} for each in ("com.example/x", name))
    async with client(server(revision, capabilities=good), revision) as peer:
        assert {"com.example/x": {}} == (await peer.result("server/discover"))["capabilities"]["extensions"]
    async with client(server(revision, capabilities=bad), revision) as peer:
        assert REFUSED == error_of(await peer.ask("server/discover"))


USE = {"type": "tool_use", "id": "1", "name": "t", "input": {}}
RESULT = {"type": "tool_result", "toolUseId": "1", "content": []}
TEXT = {"type": "text", "text": "x"}


@spec("2025-11-25", "client/sampling#tool-use-and-result-balance", "00a7a128")
@spec("2025-11-25", "client/sampling#tool-result-messages", "54dd25b3")
@spec("2025-11-25", "client/sampling#security-considerations", "cf48d351")
@spec("2025-11-25", "schema#toolresultcontent", "cf7217ef")
@pytest.mark.parametrize("revision", since("2025-11-25"))
@pytest.mark.parametrize(
    "conversation",
    [
        [("user", TEXT), ("assistant", USE)],
        [("user", TEXT), ("assistant", USE), ("user", TEXT)],
        [("user", TEXT), ("assistant", USE), ("user", [RESULT, TEXT])],
        [("user", TEXT), ("assistant", USE), ("assistant", RESULT)],
        [("user", TEXT), ("assistant", USE), ("user", {**RESULT, "toolUseId": "2"})],
        [("user", TEXT), ("assistant", [USE, {**USE, "id": "2"}]), ("user", [RESULT])],
        [("user", TEXT), ("assistant", USE), ("user", [RESULT, RESULT])],
        [("user", TEXT), ("assistant", [USE, USE]), ("user", [RESULT])],
        [("user", TEXT), ("assistant", USE), ("user", TEXT), ("user", RESULT)],
        [("user", RESULT)],
        [("user", USE), ("user", RESULT)],
    ],
    ids=str,
)
async def test_a_conversation_with_tools_is_balanced(revision: str, conversation: list[tuple[str, Any]]) -> None:
    module = registry.revision(revision).bindings()
    good = [("user", TEXT), ("assistant", [USE, {**USE, "id": "2"}]), ("user", [{**RESULT, "toolUseId": "2"}, RESULT])]
    asked: list[list[tuple[str, Any]]] = [good, conversation]

    async def ask(own: Any, _arguments: Any, context: Any) -> Any:
        messages = [
            module.models.decode(module_json({"role": role, "content": content}), module.models.SamplingMessage)
            for role, content in asked.pop(0)
        ]
        params = module.models.CreateMessageRequestParams(messages=messages, max_tokens=5)
        await context.request(module.methods.CREATE_MESSAGE, params)
        return own.text("never")

    async with client(server(revision, tools={"ask": ask}), revision, ABLE) as peer:
        (first,) = await peer.call("ask")
        second = await peer.call("ask")

    sent = first["result"]["inputRequests"].popitem()[1] if peer.is_stateless else first
    assert [role for role, _ in good] == [each["role"] for each in sent["params"]["messages"]]
    assert REFUSED == error_of(second)


def module_json(value: object) -> bytes:
    import json

    return json.dumps(value).encode()


@spec("2025-11-25", "basic/index#implementation-requirements", "eb3922d8")
@spec("2026-07-28", "basic/index#implementation-requirements", "eb3922d8")
@pytest.mark.parametrize("revision", since("2025-11-25"))
@pytest.mark.parametrize(
    ("dialect", "is_sent"),
    [
        ("https://json-schema.org/draft/2020-12/schema", True),
        ("http://json-schema.org/draft-07/schema#", True),
        ("http://json-schema.org/draft-03/schema#", False),
        ("https://example.com/dialect", False),
    ],
)
async def test_a_form_in_a_dialect_that_is_not_supported_is_not_sent(
    revision: str,
    dialect: str,
    is_sent: bool,  # noqa: FBT001 (a column of the table)
) -> None:
    async def ask(own: Any, _arguments: Any, context: Any) -> Any:
        await context.elicit("Who are you?", {"$schema": dialect, "type": "object", "properties": {}})
        return own.text("never")

    async with client(server(LABELS[-1], tools={"ask": ask}), revision, ABLE) as peer:
        said = await peer.call("ask")

    if is_sent:
        asked = said[0]["result"]["inputRequests"].popitem()[1] if peer.is_stateless else said[0]
        assert dialect == asked["params"]["requestedSchema"]["$schema"]
    else:
        assert REFUSED == error_of(said)


@spec("2025-11-25", "client/elicitation#url-mode-elicitation-requests", "fd5361eb")
@spec("2025-11-25", "client/elicitation#safe-url-handling", "64c58a17")
@pytest.mark.parametrize("revision", since("2025-11-25"))
@pytest.mark.parametrize(
    ("url", "is_sent"),
    [
        ("https://example.com/in?a=b#c", True),
        ("https://[2001:db8::1]:8443/", True),
        ("http://localhost:3000/in", True),
        ("http://127.0.0.1/in", True),
        ("http://[::1]:3000/", True),
        ("http://example.com/in", False),
        ("http://127.0.0.1.example.com/", False),
        ("http://localhost@example.com/", False),
        ("javascript:alert(1)", False),
        ("data:text/html,x", False),
        ("file:///etc/passwd", False),
        ("not a url", False),
        ("https://", False),
        ("https://example.com:99999/", False),
        ("https://exa mple.com/", False),
        ("//example.com", False),
        ("", False),
    ],
)
async def test_a_user_is_sent_to_https_pages_and_to_their_own_machine_alone(
    revision: str,
    url: str,
    is_sent: bool,  # noqa: FBT001 (a column of the table)
) -> None:
    async def ask(own: Any, _arguments: Any, context: Any) -> Any:
        await context.elicit_url("Sign in.", url)
        return own.text("never")

    async with client(server(LABELS[-1], tools={"ask": ask}), revision, ABLE) as peer:
        said = await peer.call("ask")

    if is_sent:
        asked = said[0]["result"]["inputRequests"].popitem()[1] if peer.is_stateless else said[0]
        assert url == asked["params"]["url"]
    else:
        assert REFUSED == error_of(said)


@spec("2025-11-25", "client/elicitation#completion-notifications-for-url-mode-elicitation", "f8afe5fb", "f42a5e87")
async def test_a_function_reports_the_end_of_an_elicitation_under_its_id_to_the_client_that_was_asked() -> None:
    async def ask(own: Any, _arguments: Any, context: Any) -> Any:
        await context.elicit_url("Sign in.", "https://example.com/in", elicitation_id="page-7")
        await context.elicitation_completed("page-7")
        return own.text("done")

    made = server(LABELS[-1], tools={"ask": ask})
    async with client(made, "2025-11-25", ABLE) as peer, client(made, "2025-11-25", ABLE) as other:
        (asked,) = await peer.call("ask")
        told, said = await peer.answer(asked, '{"action":"accept"}')

        assert "page-7" == asked["params"]["elicitationId"]
        assert ("notifications/elicitation/complete", {"elicitationId": "page-7"}) == (told["method"], told["params"])
        assert "done" == said["result"]["content"][0]["text"]
        assert [] == await other.wire.rest()


@spec("2025-11-25", "client/elicitation#completion-notifications-for-url-mode-elicitation", "f42a5e87")
@pytest.mark.parametrize("is_refused", [False, True])
async def test_the_end_of_an_elicitation_that_another_client_got_is_reported_to_its_client_alone(
    is_refused: bool,  # noqa: FBT001 (a column of the table)
    caplog: pytest.LogCaptureFixture,
) -> None:
    page = {"mode": "url", "message": "Sign in.", "url": "https://example.com/in", "elicitationId": "page-7"}

    async def ask(own: Any, _arguments: Any, context: Any) -> Any:
        if is_refused:
            raise RequestError(-32042, "Sign in first.", {"elicitations": [page]})
        await context.elicit_url(page["message"], page["url"], elicitation_id=page["elicitationId"])
        return own.text("asked")

    async def finish(own: Any, _arguments: Any, context: Any) -> Any:
        await context.elicitation_completed("page-7")
        return own.text("done")

    made = server("2025-11-25", tools={"ask": ask, "finish": finish})
    async with client(made, "2025-11-25", ABLE) as peer, client(made, "2025-11-25", ABLE) as other:
        (asked,) = await peer.call("ask")
        if not is_refused:
            await peer.answer(asked, '{"action":"accept"}')
        by_other, by_itself = await other.call("finish"), await peer.call("finish")

    assert ["done"] == [each["result"]["content"][0]["text"] for each in by_other]
    assert "was sent to another client" in caplog.text
    assert "notifications/elicitation/complete" == by_itself[0]["method"]


@spec("2025-11-25", "client/elicitation#completion-notifications-for-url-mode-elicitation", "f42a5e87")
@pytest.mark.parametrize("is_refused", [False, True])
async def test_the_end_of_an_elicitation_that_a_stateless_client_got_is_not_reported_to_other_clients(
    is_refused: bool,  # noqa: FBT001 (a column of the table)
) -> None:
    page = {"mode": "url", "message": "Sign in.", "url": "https://example.com/in", "elicitationId": "page-7"}

    async def ask(own: Any, _arguments: Any, context: Any) -> Any:
        if is_refused:
            raise RequestError(-32042, "Sign in first.", {"elicitations": [page]})
        await context.elicit_url(page["message"], page["url"], elicitation_id=page["elicitationId"])
        return own.text("asked")

    async def finish(own: Any, _arguments: Any, context: Any) -> Any:
        await context.elicitation_completed("page-7")
        return own.text("done")

    made = server("2025-11-25", tools={"ask": ask, "finish": finish})
    async with client(made, "2026-07-28", ABLE) as peer, client(made, "2025-11-25", ABLE) as other:
        (asked,) = await peer.call("ask")
        said = await other.call("finish")

    assert "input_required" == asked["result"]["resultType"]
    assert ["done"] == [each["result"]["content"][0]["text"] for each in said]


@spec("2025-11-25", "client/elicitation#completion-notifications-for-url-mode-elicitation", "f42a5e87")
async def test_the_end_of_an_elicitation_is_not_reported_to_clients_of_other_views() -> None:
    made = Server("shop", version="1.0")

    @made.tool
    async def ask(page: str, ctx: Context) -> str:
        return await ctx.elicit_url("Sign in.", "https://example.com/in", elicitation_id=page)

    @made.tool
    async def finish(page: str, ctx: Context) -> None:
        await ctx.elicitation_completed(page)

    views = made.only(components={"tool"}), made.only(names={"ask", "finish"})
    async with (
        client(made, "2025-11-25", ABLE) as first,
        client(views[0], "2025-11-25", ABLE) as second,
        client(views[1], "2025-11-25", ABLE) as third,
    ):
        peers, told = (first, second, third), []
        for number, peer in enumerate(peers):
            page = f'{{"page":"page-{number}"}}'
            (asked,) = await peer.call("ask", page)
            await peer.answer(asked, '{"action":"accept"}')
            said = [await each.call("finish", page) for each in peers]
            told.append(["notifications/elicitation/complete" in str(each) for each in said])

    assert [[True, False, False], [False, True, False], [False, False, True]] == told


@spec("2026-07-28", "client/elicitation#url-mode-elicitation-requests")
@without_handshakes
async def test_a_stateless_client_is_not_told_of_ids(revision: str) -> None:
    async def ask(own: Any, _arguments: Any, context: Any) -> Any:
        await context.elicit_url("Sign in.", "https://example.com/in", elicitation_id="page-7")
        await context.elicitation_completed("page-7")
        return own.text("done")

    async with client(server(LABELS[-1], tools={"ask": ask}), revision, ABLE) as peer:
        (said,) = await peer.call("ask")
        ((key, asked),) = said["result"]["inputRequests"].items()
        state = said["result"]["requestState"]
        retry = f'"inputResponses":{{"{key}":{{"action":"accept"}}}},"requestState":"{state}"'
        (said,) = await peer.ask("tools/call", f'"name":"ask","arguments":{{}},{retry}')

    assert {"mode", "message", "url"} == asked["params"].keys()
    assert "done" == said["result"]["content"][0]["text"]


PAGE = {"mode": "url", "elicitationId": "1", "url": "https://example.com/in", "message": "Sign in."}
FORM = {"mode": "form", "message": "Who?", "requestedSchema": {"type": "object", "properties": {}}}


@spec("2025-11-25", "client/elicitation#url-elicitation-required-error", "7265fcf6", "a20bab2b")
@pytest.mark.parametrize("revision", since("2025-11-25"))
@pytest.mark.parametrize(
    "data",
    [
        None,
        {},
        {"elicitations": []},
        {"elicitations": "x"},
        {"elicitations": [FORM]},
        {"elicitations": [PAGE, FORM]},
        {"elicitations": [{key: PAGE[key] for key in ("mode", "url", "message")}]},
        {"elicitations": [{**PAGE, "url": "javascript:alert(1)"}]},
    ],
    ids=str,
)
async def test_an_error_that_asks_for_pages_lists_them(
    revision: str, data: Any, caplog: pytest.LogCaptureFixture
) -> None:
    given = [{"elicitations": [PAGE]}, data]

    async def locked(*_: Any) -> Any:
        each = given.pop(0)
        raise RequestError(-32042, "Sign in first.", *([] if each is None else [each]))

    async with client(server("2025-11-25", tools={"locked": locked}), revision, ABLE) as peer:
        (first,) = await peer.call("locked")
        second = await peer.call("locked")

    if peer.is_stateless:
        assert PAGE["url"] == first["result"]["inputRequests"].popitem()[1]["params"]["url"]
    else:
        assert (-32042, {"elicitations": [PAGE]}) == (first["error"]["code"], first["error"]["data"])
    assert REFUSED == error_of(second)
    assert "-32042" in caplog.text


@spec("2026-07-28", "basic/index#error-codes", "55794530", "5626cc01")
@without_handshakes
@pytest.mark.parametrize(
    ("code", "data"),
    [
        (-32020, None),
        (-32021, None),
        (-32021, {"requiredCapabilities": {}}),
        (-32021, {"requiredCapabilities": {"roots": {}}}),
        (-32022, None),
        (-32022, {"supported": ["2026-07-28"], "requested": "1"}),
        (-32023, None),
        (-32099, None),
        (-32042, None),
        (-32000, None),
        (-32019, None),
        (-32100, None),
        (-32768, None),
    ],
)
async def test_codes_with_a_meaning_are_not_for_authors(
    revision: str, code: int, data: Any, caplog: pytest.LogCaptureFixture
) -> None:
    async def give(*_: Any) -> Any:
        raise RequestError(code, "mine", *([] if data is None else [data]))

    async with client(server(LABELS[-1], tools={"give": give}), revision, '{"roots":{}}') as peer:
        assert REFUSED == error_of(await peer.call("give"))
    assert str(code) in caplog.text


@spec("2026-07-28", "basic/index#error-codes")
@without_handshakes
@pytest.mark.parametrize("code", [-31999, -32769, 7, 0, -32602, -32603])
async def test_other_codes_are_free(revision: str, code: int) -> None:
    async def give(*_: Any) -> Any:
        raise RequestError(code, "mine")

    async with client(server(LABELS[-1], tools={"give": give}), revision) as peer:
        assert (code, "mine") == error_of(await peer.call("give"))


@spec("2026-07-28", "basic/index#error-codes")
@without_handshakes
async def test_an_author_may_name_a_capability_that_the_client_lacks(revision: str) -> None:
    data = {"requiredCapabilities": {"sampling": {"tools": {}}}}

    async def give(*_: Any) -> Any:
        raise RequestError(-32021, "no tools", data)

    async with client(server(LABELS[-1], tools={"give": give}), revision, '{"sampling":{}}') as peer:
        (said,) = await peer.call("give")

    assert (-32021, data) == (said["error"]["code"], said["error"]["data"])


@spec("2025-11-25", "basic/index#error-responses", "1c51deab", "420ef085")
@everywhere
@pytest.mark.parametrize("message", [7, None, ["x"]], ids=repr)
async def test_an_error_has_an_integer_and_a_text(revision: str, message: Any) -> None:
    given = [RequestError(5, "fine"), RequestError(5, message)]

    async def give(*_: Any) -> Any:
        raise given.pop(0)

    async with client(server(LABELS[-1], tools={"give": give}), revision) as peer:
        assert (5, "fine") == error_of(await peer.call("give"))
        assert REFUSED == error_of(await peer.call("give"))


@spec("2026-07-28", "client/roots", "45ee0d16")
@spec("2026-07-28", "client/sampling", "e527ca7d")
@spec("2026-07-28", "server/utilities/logging", "af08d00a")
@everywhere
async def test_an_author_is_warned_once_of_deprecated_features_while_developing(
    revision: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def use(own: Any, _arguments: Any, context: Any) -> Any:
        await context.log("info", "x")
        if context.peer.era == "handshake":
            await context.roots()
        else:
            await context.sample("x", max_tokens=1)
        return own.text("never")

    made = server(LABELS[-1], tools={"use": use})
    async with client(made, revision, ABLE) as peer:
        await peer.call("use")
        assert "deprecates" not in caplog.text

        made.debug = True
        for _ in range(2):
            await peer.call("use")

    asked = (
        "roots (`Context.roots`); take paths" if revision != LABELS[-1] else "sampling (`Context.sample`); call the API"
    )
    for each in ("log entries to clients (`Context.log`); log to standard error", asked):
        assert 1 == caplog.text.count(f"2026-07-28 deprecates {each}")


@spec("2025-11-25", "basic/utilities/cancellation#implementation-notes")
@spec("2026-07-28", "basic/patterns/cancellation#implementation-notes")
@everywhere
async def test_the_reason_of_a_cancellation_is_logged(revision: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "mcpgen.session")
    async with client(server(LABELS[-1]), revision) as peer:
        assert [] == await peer.call("wait")
        cancel = '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1,"reason":"bored\\u0007"}}'
        assert [] == await peer.wire.say(cancel.encode())

    assert "has cancelled the request 1: bored" in caplog.text
    assert "\x07" not in caplog.text
