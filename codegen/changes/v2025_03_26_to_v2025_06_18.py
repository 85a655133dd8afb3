"""What 2025-06-18 brought: structured tool results with a schema, links to resources, and elicitation; batches went.

Going down, what a program could read in a tool result becomes text beside the rest of it, and a link becomes words.
"""

from __future__ import annotations

import json
from typing import Any

from mcpgen.codegen.changes.vocabulary import At, Change, Convert, Drop, Losses, Refuse, Step

__all__ = ["STEP"]


def link_text(block: dict[str, Any], at: At, losses: Losses) -> dict[str, Any]:
    """Return a text that names the resource of a link, where it is and what it is."""
    losses.degraded(at, "A link to a resource became text.")
    if "text" in block:
        losses.degraded((at, "text"), "A key went, since a text gives it a meaning.")
    spoken = {"text", "name", "title", "uri", "description", "mimeType", "size", "icons"}
    kept = {key: value for key, value in block.items() if key not in spoken}
    lines = [f"{block.get('title') or block['name']}: {block['uri']}", block.get("description")]
    return {**kept, "type": "text", "text": "\n".join(line for line in lines if line)}


def structured_as_text(result: dict[str, Any], at: At, losses: Losses) -> dict[str, Any]:
    """Return a tool result with its structured content as JSON among the blocks, unless a block holds it already."""
    if "structuredContent" not in result:
        return result
    losses.degraded((at, "structuredContent"), "Structured content became its JSON as text.")
    structured = result["structuredContent"]
    kept = {key: value for key, value in result.items() if key != "structuredContent"}
    # What is no object went under the key result on the way here, and its text did not.
    spoken = {canonical(structured)}
    if structured.keys() == {"result"}:
        spoken.add(canonical(structured["result"]))
    if any(block["type"] == "text" and said(block["text"]) in spoken for block in result["content"]):
        return kept
    text = json.dumps(structured, ensure_ascii=False)
    return {**kept, "content": [*result["content"], {"type": "text", "text": text}]}


def said(text: str) -> str | None:
    """Return the JSON that a text is, in the one way in which it can be compared; None if it is none."""
    try:
        return canonical(json.loads(text))
    except (ValueError, RecursionError):
        return None


def canonical(value: object) -> str:
    """Return a value as JSON, equal for equal values."""
    return json.dumps(value, sort_keys=True)


STEP = Step(
    old="2025-03-26",
    new="2025-06-18",
    changes=(
        Change(
            name="resource-links",
            says="A prompt or tool result may point to a resource without holding it.",
            spec="2025-06-18, server/tools#resource-links",
            covers=("arm-added ContentBlock[ResourceLink]",),
            down=Convert(link_text),
        ),
        Change(
            name="structured-content",
            says="A tool result may hold a JSON object for programs beside the blocks for people and models.",
            spec="2025-06-18, server/tools#structured-content",
            covers=("key-added CallToolResult.structuredContent",),
            at=("CallToolResult",),
            down=Convert(structured_as_text),
        ),
        Change(
            name="output-schema",
            says="A tool may describe its structured results with a schema.",
            spec="2025-06-18, server/tools#output-schema",
            covers=("key-added Tool.outputSchema",),
            down=Drop(),
        ),
        Change(
            name="elicitation",
            says="A server may ask the user for input.",
            spec="2025-06-18, client/elicitation#creating-elicitation-requests",
            covers=("request-added server elicitation/create",),
            down=Refuse(service="input"),
        ),
        Change(
            name="elicitation-capability",
            says="A client declares that its user can be asked for input.",
            spec="2025-06-18, client/elicitation#capabilities",
            covers=("key-added ClientCapabilities.elicitation",),
            down=Drop(),
        ),
        Change(
            name="no-batches",
            says="Each message travels alone.",
            spec="2025-06-18, changelog#major-changes",
            covers=("arm-removed JSONRPCMessage[JSONRPCBatch*]",),
            up=Refuse(service="batching"),
        ),
        Change(
            name="titles",
            says="What has a name for programs may have a title for people, who see the name where there is none.",
            spec="2025-06-18, changelog#other-schema-changes",
            covers=("key-added *.title",),
            down=Drop(),
        ),
        Change(
            name="completion-context",
            says="A client may tell which arguments are settled, so that completions fit them.",
            spec="2025-06-18, server/utilities/completion#requesting-completions",
            covers=("key-added CompleteRequestParams.context",),
            down=Drop(),
        ),
    ),
)
