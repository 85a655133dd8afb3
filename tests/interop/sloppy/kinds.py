"""The kinds of deviation, as ``servers.toml`` and ``clients.toml`` describe them."""

from __future__ import annotations

import json
import tomllib
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

__all__ = ["REVISIONS", "STATELESS", "Kind", "client_kinds", "matches", "put", "server_kinds"]

HERE = Path(__file__).parent
REVISIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28")
STATELESS = REVISIONS[-1]


@dataclass(frozen=True, kw_only=True)
class Kind:
    """A kind of deviation; the head of its file says what each member means.

    Attributes:
        name: What it is called; no other of its file has the name.
        exchange: The table that it is in: the method that it changes, or the transport.
        some: ``sees`` names some of the items of a list, not all.
        fill: How many items the list of the answer has.
    """

    name: str
    exchange: str
    what: str
    since: str = REVISIONS[0]
    until: str = STATELESS
    put: str = "{}"
    before: str = "[]"
    after: str = "[]"
    ask: str = "{}"
    pages: str = "[]"
    line: str = "{}"
    http: dict[str, Any] | None = None
    do: list[str] = field(default_factory=list)
    sees: str = "{}"
    some: bool = False
    fill: int = 0
    send: str = "[]"
    hello: str = "{}"
    headers: str = "{}"
    slash: bool = False
    over: str = "stdio"
    ours: str = ""

    @property
    def revisions(self) -> tuple[str, ...]:
        """The revisions that it applies to, oldest first."""
        return tuple(each for each in REVISIONS if self.since <= each <= self.until)

    @property
    def waits(self) -> bool:
        """Whether notifications are looked at in the end."""
        return "seen" in json.loads(self.sees)

    @property
    def is_control(self) -> bool:
        """Whether nothing deviates."""
        return self.name.startswith("exact")


def _kinds(file: str) -> dict[str, Kind]:
    found: dict[str, Kind] = {}
    for exchange, lines in tomllib.loads((HERE / file).read_text(encoding="utf-8")).items():
        for name, line in lines.items():
            if name != "default":
                assert name not in found, name
                found[name] = Kind(**{"name": name, "exchange": exchange, **lines["default"], **line})
    return found


@cache
def server_kinds() -> dict[str, Kind]:
    """Return the kinds of sloppy servers by name."""
    return _kinds("servers.toml")


@cache
def client_kinds() -> dict[str, Kind]:
    """Return the kinds of sloppy clients by name."""
    return _kinds("clients.toml")


def put(message: dict[str, Any], places: str, root: str = "") -> None:
    """Change a message as *places* says, JSON: places and values. Places without a slash in front are below *root*."""
    special = {"$text": str(message.get("id")), "$float": float(message["id"]) if _is_number(message) else None}
    for place, value in json.loads(places).items():
        parts = (place[1:] if place.startswith("/") else f"{root}{place}").split("/")
        where: Any = message
        for part in parts[:-1]:
            key = part.replace("~1", "/")
            where = where[int(key)] if isinstance(where, list) else where.setdefault(key, {})
        last = parts[-1].replace("~1", "/")
        if value == "$drop":
            where.pop(last, None)
        elif not isinstance(where, list):
            where[last] = special.get(value, value) if isinstance(value, str) else value
        elif int(last) < len(where):
            where[int(last)] = value
        else:
            where.append(value)


def _is_number(message: dict[str, Any]) -> bool:
    return isinstance(message.get("id"), int | float)


def matches(expected: Any, found: Any, *, some: bool = False) -> bool:
    """Return whether *found* has at least what is *expected*; null is as good as absent.

    Args:
        expected: A JSON value.
        found: Another one. Lists must have equal items, in the same order.
        some: Lists may have more items, in any order.
    """
    if isinstance(expected, dict):
        if not isinstance(found, dict):
            return False
        return all(matches(value, found.get(key), some=some) for key, value in expected.items())
    if isinstance(expected, list):
        if not isinstance(found, list):
            return False
        if some:
            return all(any(matches(each, other, some=True) for other in found) for each in expected)
        return len(expected) == len(found) and all(map(matches, expected, found))
    if isinstance(expected, bool) or isinstance(found, bool):
        return expected is found
    return bool(expected == found)
