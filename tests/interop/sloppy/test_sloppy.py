"""Our client with sloppy servers, and our server with sloppy clients: we take all that two other SDKs take.

What the others take was read by ``nox -s sloppy`` and is kept in ``readings.json``; ours is read here.
"""

from __future__ import annotations

import importlib
import json
from functools import cache, partial
from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.harness import closed_documents
from tests.interop import server as interop_server
from tests.interop.sloppy import page
from tests.interop.sloppy.in_memory import SloppyServer, answer_of
from tests.interop.sloppy.kinds import REVISIONS, Kind, client_kinds, matches, put, server_kinds
from tests.interop.sloppy.readings import (
    OTHERS,
    OURS,
    Key,
    Verdict,
    common,
    faults,
    is_common,
    judge_outcome,
    reasons,
    stored,
)
from tests.interop.sloppy.runs import read_clients, read_servers
from tests.interop.sloppy.scripted_client import script
from tests.interop.sloppy.scripted_server import ScriptedServer
from tests.oracle.subjects import patched
from tests.oracle.validators import Validators
from tests.patience import BUSY_SECONDS, PATIENCE_SECONDS

HERE = Path(__file__).parent

# The limit: of what two others take, we refuse less.
MOST_REFUSED = 0.03

# On a busy machine, each of all at once would need minutes.
AT_ONCE = 8


def others() -> dict[Key, Verdict]:
    """Return what the other SDKs take; ours is read anew."""
    return {key: each for key, each in stored().items() if key.reader != OURS}


def judged(side: str, kinds: dict[str, Kind]) -> list[tuple[Key, Kind]]:
    """Return what our side is judged by: what others take, what is decided, and the controls."""
    read = others()
    keys = [(Key(side, kind.name, each, OURS), kind) for kind in kinds.values() for each in kind.revisions]
    return [(key, kind) for key, kind in keys if kind.ours or kind.is_control or is_common(key, read)]


async def ours_in_memory(outcome: Any, *, strict: bool = False) -> dict[Key, Verdict]:
    """Return our readings of all kinds that need no HTTP and are judged."""
    results: dict[Key, Verdict] = {}
    at_once = anyio.CapacityLimiter(AT_ONCE)

    async def read(key: Key, kind: Kind) -> None:
        target = SloppyServer(kind, key.revision)
        plan = {"kind": kind.name, "revision": key.revision, "target": target, "do": kind.do, "waits": kind.waits}
        plan["strict"] = strict
        async with at_once:
            results[key] = judge_outcome(kind, await outcome(plan))

    async def serve(key: Key, kind: Kind) -> None:
        async with at_once:
            results[key] = await answer_of(interop_server.server, kind, key.revision)

    with anyio.fail_after(4 * PATIENCE_SECONDS):
        async with anyio.create_task_group() as tasks:
            for key, kind in judged("server", server_kinds()):
                if kind.http is None:
                    tasks.start_soon(read, key, kind)
            for key, kind in judged("client", client_kinds()):
                if kind.over == "stdio":
                    tasks.start_soon(serve, key, kind)
    return results


@pytest.fixture(scope="module")
def in_memory() -> dict[Key, Verdict]:
    return all_in_memory(strict=False)


def all_in_memory(*, strict: bool) -> dict[Key, Verdict]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(interop_server.server._engine.reading, "is_strict", strict)
        patch.syspath_prepend(HERE / "readers")  # where the readers import from, which other programs run
        ours, reading = importlib.import_module("mcpgen_reader"), importlib.import_module("reading")
        # A strict client waits in vain for an answer that it has refused to read.
        patch.setattr(reading, "DEADLINE_SECONDS", BUSY_SECONDS if strict else PATIENCE_SECONDS)
        outcome = partial(reading.outcome, connection=ours.connection, wire=ours.wire)
        return anyio.run(partial(ours_in_memory, strict=strict), outcome)


@pytest.fixture(scope="module")
def strictly() -> dict[Key, Verdict]:
    return all_in_memory(strict=True)


@pytest.fixture(scope="module")
def over_sockets() -> dict[Key, Verdict]:
    apart = [kind.name for kind in server_kinds().values() if kind.http is not None]
    apart += [kind.name for kind in client_kinds().values() if kind.over != "stdio"]
    return read_servers([OURS], apart) | read_clients([OURS], apart)


def refusals(ours: dict[Key, Verdict]) -> list[Key]:
    """Return what we do not take of what two others take."""
    return [key for key, each in common({**others(), **ours}).items() if each.outcome != "takes"]


@pytest.mark.slow
def test_what_two_others_take_we_take_except_for_written_reasons(in_memory: dict[Key, Verdict]) -> None:
    assert [] == faults({**others(), **in_memory})


@pytest.mark.slow
def test_what_two_others_take_over_http_we_take(over_sockets: dict[Key, Verdict]) -> None:
    assert [] == faults({**others(), **over_sockets})


@pytest.mark.slow
def test_we_refuse_less_than_three_in_a_hundred_of_what_two_others_take(in_memory: dict[Key, Verdict]) -> None:
    readings = common({**others(), **in_memory})
    refused = refusals(in_memory)

    assert len(refused) < MOST_REFUSED * len(readings), f"{len(refused)} of {len(readings)}"


def test_a_reason_is_for_a_refusal_that_two_others_would_not_make(in_memory: dict[Key, Verdict]) -> None:
    refused = refusals(in_memory)
    unused = [
        f"{each.side} {kind}"
        for each in reasons()
        for kind in each.kinds
        if not any((key.side, key.kind) == (each.side, kind) for key in refused)
    ]

    assert [] == unused


