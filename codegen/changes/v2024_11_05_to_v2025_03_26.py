"""2025-03-26 adds audio content, tool annotations and batches. Everything in 2024-11-05 stays valid.

Going down, audio becomes the nearest content that a 2024-11-05 peer can use: an embedded resource in prompts and tool
results, and a text note in sampling messages, which cannot hold resources.
"""

from __future__ import annotations

import hashlib
from typing import Any

from mcpgen.codegen.changes.vocabulary import At, Change, Convert, Drop, Losses, Refuse, Step

__all__ = ["STEP"]


def attached_audio(block: dict[str, Any], at: At, losses: Losses) -> dict[str, Any]:
    """Return audio content as an embedded resource with the same bytes."""
    losses.degraded(at, "The audio became an embedded resource, because 2024-11-05 has no audio content.")
    if "resource" in block:
        losses.degraded(
            (at, "resource"), "The unknown key `resource` was removed, because embedded resources use that key."
        )
    kept = {key: value for key, value in block.items() if key not in {"data", "mimeType", "resource"}}
    # Two resources must not share a URI.
    name = hashlib.sha256(block["data"].encode()).hexdigest()[:16]
    resource = {"uri": f"attachment:audio/{name}", "mimeType": block["mimeType"], "blob": block["data"]}
    return {**kept, "type": "resource", "resource": resource}


def audio_note(block: dict[str, Any], at: At, losses: Losses) -> dict[str, Any]:
    """Return a text that gives the type and the size of the audio."""
    losses.degraded(at, "The audio became a text note, because 2024-11-05 takes only text and images in sampling.")
    if "text" in block:
        losses.degraded((at, "text"), "The unknown key `text` was removed, because text content uses that key.")
    kept = {key: value for key, value in block.items() if key not in {"data", "mimeType", "text"}}
    size = len(block["data"].rstrip("=")) * 3 // 4
    return {**kept, "type": "text", "text": f"[Audio left out: {block['mimeType']}, {size} bytes]"}


STEP = Step(
    old="2024-11-05",
    new="2025-03-26",
    changes=(
        Change(
            name="audio",
            says="2024-11-05 has no audio content in prompts and tool results: audio becomes an embedded resource.",
            spec="2025-03-26, server/tools#audio-content",
            covers=("arm-added ContentBlock[AudioContent]",),
            down=Convert(attached_audio),
        ),
        Change(
            name="audio-in-sampling",
            says="2024-11-05 has no audio content in sampling messages: audio becomes a text note without the data.",
            spec="2025-03-26, client/sampling#audio-content",
            covers=("arm-added SamplingMessageContentBlock[AudioContent]",),
            down=Convert(audio_note),
        ),
        Change(
            name="batches",
            says="2024-11-05 has no batches.",
            spec="2025-03-26, basic/index#batching",
            covers=("arm-added JSONRPCMessage[JSONRPCBatch*]",),
            down=Refuse(service="batching"),
        ),
        Change(
            name="tool-annotations",
            says="2024-11-05 has no `annotations` on tools.",
            spec="2025-03-26, server/tools#tool",
            covers=("key-added Tool.annotations",),
            down=Drop(),
        ),
        Change(
            name="progress-message",
            says="2024-11-05 has no `message` in progress notifications.",
            spec="2025-03-26, basic/utilities/progress#progress-flow",
            covers=("key-added ProgressNotificationParams.message",),
            down=Drop(),
        ),
        Change(
            name="completions-capability",
            says="2024-11-05 has no `completions` capability.",
            spec="2025-03-26, server/utilities/completion#capabilities",
            covers=("capability-changed client completion/complete", "key-added ServerCapabilities.completions"),
            at=("ServerCapabilities.completions",),
            down=Drop(),
        ),
    ),
)
