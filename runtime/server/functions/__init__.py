"""Functions as tools, resources, prompts and completions: their signatures, schemas, calls and results."""

from __future__ import annotations

__all__: list[str] = []
