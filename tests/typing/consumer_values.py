"""Values: decoding, absence, open objects and their views, constants, the registry."""

from __future__ import annotations

from types import ModuleType
from typing import Literal, assert_type

import msgspec
from msgspec import UNSET, UnsetType

from mcpgen.generated import registry, v2025_11_25, v2026_07_28
from mcpgen.generated.v2025_11_25 import (
    CallToolRequestParams,
    CallToolResult,
    ContentBlock,
    Implementation,
    RequestMetaObject,
    TextContent,
    Tool,
    ToolInputSchema,
    decode,
)


def decoding_a_class_gives_an_instance(data: bytes) -> None:
    assert_type(decode(data, CallToolResult), CallToolResult)
    assert_type(decode("{}", Tool), Tool)
    assert_type(msgspec.json.decode(data, type=CallToolResult), CallToolResult)


def decoding_an_open_object_gives_a_dict_with_all_keys(data: bytes) -> None:
    assert_type(decode(data, RequestMetaObject), dict[str, object])
    assert_type(decode(data, v2025_11_25.Result), dict[str, object])
    assert_type(v2026_07_28.decode(data, v2026_07_28.RequestMetaObject), dict[str, object])


def decoding_an_alias_takes_the_type_that_is_written_beside_it(data: bytes) -> None:
    block: ContentBlock = decode(data, ContentBlock)
    params: v2025_11_25.ElicitRequestParams = decode(data, v2025_11_25.ElicitRequestParams)
    blocks: list[ContentBlock] = v2025_11_25.decoder(list[ContentBlock])(data)

    assert_type(block, ContentBlock)
    assert_type(params, v2025_11_25.ElicitRequestParams)
    assert_type(blocks, list[ContentBlock])


def absence_is_a_value_of_its_own(implementation: Implementation, tool: Tool) -> str:
    assert_type(implementation.title, str | UnsetType)
    if implementation.title is UNSET:
        assert_type(implementation.title, Literal[UnsetType.UNSET])
        return implementation.name
    assert_type(implementation.title, str)
    return implementation.title if tool.description is UNSET else tool.description.upper()


def absence_narrows_by_class_too(tool: Tool) -> bool:
    if isinstance(tool.annotations, UnsetType):
        return False
    assert_type(tool.annotations, v2025_11_25.ToolAnnotations)
    return tool.annotations.read_only_hint is True


def null_is_a_value_only_where_the_schema_has_it(task: v2025_11_25.Task, error: v2025_11_25.Error) -> None:
    assert_type(task.ttl, int | None)
    assert_type(task.poll_interval, int | UnsetType)
    assert_type(error.data, object | UnsetType)


def an_open_object_is_a_dict(params: CallToolRequestParams, tool: Tool) -> None:
    assert_type(params.meta, dict[str, object] | UnsetType)
    assert_type(tool.input_schema, dict[str, object])
    assert_type(tool.output_schema, dict[str, object] | UnsetType)


def a_view_types_the_known_keys(params: CallToolRequestParams) -> None:
    if params.meta is UNSET:
        return
    view = RequestMetaObject.view(params.meta)
    assert_type(view, RequestMetaObject)
    assert_type(view.progress_token, str | int | UnsetType)
    assert_type(view.as_dict(), dict[str, object])


def a_view_of_the_stateless_era_knows_the_peer(meta: dict[str, object]) -> str:
    view = v2026_07_28.RequestMetaObject.view(meta)
    assert_type(view.client_capabilities, v2026_07_28.ClientCapabilities)
    assert_type(view.client_info, v2026_07_28.Implementation | UnsetType)
    assert_type(view.log_level, v2026_07_28.LoggingLevel | UnsetType)
    return view.protocol_version


def a_view_makes_the_dict_that_a_message_holds() -> CallToolRequestParams:
    schema = ToolInputSchema(properties={"city": {"type": "string"}}, required=["city"])
    Tool(name="weather", input_schema=schema.as_dict())
    return CallToolRequestParams(name="weather", meta=RequestMetaObject(progress_token=7).as_dict())


def constants_are_literals_that_nobody_types() -> None:
    assert_type(TextContent(text="hi").type, Literal["text"])
    request = v2025_11_25.CallToolRequest(id=1, params=CallToolRequestParams(name="weather"))
    assert_type(request.method, Literal["tools/call"])
    assert_type(request.jsonrpc, Literal["2.0"])


def numbers_keep_their_kind(progress: v2025_11_25.ProgressNotificationParams) -> None:
    assert_type(progress.progress, int | float)
    assert_type(progress.progress_token, str | int)


def the_registry_knows_the_revisions() -> None:
    assert_type(registry.REVISIONS, tuple[registry.Revision, ...])
    newest = registry.REVISIONS[-1]
    assert_type(newest.label, str)
    assert_type(newest.era, Literal["handshake", "stateless"])
    assert_type(newest.bindings(), ModuleType)
    assert_type(registry.revision("2025-11-25"), registry.Revision)


def the_door_knows_its_revision() -> None:
    label: str = v2025_11_25.REVISION
    registry.revision(label)
    assert_type(v2025_11_25.ERA, Literal["handshake", "stateless"])
    assert_type(v2025_11_25.ErrorCode.INVALID_PARAMS.value, Literal[-32602])
