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
        ({"port": 1}, r"asgi\(\) has no option `port`; the options are path, "),
        ({"user": whoever}, "`user` must be a plain function"),
        ({"user": "me"}, "`user` must be a plain function"),
        ({"events": "x"}, "`events` must be an event store"),
        ({"limits": 7}, "`limits` must be an HttpLimits"),
        ({"path": "mcp"}, "`path` is 'mcp'; it must begin with /"),
        ({"sse_path": "/mcp"}, "must be different paths"),
        ({"allowed_hosts": []}, "`allowed_hosts` is empty"),
    ],
)
def test_an_option_that_makes_no_sense_is_found_when_the_application_is_made(
    options: dict[str, Any], said: str
) -> None:
    with pytest.raises(UsageError, match=said):
        Server("demo").asgi(**options)
