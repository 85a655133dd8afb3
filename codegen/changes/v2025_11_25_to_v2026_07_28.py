"""2026-07-28 removes sessions and tasks. It adds input requests inside results, caching and freer tool schemas.

Each request carries what the handshake settled before. An older message lacks these values, and the adapter can only
fill in defaults. The engine knows the session and replaces the defaults. Going down, a structured result that is not an
object is wrapped in one, and its schema is wrapped in the same way.
"""

from __future__ import annotations

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
"""Keywords of JSON Schema whose value maps names to schemas."""

PLAIN_VALUES = {"const", "default", "enum", "examples"}
"""Keywords of JSON Schema whose value is data, even if it looks like a schema."""

REFERENCES = {"$dynamicRef", "$recursiveRef", "$ref"}
"""Keywords of JSON Schema that point to a schema."""


def only_complete(result_type: str, at: At, losses: Losses) -> str:
    """Return the ``resultType``, and refuse any but ``complete``."""
    if result_type != "complete":
        service = "input" if result_type == "input_required" else None
        losses.refuse(
            at, f"2025-11-25 has only complete results, and this result has the type {result_type!r}.", service
        )
    return result_type


def as_complete(result: dict[str, Any], at: At, losses: Losses) -> dict[str, Any]:
    """Return a result of an older revision without a ``resultType`` that contradicts ``complete``."""
    if result.get("resultType", "complete") == "complete":
        return result
    losses.dropped(
        (at, "resultType"), "2025-11-25 has no `resultType`, so every result is complete and this value was removed."
    )
    return {key: value for key, value in result.items() if key != "resultType"}


def elicitation_id(params: dict[str, Any], _at: At, _losses: Losses) -> str:
    """Return an identifier for an elicitation: equal for equal URL and message."""
    # Few servers send a user to a page, and these modules take milliseconds to import.
    import hashlib  # noqa: PLC0415
    import json  # noqa: PLC0415

    text = json.dumps([params["url"], params["message"]])
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def first_hundred(completion: dict[str, Any], at: At, losses: Losses) -> dict[str, Any]:
    """Return a completion with at most 100 values; set ``hasMore`` if values were removed."""
    values = completion["values"]
    if len(values) <= 100:  # noqa: PLR2004 - the bound of the newer revision
        return completion
    losses.degraded(
        (at, "values"), f"2026-07-28 allows at most 100 values in a completion; 100 of {len(values)} are left."
    )
    return {**completion, "values": values[:100], "hasMore": True}


def as_object(value: object, at: At, losses: Losses) -> dict[str, Any]:
    """Return structured content as an object."""
    if isinstance(value, dict):
        return cast("dict[str, Any]", value)
    losses.degraded(
        at, "2025-11-25 allows only objects as `structuredContent`, so the value moved under the key `result`."
    )
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
        losses.dropped((at, "properties"), "`properties` was removed, because 2025-11-25 requires an object there.")
        del fixed["properties"]
    required: object = schema.get("required", [])
    if not isinstance(required, list) or not all(isinstance(each, str) for each in cast("list[object]", required)):
        losses.dropped((at, "required"), "`required` was removed, because 2025-11-25 requires a list of strings there.")
        del fixed["required"]
    return fixed


def objects_only(properties: dict[str, object], at: At, losses: Losses) -> dict[str, object]:
    """Return the properties of a schema as objects; replace a boolean by the object with the same meaning."""
    fixed: dict[str, object] = {}
    for name, each in properties.items():
        if isinstance(each, dict):
            fixed[name] = each
        elif isinstance(each, bool):
            fixed[name] = {} if each else {"not": {}}
        else:
            losses.dropped((at, name), "The property was removed, because 2025-11-25 requires an object as its schema.")
    return fixed


