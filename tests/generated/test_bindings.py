"""How the generated bindings behave, whatever the revision: what docs/bindings.md promises."""

from __future__ import annotations

import copy
import pickle
import shutil
import subprocess
import sys
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from msgspec import UNSET

from mcpgen.generated import registry

if TYPE_CHECKING:
    from pathlib import Path
    from types import ModuleType

LABELS = [each.label for each in registry.REVISIONS]


@pytest.fixture(params=LABELS)
def mcp(request: pytest.FixtureRequest) -> ModuleType:
    return registry.revision(request.param).bindings()


def decoded(data: str, kind: Any) -> Any:
    return msgspec.json.decode(data.encode(), type=kind)


# Constants


def test_a_constant_is_required_on_the_wire(mcp: ModuleType) -> None:
    with pytest.raises(msgspec.ValidationError, match="missing required field `type`"):
        decoded('{"text":"hi"}', mcp.TextContent)


def test_a_constant_must_have_its_value(mcp: ModuleType) -> None:
    with pytest.raises(msgspec.ValidationError, match=r"`\$\.type`"):
        decoded('{"type":"image","text":"hi"}', mcp.TextContent)


def test_a_constant_is_filled_in_on_construction(mcp: ModuleType) -> None:
    assert b'{"type":"text","text":"hi"}' == msgspec.json.encode(mcp.TextContent(text="hi"))


def test_a_decoded_value_equals_a_constructed_one(mcp: ModuleType) -> None:
    assert mcp.TextContent(text="hi") == decoded('{"type":"text","text":"hi"}', mcp.TextContent)


def test_a_repr_shows_what_is_not_a_default(mcp: ModuleType) -> None:
    annotated = mcp.TextContent(text="hi", annotations=mcp.Annotations(priority=1))

    assert "TextContent(text='hi')" == repr(mcp.TextContent(text="hi"))
    assert "TextContent(text='hi', annotations=Annotations(priority=1))" == repr(annotated)
    assert "ListRootsResult(roots=[])" == repr(mcp.ListRootsResult(roots=[]))
    assert [("text", "hi")] == list(mcp.TextContent(text="hi").__rich_repr__())


def test_a_repr_is_an_expression_for_the_value(mcp: ModuleType) -> None:
    value = mcp.CallToolResult(content=[mcp.TextContent(text="hi")], is_error=True)

    assert value == eval(repr(value), vars(mcp))  # noqa: S307 (our own repr)


def test_a_repr_shows_a_preset_that_was_changed() -> None:
    mcp = registry.revision("2026-07-28").bindings()

    assert "ListToolsResult(tools=[])" == repr(mcp.ListToolsResult(tools=[]))
    assert "ListToolsResult(tools=[], ttl_ms=5)" == repr(mcp.ListToolsResult(tools=[], ttl_ms=5))


# Absent and null, int and float


def test_an_absent_key_is_unset_and_stays_absent(mcp: ModuleType) -> None:
    block = decoded('{"type":"text","text":"hi"}', mcp.TextContent)

    assert block.annotations is UNSET
    assert b"annotations" not in msgspec.json.encode(block)


def test_null_is_refused_where_the_schema_does_not_say_null(mcp: ModuleType) -> None:
    with pytest.raises(msgspec.ValidationError):
        decoded('{"type":"text","text":"hi","annotations":null}', mcp.TextContent)


def test_null_is_kept_where_the_schema_says_null() -> None:
    mcp = registry.revision("2025-11-25").bindings()
    data = b'{"createdAt":"a","lastUpdatedAt":"b","status":"working","taskId":"t","ttl":null}'
    task = msgspec.json.decode(data, type=mcp.Task)

    assert task.ttl is None
    assert msgspec.json.decode(data) == msgspec.json.decode(msgspec.json.encode(task))


