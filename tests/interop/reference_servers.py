"""What our client has to get from the servers that come as they are; ``peers/reference_servers.py`` asks them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.interop.client_expectations import Absent, always, since, text

if TYPE_CHECKING:
    from tests.interop.client_expectations import Expectation

__all__ = ["EVERYTHING", "STRANGERS", "TIME"]

EVERYTHING_TOOLS = [
    *("echo", "get-annotated-message", "get-env", "get-resource-links", "get-resource-reference", "get-roots-list"),
    *("get-structured-content", "get-sum", "get-tiny-image", "gzip-file-as-resource", "simulate-research-query"),
    *("toggle-simulated-logging", "toggle-subscriber-updates", "trigger-long-running-operation"),
    "trigger-sampling-request",
]
DOCUMENTS = ["architecture", "extension", "features", "how-it-works", "instructions", "startup", "structure"]
FORM = [
    *("birthdate", "check", "email", "firstLine", "homepage", "integer", "legacyTitledEnum", "name", "number"),
    *("titledMultipleSelectEnum", "titledSingleSelectEnum", "untitledMultipleSelectEnum", "untitledSingleSelectEnum"),
]


def everything_greeting(revision: str) -> Any:
    yes = {"listChanged": True}
    named = {"title": "Everything Reference Server"} if since(revision, "2025-03-26") else {}
    return {
        "revision": revision,
        "server": {"name": "mcp-servers/everything", "version": "2.0.0", **named},
        "capabilities": {
            "prompts": yes,
            "resources": {**yes, "subscribe": True},
            "tools": yes,
            "completions": {},
            "logging": {},
        },
        "instructions": "# Everything Server \N{EN DASH} Server Instructions",
    }


def everything_tools(revision: str) -> Any:
    """List those, too, that are there because the client declared something."""
    form = ["trigger-elicitation-request"] if since(revision, "2025-06-18") else []
    page = ["trigger-url-elicitation"] if since(revision, "2025-11-25") else []
    return sorted([*EVERYTHING_TOOLS, *form, *page])


def weather(revision: str) -> Any:
    facts = {"temperature": 36, "conditions": "Light rain / drizzle", "humidity": 82}
    said = text('{"temperature":36,"conditions":"Light rain / drizzle","humidity":82}')
    return {"content": said, **({"structuredContent": facts} if since(revision, "2025-03-26") else {})}


def gallery(revision: str) -> Any:
    del revision  # links are sent in all of them, and read as those of the first that has them
    links = [
        {
            "type": "resource_link",
            "name": f"{kind} Resource {n}",
            "uri": f"demo://resource/dynamic/{kind.lower()}/{n}",
            "description": f"Resource {n}: plaintext resource",
            "mimeType": "text/plain",
        }
        for n, kind in ((1, "Blob"), (2, "Text"))
    ]
    return [
        *text("Here's the image you requested:"),
        {"type": "image", "mimeType": "image/png"},
        *text("The image above is the MCP logo."),
        *text("Here are 2 resource links to resources available in this server:"),
        *links,
        {**text("Error: Operation failed")[0], "annotations": {"audience": ["user", "assistant"], "priority": 1}},
    ]


def form(revision: str) -> Any:
    """The form has fields that came with 2025-11-25, which are not valid in the revision before."""
    if not since(revision, "2025-06-18"):
        return no_tool("trigger-elicitation-request", "the revision has no elicitation: the server has no such tool")
    if not since(revision, "2025-11-25"):
        line = "MCP error -32602: the params of elicitation/create are not valid in 2025-06-18"
        return Absent(
            "the server's form has fields that the revision does not have: the client refuses it",
            {"asked": [], "first line": line, "has the answer": False},
        )
    asked = [["Please provide inputs for the following fields:", FORM]]
    return {"asked": asked, "first line": "✅ User provided the requested information!", "has the answer": False}


def sign_in(revision: str) -> Any:
    if not since(revision, "2025-11-25"):
        reason = "the revision cannot send users to a page: the server has no such tool"
        return no_tool("trigger-url-elicitation", reason)
    page = {"method": "elicitation/create", "mode": "url", "message": "Please sign in."}
    asked = [{**page, "url": "https://example.com/sign-in"}]
    return {"asked": asked, "first line": "✅ User completed the URL elicitation flow.", "has the answer": False}


def no_tool(name: str, reason: str) -> Absent:
    line = f"MCP error -32602: Tool {name} not found"
    return Absent(reason, {"asked": [], "first line": line, "has the answer": False})


SAMPLED = {
    "method": "sampling/createMessage",
    "maxTokens": 32,
    "messages": [{"role": "user", "content": text("Resource trigger-sampling-request context: Six times seven?")[0]}],
    "systemPrompt": "You are a helpful test server.",
    "temperature": 0.7,
}
DOCUMENT = "demo://resource/static/document/features.md"

EVERYTHING: dict[str, Expectation] = {
    "connect": everything_greeting,
    "list tools": everything_tools,
    "list resources": always(
        {"pages": [7], "uri": [f"demo://resource/static/document/{name}.md" for name in DOCUMENTS]}
    ),
    "list templates": always(
        {"pages": [2], "uriTemplate": [f"demo://resource/dynamic/{kind}/{{resourceId}}" for kind in ("text", "blob")]}
    ),
    "list prompts": always(
        {"pages": [4], "name": ["simple-prompt", "args-prompt", "completable-prompt", "resource-prompt"]}
    ),
    "call": always({"content": text("The sum of 20 and 22 is 42.")}),
    "structured result": weather,
    "content": gallery,
    "unknown tool": always({"isError": True}),
    "wrong arguments": always({"isError": True}),
    "progress": always(
        {
            "progress": [{"progress": n, "total": 3, "message": None} for n in (1, 2, 3)],
            "text": "Long running operation completed. Duration: 0.3 seconds, Steps: 3.",
        }
    ),
    "elicit": form,
    "elicit url": sign_in,
    "sample": always({"asked": [SAMPLED], "first line": "LLM sampling result: ", "has the answer": True}),
    "roots": always(["project", "file:///srv/project", "(1 total)"]),
    "read": always(
        [
            {"uri": DOCUMENT, "mimeType": "text/markdown", "begins": "# "},
            {"uri": "demo://resource/dynamic/text/7", "begins": "Resource 7"},
        ]
    ),
    "unknown resource": always({"code": -32602}),
    "prompt": always(
        [
            [{"role": "user", "content": text("This is a simple prompt without arguments.")[0]}],
            [{"role": "user", "content": text("What's weather in Zürich, ZH?")[0]}],
        ]
    ),
    "complete": always(["Sales", "Support"]),
    "complete context": always(["Bob"]),
    "ping": always({}),
    "subscribe": always([{"method": "notifications/resources/updated", "uri": DOCUMENT}]),
}


def time_greeting(revision: str) -> Any:
    no = {"listChanged": False}
    return {
        "revision": revision,
        "server": {"name": "mcp-time", "version": "2026.10.19"},
        "capabilities": {"prompts": no, "resources": {**no, "subscribe": False}, "tools": no},
        "instructions": None,
    }


UTC = {"timezone": "UTC", "is_dst": False}

TIME: dict[str, Expectation] = {
    "connect": time_greeting,
    "list tools": always({"pages": [2], "name": ["get_current_time", "convert_time"]}),
    "list prompts": always({"pages": [0], "name": []}),
    "call": always({"source": UTC, "target": {"timezone": "Asia/Tokyo", "is_dst": False}, "time_difference": "+9.0h"}),
    "structured result": lambda revision: UTC if since(revision, "2025-03-26") else None,
    "tool error": always({"isError": True, "says": True}),
    "unknown tool": always({"code": -32602}),
    "wrong arguments": always({"isError": True}),
    "ping": always({}),
}

STRANGERS: dict[str, dict[str, Expectation]] = {"everything": EVERYTHING, "time": TIME}
