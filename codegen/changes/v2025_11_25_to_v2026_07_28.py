"""What 2026-07-28 brought: no sessions, input asked for in results, caching, tool schemas without limits; tasks went.

Each request carries what the handshake had settled, so most of what is missing in an older message has a value that can
only be a default here; the engine, which knows the session, fills it in. Going down, results that are no objects are
wrapped in one, and the schema that describes them is wrapped by the same rule.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any, cast

from mcpgen.codegen.changes.vocabulary import (
    At,
    Change,
    Convert,
    Default,
    Drop,
    Keep,
    Losses,
    Recode,
    Refuse,
    Step,
)

__all__ = ["STEP"]

NAMED_SCHEMAS = {
    "$defs",
    "definitions",
    "dependencies",
    "dependentSchemas",
    "patternProperties",
    "properties",
}
"""Keywords of JSON Schema whose values hold schemas under names of their own."""

PLAIN_VALUES = {"const", "default", "enum", "examples"}
"""Keywords of JSON Schema whose values are no schemas, whatever they look like."""

REFERENCES = {"$dynamicRef", "$recursiveRef", "$ref"}
"""Keywords of JSON Schema that point to a schema."""


def only_complete(result_type: str, at: At, losses: Losses) -> str:
    """Return the type of a result, which must be the only one that older revisions know."""
    if result_type != "complete":
        service = "input" if result_type == "input_required" else None
        losses.refuse(at, f"A result of the type {result_type!r} is not the last word.", service)
    return result_type


def as_complete(result: dict[str, Any], at: At, losses: Losses) -> dict[str, Any]:
    """Return a result of a revision that knows no types of results without a type that says otherwise."""
    if result.get("resultType", "complete") == "complete":
        return result
    losses.dropped((at, "resultType"), "Every result of the older revision is complete.")
    return {key: value for key, value in result.items() if key != "resultType"}


def elicitation_id(params: dict[str, Any], _at: At, _losses: Losses) -> str:
    """Return an identifier of an elicitation that is the same for the same url and message."""
    told = json.dumps([params["url"], params["message"]])
    return hashlib.sha256(told.encode()).hexdigest()[:32]


def first_hundred(completion: dict[str, Any], at: At, losses: Losses) -> dict[str, Any]:
    """Return a completion with at most 100 values, which says that there are more."""
    values = completion["values"]
    if len(values) <= 100:  # noqa: PLR2004 - the bound of the newer revision
        return completion
    losses.degraded((at, "values"), f"Of {len(values)} values, 100 are left.")
    return {**completion, "values": values[:100], "hasMore": True}


def as_object(value: object, at: At, losses: Losses) -> dict[str, Any]:
    """Return a structured result as an object."""
    if isinstance(value, dict):
        return cast("dict[str, Any]", value)
    losses.degraded(at, "A structured result that is no object went under the key result.")
    return {"result": value}


def with_shapes(schema: dict[str, Any], at: At, losses: Losses) -> dict[str, Any]:
    """Return a schema whose properties are objects and whose required keys are strings."""
    fixed = dict(schema)
    properties: object = schema.get("properties", {})
    if isinstance(properties, dict):
        named = cast("dict[str, object]", properties)
        if not all(isinstance(each, dict) for each in named.values()):
            fixed["properties"] = objects_only(named, (at, "properties"), losses)
    else:
        losses.dropped((at, "properties"), "Properties must be an object.")
        del fixed["properties"]
    required: object = schema.get("required", [])
    if not isinstance(required, list) or not all(isinstance(each, str) for each in cast("list[object]", required)):
        losses.dropped((at, "required"), "Required must be a list of strings.")
        del fixed["required"]
    return fixed


def objects_only(properties: dict[str, object], at: At, losses: Losses) -> dict[str, object]:
    """Return the properties of a schema as objects: a boolean has an object that means the same."""
    fixed: dict[str, object] = {}
    for name, each in properties.items():
        if isinstance(each, dict):
            fixed[name] = each
        elif isinstance(each, bool):
            fixed[name] = {} if each else {"not": {}}
        else:
            losses.dropped((at, name), "A property must be a schema.")
    return fixed


def of_objects(schema: dict[str, Any], at: At, losses: Losses) -> dict[str, Any]:
    """Return the schema of structured results as one of objects: of what `as_object` makes of them."""
    if schema.get("type") == "object" and not ignores_siblings(schema):
        return with_shapes(schema, at, losses)
    losses.degraded(at, "The schema allows results that are no objects, which go under the key result.")
    outer = {"$schema": schema["$schema"]} if "$schema" in schema else {}
    inner = {key: value for key, value in schema.items() if key != "$schema"}
    address = "id" if "/draft-04/" in str(schema.get("$schema")) else "$id"
    if never_object(schema):
        result = moved(inner, "#/properties/result", address)
        return {**outer, "type": "object", "properties": {"result": result}, "required": ["result"]}
    wrapped = {"properties": {"result": {"$ref": "#/anyOf/0"}}, "required": ["result"]}
    return {**outer, "type": "object", "anyOf": [moved(inner, "#/anyOf/0", address), wrapped]}


def ignores_siblings(schema: dict[str, Any]) -> bool:
    """Whether a schema is nothing but its reference, as in the dialects before 2019-09."""
    return "$ref" in schema and "/draft-0" in str(schema.get("$schema"))


def never_object(schema: dict[str, Any]) -> bool:
    """Whether it shows at the root of a schema that no object is valid."""
    if any(key in schema for key in REFERENCES):
        return False  # older dialects ignore what stands beside a reference
    types: object = schema.get("type")
    if isinstance(types, str):
        return types != "object"
    if isinstance(types, list):
        return "object" not in types
    if "const" in schema:
        return not isinstance(schema["const"], dict)
    values: object = schema.get("enum")
    return isinstance(values, list) and not any(isinstance(each, dict) for each in cast("list[object]", values))


def moved(schema: dict[str, Any], place: str, address: str) -> dict[str, Any]:
    """Return a schema for another place in its document: its references into itself follow it."""
    if has_base(schema, address):
        return schema
    root = dict(schema)
    waiting: list[tuple[dict[str, Any] | list[Any], bool]] = [(root, True)]  # and whether its keys are keywords
    while waiting:
        node, keywords = waiting.pop()
        if isinstance(node, list):
            node[:] = [copied(each, waiting, address) for each in node]
            continue
        for key, value in list(node.items()):
            if keywords and key in REFERENCES and isinstance(value, str):
                node[key] = place + value[1:] if value in {"", "#"} or value.startswith("#/") else value
            elif not (keywords and is_plain(key, value)):
                node[key] = copied(value, waiting, address, named=keywords and key in NAMED_SCHEMAS)
    return root


def is_plain(key: str, value: object) -> bool:
    """Whether what a keyword holds is data; `enum` and `examples` are lists, or else the names of something."""
    return key in PLAIN_VALUES and (key in {"const", "default"} or isinstance(value, list))


def copied(
    value: object, waiting: list[tuple[dict[str, Any] | list[Any], bool]], address: str, *, named: bool = False
) -> object:
    """Return a list or object of a schema as a copy that is *waiting*, unless references in it stay as they are."""
    same = value
    if isinstance(value, list):
        items = list(cast("list[object]", value))
        waiting.append((items, False))
        return items
    if isinstance(value, dict) and (named or not has_base(cast("dict[str, Any]", value), address)):
        members = dict(cast("dict[str, Any]", value))
        waiting.append((members, not named))
        return members
    return same


def has_base(schema: dict[str, Any], address: str) -> bool:
    """Whether references in a schema start at the schema itself, since the key *address* gives it one."""
    base = schema.get(address)
    return isinstance(base, str) and base != "" and not base.startswith("#")


def resource_not_found(error: dict[str, Any], _at: At, _losses: Losses) -> dict[str, Any]:
    """Return the error of a resource, with the code of its own if it says which resource is not there."""
    data: object = error.get("data")
    uri: object = cast("dict[str, object]", data).get("uri") if isinstance(data, dict) else None
    if error["code"] != -32602 or not isinstance(uri, str):  # noqa: PLR2004 - invalid parameters
        return error
    return {**error, "code": -32002}


STEP = Step(
    old="2025-11-25",
    new="2026-07-28",
    changes=(
        Change(
            name="handshake",
            says="Nobody initializes or pings: each request says for itself what a session had settled.",
            spec="2026-07-28, basic/versioning#protocol-version-negotiation",
            covers=(
                "era-changed era",
                "request-removed client initialize",
                "request-removed * ping",
                "notification-removed client notifications/initialized",
            ),
            at=("client initialize", "client ping", "server ping", "client notifications/initialized"),
            up=Refuse(service="negotiation"),
        ),
        Change(
            name="discovery",
            says="A client may ask a server which revisions and capabilities it has.",
            spec="2026-07-28, server/discover#request",
            covers=("request-added client server/discover",),
            down=Refuse(service="negotiation"),
        ),
        Change(
            name="request-metadata",
            says="Every request carries metadata.",
            spec="2026-07-28, basic/index#meta",
            covers=("requiredness-changed *Params._meta",),
            up=Default(value={}, implied=True),
        ),
        Change(
            name="revision-of-a-request",
            says="Every request names its revision.",
            spec="2026-07-28, basic/index#meta",
            covers=("key-added RequestMetaObject.io.modelcontextprotocol/protocolVersion",),
            up=Default(value="2026-07-28", implied=True),
        ),
        Change(
            name="capabilities-of-a-request",
            says="Every request names the client's capabilities; before, the session knew them.",
            spec="2026-07-28, basic/index#meta",
            covers=("key-added RequestMetaObject.io.modelcontextprotocol/clientCapabilities",),
            up=Default(value={}),
        ),
        Change(
            name="client-of-a-request",
            says="A request may name the client; before, the session knew it.",
            spec="2026-07-28, basic/index#meta",
            covers=("key-added RequestMetaObject.io.modelcontextprotocol/clientInfo",),
            down=Drop(),
        ),
        Change(
            name="log-level-of-a-request",
            says="A request may say which log messages it wants; before, the session had one level.",
            spec="2026-07-28, server/utilities/logging#per-request-log-level",
            covers=("key-added RequestMetaObject.io.modelcontextprotocol/logLevel",),
            down=Drop(),
        ),
        Change(
            name="log-level-of-a-session",
            says="No request sets a log level for those that follow.",
            spec="2026-07-28, server/utilities/logging#per-request-log-level",
            covers=("request-removed client logging/setLevel",),
            up=Refuse(service="log_level"),
        ),
        Change(
            name="subscriptions-of-a-session",
            says="No request subscribes to a resource for as long as a session lasts.",
            spec="2026-07-28, basic/patterns/subscriptions#opening-a-stream",
            covers=("request-removed client resources/*subscribe",),
            up=Refuse(service="subscriptions"),
        ),
        Change(
            name="subscriptions",
            says="A client names the changes that it wants to hear of, and hears of them until it ends the request.",
            spec="2026-07-28, basic/patterns/subscriptions#opening-a-stream",
            covers=(
                "request-added client subscriptions/listen",
                "notification-added server notifications/subscriptions/acknowledged",
            ),
            down=Refuse(service="subscriptions"),
        ),
        Change(
            name="input-requests",
            says="What a server asks of a client travels in a result; a client that cannot answer does not retry.",
            spec="2026-07-28, basic/patterns/mrtr#multi-round-trip-requests",
            covers=("carrier-changed server *", "params-changed server roots/list"),
            up=Refuse(service="input"),
        ),
        Change(
            name="input-required",
            says="A result may ask for input, which a retry of the request brings.",
            spec="2026-07-28, basic/patterns/mrtr#inputrequiredresult",
            covers=("result-changed client *",),
            at=(
                "prompts/get result[InputRequiredResult]",
                "resources/read result[InputRequiredResult]",
                "tools/call result[InputRequiredResult]",
            ),
            down=Refuse(service="input"),
        ),
        Change(
            name="input-responses",
            says="A retry brings the input that was asked for.",
            spec="2026-07-28, basic/patterns/mrtr#inputresponses",
            covers=("key-added *Params.inputResponses", "key-added *Params.requestState"),
            down=Refuse(service="input"),
        ),
        Change(
            name="input-request-metadata",
            says="What a server asks of a client carries no metadata, and so no progress token.",
            spec="2026-07-28, basic/patterns/mrtr#inputrequests",
            covers=(
                "key-removed CreateMessageRequestParams._meta",
                "key-removed ElicitRequestFormParams._meta",
                "key-removed ElicitRequestURLParams._meta",
                "key-removed ListRootsRequestParams._meta.progressToken",
            ),
            up=Drop(),
        ),
        Change(
            name="input-response-metadata",
            says="Answers to elicitation and lists of roots carry no metadata.",
            spec="2026-07-28, basic/patterns/mrtr#inputresponses",
            covers=("key-removed ElicitResult._meta", "key-removed ListRootsResult._meta"),
            up=Drop(),
        ),
        Change(
            name="result-type",
            says="Every result says whether it is the last word; without a word it is.",
            spec="2026-07-28, basic/index#resulttype",
            covers=("key-added *.resultType",),
            up=Default(value="complete", implied=True),
            down=Convert(only_complete),
        ),
        Change(
            name="no-result-type-before",
            says="Results of older revisions are complete, whatever an unknown key says.",
            spec="2026-07-28, basic/index#resulttype",
            at=(
                "CallToolResult",
                "CompleteResult",
                "GetPromptResult",
                "ListPromptsResult",
                "ListResourceTemplatesResult",
                "ListResourcesResult",
                "ListToolsResult",
                "ReadResourceResult",
            ),
            up=Convert(as_complete),
        ),
        Change(
            name="time-to-live",
            says="Lists and resources say for how long they stay fresh.",
            spec="2026-07-28, server/utilities/caching#time-to-live-ttl-field",
            covers=("key-added *.ttlMs",),
            up=Default(value=0),
        ),
        Change(
            name="cache-scope",
            says="Lists and resources say whether a cache may share them.",
            spec="2026-07-28, server/utilities/caching#cache-scope-field",
            covers=("key-added *.cacheScope",),
            up=Default(value="private"),
        ),
        Change(
            name="tasks",
            says="Tasks are an extension, with other messages.",
            spec="2026-07-28, changelog#major-changes",
            covers=("request-removed * tasks/*", "notification-removed * notifications/tasks/status"),
            up=Refuse(service="tasks"),
        ),
        Change(
            name="task-results",
            says="No request is answered with a task.",
            spec="2026-07-28, changelog#major-changes",
            covers=("arm-removed *result[CreateTaskResult]",),
            up=Refuse(service="tasks"),
        ),
        Change(
            name="task-augmentation",
            says="No request asks to run as a task.",
            spec="2026-07-28, changelog#major-changes",
            covers=("task-result-changed *", "key-removed *Params.task"),
            at=(
                "CallToolRequestParams.task",
                "CreateMessageRequestParams.task",
                "ElicitRequestFormParams.task",
                "ElicitRequestURLParams.task",
            ),
            up=Drop(),
        ),
        Change(
            name="task-capabilities",
            says="No capability is about tasks.",
            spec="2026-07-28, changelog#major-changes",
            covers=("key-removed *Capabilities.tasks",),
            up=Drop(),
        ),
        Change(
            name="tool-execution",
            says="A tool does not say whether it runs as a task; one that must do so refuses plain calls.",
            spec="2026-07-28, changelog#major-changes",
            covers=("key-removed Tool.execution",),
            up=Drop(),
        ),
        Change(
            name="cancellation-names-a-request",
            says="A cancellation names a request, since there are no tasks.",
            spec="2026-07-28, basic/patterns/cancellation#cancellation-flow",
            covers=("requiredness-changed CancelledNotificationParams.requestId",),
            up=Refuse(service="tasks"),
        ),
        Change(
            name="client-progress",
            says="A client reports no progress, since it is sent no requests.",
            spec="2026-07-28, basic/patterns/progress#progress-flow",
            covers=("notification-removed client notifications/progress",),
            up=Refuse(service="progress"),
        ),
        Change(
            name="changed-roots",
            says="A client does not tell that its roots changed.",
            spec="2026-07-28, changelog#major-changes",
            covers=("notification-removed client notifications/roots/list_changed",),
            up=Refuse(service="roots"),
        ),
        Change(
            name="changed-roots-capability",
            says="A client does not declare that it tells when its roots change.",
            spec="2026-07-28, client/roots#capabilities",
            covers=("type-changed ClientCapabilities.roots",),
            at=("ClientCapabilities.roots.listChanged",),
            up=Drop(),
        ),
        Change(
            name="extensions",
            says="Each side declares the extensions that it supports.",
            spec="2026-07-28, basic/versioning#extension-negotiation",
            covers=("key-added *Capabilities.extensions",),
            down=Drop(),
        ),
        Change(
            name="elicitation-completion",
            says="A server does not tell that the user is done at a url: the client retries its request.",
            spec="2026-07-28, changelog#minor-changes",
            covers=("notification-removed server notifications/elicitation/complete",),
            up=Refuse(service="input"),
        ),
        Change(
            name="elicitation-id",
            says="An elicitation by url has no identifier.",
            spec="2026-07-28, changelog#minor-changes",
            covers=("key-removed ElicitRequestURLParams.elicitationId",),
            up=Drop(),
            down=Default(make=elicitation_id),
        ),
        Change(
            name="url-elicitation-error",
            says="A request that needs the user at a url asks for that in its result.",
            spec="2026-07-28, basic/index#error-codes",
            covers=("error-removed -32042",),
            up=Refuse(service="input"),
        ),
        Change(
            name="resource-not-found",
            says="A resource that is not there is an invalid parameter.",
            spec="2026-07-28, server/resources#error-handling",
            covers=("error-removed -32002",),
            up=Recode(-32602),
        ),
        Change(
            name="resource-not-found-before",
            says="A resource that is not there has a code of its own.",
            spec="2025-11-25, server/resources#error-handling",
            at=("resources/read error",),
            down=Convert(resource_not_found),
        ),
        Change(
            name="user-rejected-sampling",
            says="A client that does not sample does not retry; elsewhere the code is the application's, as before.",
            spec="2026-07-28, basic/index#error-codes",
            covers=("error-removed -1",),
            up=Keep(),
        ),
        Change(
            name="header-mismatch",
            says="The headers of an HTTP request must agree with its body.",
            spec="2026-07-28, basic/transports/streamable-http#server-validation",
            covers=("error-added -32020",),
            down=Recode(-32600),
        ),
        Change(
            name="missing-capability",
            says="A request fails if it needs a capability that it did not declare.",
            spec="2026-07-28, basic/index#meta",
            covers=("error-added -32021",),
            down=Recode(-32600),
        ),
        Change(
            name="unsupported-revision",
            says="A request fails if the server does not serve its revision.",
            spec="2026-07-28, basic/versioning#protocol-version-negotiation",
            covers=("error-added -32022",),
            down=Recode(-32602),
        ),
        Change(
            name="completions-bound",
            says="At most 100 completions come at a time, and now the schema says so.",
            spec="2026-07-28, server/utilities/completion#completion-results",
            covers=("bounds-changed CompleteResultCompletion.values",),
            at=("CompleteResultCompletion",),
            up=Convert(first_hundred),
        ),
        Change(
            name="structured-values",
            says="A structured result may be any JSON value; before, it was an object.",
            spec="2026-07-28, server/tools#structured-content",
            covers=("type-changed *.structuredContent",),
            down=Convert(as_object),
        ),
        Change(
            name="schema-keywords",
            says="The schemas of tools name no keywords, since all of JSON Schema is allowed.",
            spec="2026-07-28, changelog#minor-changes",
            covers=("key-removed ToolInputSchema.*", "key-removed ToolOutputSchema.*"),
            up=Keep(),
            down=Keep(),
        ),
        Change(
            name="input-schemas",
            says="The schema of arguments may use keywords in every way that JSON Schema allows.",
            spec="2026-07-28, changelog#minor-changes",
            at=("ToolInputSchema",),
            down=Convert(with_shapes),
        ),
        Change(
            name="output-schemas",
            says="The schema of structured results may allow any JSON value; before, it was one of objects.",
            spec="2026-07-28, server/tools#output-schema",
            at=("ToolOutputSchema",),
            down=Convert(of_objects),
        ),
    ),
)