@pytest.mark.parametrize("number", ["1", "1.0", "0.5", "1e3", "9007199254740993"])
def test_a_number_goes_out_as_it_came_in(mcp: ModuleType, number: str) -> None:
    data = f'{{"progressToken":1,"progress":{number}}}'
    params = decoded(data, mcp.ProgressNotificationParams)

    assert type(msgspec.json.decode(number)) is type(params.progress)
    assert msgspec.json.decode(number) == params.progress


def test_a_number_that_is_no_integer_is_refused_as_an_integer(mcp: ModuleType) -> None:
    with pytest.raises(msgspec.ValidationError, match="progressToken"):
        decoded('{"progressToken":1.5,"progress":1}', mcp.ProgressNotificationParams)


# Unions


BLOCKS = (
    '{"content":['
    '{"type":"text","text":"hi"},'
    '{"data":"AA==","mimeType":"image/png","type":"image"},'
    '{"type":"resource","resource":{"uri":"file:///a","blob":"AA=="}}'
    "]"
)


def call_tool_result(mcp: ModuleType) -> str:
    needs_type = "result_type" in mcp.CallToolResult.__struct_fields__
    return BLOCKS + (',"resultType":"complete"}' if needs_type else "}")


def test_the_arms_of_a_union_decode_to_their_own_classes(mcp: ModuleType) -> None:
    result = decoded(call_tool_result(mcp), mcp.CallToolResult)

    assert [mcp.TextContent, mcp.ImageContent, mcp.EmbeddedResource] == [type(block) for block in result.content]
    assert type(result.content[2].resource) is mcp.BlobResourceContents


def test_an_arm_of_a_union_is_an_instance_of_the_union(mcp: ModuleType) -> None:
    result = decoded(call_tool_result(mcp), mcp.CallToolResult)

    assert all(isinstance(block, mcp.ContentBlock) for block in result.content)
    assert not isinstance("hi", mcp.ContentBlock)


def test_a_union_without_the_tag_is_refused_with_its_place(mcp: ModuleType) -> None:
    data = call_tool_result(mcp).replace('"type":"text",', "")

    with pytest.raises(msgspec.ValidationError, match=r"`\$\.content\[0\]`"):
        decoded(data, mcp.CallToolResult)


def test_an_error_inside_a_structural_union_names_the_whole_way(mcp: ModuleType) -> None:
    data = call_tool_result(mcp).replace('"blob":"AA=="', '"blob":5')

    with pytest.raises(msgspec.ValidationError, match=r"in `resource\.blob`.* - at `\$\.content\[2\]`"):
        decoded(data, mcp.CallToolResult)


def test_of_two_arms_that_fit_the_one_that_keeps_more_keys_is_taken(mcp: ModuleType) -> None:
    data = '{"jsonrpc":"2.0","id":1,"method":"ping"}'

    assert type(mcp.decode(data, mcp.JSONRPCMessage)) is mcp.JSONRPCRequest
    assert type(mcp.decode(data.replace('"id":1,', ""), mcp.JSONRPCMessage)) is mcp.JSONRPCNotification


def test_constructed_arms_of_a_structural_union_stay_as_they_are(mcp: ModuleType) -> None:
    contents = mcp.TextResourceContents(uri="file:///a", text="hi")

    assert contents is mcp.EmbeddedResource(resource=contents).resource


def test_decoded_values_can_be_copied_and_pickled(mcp: ModuleType) -> None:
    result = decoded(call_tool_result(mcp), mcp.CallToolResult)

    assert result == pickle.loads(pickle.dumps(result))  # noqa: S301 our own bytes
    assert result == copy.deepcopy(result)
    assert "other" == msgspec.structs.replace(result.content[0], text="other").text


def test_values_are_frozen_and_leaves_can_be_hashed(mcp: ModuleType) -> None:
    hint = mcp.ModelHint(name="a")

    with pytest.raises(AttributeError):
        hint.name = "b"
    assert {hint} == {mcp.ModelHint(name="a")}


# Open objects


def test_an_open_object_keeps_unknown_keys_and_their_order(mcp: ModuleType) -> None:
    data = b'{"inputSchema":{"z":1,"type":"object","a":[1.0,2]},"name":"t"}'
    tool = msgspec.json.decode(data, type=mcp.Tool)

    assert ["z", "type", "a"] == list(tool.input_schema)
    assert data == msgspec.json.encode(tool)


