"""What 2025-11-25 brought: tasks, elicitation by url and with more kinds of choices, and tools in sampling.

Going down, tasks and urls cannot be expressed; choices become the one kind that there was; a message that held several
blocks becomes several messages, and what a model said to a tool becomes a note in words.
"""

from __future__ import annotations

import json
from typing import Any, cast

from mcpgen.codegen.changes.vocabulary import (
    At,
    Change,
    Convert,
    Drop,
    Losses,
    Read,
    Recode,
    Refuse,
    Step,
)

__all__ = ["STEP"]


def form_or_nothing(capabilities: dict[str, Any], at: At, losses: Losses) -> dict[str, Any]:
    """Return client capabilities without elicitation if that is by url only."""
    modes = capabilities.get("elicitation", {})
    if modes.get("form") == {}:  # which is what is meant without it
        return {**capabilities, "elicitation": {key: value for key, value in modes.items() if key != "form"}}
    if "form" in modes:
        return capabilities
    if "url" not in modes:
        return capabilities
    losses.dropped((at, "elicitation"), "This client cannot show forms, and the peer knows no other elicitation.")
    return {key: value for key, value in capabilities.items() if key != "elicitation"}


def as_form(params: dict[str, Any], _at: At, _losses: Losses) -> dict[str, Any]:
    """Return an elicitation by form without a word about its mode, which means the same."""
    return {key: value for key, value in params.items() if key != "mode"}


def named_options(schema: dict[str, Any], at: At, losses: Losses) -> dict[str, Any]:
    """Return a choice whose options have titles in the older form, with a list of names."""
    kept = {key: value for key, value in schema.items() if key != "oneOf"}
    named = options(schema["oneOf"])
    if named is None:  # another form, with a key of that name
        losses.dropped((at, "oneOf"), "Options have a constant and a title each.")
        return kept
    if any(each.keys() - {"const", "title"} for each in schema["oneOf"]):
        losses.degraded((at, "oneOf"), "Of an option, its constant and its title are left.")
    return kept | named


def one_choice(schema: dict[str, Any], at: At, losses: Losses) -> dict[str, Any]:
    """Return a choice of several options as a choice of one, if one is enough."""
    if schema.get("minItems", 0) > 1:
        losses.refuse(at, "The peer can choose one option, and the server wants more.", "input")
    losses.degraded(at, "A choice of several options became a choice of one.")
    others = {"items", "default", "minItems", "maxItems", "oneOf"}
    kept = {key: value for key, value in schema.items() if key not in others}
    items = schema["items"]
    return kept | {"type": "string"} | (options(items.get("anyOf")) or {"enum": items["enum"]})


def options(titled: object) -> dict[str, list[str]] | None:
    """Return the constants and the titles of options, or None if they are none."""
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
    """Return the tools that a model may use, of which there must be none: a client that cannot must answer an error."""
    if tools:
        losses.refuse(at, "The peer cannot sample with tools.", "input")
    return tools


def no_demand(choice: dict[str, Any], at: At, losses: Losses) -> dict[str, Any]:
    """Return how the model may use tools, which it must not have to."""
    if choice.get("mode") == "required":
        losses.refuse((at, "mode"), "The peer cannot sample with tools.", "input")
    return choice


def one_answer(chosen: list[str], at: At, losses: Losses) -> str:
    """Return the options that a user chose as one string, with commas between them."""
    losses.degraded(at, "A list of chosen options became one string.")
    return ", ".join(chosen)


def without_bytes(block: dict[str, Any]) -> dict[str, Any]:
    """Return a content block as a note can hold it: without the base64 of images, audio and binary resources."""
    brief = {key: value for key, value in block.items() if key not in {"data", "_meta", "annotations"}}
    if block["type"] == "resource":
        brief["resource"] = {key: value for key, value in block["resource"].items() if key not in {"blob", "_meta"}}
    return brief


