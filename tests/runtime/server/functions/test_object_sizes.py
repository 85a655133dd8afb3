"""Calls are charged for the objects that their arguments become."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import anyio
import msgspec
import pydantic
import pytest

from mcpgen import Limits, Server
from mcpgen.runtime.server.functions.object_sizes import object_bytes
from mcpgen.runtime.transports import memory
from tests.patience import PATIENCE_SECONDS

pytestmark = pytest.mark.anyio


@dataclass
class Address:
    street: str = ""
    city: str = ""


@dataclass
class Person:
    name: str = ""
    home: Address = field(default_factory=Address)
    work: Address = field(default_factory=Address)
    tags: set[str] = field(default_factory=set)
    friends: list[Person] = field(default_factory=list)


class Row(msgspec.Struct):
    tags: list[str] = []
    labels: dict[str, str] = {}
    notes: list[str] = msgspec.field(default_factory=lambda: ["none"])
    parts: list[Row] = []


WIDE: Any = pydantic.create_model("Wide", **{f"f{number}": (int | None, None) for number in range(40)})


def size_of(kind: Any) -> int:
    return object_bytes(msgspec.defstruct("Arguments", [("value", kind)]))


@pytest.mark.parametrize("kind", [Person, list[Person], dict[str, Person | int], list[tuple[Person, ...]] | None])
def test_the_largest_class_counts_wherever_it_is(kind: Any) -> None:
    assert size_of(Person) == size_of(kind) > 2 * size_of(Address) > 0


@pytest.mark.parametrize("kind", [int, list[str], dict[str, list[int]], Any])
def test_other_values_count_as_usual(kind: Any) -> None:
    assert 0 == size_of(kind)


@pytest.mark.parametrize("kind", [Person, Row, WIDE])
async def test_pending_calls_are_charged_for_the_defaults_of_their_objects(kind: Any) -> None:
    # 1,000 empty objects are 3 kB of JSON and 150 kB as dicts, but 400 kB and more with their defaults.
    server = Server("held", version="1", limits=Limits(max_in_flight_bytes=700_000))

    async def hold(rows: Any) -> int:
        await anyio.sleep_forever()
        return len(rows)

    hold.__annotations__["rows"] = list[kind]
    server.tool(hold)
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    params = {"name": "hold", "arguments": {"rows": [{}] * 1000}, "_meta": meta}
    with anyio.fail_after(PATIENCE_SECONDS):
        async with memory.wire(server) as wire:
            for number in (1, 2):
                await wire.send({"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params})
            refused = await wire.receive()

    assert "(max_in_flight_bytes)" in refused["error"]["message"]
