"""2025-06-18 adds structured tool results with a schema, resource links and elicitation. It removes batches.

Going down, structured content becomes JSON text in the tool result, and a resource link becomes text.
"""

from __future__ import annotations

import json
from typing import Any

from mcpgen.codegen.changes.vocabulary import At, Change, Convert, Drop, Losses, Refuse, Step

__all__ = ["STEP"]


def link_text(block: dict[str, Any], at: At, losses: Losses) -> dict[str, Any]:
    """Return a resource link as text: the name of the resource, its URI and its description."""
    losses.degraded(at, "The resource link became text, because 2025-03-26 has no resource links.")
    if "text" in block:
        losses.degraded((at, "text"), "The unknown key `text` was removed, because text content uses that key.")
    shown = {"text", "name", "title", "uri", "description", "mimeType", "size", "icons"}
    kept = {key: value for key, value in block.items() if key not in shown}
    lines = [f"{block.get('title') or block['name']}: {block['uri']}", block.get("description")]
    return {**kept, "type": "text", "text": "\n".join(line for line in lines if line)}


def structured_as_text(result: dict[str, Any], at: At, losses: Losses) -> dict[str, Any]:
    """Return a tool result whose structured content is JSON text in ``content``; add no text if it is there already."""
    if "structuredContent" not in result:
        return result
    losses.degraded(
        (at, "structuredContent"),
        "`structuredContent` was removed, because 2025-03-26 has no such key: `content` has the value as JSON text.",
    )
    structured = result["structuredContent"]
    kept = {key: value for key, value in result.items() if key != "structuredContent"}
    # A newer step wraps a value that is not an object under the key `result`. The server's text holds the bare value.
    known = {canonical(structured)}
    if structured.keys() == {"result"}:
        known.add(canonical(structured["result"]))
    if any(block["type"] == "text" and canonical_text(block["text"]) in known for block in result["content"]):
        return kept
    text = json.dumps(structured, ensure_ascii=False)
    return {**kept, "content": [*result["content"], {"type": "text", "text": text}]}


def canonical_text(text: str) -> str | None:
    """Return *text* as canonical JSON, or None if it is not JSON."""
    try:
        return canonical(json.loads(text))
    except (ValueError, RecursionError):
        return None


def canonical(value: object) -> str:
    """Return *value* as canonical JSON: equal values give equal text."""
    return json.dumps(value, sort_keys=True)


STEP = Step(
    old="2025-03-26",
    new="2025-06-18",
    changes=(
        Change(
            name="resource-links",
            says="2025-03-26 has no resource links: a link becomes text with its title or name, URI and description.",
            spec="2025-06-18, server/tools#resource-links",
            covers=("arm-added ContentBlock[ResourceLink]",),
            down=Convert(link_text),
        ),
        Change(
            name="structured-content",
            says="2025-03-26 has no `structuredContent` in tool results: the value becomes JSON text in `content`.",
            spec="2025-06-18, server/tools#structured-content",
            covers=("key-added CallToolResult.structuredContent",),
            at=("CallToolResult",),
            down=Convert(structured_as_text),
        ),
        Change(
            name="output-schema",
            says="2025-03-26 has no `outputSchema` on tools.",
            spec="2025-06-18, server/tools#output-schema",
            covers=("key-added Tool.outputSchema",),
            down=Drop(),
        ),
        Change(
            name="elicitation",
            says="2025-03-26 has no elicitation.",
            spec="2025-06-18, client/elicitation#creating-elicitation-requests",
            covers=("request-added server elicitation/create",),
            down=Refuse(service="input"),
        ),
        Change(
            name="elicitation-capability",
            says="2025-03-26 has no `elicitation` capability.",
            spec="2025-06-18, client/elicitation#capabilities",
            covers=("key-added ClientCapabilities.elicitation",),
            down=Drop(),
        ),
        Change(
            name="no-batches",
            says="2025-06-18 has no batches.",
            spec="2025-06-18, changelog#major-changes",
            covers=("arm-removed JSONRPCMessage[JSONRPCBatch*]",),
            up=Refuse(service="batching"),
        ),
        Change(
            name="titles",
            says="2025-03-26 has no `title`.",
            spec="2025-06-18, changelog#other-schema-changes",
            covers=("key-added *.title",),
            down=Drop(),
        ),
        Change(
            name="completion-context",
            says="2025-03-26 has no `context` in completion requests.",
            spec="2025-06-18, server/utilities/completion#requesting-completions",
            covers=("key-added CompleteRequestParams.context",),
            down=Drop(),
        ),
    ),
)
