"""2025-11-25 adds tasks, URL elicitation, more kinds of choices in forms, and tools in sampling.

Going down, tasks and URL elicitation are refused. Every choice becomes the one kind that 2025-06-18 has. A sampling
message with several blocks becomes several messages. Tool calls and tool results in sampling become text.
"""

from __future__ import annotations

import json
from typing import Any, cast

from mcpgen.codegen.changes.vocabulary import (
    At,
    Change,
    Convert,
    Drop,
    Keep,
    Losses,
    Read,
    Recode,
    Refuse,
    Step,
)

__all__ = ["STEP"]


def form_or_nothing(capabilities: dict[str, Any], at: At, losses: Losses) -> dict[str, Any]:
    """Return client capabilities, without ``elicitation`` if the client supports only URL mode."""
    modes = capabilities.get("elicitation", {})
    if modes.get("form") == {}:  # an absent `form` means the same
        return {**capabilities, "elicitation": {key: value for key, value in modes.items() if key != "form"}}
    if "form" in modes:
        return capabilities
    if "url" not in modes:
        return capabilities
    losses.dropped((at, "elicitation"), "This client supports URL elicitation only, and 2025-06-18 has only forms.")
    return {key: value for key, value in capabilities.items() if key != "elicitation"}


def as_form(params: dict[str, Any], _at: At, _losses: Losses) -> dict[str, Any]:
    """Return a form elicitation without ``mode``; an absent mode means a form."""
    return {key: value for key, value in params.items() if key != "mode"}


def named_options(schema: dict[str, Any], at: At, losses: Losses) -> dict[str, Any]:
    """Return a choice whose titles are in ``enumNames`` instead of in each option."""
    kept = {key: value for key, value in schema.items() if key != "oneOf"}
    titled = schema["oneOf"]  # each option has `const` and `title`: otherwise the schema has another type
    if any(each.keys() - {"const", "title"} for each in titled):
        losses.degraded(
            (at, "oneOf"),
            "Only `const` and `title` of each option are left, because 2025-06-18 has no other keys for options.",
        )
    return kept | {"enum": [each["const"] for each in titled], "enumNames": [each["title"] for each in titled]}


def one_choice(schema: dict[str, Any], at: At, losses: Losses) -> dict[str, Any]:
    """Return a multiple choice as a single choice, if one option is enough."""
    if schema.get("minItems", 0) > 1:
        losses.refuse(at, "2025-06-18 has no multiple choice, and this form requires at least two options.", "input")
    losses.degraded(at, "The multiple choice became a single choice, because 2025-06-18 has no multiple choice.")
    others = {"items", "default", "minItems", "maxItems", "oneOf"}
    kept = {key: value for key, value in schema.items() if key not in others}
    items = schema["items"]
    return kept | {"type": "string"} | (options(items.get("anyOf")) or {"enum": items["enum"]})


def options(titled: object) -> dict[str, list[str]] | None:
    """Return the constants and the titles of options, or None if the value is not a list of such options."""
    values: list[str] = []
    names: list[str] = []
    for each in cast("list[object]", titled) if isinstance(titled, list) else [None]:
        option = cast("dict[str, object]", each) if isinstance(each, dict) else {}
        value, name = option.get("const"), option.get("title")
        if not isinstance(value, str) or not isinstance(name, str):
            return None
        values.append(value)
        names.append(name)
    return {"enum": values, "enumNames": names}


def no_tools(tools: list[dict[str, Any]], at: At, losses: Losses) -> list[dict[str, Any]]:
    """Return the empty list of tools, and refuse any other: a client without tools must answer with an error."""
    if tools:
        losses.refuse(at, "2025-06-18 has no tools in sampling, and this request offers some.", "input")
    return tools


def no_required_tool(choice: dict[str, Any], at: At, losses: Losses) -> dict[str, Any]:
    """Return the tool choice, and refuse one that requires a tool call."""
    if choice.get("mode") == "required":
        losses.refuse(
            (at, "mode"), "2025-06-18 has no tools in sampling, and this request requires a tool call.", "input"
        )
    return choice