def test_exact_peers_are_taken_by_all(in_memory: dict[Key, Verdict]) -> None:
    kinds = {**server_kinds(), **client_kinds()}
    wrong = [
        f"{key.reader} {key.kind} {key.revision}: {each}"
        for key, each in {**others(), **in_memory}.items()
        if kinds[key.kind].is_control and each.outcome != "takes"
    ]

    assert [] == wrong


# The specification tells clients to read this one: 2026-07-28, basic/index, "ResultType".
TOLD_TO_READ = {"no-result-type-discover", "no-result-type"}
RESULTS = {
    "completion/complete": "CompleteResult",
    "initialize": "InitializeResult",
    "prompts/get": "GetPromptResult",
    "prompts/list": "ListPromptsResult",
    "resources/list": "ListResourcesResult",
    "resources/read": "ReadResourceResult",
    "resources/templates/list": "ListResourceTemplatesResult",
    "server/discover": "DiscoverResult",
    "tools/call": "CallToolResult",
    "tools/list": "ListToolsResult",
}


def is_valid(text: str, accepts: Any) -> bool:
    """Return whether a line is JSON, a message of JSON-RPC, and one that *accepts* accepts."""
    try:
        value = json.loads(text, parse_constant=pytest.fail)
        text.encode().decode("unicode_escape").encode("utf-16-le", "surrogatepass").decode("utf-16-le")
    except (ValueError, pytest.fail.Exception):
        return False
    return bool(accepts(value))


@cache
def validators_of(revision: str) -> Validators:
    return Validators(patched(revision))


def refused_by_the_schema(kind: Kind, revision: str) -> bool:
    """Return whether the schema of *revision* refuses what a server of *kind* answers, or a client of it sends."""
    validators = validators_of(revision)
    if kind.name in client_kinds() and client_kinds()[kind.name] is kind:
        requests = {each["method"]: each for step in script(kind, revision) for each in as_messages(step.text)}
        definitions = closed_documents.document(revision).client_requests
        return any(
            not validators.accepts(definitions[method], each)
            for method, each in requests.items()
            if method in definitions
        )
    method = kind.exchange
    if method == "hello":
        method = "server/discover" if revision == REVISIONS[-1] else "initialize"
    method = "tools/call" if method == "envelope" else method
    request = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {"name": "echo"}}
    lines = ScriptedServer(kind, revision).receive(json.dumps(request)).splitlines()

    def accepts(message: Any) -> bool:
        outcome = message.get("result") if isinstance(message, dict) else None
        has_envelope = isinstance(message, dict) and message.get("jsonrpc") == "2.0" and message.get("id") == 1
        if has_envelope and not message.keys() & {"result", "method"}:
            return validators.accepts("Error", message.get("error")) if "Error" in validators.names else True
        is_result = has_envelope and not message.keys() & {"error", "method"}
        return is_result and validators.accepts(RESULTS[method], outcome)

    return method in RESULTS and len(lines) == 1 and not is_valid(lines[0], accepts)


def as_messages(text: str) -> list[Any]:
    try:
        value = json.loads(text)
    except ValueError:
        return []
    return [value] if isinstance(value, dict) and "method" in value and "id" in value else []


@pytest.mark.slow
def test_a_strict_reader_refuses_what_the_schema_refuses(strictly: dict[Key, Verdict]) -> None:
    kinds = {"server": server_kinds(), "client": client_kinds()}
    invalid = {
        key: each
        for key, each in strictly.items()
        if key.kind not in TOLD_TO_READ and refused_by_the_schema(kinds[key.side][key.kind], key.revision)
    }

    assert len(invalid) > 300
    assert [] == [f"{key.side} {key.kind} {key.revision}" for key, each in invalid.items() if each.outcome == "takes"]


def test_each_kind_was_read_by_each_other_sdk_in_each_revision() -> None:
    read = stored()
    lacking = [
        f"{side} {kind.name} {revision} {reader}"
        for side, kinds in (("server", server_kinds()), ("client", client_kinds()))
        for kind in kinds.values()
        for revision in kind.revisions
        for reader in OTHERS
        if (revision != REVISIONS[-1] or reader.endswith(("2.3", "2.4")))
        and not (kind.over == "sse" and reader == "TypeScript SDK 2.4")  # which has no such server
        and Key(side, kind.name, revision, reader) not in read
    ]

    assert [] == lacking


def test_there_are_as_many_kinds_as_were_asked_for() -> None:
    assert len(server_kinds()) >= 85
    assert len(client_kinds()) >= 25


def test_the_page_shows_each_kind_and_the_share() -> None:
    text = "".join(page.lines(stored()))

    assert [] == [name for name in [*server_kinds(), *client_kinds()] if f"| {name} |" not in text]
    assert "of what at least two others take" in text


def test_null_is_as_good_as_absent_and_nothing_else_is() -> None:
    assert matches({"a": None}, {})
    assert matches({"a": [{"b": 1}]}, {"a": [{"b": 1.0, "c": 2}], "d": 3})
    assert not matches({"a": True}, {"a": 1})
    assert not matches({"a": True}, {"a": "true"})
    assert not matches({"a": [1]}, {"a": [1, 2]})
    assert matches({"a": [2]}, {"a": [1, 2]}, some=True)
    assert not matches({"a": 1}, {})


def test_places_of_a_message_are_changed_and_removed() -> None:
    message = {"id": 1, "result": {"tools": [{"name": "a", "b": 1}]}}
    put(message, '{"tools/0/name": null, "tools/0/b": "$drop", "x~1y/z": 2, "/id": "$text"}', "result/")

    assert {"id": "1", "result": {"tools": [{"name": None}], "x/y": {"z": 2}}} == message
