"""That the recorder bites: conversations that break one rule each, and some that break none."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from mcpgen.generated.registry import REVISIONS
from mcpgen.runtime.protocol.newest import models
from tests.harness.server_conversations import BROKEN, FINE
from tests.harness.server_recorder import Recorder
from tests.harness.server_wire import connected
from tests.specification.server.revision_client import client
from tests.specification.server.revision_server import server

if TYPE_CHECKING:
    from collections.abc import Mapping

LABELS = [each.label for each in REVISIONS]
ALL: Mapping[str, Any] = {
    "completions": {},
    "logging": {},
    "prompts": {"listChanged": True},
    "resources": {"subscribe": True, "listChanged": True},
    "tools": {"listChanged": True},
}


def judged(script: str) -> list[tuple[str, str]]:
    """Let a recorder hear *script*, and return pointers and reasons."""
    recorder = Recorder(LABELS, lambda _: ALL)
    for line in script.splitlines():
        data = line[2:].encode().replace(b"\\0", b"\n")
        (recorder.heard if line.startswith("> ") else recorder.said)(data)
    return [(each.pointer, each.reason) for each in recorder.violations]


def test_a_conversation_within_the_rules_passes() -> None:
    assert {} == {name: found for name, script in FINE.items() if (found := judged(script))}


def test_a_broken_rule_is_reported_with_its_pointer() -> None:
    wrong: dict[str, list[tuple[str, str]]] = {}
    for name, (script, pointer, reason) in BROKEN.items():
        found = judged(script)
        if not any(where == pointer and reason in why for where, why in found):
            wrong[name] = found

    assert {} == wrong


def test_the_report_holds_the_bytes_and_the_pointer() -> None:
    recorder = Recorder(LABELS, lambda _: ALL)
    recorder.said(b'{"jsonrpc":"2.0","id":7,"result":{}}')

    with pytest.raises(AssertionError) as failure:
        recorder.verify()

    assert "/id: this answers nothing" in str(failure.value)
    assert '{"jsonrpc":"2.0","id":7,"result":{}}' in str(failure.value)


# --- through the harness, with an engine that is broken on purpose


@pytest.mark.anyio
async def test_a_test_whose_server_breaks_a_rule_fails_at_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    made = server("2026-07-28")
    monkeypatch.setattr(made._engine.handlers, "sign", lambda result, _: result)
    with pytest.raises(AssertionError, match="name themselves"):
        async with client(made, "2026-07-28") as peer:
            assert "tools" in await peer.result("tools/list")


@pytest.mark.anyio
async def test_a_server_that_sends_what_is_not_declared_fails_its_test(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mcpgen.runtime.server.subscriptions.offers", lambda *_: True)
    made = server("2026-07-28", capabilities={"tools": {}})
    with pytest.raises(AssertionError, match=r"has not declared tools\.listChanged"):
        async with client(made, "2025-11-25"):
            await made.tools_changed()


@pytest.mark.anyio
async def test_a_server_that_skips_the_adapters_fails_its_test(monkeypatch: pytest.MonkeyPatch) -> None:
    """What JSON Schema alone would let pass: keys of a later revision, in objects that are open."""

    async def audio(_own: Any, _arguments: dict[str, Any], _context: Any) -> Any:
        return models.CallToolResult(content=[models.AudioContent(data="", mime_type="audio/wav")])

    made = server("2026-07-28", tools={"audio": audio})
    entries = made._engine.handlers.method_handlers("2024-11-05")
    own = entries["tools/call"]
    identity = SimpleNamespace(params=own.codec.params, result=msgspec.json.encode, error=own.codec.error)
    monkeypatch.setitem(entries, "tools/call", msgspec.structs.replace(own, codec=identity))
    with pytest.raises(AssertionError, match="CallToolResult of 2024-11-05"):
        async with client(made, "2024-11-05") as peer:
            await peer.call("audio")


@pytest.mark.anyio
async def test_a_test_that_fails_for_its_own_reasons_says_so() -> None:
    async def fail() -> None:
        async with connected(server("2026-07-28")) as wire:
            wire.recorder.said(b"nonsense")
            raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        await fail()


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"