def one_answer(chosen: list[str], at: At, losses: Losses) -> str:
    """Return the chosen options as one string, separated by commas."""
    losses.degraded(
        at, "The list of chosen options became one string, because 2025-06-18 has no lists in the answer to a form."
    )
    return ", ".join(chosen)


def without_bytes(block: dict[str, Any]) -> dict[str, Any]:
    """Return a content block for a text note: without the base64 data of images, audio and binary resources."""
    brief = {key: value for key, value in block.items() if key not in {"data", "_meta", "annotations"}}
    if block["type"] == "resource":
        brief["resource"] = {key: value for key, value in block["resource"].items() if key not in {"blob", "_meta"}}
    return brief


def note(block: dict[str, Any]) -> str:
    """Return a block of a sampling message as text."""
    match block["type"]:
        case "text":
            return str(block["text"])
        case "tool_use":
            return "[Tool call] " + json.dumps({key: block[key] for key in ("id", "name", "input")}, ensure_ascii=False)
        case "tool_result":
            outcome: dict[str, Any] = {
                key: block[key] for key in ("toolUseId", "isError", "structuredContent") if key in block
            }
            outcome["content"] = [without_bytes(each) for each in block["content"]]
            return "[Tool result] " + json.dumps(outcome, ensure_ascii=False)
        case kind:
            return f"[Left out: {kind}, {block['mimeType']}]"


def tool_note(block: dict[str, Any], at: At, losses: Losses) -> dict[str, Any]:
    """Return a tool call or a tool result as text."""
    losses.degraded(
        at, "The tool call or tool result became text, because 2025-06-18 has neither in sampling messages."
    )
    shown = {"id", "name", "input", "toolUseId", "content", "isError", "structuredContent"}
    kept = {key: value for key, value in block.items() if key not in shown}
    for key in ("annotations", "text"):  # unknown in a tool block, but text content uses them
        if key in kept:
            losses.degraded((at, key), f"The unknown key `{key}` was removed, because text content uses that key.")
            del kept[key]
    return {**kept, "type": "text", "text": note(block)}


def one_block(blocks: list[dict[str, Any]], at: At, losses: Losses) -> dict[str, Any]:
    """Return the blocks of a message as one: the first one if all are images or audio, otherwise their text."""
    if not blocks:
        losses.degraded(at, "The empty list became an empty text, because 2025-06-18 requires a content block.")
        return {"type": "text", "text": ""}
    if len(blocks) == 1:
        only = blocks[0]
        return tool_note(only, at, losses) if only["type"] in {"tool_use", "tool_result"} else only
    if all(block["type"] in {"image", "audio"} for block in blocks):
        losses.degraded(at, "Only the first content block is left, because 2025-06-18 allows one in a message.")
        return blocks[0]
    losses.degraded(at, "Several content blocks became one text, because 2025-06-18 allows one block in a message.")
    return {"type": "text", "text": "\n\n".join(map(note, blocks))}


def one_block_each(messages: list[dict[str, Any]], at: At, losses: Losses) -> list[dict[str, Any]]:
    """Return sampling messages with one block each, in the order of the blocks."""
    singles: list[dict[str, Any]] = []
    for index, message in enumerate(messages):
        if not isinstance(message["content"], list):
            singles.append(message)
            continue
        blocks = cast("list[dict[str, Any]]", message["content"])
        if not blocks:
            losses.dropped((at, index), "The empty message was removed, because 2025-06-18 requires a content block.")
            continue
        if len(blocks) > 1:
            losses.degraded(
                ((at, index), "content"),
                "Each content block became a message, because 2025-06-18 allows one block in a message.",
            )
        singles.append({**message, "content": blocks[0]})
        singles += [{"role": message["role"], "content": block} for block in blocks[1:]]
    return singles


