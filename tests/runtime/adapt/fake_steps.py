"""A ladder of fake steps, so that what the runtime does is seen apart from what the generated steps do.

From 2024-11-05 to 2025-03-26, everything is renamed or dropped that the tests need to be; the next step does less.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from mcpgen.generated.adapters import Direction, Gone, Message, Part
from mcpgen.runtime.adapt import Router
from mcpgen.runtime.adapt.steps import Steps

if TYPE_CHECKING:
    from mcpgen.generated.adapters import At, Losses

FIRST, SECOND, THIRD = "2024-11-05", "2025-03-26", "2025-06-18"


def mark(name: str) -> Any:
    """Return a step that adds *name* to ``_meta.trace``."""

    def adapt(value: Any, at: At, losses: Losses) -> Any:
        del at, losses
        meta = value.get("_meta", {})
        return {**value, "_meta": {**meta, "trace": [*meta.get("trace", []), name]}}

    return adapt


def drop_cursor(value: Any, at: At, losses: Losses) -> Any:
    """Drop the cursor, which the source declares."""
    value = dict(value)
    if "cursor" in value:
        losses.drop(value, "cursor", at, "no cursors")
    return value


def drop_foreign(value: Any, at: At, losses: Losses) -> Any:
    """Drop the key ``foreign``, which no schema declares."""
    value = dict(value)
    if "foreign" in value:
        losses.drop(value, "foreign", at, "foreign")
    return value


def drop_descriptions(value: Any, at: At, losses: Losses) -> Any:
    """Drop the description of each tool."""
    tools = []
    for index, tool in enumerate(value["tools"]):
        tools.append(dict(tool))
        if "description" in tool:
            losses.drop(tools[-1], "description", ((at, "tools"), index), "no descriptions")
    return {**value, "tools": tools}


def refuse_cursor(value: Any, at: At, losses: Losses) -> Any:
    """Refuse a cursor."""
    if "cursor" in value:
        losses.dropped((at, "before"), "something else was lost")
        losses.refuse((at, "cursor"), "no cursors at all", "input")
    return value


def recurse(value: Any, at: At, losses: Losses) -> Any:
    """Fail as a step does that follows a value deeper than Python does."""
    return recurse(value, (at, "x"), losses)


GONE = Gone(reason="nobody pings", service="negotiation")


def direction(source: str, target: str, messages: dict[str, Message], **definitions: tuple[str, Part]) -> Direction:
    return Direction(source=source, target=target, messages=messages, definitions=definitions)


MODULES = {
    "one": SimpleNamespace(
        UP=direction(
            FIRST,
            SECOND,
            {
                "tools/list": Message(
                    params=Part(adapt=mark("up one"), idle=True), result=Part(), error=Part(adapt=drop_foreign)
                ),
                "prompts/list": Message(params=Part(adapt=mark("up one"), idle=False), result=Part(), error=Part()),
                "resources/list": Message(params=Part(), result=Part(), error=Part()),
                "resources/templates/list": Message(params=Part(), result=Part()),
                "ping": Message(params=Part(), result=Part(), error=Part(), gone={"client": GONE}),
                "logging/setLevel": Message(gone={"client": GONE}),
                "notifications/initialized": Message(params=Part(adapt=mark("up one"))),
                "completion/complete": Message(params=Part(adapt=recurse), result=Part(), error=Part()),
            },
            Implementation=("Thing", Part(adapt=mark("up one"))),
        ),
        DOWN=direction(
            SECOND,
            FIRST,
            {
                "tools/list": Message(
                    params=Part(adapt=drop_foreign, idle=True),
                    result=Part(adapt=drop_descriptions, idle=False),
                    error=Part(),
                ),
                "prompts/list": Message(params=Part(adapt=drop_cursor, idle=False), result=Part(), error=Part()),
                "resources/list": Message(params=Part(adapt=refuse_cursor, idle=False), result=Part(), error=Part()),
                "resources/templates/list": Message(params=Part(), result=Part()),
                "ping": Message(params=Part(), result=Part(), error=Part()),
            },
        ),
    ),
    "two": SimpleNamespace(
        UP=direction(
            SECOND,
            THIRD,
            {
                "tools/list": Message(
                    params=Part(adapt=mark("up two"), idle=True), result=Part(), error=Part(adapt=drop_foreign)
                ),
                "prompts/list": Message(params=Part(adapt=mark("up two"), idle=False), result=Part(), error=Part()),
                "ping": Message(params=Part(), result=Part(), error=Part(), gone={"server": GONE}),
            },
            Thing=("Implementation", Part(adapt=mark("up two"), idle=False)),
        ),
        DOWN=direction(
            THIRD,
            SECOND,
            {
                "tools/list": Message(params=Part(), result=Part(), error=Part()),
                "elicitation/create": Message(params=Part(adapt=drop_foreign, idle=False)),
            },
        ),
    ),
}


class FakeLadder(Steps):
    """The fake steps, and the modules that were asked for."""

    def __init__(self) -> None:
        self.loaded: list[str] = []
        super().__init__([(FIRST, SECOND, "one"), (SECOND, THIRD, "two")], self._load_fake)

    def _load_fake(self, module: str) -> Any:
        self.loaded.append(module)
        return MODULES[module]


def router() -> Router:
    return Router(FakeLadder())