def of_objects(schema: dict[str, Any], at: At, losses: Losses) -> dict[str, Any]:
    """Return an output schema for objects: for the values that `as_object` returns."""
    if schema.get("type") == "object" and not ignores_siblings(schema):
        return with_shapes(schema, at, losses)
    losses.degraded(at, "The schema was wrapped, because results that are not objects move under the key `result`.")
    outer = {"$schema": schema["$schema"]} if "$schema" in schema else {}
    inner = {key: value for key, value in schema.items() if key != "$schema"}
    address = "id" if "/draft-04/" in str(schema.get("$schema")) else "$id"
    if never_object(schema):
        result = moved(inner, "#/properties/result", address)
        return {**outer, "type": "object", "properties": {"result": result}, "required": ["result"]}
    wrapped = {"properties": {"result": {"$ref": "#/anyOf/0"}}, "required": ["result"]}
    return {**outer, "type": "object", "anyOf": [moved(inner, "#/anyOf/0", address), wrapped]}


def ignores_siblings(schema: dict[str, Any]) -> bool:
    """Whether only the reference of a schema counts, as in the dialects before 2019-09."""
    return "$ref" in schema and "/draft-0" in str(schema.get("$schema"))


def never_object(schema: dict[str, Any]) -> bool:
    """Whether the root of a schema alone excludes every object."""
    if any(key in schema for key in REFERENCES):
        return False  # older dialects ignore the keywords beside a reference
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
    """Return a schema for another place in its document, with its references into itself corrected."""
    if has_base(schema, address):
        return schema
    root = dict(schema)
    waiting: list[tuple[dict[str, Any] | list[Any], bool]] = [(root, True)]  # the bool: its keys are keywords
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
    """Whether a keyword holds data; ``enum`` and ``examples`` do so only as lists."""
    return key in PLAIN_VALUES and (key in {"const", "default"} or isinstance(value, list))


def copied(
    value: object, waiting: list[tuple[dict[str, Any] | list[Any], bool]], address: str, *, named: bool = False
) -> object:
    """Return a copy of *value* and add it to *waiting*; a part with its own base URI is not copied."""
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
    """Whether the key *address* gives a schema its own base URI, so that its references start there."""
    base = schema.get(address)
    return isinstance(base, str) and base != "" and not base.startswith("#")


def resource_not_found(error: dict[str, Any], _at: At, _losses: Losses) -> dict[str, Any]:
    """Return an error of ``resources/read``, with code -32002 if its data names the resource."""
    data: object = error.get("data")
    uri: object = cast("dict[str, object]", data).get("uri") if isinstance(data, dict) else None
    if error["code"] not in {-32602, -32002} or not isinstance(uri, str):
        return error
    return {**error, "code": -32002}  # a copy, also if the code is -32002: it is kept, without a loss


