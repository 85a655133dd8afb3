"""What an application is made with, and what is said of that where it makes no sense."""

from __future__ import annotations

from typing import Any

import pytest

from mcpgen import Server, UsageError


async def whoever(scope: dict[str, Any]) -> str:
    return str(scope)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"port": 1}, "asgi has no option 'port'; it has path, "),
        ({"user": whoever}, "user is a plain function"),
        ({"user": "me"}, "user is a plain function"),
        ({"events": "x"}, "events are a store"),
        ({"limits": 7}, "limits are an HttpLimits"),
        ({"path": "mcp"}, "path is 'mcp'; it has to begin with /"),
        ({"sse_path": "/mcp"}, "needs a path of its own"),
        ({"allowed_hosts": []}, "allowed_hosts is empty"),
    ],
)
def test_an_option_that_makes_no_sense_is_found_when_the_application_is_made(
    options: dict[str, Any], said: str
) -> None:
    with pytest.raises(UsageError, match=said):
        Server("demo").asgi(**options)
