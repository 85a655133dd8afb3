"""Tasks of 2025-11-25: tool calls that run as tasks, the lifecycle of a task, and the store of tasks."""

from __future__ import annotations

__all__: list[str] = []