def test_the_known_keys_of_an_open_object_are_checked_with_their_place(mcp: ModuleType) -> None:
    with pytest.raises(msgspec.ValidationError, match=r"`object`|Invalid enum value.*inputSchema\.type"):
        decoded('{"inputSchema":{"type":"string"},"name":"t"}', mcp.Tool)
    with pytest.raises(ValueError, match="in `inputSchema`"):
        mcp.Tool(name="t", input_schema={})


def test_a_view_shows_the_known_keys_typed(mcp: ModuleType) -> None:
    view = mcp.RequestMetaObject.view(request_meta(mcp, progressToken=7))

    assert 7 == view.progress_token
    assert 7 == view.as_dict()["progressToken"]


def request_meta(mcp: ModuleType, **more: object) -> dict[str, object]:
    if "protocol_version" not in mcp.RequestMetaObject.__struct_fields__:
        return {**more}
    prefix = "io.modelcontextprotocol/"
    return {f"{prefix}protocolVersion": mcp.REVISION, f"{prefix}clientCapabilities": {}, **more}


def test_every_request_can_carry_a_progress_token(mcp: ModuleType) -> None:
    params = mcp.CallToolRequestParams(name="t", meta=request_meta(mcp, progressToken="p"))
    again = msgspec.json.decode(msgspec.json.encode(params), type=mcp.CallToolRequestParams)

    assert "p" == again.meta["progressToken"]


def test_a_closed_object_drops_what_it_does_not_know(mcp: ModuleType) -> None:
    assert b'{"name":"a"}' == msgspec.json.encode(decoded('{"name":"a","x":1}', mcp.ModelHint))


# Decoding


def test_decode_takes_open_objects_unions_and_types_made_of_them(mcp: ModuleType) -> None:
    result = {"resultType": "complete", "extra": {"a": 1.0}}

    assert result == mcp.decode(msgspec.json.encode(result), mcp.Result)
    notification = mcp.decode(b'[{"jsonrpc":"2.0","method":"a"}]', list[mcp.JSONRPCMessage])[0]
    assert mcp.JSONRPCNotification(method="a") == notification
    assert "assistant" == mcp.decode(b'"assistant"', mcp.Role)
    with pytest.raises(msgspec.ValidationError):
        mcp.decode(b"5", mcp.JSONRPCMessage)
    with pytest.raises(msgspec.DecodeError):
        mcp.decode(b"{", mcp.JSONRPCMessage)


def test_every_name_of_the_models_can_be_decoded(mcp: ModuleType) -> None:
    for name in {*mcp.models.__all__, *mcp.messages.__all__} - {"decode", "decoder"}:
        kind = getattr(mcp, name)
        mcp.decoder(kind)
        if isinstance(kind, type):
            msgspec.json.Decoder(kind)


def test_types_made_of_open_objects_keep_all_their_keys(mcp: ModuleType) -> None:
    data = b'{"resultType":"x","anything":1}'

    assert [msgspec.json.decode(data)] == mcp.decode(b"[" + data + b"]", list[mcp.Result])
    assert {"a": msgspec.json.decode(data)} == mcp.decode(b'{"a":' + data + b"}", dict[str, mcp.Result])
    assert msgspec.json.decode(data) == mcp.decode(data, mcp.Result | None)


def test_a_type_that_cannot_be_settled_is_refused_when_its_decoder_is_made(mcp: ModuleType) -> None:
    with pytest.raises(TypeError, match="which cannot be decoded inside this type"):
        mcp.decoder(tuple[mcp.JSONRPCMessage, ...])


def test_deep_nesting_is_refused_and_never_crashes(mcp: ModuleType) -> None:
    data = '{"resultType":"x","a":' + "[" * 10_000 + "]" * 10_000 + "}"

    with pytest.raises(msgspec.DecodeError, match="nested too deeply"):
        mcp.decode(data, mcp.Result)


