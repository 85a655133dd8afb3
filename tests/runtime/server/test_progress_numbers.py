"""Numbers of progress that no float can express."""

from __future__ import annotations

import pytest

from mcpgen import Context, Server, UsageError, connect

pytestmark = pytest.mark.anyio


async def test_a_whole_number_that_no_float_can_express_is_an_error_of_the_caller() -> None:
    server, said = Server("any", version="1"), list[str]()

    @server.tool
    async def count(ctx: Context) -> None:
        for given in ((1, 10**5000), (10**400, None)):
            with pytest.raises(UsageError) as refused:
                await ctx.progress(*given)
            said.append(str(refused.value))

    async with connect(server) as client:
        await client.call_tool("count", {})

    assert said == ["`progress` and `total` must be less than 1.8e308"] * 2