def note(block: dict[str, Any]) -> str:
    """Return in words what a block of a sampling message holds."""
    match block["type"]:
        case "text":
            return str(block["text"])
        case "tool_use":
            return "[Tool call] " + json.dumps({key: block[key] for key in ("id", "name", "input")}, ensure_ascii=False)
        case "tool_result":
            said: dict[str, Any] = {
                key: block[key] for key in ("toolUseId", "isError", "structuredContent") if key in block
            }
            said["content"] = [without_bytes(each) for each in block["content"]]
            return "[Tool result] " + json.dumps(said, ensure_ascii=False)
        case kind:
            return f"[Left out: {kind}, {block['mimeType']}]"


def tool_note(block: dict[str, Any], at: At, losses: Losses) -> dict[str, Any]:
    """Return a call of a tool, or its result, as text."""
    losses.degraded(at, "A tool call or its result became text.")
    told = {"id", "name", "input", "toolUseId", "content", "isError", "structuredContent"}
    kept = {key: value for key, value in block.items() if key not in told}
    for key in ("annotations", "text"):  # of no meaning there, and of another in a text
        if key in kept:
            losses.degraded((at, key), "A key went, since a text gives it a meaning.")
            del kept[key]
    return {**kept, "type": "text", "text": note(block)}


def one_block(blocks: list[dict[str, Any]], at: At, losses: Losses) -> dict[str, Any]:
    """Return the blocks of a message as one: their text if there is any, otherwise the first of them."""
    if len(blocks) == 1:
        only = blocks[0]
        return tool_note(only, at, losses) if only["type"] in {"tool_use", "tool_result"} else only
    losses.degraded(at, "Several blocks became one, since a message holds one.")
    if blocks and all(block["type"] in {"image", "audio"} for block in blocks):
        return blocks[0]
    return {"type": "text", "text": "\n\n".join(map(note, blocks))}


