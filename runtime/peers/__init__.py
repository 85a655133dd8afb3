"""Who is at the other end: which revision it speaks, what it can do, and how values of home cross to it and back."""

from __future__ import annotations

__all__: list[str] = []
