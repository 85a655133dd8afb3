"""Drafts of the next revision: 2026-07-28 with edits."""

from __future__ import annotations

import copy
from typing import Any

from mcpgen.codegen.pinned import SchemaRoom

BASE = "2026-07-28"


def base() -> dict[str, Any]:
    """Return a copy of the base's document."""
    return copy.deepcopy(SchemaRoom().document(BASE))


def one_field() -> dict[str, Any]:
    """Return the base with one more optional key."""
    document = base()
    document["$defs"]["Tool"]["properties"]["costHint"] = {"minimum": 0, "type": "number"}
    return document


def next_revision() -> dict[str, Any]:
    """Return a draft with something of everything that a revision may change."""
    document = one_field()
    definitions = document["$defs"]
    _add_request(definitions)
    _add_notification(definitions)
    definitions["ListToolsResult"]["properties"]["catalogVersion"] = {"type": "string"}
    definitions["ListToolsResult"]["required"].append("catalogVersion")
    definitions["LoggingLevel"]["enum"].append("trace")
    del definitions["Tool"]["properties"]["icons"]
    properties = definitions["PromptArgument"]["properties"]
    properties["label"] = properties.pop("title")
    definitions["Annotations"]["properties"]["priority"]["maximum"] = 10
    definitions["Implementation"]["required"].append("title")
    return document


def stray_request() -> dict[str, Any]:
    """Return a draft with a request that no direction lists."""
    document = one_field()
    stray = copy.deepcopy(document["$defs"]["ListToolsRequest"])
    stray["properties"]["method"]["const"] = "stray/do"
    document["$defs"]["StrayRequest"] = stray
    return document


def other_error_codes() -> dict[str, Any]:
    """Return a draft whose errors have other codes, and that lacks a result of the base."""
    document = one_field()
    definitions = document["$defs"]
    definitions["HeaderMismatchError"]["properties"]["error"]["allOf"][1]["properties"]["code"]["const"] = -32001
    definitions["BusyError"] = copy.deepcopy(definitions["HeaderMismatchError"])
    definitions["BusyError"]["properties"]["error"]["allOf"][1]["properties"]["code"]["const"] = -32050
    del definitions["UnsupportedProtocolVersionError"]
    for name in ("SubscriptionsListenResult", "SubscriptionsListenResultResponse"):
        del definitions[name]
    arms = definitions["ServerResult"]["anyOf"]
    arms.remove({"$ref": "#/$defs/SubscriptionsListenResult"})
    return document


def with_prose(schema: Any) -> Any:
    """Return *schema*, or a document, with a description in each schema, as official documents have them."""
    if isinstance(schema, list):
        return [with_prose(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    found = {
        key: {name: with_prose(inner) for name, inner in each.items()} if key == "properties" else with_prose(each)
        for key, each in schema.items()
    }
    is_schema = any(isinstance(found.get(key), str) for key in ("type", "$ref")) or "anyOf" in found
    return {"description": "What it is for.", **found} if is_schema else found


def _add_request(definitions: dict[str, Any]) -> None:
    request = copy.deepcopy(definitions["ListToolsRequest"])
    request["properties"]["method"]["const"] = "tools/estimate"
    request["properties"]["params"] = {"$ref": "#/$defs/EstimateToolRequestParams"}
    request["required"] = ["id", "jsonrpc", "method", "params"]
    definitions["EstimateToolRequest"] = request
    definitions["EstimateToolRequestParams"] = {
        "type": "object",
        "properties": {"_meta": {"$ref": "#/$defs/RequestMetaObject"}, "name": {"type": "string"}},
        "required": ["_meta", "name"],
    }
    result = definitions["EstimateToolResult"] = copy.deepcopy(definitions["Result"])
    result["properties"]["seconds"] = {"minimum": 0, "type": "number"}
    result["required"] = [*result["required"], "seconds"]
    response = copy.deepcopy(definitions["CompleteResultResponse"])
    response["properties"]["result"] = {"$ref": "#/$defs/EstimateToolResult"}
    definitions["EstimateToolResultResponse"] = response
    definitions["ClientRequest"]["anyOf"].append({"$ref": "#/$defs/EstimateToolRequest"})
    definitions["ServerResult"]["anyOf"].append({"$ref": "#/$defs/EstimateToolResult"})


def _add_notification(definitions: dict[str, Any]) -> None:
    moved = copy.deepcopy(definitions["ToolListChangedNotification"])
    moved["properties"]["method"]["const"] = "notifications/catalog/moved"
    definitions["CatalogMovedNotification"] = moved
    definitions["ServerNotification"]["anyOf"].append({"$ref": "#/$defs/CatalogMovedNotification"})
