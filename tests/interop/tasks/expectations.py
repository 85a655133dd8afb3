"""What must come of each feature of tasks, in each revision that has tasks."""

from __future__ import annotations

from typing import Any, Final

__all__ = ["FEATURES", "MEANING"]

HANDSHAKE: Final = "2025-11-25"
STATELESS: Final = "2026-07-28"

MEANING: Final = {
    "immediate": "a tool that is never a task answers at once",
    "call": "a call becomes a task, and its result comes back",
    "required": "a tool that runs only as a task",
    "ask": "a question to the user inside a task",
    "progress": "progress becomes the status message",
    "tool error": "a tool that reports an error: the task completes at 2026-07-28, and fails at 2025-11-25",
    "protocol error": "an error of the protocol fails the task, with its message",
    "cancel": "a task that is cancelled",
    "unknown task": "a task that does not exist is refused with -32602",
    "list": "the client's tasks; 2026-07-28 has no such method",
    "resume": "the id of a task is stored, and the task is taken up again and cancelled",
}


def _both(value: Any) -> dict[str, Any]:
    return {HANDSHAKE: value, STATELESS: value}


FEATURES: Final[dict[str, dict[str, Any]]] = {
    "immediate": _both(["immediate", "hello"]),
    "call": _both(["task", "3 loaves"]),
    "required": _both("risen"),
    "ask": _both(["accept: {'name': 'Ada'}", True]),
    "progress": _both(["kneaded", True]),
    "tool error": {HANDSHAKE: ["failed", "It is black"], STATELESS: ["completed", True, "It is black"]},
    # At 2025-11-25 the status has no code. `tasks/result` has it, which ext-tasks does not ask after a failure.
    "protocol error": {
        HANDSHAKE: ["failed", None, "The oven is gone"],
        STATELESS: ["failed", -32603, "The oven is gone"],
    },
    "cancel": _both(["cancelled", "cancelled"]),
    "unknown task": _both(-32602),
    "list": {HANDSHAKE: [True, True], STATELESS: "known-handles"},
    "resume": _both("cancelled"),
}
