"""Notifications that a handler sends by hand, in the terms of its home."""

from __future__ import annotations

import json
from typing import Any

import pytest

from mcpgen.generated import registry
from tests.specification.citation import everywhere, from_every_home, spec
from tests.specification.server.revision_client import client
from tests.specification.server.revision_server import server

pytestmark = pytest.mark.anyio

BY_HAND: list[tuple[str, dict[str, Any]]] = [
    ("CANCELLED", {"requestId": 77}),
    ("ELICITATION_COMPLETE", {"elicitationId": "x"}),
    ("LOGGING_MESSAGE", {"level": "debug", "data": 1}),
    ("PROGRESS", {"progressToken": "never given", "progress": 1}),
    ("PROMPT_LIST_CHANGED", {}),
    ("RESOURCE_LIST_CHANGED", {}),
    ("RESOURCE_UPDATED", {"uri": "note://nobody-watches"}),
    ("SUBSCRIPTIONS_ACKNOWLEDGED", {"notifications": {}}),
    ("TASK_STATUS", {"taskId": "x", "status": "working", "createdAt": "a", "lastUpdatedAt": "a", "ttl": 1}),
    ("TOOL_LIST_CHANGED", {}),
]


@spec("2025-11-25", "basic/lifecycle#operation")
@spec("2025-11-25", "basic/utilities/progress#behavior-requirements")
@spec("2026-07-28", "basic/patterns/subscriptions#opening-a-stream")
@spec("2026-07-28", "basic/patterns/cancellation#behavior-requirements")
@spec("2026-07-28", "server/utilities/logging#per-request-log-level")
@everywhere
@from_every_home
@pytest.mark.parametrize(("name", "params"), BY_HAND, ids=[name for name, _ in BY_HAND])
@pytest.mark.slow
async def test_whatever_a_handler_tells_by_hand_keeps_to_the_rules_of_its_peer(
    name: str, params: dict[str, Any], native_revision: str, revision: str
) -> None:
    """It is told as the rules have it, or refused, or dropped; the recorder judges which of these is right."""
    method = getattr(registry.revision(native_revision).bindings().methods, name, None)
    outcomes: list[str] = []

    async def tell(own: Any, arguments: dict[str, Any], context: Any) -> Any:
        del arguments
        try:
            if method is not None:
                await context.notify(method, own.models.decode(json.dumps(params).encode(), method.params))
            outcomes.append("told")
        except Exception as error:  # noqa: BLE001 (the engine refuses for several reasons)
            outcomes.append(str(error))
        return own.text("done")

    async with client(server(native_revision, tools={"tell": tell}), revision) as peer:
        said = await peer.call("tell")

    assert 1 == len(outcomes)
    assert "result" in said[-1]