def test_a_dec_hook_is_not_asked_about_plain_json(mcp: ModuleType) -> None:
    def hook(kind: type, value: object) -> object:
        raise NotImplementedError(kind, value)

    data = b'{"name":"t","inputSchema":{"type":"object","a":[1]}}'

    assert [1] == msgspec.json.decode(data, type=mcp.Tool, dec_hook=hook).input_schema["a"]


def test_every_class_has_a_json_schema(mcp: ModuleType) -> None:
    kinds = [getattr(mcp, name) for name in (*mcp.models.__all__, *mcp.messages.__all__)]
    schemas = [msgspec.json.schema(kind) for kind in kinds if isinstance(kind, type)]

    assert all(isinstance(schema, dict) for schema in schemas)


def test_an_unknown_key_of_an_arm_is_dropped_whatever_it_is_called(mcp: ModuleType) -> None:
    fields = mcp.TextContent.__struct_encode_fields__
    key = "\x7f" * (max(map(len, fields)) + 1)
    data = call_tool_result(mcp).replace('"text":"hi"', f'"text":"hi","{key}":5')

    assert mcp.TextContent(text="hi") == decoded(data, mcp.CallToolResult).content[0]


def test_a_subclass_may_declare_a_constant_anew(mcp: ModuleType) -> None:
    class Mine(mcp.TextContent, kw_only=True, frozen=True):  # type: ignore[name-defined, misc]  # chosen at run time
        type: str = "mine"

    assert b'"mine"' in msgspec.json.encode(Mine(text="a"))


def test_a_structural_union_refuses_a_foreign_class_on_construction(mcp: ModuleType) -> None:
    with pytest.raises(ValueError, match="Expected `TextResourceContents` or `BlobResourceContents`"):
        mcp.EmbeddedResource(resource=mcp.TextContent(text="q"))


# Modules


def test_envelopes_are_messages_and_what_they_hold_are_models(mcp: ModuleType) -> None:
    envelopes, models = set(mcp.messages.__all__), set(mcp.models.__all__)

    assert {"CallToolRequest", "ClientRequest", "JSONRPCMessage", "ServerNotification", "ServerResult"} <= envelopes
    assert {"CallToolRequestParams", "CallToolResult", "RequestId", "TextContent", "Tool"} <= models
    assert set() == envelopes & models
    assert [] == [name for name in envelopes | models if not hasattr(mcp, name)]


def test_envelopes_are_imported_when_they_are_first_used(mcp: ModuleType) -> None:
    name = mcp.__name__
    program = (
        f"import sys, {name} as mcp\n"
        f"assert '{name}.messages' not in sys.modules\n"
        "assert mcp.PingRequest is mcp.messages.PingRequest if hasattr(mcp, 'PingRequest') else mcp.ClientRequest\n"
        "assert 'CallToolRequest' in dir(mcp) and dir(mcp) == list(mcp.__all__)\n"
        "assert not hasattr(mcp, 'NoSuchName') and not hasattr(mcp, '__no_such_name__')\n"
        f"from {name} import *\n"
        "assert CallToolRequest is mcp.messages.CallToolRequest\n"
        "assert not hasattr(mcp, '__getattr__')\n"  # then CPython specializes accesses to the package again
    )
    done = subprocess.run([sys.executable, "-c", program], check=False, capture_output=True, encoding="utf-8")

    assert (0, "") == (done.returncode, done.stderr)


def test_a_class_names_the_page_of_its_revision(mcp: ModuleType) -> None:
    url = f"https://modelcontextprotocol.io/specification/{mcp.REVISION}/server/tools#calling-tools"

    assert f"Spec: {url}" in mcp.CallToolRequest.__doc__
    assert f"Spec: {url}" in mcp.ServerHandlers.call_tool.__doc__


