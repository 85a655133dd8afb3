"""An extension of the tests' own: a request, a notification, a filter, and a result of `tools/call`."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any, Final

from click.testing import CliRunner

from mcpgen.codegen.commands import build
from tests.codegen.packages import load_folder

__all__ = ["IDENTIFIER", "rooms"]

IDENTIFIER: Final = "com.example/rooms"

_STRING: Final = {"type": "string"}
_ADDRESS: Final = {"type": "string", "pattern": "^[^@]+@[^@]+$"}


def _object(required: str, **properties: object) -> dict[str, Any]:
    return {"type": "object", "required": required.split(), "properties": properties}


_DOCUMENT: Final = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "$defs": {
        "ReserveRoomRequest": _object(
            "method params",
            method={"const": "com.example/rooms/reserve"},
            params={"$ref": "#/$defs/ReserveRoomRequestParams"},
        ),
        "ReserveRoomRequestParams": _object(
            "_meta room",
            _meta={"$ref": "#/$defs/RequestMetaObject"},
            room=_STRING,
            seats={"type": "integer", "minimum": 1},
            guest=_ADDRESS,
            guests={"type": "array", "items": {"anyOf": [_ADDRESS, {"type": "integer"}]}},
            wishes={"type": "array", "items": {"anyOf": [{"$ref": "#/$defs/Desk"}, {"$ref": "#/$defs/Screen"}]}},
        ),
        "Desk": _object("", height=_STRING),
        "Screen": _object("", width=_STRING),
        "ReserveRoomResult": _object(
            "resultType confirmation",
            _meta={"$ref": "#/$defs/ResultMetaObject"},
            resultType={"const": "complete"},
            confirmation={"$ref": "#/$defs/TextContent"},
            guest=_ADDRESS,
        ),
        "RoomFreedNotification": _object(
            "method params",
            method={"const": "notifications/com.example/rooms/freed"},
            params={"$ref": "#/$defs/RoomFreedNotificationParams"},
        ),
        "RoomFreedNotificationParams": _object("room", _meta={"$ref": "#/$defs/NotificationMetaObject"}, room=_STRING),
        "WaitlistResult": _object("resultType place", resultType={"const": "waitlist"}, place={"type": "integer"}),
    },
}

_OVERLAY: Final = """
[methods."com.example/rooms/reserve"]
sender = "client"
[methods."notifications/com.example/rooms/freed"]
sender = "server"
[methods."tools/call"]
sender = "client"
[methods."subscriptions/listen"]
sender = "client"

[[patch]]
pointers = ["/$defs/SubscriptionFilter/properties/rooms"]
new = { type = "array", items = { type = "string", pattern = "^[^@]+$" } }
reason = "A client can subscribe to rooms."

[[patch]]
pointers = ["/$defs/CallToolResultResponse/properties/result/anyOf"]
old = [{ "$ref" = "#/$defs/InputRequiredResult" }, { "$ref" = "#/$defs/CallToolResult" }]
new = [
  { "$ref" = "#/$defs/InputRequiredResult" },
  { "$ref" = "#/$defs/WaitlistResult" },
  { "$ref" = "#/$defs/CallToolResult" },
]
reason = "A tool may put its caller on a waiting list."
"""


@cache
def rooms() -> Any:
    """Return the package of the extension, built once."""
    folder = Path(mkdtemp(prefix="rooms-"))
    (folder / "rooms.json").write_text(json.dumps(_DOCUMENT), encoding="utf-8")
    (folder / "rooms.toml").write_text(_OVERLAY, encoding="utf-8")
    arguments = ["--extension", folder / "rooms.json", "--overlay", folder / "rooms.toml", "--out", folder / "out"]
    arguments += ["--id", IDENTIFIER, "--base", "2026-07-28"]
    result = CliRunner().invoke(build, [str(each) for each in arguments])
    assert 0 == result.exit_code, result.output
    return load_folder(folder / "out" / "rooms", "rooms_extension")