def one_block_each(messages: list[dict[str, Any]], at: At, losses: Losses) -> list[dict[str, Any]]:
    """Return sampling messages of one block each, in the order of the blocks."""
    singles: list[dict[str, Any]] = []
    for index, message in enumerate(messages):
        if not isinstance(message["content"], list):
            singles.append(message)
            continue
        blocks = cast("list[dict[str, Any]]", message["content"])
        if not blocks:
            losses.dropped((at, index), "An empty message went, since a message holds one block.")
            continue
        if len(blocks) > 1:
            losses.degraded(((at, index), "content"), "Each block became a message of its own.")
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
            says="A request may run as a task that is polled for its outcome.",
            spec="2025-11-25, basic/utilities/tasks#protocol-messages",
            covers=("request-added * tasks/*", "notification-added * notifications/tasks/status"),
            down=Refuse(service="tasks"),
        ),
        Change(
            name="task-results",
            says="A request that runs as a task is answered with the task, not with its result.",
            spec="2025-11-25, basic/utilities/tasks#creating-tasks",
            covers=("arm-added *result[CreateTaskResult]",),
            down=Refuse(service="tasks"),
        ),
        Change(
            name="task-augmentation",
            says="A request may ask to run as a task; a peer that knows no tasks runs it as usual.",
            spec="2025-11-25, basic/utilities/tasks#task-support-and-handling",
            covers=("task-result-changed *", "key-added *Params.task"),
            at=("CallToolRequestParams.task", "CreateMessageRequestParams.task", "ElicitRequestFormParams.task"),
            down=Drop(),
        ),
        Change(
            name="task-capabilities",
            says="Each side declares what it can run as a task.",
            spec="2025-11-25, basic/utilities/tasks#capabilities",
            covers=("key-added *Capabilities.tasks",),
            down=Drop(),
        ),
        Change(
            name="tool-execution",
            says="A tool may say whether it runs as a task; one that must do so refuses plain calls.",
            spec="2025-11-25, basic/utilities/tasks#tool-level-negotiation",
            covers=("key-added Tool.execution",),
            down=Drop(),
        ),
        Change(
            name="cancellation-without-request",
            says="A cancellation need not name a request.",
            spec="2025-11-25, basic/utilities/cancellation#behavior-requirements",
            covers=("requiredness-changed CancelledNotificationParams.requestId",),
            down=Refuse(service="tasks"),
        ),
        Change(
            name="url-elicitation",
            says="A server may send the user to a url instead of showing a form.",
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
            says="An elicitation says whether it is a form; without a word it is one.",
            spec="2025-11-25, client/elicitation#elicitation-requests",
            covers=("key-added ElicitRequestFormParams.mode",),
            at=("ElicitRequestFormParams",),
            down=Convert(as_form),
        ),
        Change(
            name="elicitation-modes-of-a-client",
            says="A client declares which modes of elicitation it supports; nothing declared means forms.",
            spec="2025-11-25, client/elicitation#capabilities",
            covers=("type-changed ClientCapabilities.elicitation",),
            at=("ClientCapabilities",),
            down=Convert(form_or_nothing),
        ),
        Change(
            name="elicitation-completion",
            says="A server may tell that the user is done at a url.",
            spec="2025-11-25, client/elicitation#completion-notifications-for-url-mode-elicitation",
            covers=("notification-added server notifications/elicitation/complete",),
            down=Refuse(service="input"),
        ),
        Change(
            name="url-elicitation-error",
            says="A request may fail until the user has been at a url.",
            spec="2025-11-25, client/elicitation#url-elicitation-required-error",
            covers=("error-added -32042",),
            down=Recode(-32603),
        ),
        Change(
            name="untitled-choice",
            says="A choice whose options have no titles is a form of its own.",
            spec="2025-11-25, client/elicitation#requested-schema",
            covers=("arm-added PrimitiveSchemaDefinition[UntitledSingleSelectEnumSchema]",),
            down=Read("EnumSchema"),
        ),
        Change(
            name="titled-choice",
            says="The options of a choice hold their titles; before, a list beside them did.",
            spec="2025-11-25, client/elicitation#requested-schema",
            covers=("arm-added PrimitiveSchemaDefinition[TitledSingleSelectEnumSchema]",),
            down=Convert(named_options),
        ),
        Change(
            name="choice-of-several",
            says="A form may let the user choose several options.",
            spec="2025-11-25, client/elicitation#requested-schema",
            covers=("arm-added PrimitiveSchemaDefinition[*MultiSelectEnumSchema]",),
            down=Convert(one_choice),
        ),
        Change(
            name="answer-of-several",
            says="The answer to a form may be a list of chosen options.",
            spec="2025-11-25, client/elicitation#requested-schema",
            covers=("arm-added ElicitResult.content{}[list[string]]",),
            down=Convert(one_answer),
        ),
        Change(
            name="form-defaults",
            says="Fields for text, numbers and choices may be filled in beforehand.",
            spec="2025-11-25, client/elicitation#requested-schema",
            covers=("key-added *Schema.default",),
            down=Drop(),
        ),
        Change(
            name="schema-dialect",
            says="The schema of a tool or a form may name its dialect.",
            spec="2025-11-25, basic/index#schema-dialect",
            covers=("key-added *Schema.$schema",),
        ),
        Change(
            name="tools-in-sampling",
            says="A server may offer tools to the model that it samples; a client that did not declare that refuses.",
            spec="2025-11-25, client/sampling#sampling-with-tools",
            covers=("key-added CreateMessageRequestParams.tools",),
            down=Convert(no_tools),
        ),
        Change(
            name="choice-of-tools",
            says="A server may want the model to use a tool, if the client declared that it takes tools.",
            spec="2025-11-25, client/sampling#sampling-with-tools",
            covers=("key-added CreateMessageRequestParams.toolChoice",),
            down=Convert(no_demand),
        ),
        Change(
            name="tool-blocks",
            says="A sampling message may hold a call of a tool or its result.",
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
            says="A sampling message may hold several blocks.",
            spec="2025-11-25, client/sampling#sampling-with-tools",
            covers=(
                "arm-added CreateMessageResult.content[list*",
                "arm-added SamplingMessage.content[list*",
            ),
            down=Convert(one_block),
        ),
        Change(
            name="messages-of-several-blocks",
            says="A sampling message may hold several blocks; before, each was a message of its own.",
            spec="2025-11-25, client/sampling#multi-turn-tool-loop",
            at=("CreateMessageRequestParams.messages",),
            down=Convert(one_block_each),
        ),
    ),
)
