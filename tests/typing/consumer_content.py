"""Unions: the two type checkers see the exact arms, and narrow them in every way that people write."""

from __future__ import annotations

from typing import Literal, assert_never, assert_type

from mcpgen.generated.v2025_11_25 import (
    AudioContent,
    BlobResourceContents,
    CallToolResult,
    ContentBlock,
    ElicitRequestFormParams,
    ElicitRequestParams,
    ElicitRequestURLParams,
    EmbeddedResource,
    ImageContent,
    ReadResourceResult,
    ResourceLink,
    SamplingMessage,
    TextContent,
    TextResourceContents,
    ToolResultContent,
    ToolUseContent,
)


def the_items_of_a_result_are_exactly_the_five_kinds(result: CallToolResult) -> None:
    assert_type(result.content, list[ContentBlock])
    assert_type(result.content[0], TextContent | ImageContent | AudioContent | ResourceLink | EmbeddedResource)


def isinstance_narrows(block: ContentBlock) -> str:
    if isinstance(block, TextContent):
        assert_type(block, TextContent)
        return block.text
    if isinstance(block, (ImageContent, AudioContent)):
        assert_type(block, ImageContent | AudioContent)
        return block.mime_type
    assert_type(block, ResourceLink | EmbeddedResource)
    return block.uri if isinstance(block, ResourceLink) else block.resource.uri


def match_by_class_is_exhaustive(block: ContentBlock) -> str:
    match block:
        case TextContent(text=text):
            assert_type(text, str)
            return text
        case ImageContent(data=data) | AudioContent(data=data):
            assert_type(data, str)
            return data
        case ResourceLink():
            return block.uri
        case EmbeddedResource(resource=TextResourceContents(text=text)):
            return text
        case EmbeddedResource(resource=resource):
            return resource.uri
        case _:
            assert_never(block)


def the_constant_narrows(block: ContentBlock) -> str:
    if block.type == "text":
        assert_type(block, TextContent)
        return block.text
    if block.type == "image":
        assert_type(block, ImageContent)
        return block.data
    if block.type == "audio":
        assert_type(block, AudioContent)
        return block.mime_type
    if block.type == "resource":
        assert_type(block.type, Literal["resource"])
        return block.resource.uri
    assert_type(block, ResourceLink)
    return block.name


def match_by_constant_is_exhaustive(block: ContentBlock) -> str:
    match block.type:
        case "text" | "image" | "audio":
            return "content"
        case "resource_link" | "resource":
            return "resource"
        case _:
            assert_never(block.type)


def a_structural_union_narrows(embedded: EmbeddedResource, read: ReadResourceResult) -> str:
    assert_type(embedded.resource, TextResourceContents | BlobResourceContents)
    assert_type(read.contents, list[TextResourceContents | BlobResourceContents])
    match embedded.resource:
        case TextResourceContents(text=text):
            return text
        case BlobResourceContents(blob=blob):
            return blob
        case _:
            assert_never(embedded.resource)


def a_union_of_params_narrows(params: ElicitRequestParams) -> str:
    assert_type(params, ElicitRequestURLParams | ElicitRequestFormParams)
    if isinstance(params, ElicitRequestURLParams):
        return params.url
    assert_type(params.requested_schema, dict[str, object])
    return params.message


def one_block_or_a_list_of_them_narrows(message: SamplingMessage) -> int:
    if isinstance(message.content, list):
        first = message.content[0]
        assert_type(first, TextContent | ImageContent | AudioContent | ToolUseContent | ToolResultContent)
        return len(message.content)
    assert_type(message.content, TextContent | ImageContent | AudioContent | ToolUseContent | ToolResultContent)
    return 1
