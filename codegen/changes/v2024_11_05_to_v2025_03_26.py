"""What 2025-03-26 brought: audio beside text and images, hints on what a tool does, and batches of messages.

Everything of 2024-11-05 is still valid. Going down, audio becomes the nearest thing that a 2024-11-05 peer can use: an
embedded resource where it takes those, a note in words where it does not.
"""

from __future__ import annotations

import hashlib
from typing import Any

from mcpgen.codegen.changes.vocabulary import At, Change, Convert, Drop, Losses, Refuse, Step

__all__ = ["STEP"]


def attached_audio(block: dict[str, Any], at: At, losses: Losses) -> dict[str, Any]:
    """Return a block of audio as an embedded resource with the same bytes."""
    losses.degraded(at, "Audio became an embedded resource.")
    if "resource" in block:
        losses.degraded((at, "resource"), "A key went, since an embedded resource gives it a meaning.")
    kept = {key: value for key, value in block.items() if key not in {"data", "mimeType", "resource"}}
    # Different resources have different addresses.
    name = hashlib.sha256(block["data"].encode()).hexdigest()[:16]
    resource = {"uri": f"attachment:audio/{name}", "mimeType": block["mimeType"], "blob": block["data"]}
    return {**kept, "type": "resource", "resource": resource}


def audio_note(block: dict[str, Any], at: At, losses: Losses) -> dict[str, Any]:
    """Return a text that says which audio was there."""
    losses.degraded(at, "Audio became a note in words, since sampling takes text and images only.")
    if "text" in block:
        losses.degraded((at, "text"), "A key went, since a text gives it a meaning.")
    kept = {key: value for key, value in block.items() if key not in {"data", "mimeType", "text"}}
    size = len(block["data"].rstrip("=")) * 3 // 4
    return {**kept, "type": "text", "text": f"[Audio left out: {block['mimeType']}, {size} bytes]"}


STEP = Step(
    old="2024-11-05",
    new="2025-03-26",
    changes=(
        Change(
            name="audio",
            says="Audio may stand in prompts and tool results.",
            spec="2025-03-26, server/tools#audio-content",
            covers=("arm-added ContentBlock[AudioContent]",),
            down=Convert(attached_audio),
        ),
        Change(
            name="audio-in-sampling",
            says="Audio may stand in sampling messages.",
            spec="2025-03-26, client/sampling#audio-content",
            covers=("arm-added SamplingMessageContentBlock[AudioContent]",),
            down=Convert(audio_note),
        ),
        Change(
            name="batches",
            says="Several messages may travel as one JSON array.",
            spec="2025-03-26, basic/index#batching",
            covers=("arm-added JSONRPCMessage[JSONRPCBatch*]",),
            down=Refuse(service="batching"),
        ),
        Change(
            name="tool-annotations",
            says="A tool may carry hints on what it does, such as whether it only reads.",
            spec="2025-03-26, server/tools#tool",
            covers=("key-added Tool.annotations",),
            down=Drop(),
        ),
        Change(
            name="progress-message",
            says="Progress may say in words how far the work is.",
            spec="2025-03-26, basic/utilities/progress#progress-flow",
            covers=("key-added ProgressNotificationParams.message",),
            down=Drop(),
        ),
        Change(
            name="completions-capability",
            says="A server declares whether it completes arguments; before, a client had to try.",
            spec="2025-03-26, server/utilities/completion#capabilities",
            covers=("capability-changed client completion/complete", "key-added ServerCapabilities.completions"),
            at=("ServerCapabilities.completions",),
            down=Drop(),
        ),
    ),
)