def test_the_reserved_keys_of_meta_have_names() -> None:
    old, new = (registry.revision(label).bindings() for label in ("2025-11-25", "2026-07-28"))

    assert "io.modelcontextprotocol/related-task" == old.MetaKey.RELATED_TASK
    assert {
        "CLIENT_CAPABILITIES": "io.modelcontextprotocol/clientCapabilities",
        "CLIENT_INFO": "io.modelcontextprotocol/clientInfo",
        "LOG_LEVEL": "io.modelcontextprotocol/logLevel",
        "PROTOCOL_VERSION": "io.modelcontextprotocol/protocolVersion",
        "SERVER_INFO": "io.modelcontextprotocol/serverInfo",
        "SUBSCRIPTION_ID": "io.modelcontextprotocol/subscriptionId",
    } == {name: key for name, key in vars(new.MetaKey).items() if name.isupper()}


# Methods and stubs


def test_the_tables_name_every_method_with_types_that_decode(mcp: ModuleType) -> None:
    methods = mcp.methods
    for table in (methods.CLIENT_REQUESTS, methods.SERVER_REQUESTS, methods.INPUT_REQUESTS):
        for name, method in table.items():
            assert name == method.name
            mcp.decoder(method.params)
            mcp.decoder(method.result)
    for table in (methods.CLIENT_NOTIFICATIONS, methods.SERVER_NOTIFICATIONS):
        for name, method in table.items():
            assert name == method.name
            mcp.decoder(method.params)


# FACTS of the documents: requests and notifications, from clients and from servers, by revision.
COUNTS = {
    "2024-11-05": (13, 3, 4, 7),
    "2025-03-26": (13, 3, 4, 7),
    "2025-06-18": (13, 4, 4, 7),
    "2025-11-25": (17, 8, 5, 9),
    "2026-07-28": (10, 0, 1, 8),
}


@pytest.mark.parametrize("label", LABELS)
def test_the_tables_are_complete(label: str) -> None:
    methods = registry.revision(label).bindings().methods
    tables = (
        methods.CLIENT_REQUESTS,
        methods.SERVER_REQUESTS,
        methods.CLIENT_NOTIFICATIONS,
        methods.SERVER_NOTIFICATIONS,
    )

    assert COUNTS[label] == tuple(len(table) for table in tables)


def test_capabilities_follow_from_what_is_overridden(mcp: ModuleType) -> None:
    class Handlers(mcp.ServerHandlers[None]):  # type: ignore[name-defined, misc]  # a class chosen at run time
        async def list_tools(self, params: Any, context: None, /) -> Any: ...

    class Nothing(mcp.ServerHandlers[None]):  # type: ignore[name-defined, misc]  # a class chosen at run time
        pass

    assert b'{"tools":{}}' == msgspec.json.encode(Handlers().capabilities())
    assert b"{}" == msgspec.json.encode(Nothing().capabilities())


def test_a_boolean_capability_is_declared_as_true() -> None:
    mcp = registry.revision("2025-06-18").bindings()

    class Handlers(mcp.ServerHandlers[None]):  # type: ignore[name-defined, misc]  # a class chosen at run time
        async def subscribe(self, params: Any, context: None, /) -> Any: ...

        async def read_resource(self, params: Any, context: None, /) -> Any: ...

    assert b'{"resources":{"subscribe":true}}' == msgspec.json.encode(Handlers().capabilities())


def run(coroutine: Any) -> Any:
    """Return the result of a coroutine that never waits."""
    with pytest.raises(StopIteration) as stopped:
        coroutine.send(None)
    return stopped.value.value


def test_a_method_that_is_not_overridden_is_unhandled(mcp: ModuleType) -> None:
    with pytest.raises(mcp.Unhandled) as raised:
        mcp.ServerHandlers().call_tool(None, None).send(None)

    assert "tools/call" == raised.value.method


def test_a_notification_that_is_not_overridden_is_ignored(mcp: ModuleType) -> None:
    assert run(mcp.ServerHandlers().cancelled(None, None)) is None


class Recorder:
    """A sender that answers every request with nothing."""

    def __init__(self) -> None:
        self.sent: list[tuple[str, object]] = []

    async def request(self, method: Any, params: object, /) -> Any:
        self.sent.append((method.name, params))
        return None

    async def notify(self, method: Any, params: object, /) -> None:
        self.sent.append((method.name, params))