STEP = Step(
    old="2025-11-25",
    new="2026-07-28",
    changes=(
        Change(
            name="handshake",
            says="2026-07-28 has no handshake and no `ping`: each request carries its revision and capabilities.",
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
            says="2025-11-25 has no `server/discover`: the handshake tells the client what the server supports.",
            spec="2026-07-28, server/discover#request",
            covers=("request-added client server/discover",),
            down=Refuse(service="negotiation"),
        ),
        Change(
            name="request-metadata",
            says="2026-07-28 requires `_meta` in every request.",
            spec="2026-07-28, basic/index#meta",
            covers=("requiredness-changed *Params._meta",),
            up=Default(value={}, implied=True),
        ),
        Change(
            name="revision-of-a-request",
            says="2025-11-25 negotiates the revision once per session, not in each request.",
            spec="2026-07-28, basic/index#meta",
            covers=("key-added RequestMetaObject.io.modelcontextprotocol/protocolVersion",),
            up=Default(value="2026-07-28", implied=True),
        ),
        Change(
            name="capabilities-of-a-request",
            says=(
                "2025-11-25 has the client's capabilities once per session, 2026-07-28 in each request: the default is "
                "`{}`."
            ),
            spec="2026-07-28, basic/index#meta",
            covers=("key-added RequestMetaObject.io.modelcontextprotocol/clientCapabilities",),
            up=Default(value={}),
        ),
        Change(
            name="client-of-a-request",
            says="2025-11-25 has the client's name and version once per session, not in each request.",
            spec="2026-07-28, basic/index#meta",
            covers=("key-added RequestMetaObject.io.modelcontextprotocol/clientInfo",),
            down=Drop(),
        ),
        Change(
            name="log-level-of-a-request",
            says="2025-11-25 has one log level per session, not one per request.",
            spec="2026-07-28, server/utilities/logging#per-request-log-level",
            covers=("key-added RequestMetaObject.io.modelcontextprotocol/logLevel",),
            down=Drop(),
        ),
        Change(
            name="log-level-of-a-session",
            says="2026-07-28 has no `logging/setLevel`: each request carries its own log level.",
            spec="2026-07-28, server/utilities/logging#per-request-log-level",
            covers=("request-removed client logging/setLevel",),
            up=Refuse(service="log_level"),
        ),
        Change(
            name="subscriptions-of-a-session",
            says="2026-07-28 has `subscriptions/listen` instead of `resources/subscribe` and `resources/unsubscribe`.",
            spec="2026-07-28, basic/patterns/subscriptions#opening-a-stream",
            covers=("request-removed client resources/*subscribe",),
            up=Refuse(service="subscriptions"),
        ),
        Change(
            name="subscriptions",
            says="2025-11-25 has no `subscriptions/listen` and does not acknowledge subscriptions.",
            spec="2026-07-28, basic/patterns/subscriptions#opening-a-stream",
            covers=(
                "request-added client subscriptions/listen",
                "notification-added server notifications/subscriptions/acknowledged",
            ),
            down=Refuse(service="subscriptions"),
        ),
        Change(
            name="input-requests",
            says="In 2026-07-28 a server asks for input inside a result, and a client cannot answer with an error.",
            spec="2026-07-28, basic/patterns/mrtr#multi-round-trip-requests",
            covers=("carrier-changed server *", "params-changed server roots/list"),
            up=Refuse(service="input"),
        ),
        Change(
            name="input-required",
            says="2025-11-25 has no results that ask for input (`input_required`).",
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
            says="2025-11-25 has no `inputResponses` and no `requestState` in requests.",
            spec="2026-07-28, basic/patterns/mrtr#inputresponses",
            covers=("key-added *Params.inputResponses", "key-added *Params.requestState"),
            down=Refuse(service="input"),
        ),
        Change(
            name="input-request-metadata",
            says="2026-07-28 has no parameter `_meta` in `elicitation/create` and `sampling/createMessage`.",
            spec="2026-07-28, basic/patterns/mrtr#inputrequests",
            covers=(
                "key-removed CreateMessageRequestParams._meta",
                "key-removed ElicitRequestFormParams._meta",
                "key-removed ElicitRequestURLParams._meta",
            ),
            up=Drop(),
        ),
        Change(
            name="progress-of-roots",
            says="2026-07-28 has no progress token in `roots/list`: a client sends no progress notifications.",
            spec="2026-07-28, basic/patterns/progress#progress-flow",
            covers=("key-removed ListRootsRequestParams._meta.progressToken",),
            up=Drop(),
        ),
        Change(
            name="input-response-metadata",
            says="2026-07-28 has no `_meta` in the client's answers to `elicitation/create` and `roots/list`.",
            spec="2026-07-28, basic/patterns/mrtr#inputresponses",
            covers=("key-removed ElicitResult._meta", "key-removed ListRootsResult._meta"),
            up=Drop(),
        ),
        Change(
            name="result-type",
            says="2025-11-25 has no `resultType`: all its results are complete.",
            spec="2026-07-28, basic/index#resulttype",
            covers=("key-added *.resultType",),
            up=Default(value="complete", implied=True),
            down=Convert(only_complete),
        ),
        Change(
            name="no-result-type-before",
            says="2025-11-25 has only complete results: the step removes any other `resultType`.",
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
            says="2025-11-25 has no `ttlMs`, and 2026-07-28 requires it: the default is `0`.",
            spec="2026-07-28, server/utilities/caching#time-to-live-ttl-field",
            covers=("key-added *.ttlMs",),
            up=Default(value=0),
        ),
        Change(
            name="cache-scope",
            says="2025-11-25 has no `cacheScope`, and 2026-07-28 requires it: the default is `private`.",
            spec="2026-07-28, server/utilities/caching#cache-scope-field",
            covers=("key-added *.cacheScope",),
            up=Default(value="private"),
        ),
        Change(
            name="tasks",
            says="2026-07-28 has no tasks in the base protocol: they are an extension with other messages.",
            spec="2026-07-28, changelog#major-changes",
            covers=("request-removed * tasks/*", "notification-removed * notifications/tasks/status"),
            up=Refuse(service="tasks"),
        ),
        Change(
            name="task-results",
            says="2026-07-28 has no tasks in the base protocol, so a request cannot be answered with a task.",
            spec="2026-07-28, changelog#major-changes",
            covers=("arm-removed *result[CreateTaskResult]",),
            up=Refuse(service="tasks"),
        ),
        Change(
            name="task-augmentation",
            says="2026-07-28 has no `task` in requests, so the request runs without a task.",
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
            says="2026-07-28 has no `tasks` capability.",
            spec="2026-07-28, changelog#major-changes",
            covers=("key-removed *Capabilities.tasks",),
            up=Drop(),
        ),
        Change(
            name="tool-execution",
            says="2026-07-28 has no `execution` on tools: a client does not see that a tool can run as a task.",
            spec="2026-07-28, changelog#major-changes",
            covers=("key-removed Tool.execution",),
            up=Drop(),
        ),
        Change(
            name="cancellation-names-a-request",
            says="2026-07-28 requires `requestId` in every cancellation, 2025-11-25 only for requests without a task.",
            spec="2026-07-28, basic/patterns/cancellation#cancellation-flow",
            covers=("requiredness-changed CancelledNotificationParams.requestId",),
            up=Refuse(service="tasks"),
        ),
        Change(
            name="client-progress",
            says="2026-07-28 has no progress notifications from the client.",
            spec="2026-07-28, basic/patterns/progress#progress-flow",
            covers=("notification-removed client notifications/progress",),
            up=Refuse(service="progress"),
        ),
        Change(
            name="changed-roots",
            says="2026-07-28 has no `notifications/roots/list_changed`.",
            spec="2026-07-28, changelog#major-changes",
            covers=("notification-removed client notifications/roots/list_changed",),
            up=Refuse(service="roots"),
        ),
        Change(
            name="changed-roots-capability",
            says="2026-07-28 has no `listChanged` in the `roots` capability.",
            spec="2026-07-28, client/roots#capabilities",
            covers=("type-changed ClientCapabilities.roots",),
            at=("ClientCapabilities.roots.listChanged",),
            up=Drop(),
        ),
        Change(
            name="extensions",
            says="2025-11-25 has no `extensions` in capabilities.",
            spec="2026-07-28, basic/versioning#extension-negotiation",
            covers=("key-added *Capabilities.extensions",),
            down=Drop(),
        ),
        Change(
            name="elicitation-completion",
            says="2026-07-28 has no `notifications/elicitation/complete`: the client retries its request.",
            spec="2026-07-28, changelog#minor-changes",
            covers=("notification-removed server notifications/elicitation/complete",),
            up=Refuse(service="input"),
        ),
        Change(
            name="elicitation-id",
            says=(
                "2026-07-28 has no `elicitationId`: on the way back, the adapter adds a hash of `url` and `message` "
                "instead."
            ),
            spec="2026-07-28, changelog#minor-changes",
            covers=("key-removed ElicitRequestURLParams.elicitationId",),
            up=Drop(),
        ),
        Change(
            name="elicitation-id-hash",
            says="2025-11-25 requires `elicitationId`: the adapter adds a hash of `url` and `message`.",
            spec="2026-07-28, changelog#minor-changes",
            at=("ElicitRequestURLParams.elicitationId",),
            down=Default(make=elicitation_id),
        ),
        Change(
            name="url-elicitation-error",
            says="2026-07-28 has no error code -32042: a server asks for URL elicitation inside a result.",
            spec="2026-07-28, basic/index#error-codes",
            covers=("error-removed -32042",),
            up=Refuse(service="input"),
        ),
        Change(
            name="resource-not-found",
            says="2026-07-28 has no error code -32002: an unknown resource is an invalid parameter.",
            spec="2026-07-28, server/resources#error-handling",
            covers=("error-removed -32002",),
            up=Recode(-32602),
        ),
        Change(
            name="resource-not-found-before",
            says="2025-11-25 has the error code -32002 for an unknown resource.",
            spec="2025-11-25, server/resources#error-handling",
            at=("resources/read error",),
            down=Convert(resource_not_found),
        ),
        Change(
            name="user-rejected-sampling",
            says="2026-07-28 leaves the error code -1 to applications.",
            spec="2026-07-28, basic/index#error-codes",
            covers=("error-removed -1",),
            up=Keep(),
        ),
        Change(
            name="header-mismatch",
            says="2025-11-25 has no error code -32020 (the HTTP headers contradict the body).",
            spec="2026-07-28, basic/transports/streamable-http#server-validation",
            covers=("error-added -32020",),
            down=Recode(-32600),
        ),
        Change(
            name="missing-capability",
            says="2025-11-25 has no error code -32021 (the client did not declare a required capability).",
            spec="2026-07-28, basic/index#meta",
            covers=("error-added -32021",),
            down=Recode(-32600),
        ),
        Change(
            name="unsupported-revision",
            says="2025-11-25 has no error code -32022 (the server does not support the revision).",
            spec="2026-07-28, basic/versioning#protocol-version-negotiation",
            covers=("error-added -32022",),
            down=Recode(-32602),
        ),
        Change(
            name="completions-bound",
            says="2026-07-28 allows at most 100 values in a completion: the values after the first 100 are removed.",
            spec="2026-07-28, server/utilities/completion#completion-results",
            covers=("bounds-changed CompleteResultCompletion.values",),
            at=("CompleteResultCompletion",),
            up=Convert(first_hundred),
        ),
        Change(
            name="structured-values",
            says="2025-11-25 allows only objects as `structuredContent`: any other value moves under the key `result`.",
            spec="2026-07-28, server/tools#structured-content",
            covers=("type-changed *.structuredContent",),
            down=Convert(as_object),
        ),
        Change(
            name="schema-keywords",
            says="2026-07-28 allows all JSON Schema keywords in the schemas of tools, so it does not list them.",
            spec="2026-07-28, changelog#minor-changes",
            covers=("key-removed ToolInputSchema.*", "key-removed ToolOutputSchema.*"),
            up=Keep(),
            down=Keep(),
        ),
        Change(
            name="input-schemas",
            says=(
                "2025-11-25 requires an object as `properties`, an object as each property, and a list of strings as "
                "`required`: any other value is removed, but a property with the schema `true` gets `{}`, and one "
                'with `false` gets `{"not": {}}`.'
            ),
            spec="2026-07-28, changelog#minor-changes",
            at=("ToolInputSchema",),
            down=Convert(with_shapes),
        ),
        Change(
            name="output-schemas",
            says=(
                "2025-11-25 requires the type `object`: a schema without this type is wrapped in a schema with this "
                "type, and a schema with this type loses the same values as a `ToolInputSchema`."
            ),
            spec="2026-07-28, server/tools#output-schema",
            at=("ToolOutputSchema",),
            down=Convert(of_objects),
        ),
    ),
)