STEP = Step(
    old="2025-06-18",
    new="2025-11-25",
    renames={
        "ElicitRequestParams": "ElicitRequestFormParams",
        "ElicitRequestParamsRequestedSchema": "ElicitRequestFormParamsRequestedSchema",
        "EnumSchema": "LegacyTitledEnumSchema",
    },
    changes=(
        Change(
            name="tasks",
            says="2025-06-18 has no tasks.",
            spec="2025-11-25, basic/utilities/tasks#protocol-messages",
            covers=("request-added * tasks/*", "notification-added * notifications/tasks/status"),
            down=Refuse(service="tasks"),
        ),
        Change(
            name="task-results",
            says="2025-06-18 has no tasks, so a request cannot be answered with a task.",
            spec="2025-11-25, basic/utilities/tasks#creating-tasks",
            covers=("arm-added *result[CreateTaskResult]",),
            down=Refuse(service="tasks"),
        ),
        Change(
            name="task-augmentation",
            says="2025-06-18 has no `task` in requests, so the request runs without a task.",
            spec="2025-11-25, basic/utilities/tasks#task-support-and-handling",
            covers=("task-result-changed *", "key-added *Params.task"),
            at=("CallToolRequestParams.task", "CreateMessageRequestParams.task", "ElicitRequestFormParams.task"),
            down=Drop(),
        ),
        Change(
            name="task-capabilities",
            says="2025-06-18 has no `tasks` capability.",
            spec="2025-11-25, basic/utilities/tasks#capabilities",
            covers=("key-added *Capabilities.tasks",),
            down=Drop(),
        ),
        Change(
            name="tool-execution",
            says="2025-06-18 has no `execution` on tools: a client does not see that a tool can run as a task.",
            spec="2025-11-25, basic/utilities/tasks#tool-level-negotiation",
            covers=("key-added Tool.execution",),
            down=Drop(),
        ),
        Change(
            name="cancellation-without-request",
            says="2025-06-18 requires `requestId` in every cancellation, 2025-11-25 only for requests without a task.",
            spec="2025-11-25, basic/utilities/cancellation#behavior-requirements",
            covers=("requiredness-changed CancelledNotificationParams.requestId",),
            down=Refuse(service="tasks"),
        ),
        Change(
            name="url-elicitation",
            says="2025-06-18 has no URL elicitation, only forms.",
            spec="2025-11-25, client/elicitation#url-mode-elicitation-requests",
            covers=(
                "definition-kind-changed ElicitRequestParams",
                "params-changed server elicitation/create",
                "type-changed ElicitRequest.params",
            ),
            at=("ElicitRequestParams[ElicitRequestURLParams]",),
            down=Refuse(service="input"),
        ),
        Change(
            name="elicitation-mode",
            says="2025-06-18 has no `mode` in elicitation requests: every elicitation is a form.",
            spec="2025-11-25, client/elicitation#elicitation-requests",
            covers=("key-added ElicitRequestFormParams.mode",),
            at=("ElicitRequestFormParams",),
            down=Convert(as_form),
        ),
        Change(
            name="elicitation-modes-of-a-client",
            says="2025-06-18 has only forms, so a client with only URL elicitation loses the `elicitation` capability.",
            spec="2025-11-25, client/elicitation#capabilities",
            covers=("type-changed ClientCapabilities.elicitation",),
            at=("ClientCapabilities",),
            down=Convert(form_or_nothing),
        ),
        Change(
            name="elicitation-completion",
            says="2025-06-18 has no `notifications/elicitation/complete`.",
            spec="2025-11-25, client/elicitation#completion-notifications-for-url-mode-elicitation",
            covers=("notification-added server notifications/elicitation/complete",),
            down=Refuse(service="input"),
        ),
        Change(
            name="url-elicitation-error",
            says="2025-06-18 has no error code -32042 (URL elicitation required).",
            spec="2025-11-25, client/elicitation#url-elicitation-required-error",
            covers=("error-added -32042",),
            down=Recode(-32603),
        ),
        Change(
            name="untitled-choice",
            says="2025-06-18 has one schema for a single choice, with or without titles.",
            spec="2025-11-25, client/elicitation#requested-schema",
            covers=("arm-added PrimitiveSchemaDefinition[UntitledSingleSelectEnumSchema]",),
            down=Read("EnumSchema"),
        ),
        Change(
            name="titled-choice",
            says=(
                "2025-06-18 has `enum` and `enumNames` instead of `oneOf` in forms: only `const` and `title` of each "
                "option are kept."
            ),
            spec="2025-11-25, client/elicitation#requested-schema",
            covers=("arm-added PrimitiveSchemaDefinition[TitledSingleSelectEnumSchema]",),
            down=Convert(named_options),
        ),
        Change(
            name="choice-of-several",
            says=(
                "2025-06-18 has no multiple choice in forms: a multiple choice becomes a single choice, or the form is "
                "refused if the user must choose several options."
            ),
            spec="2025-11-25, client/elicitation#requested-schema",
            covers=("arm-added PrimitiveSchemaDefinition[*MultiSelectEnumSchema]",),
            down=Convert(one_choice),
        ),
        Change(
            name="answer-of-several",
            says="2025-06-18 has no lists in the answer to a form: a list of options becomes one string, with commas.",
            spec="2025-11-25, client/elicitation#requested-schema",
            covers=("arm-added ElicitResult.content{}[list[string]]",),
            down=Convert(one_answer),
        ),
        Change(
            name="form-defaults",
            says="2025-06-18 has no `default` in form fields of this type.",
            spec="2025-11-25, client/elicitation#requested-schema",
            covers=("key-added *Schema.default",),
            down=Drop(),
        ),
        Change(
            name="schema-dialect",
            says="2025-06-18 has no `$schema` in the schemas of forms.",
            spec="2025-11-25, basic/index#schema-dialect",
            covers=("key-added ElicitRequestFormParamsRequestedSchema.$schema",),
        ),
        Change(
            name="tool-schema-dialect",
            says="2025-06-18 does not list `$schema` in the schemas of tools, but their dialect depends on it.",
            spec="2025-11-25, basic/index#schema-dialect",
            covers=("key-added ToolInputSchema.$schema", "key-added ToolOutputSchema.$schema"),
            down=Keep(),
        ),
        Change(
            name="tools-in-sampling",
            says=(
                "2025-06-18 has no `tools` in sampling: an empty list is dropped, and a request with tools is refused."
            ),
            spec="2025-11-25, client/sampling#sampling-with-tools",
            covers=("key-added CreateMessageRequestParams.tools",),
            down=Convert(no_tools),
        ),
        Change(
            name="choice-of-tools",
            says=(
                "2025-06-18 has no `toolChoice` in sampling requests: the mode `required` is refused, and other modes "
                "are dropped."
            ),
            spec="2025-11-25, client/sampling#sampling-with-tools",
            covers=("key-added CreateMessageRequestParams.toolChoice",),
            down=Convert(no_required_tool),
        ),
        Change(
            name="tool-blocks",
            says="2025-06-18 has no tool calls or tool results in sampling messages: each becomes text.",
            spec="2025-11-25, client/sampling#multi-turn-tool-loop",
            covers=(
                "arm-added CreateMessageResult.content[Tool*]",
                "arm-added SamplingMessage.content[Tool*]",
                "arm-added SamplingMessageContentBlock[Tool*]",
            ),
            down=Convert(tool_note),
        ),
        Change(
            name="several-blocks",
            says=(
                "2025-06-18 has one content block, not a list, in a sampling result, and in a sampling message that is "
                "not part of a request: several blocks become one text, with a note for each image or audio; if all "
                "blocks are images or audio, only the first block is kept; an empty list becomes an empty text."
            ),
            spec="2025-11-25, client/sampling#sampling-with-tools",
            covers=(
                "arm-added CreateMessageResult.content[list*",
                "arm-added SamplingMessage.content[list*",
            ),
            down=Convert(one_block),
        ),
        Change(
            name="messages-of-several-blocks",
            says=(
                "2025-06-18 has one content block in each message of a sampling request: a message with several blocks "
                "becomes several messages, and a message without blocks is removed."
            ),
            spec="2025-11-25, client/sampling#multi-turn-tool-loop",
            at=("CreateMessageRequestParams.messages",),
            down=Convert(one_block_each),
        ),
    ),
)