def test_the_client_stub_sends_what_it_is_given(mcp: ModuleType) -> None:
    recorder = Recorder()
    params = mcp.CallToolRequestParams(name="t", meta=request_meta(mcp))
    run(mcp.ClientMethods(recorder).call_tool(params))

    assert [("tools/call", params)] == recorder.sent


def test_optional_parameters_may_be_left_out() -> None:
    recorder = Recorder()
    run(registry.revision("2025-11-25").bindings().ClientMethods(recorder).list_tools())

    assert [("tools/list", UNSET)] == recorder.sent


# Packages


def test_an_unknown_revision_is_refused_with_those_there_are() -> None:
    with pytest.raises(registry.UnknownRevision, match=r"2024-11-05, .*2026-07-28"):
        registry.revision("2024-11-06")


@pytest.mark.parametrize("label", LABELS)
def test_a_package_copied_with_its_support_works_with_msgspec_alone(label: str, tmp_path: Path) -> None:
    package = registry.revision(label).package
    for folder in (package, "_support"):
        target = tmp_path / "mine" / folder
        target.mkdir(parents=True)
        for source in files("mcpgen.generated").joinpath(folder).iterdir():
            if source.name.endswith(".py"):
                target.joinpath(source.name).write_bytes(source.read_bytes())
    program = (
        "import sys; sys.modules.update(dict.fromkeys(['mcpgen', 'click', 'anyio', 'jinja2', 'pydantic']))\n"
        f"from mine.{package} import TextContent, decode\n"
        'assert decode(\'{"type":"text","text":"hi"}\', TextContent) == TextContent(text=\'hi\')\n'
    )
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n{program}"],
        check=False,
        capture_output=True,
        encoding="utf-8",
    )
    shutil.rmtree(tmp_path / "mine")

    assert (0, "") == (done.returncode, done.stderr)


def test_importing_a_revision_loads_no_other(mcp: ModuleType) -> None:
    program = (
        f"import sys, {mcp.__name__}\n"
        "print(sorted({name.split('.')[2] for name in sys.modules if name.startswith('mcpgen.generated.v')}))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, encoding="utf-8")

    assert str([mcp.__name__.rsplit(".", 1)[1]]) == done.stdout.strip()


def test_capabilities_of_one_server_do_not_show_in_another() -> None:
    mcp = registry.revision("2025-11-25").bindings()

    class Lists(mcp.ServerHandlers[None]):  # type: ignore[name-defined, misc]  # a class chosen at run time
        async def list_resources(self, params: Any, context: None, /) -> Any: ...

    class Subscribes(Lists):
        async def subscribe(self, params: Any, context: None, /) -> Any: ...

    assert b'{"resources":{"subscribe":true}}' == msgspec.json.encode(Subscribes().capabilities())
    assert b'{"resources":{}}' == msgspec.json.encode(Lists().capabilities())


# Presets of 2026-07-28


def test_a_preset_is_filled_in_on_construction_and_required_on_the_wire() -> None:
    mcp = registry.revision("2026-07-28").bindings()
    result = mcp.ListToolsResult(tools=[])

    assert ("complete", 0, "private") == (result.result_type, result.ttl_ms, result.cache_scope)
    assert 60_000 == mcp.ListToolsResult(tools=[], ttl_ms=60_000).ttl_ms
    with pytest.raises(msgspec.ValidationError, match="resultType"):
        decoded('{"content":[]}', mcp.CallToolResult)


def test_a_final_result_never_decodes_as_a_demand_for_input() -> None:
    mcp = registry.revision("2026-07-28").bindings()
    kind = mcp.methods.CALL_TOOL.result

    assert mcp.InputRequiredResult(request_state="s") == mcp.decode(
        '{"resultType":"input_required","requestState":"s"}', kind
    )
    with pytest.raises(msgspec.ValidationError):
        mcp.decode('{"resultType":"complete"}', kind)
