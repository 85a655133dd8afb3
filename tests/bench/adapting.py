"""What adapting costs: nothing on an identity route, little for one step, and a list of tools over all of them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

import msgspec

from tests.bench import contenders, payloads, stopwatch
from tests.bench.stopwatch import Timing

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

NEWEST: Final = "2026-07-28"
OLDEST: Final = "2024-11-05"


class AdaptingRow(msgspec.Struct, frozen=True, kw_only=True):
    """One line of the table.

    Attributes:
        name: What is adapted, and from where to where.
        ours: What it costs.
        beside: What it is compared with, and what that costs.
        most_microseconds: What was promised, absolutely.
        most_ratio: What was promised, as a multiple of what it is compared with.
    """

    name: str
    ours: Timing
    beside: tuple[str, Timing] | None = None
    most_microseconds: float | None = None
    most_ratio: float | None = None


def rows(rounds: int) -> Iterator[AdaptingRow]:
    """Measure everything."""
    yield _identity(rounds)
    for source, target, part, name in (
        ("2025-11-25", "2025-06-18", "params", "`tools/call` params"),
        (NEWEST, "2025-11-25", "params", "`tools/call` params"),
        ("2025-11-25", NEWEST, "params", "`tools/call` params"),
        ("2025-06-18", "2025-03-26", "result", "`tools/call` result, one text"),
        ("2025-11-25", NEWEST, "result", "`tools/call` result, one text"),
    ):
        yield from _one_step(source, target, part, name, rounds)
    yield _all_steps(NEWEST, OLDEST, rounds)
    yield _all_steps(OLDEST, NEWEST, rounds)


def _identity(rounds: int) -> AdaptingRow:
    from mcpgen.runtime.adapt import Losses, route

    package = contenders.bindings("2025-11-25")
    text = msgspec.json.encode(json.loads(payloads.request("2025-11-25"))["params"])
    decode = package.decoder(package.CallToolRequestParams)
    same = route("2025-11-25", "2025-11-25", "tools/call", "params")
    wire = msgspec.json.Decoder().decode

    def adapted(data: bytes) -> object:
        return same.adapt_valid(wire(data), Losses())

    # As an engine does it: once for each route, not once for each message.
    receive = decode if same.is_identity else adapted
    times = stopwatch.race({"ours": lambda: receive(text), "plain": lambda: decode(text)}, rounds=rounds)
    beside = ("decoding without a route", times["plain"])
    return AdaptingRow(
        name="identity route, `tools/call` params decoded", ours=times["ours"], beside=beside, most_ratio=1.05
    )


def _one_step(source: str, target: str, part: str, name: str, rounds: int) -> Iterator[AdaptingRow]:
    from mcpgen.runtime.adapt import Losses, route

    way = route(source, target, "tools/call", "params" if part == "params" else "result")
    value = json.loads(payloads.request(source))["params"] if part == "params" else _result(source)
    way.adapt(value)  # so that what is timed is known to be valid
    racing: dict[str, Callable[[], object]] = {
        "step": lambda: way.adapt_valid(value, Losses()),
        "checked": lambda: way.adapt(value),
    }
    times = stopwatch.race(racing, rounds=rounds)
    label = f"{name}, {source} to {target}"
    yield AdaptingRow(name=f"{label}: `adapt_valid`", ours=times["step"], most_microseconds=3)
    yield AdaptingRow(name=f"{label}: `adapt`, which checks", ours=times["checked"])


def _all_steps(source: str, target: str, rounds: int) -> AdaptingRow:
    """Measure 100 tools over four steps, beside mcp-types' parse of the list in its own revision."""
    from mcpgen.runtime.adapt import route

    way = route(source, target, "tools/list", "result")
    value = json.loads(payloads.tool_list(source))
    if source == OLDEST:  # which knows no titles and no annotations
        value["tools"] = [{key: each[key] for key in ("name", "description", "inputSchema")} for each in value["tools"]]
    text = msgspec.json.encode(value)
    codec = next(each for each in contenders.CODECS if each.type == "ListToolsResult")
    model: Any = contenders.surface_model(codec, source if source == NEWEST else "2025-11-25")
    racing: dict[str, Callable[[], object]] = {
        "ours": lambda: way.adapt(value),
        "theirs": lambda: model.model_validate_json(text),
    }
    times = stopwatch.race(racing, rounds=rounds)
    return AdaptingRow(
        name=f"`tools/list` result, 100 tools, four steps, {source} to {target}: `adapt`",
        ours=times["ours"],
        beside=("mcp-types parsing the same list", times["theirs"]),
        most_microseconds=1000,
    )


def _result(revision: str) -> dict[str, Any]:
    complete = {"resultType": "complete"} if revision == NEWEST else {}
    return {"content": [{"type": "text", "text": "12 °C, light rain"}], "isError": False, **complete}
