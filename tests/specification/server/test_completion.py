"""Completions of arguments."""

from __future__ import annotations

import pytest

from tests.specification.citation import HOMES, LABELS, everywhere, since, spec
from tests.specification.server.revision_client import client
from tests.specification.server.revision_server import CAPABILITIES, handlers, server

pytestmark = pytest.mark.anyio

OF_PROMPT = '"ref":{"type":"ref/prompt","name":"review"},"argument":{"name":"code","value":"py"}'
OF_RESOURCE = '"ref":{"type":"ref/resource","uri":"n://{x}"},"argument":{"name":"x","value":"py"}'


@spec("2024-11-05", "server/utilities/completion#requesting-completions")
@spec("2025-11-25", "server/utilities/completion#requesting-completions")
@spec("2026-07-28", "server/utilities/completion#requesting-completions")
@everywhere
@pytest.mark.parametrize("native_revision", HOMES[1:])
@pytest.mark.parametrize("params", [OF_PROMPT, OF_RESOURCE])
async def test_an_argument_of_a_prompt_or_of_a_template_is_completed(
    params: str, native_revision: str, revision: str
) -> None:
    async with client(server(native_revision), revision) as peer:
        result = await peer.result("completion/complete", params)

    assert {"values": ["python", "pytorch"], "total": 2, "hasMore": False} == result["completion"]


@spec("2024-11-05", "server/utilities/completion#requesting-completions")
async def test_the_first_revision_completes_what_its_own_handlers_complete() -> None:
    async with client(server("2024-11-05"), "2024-11-05") as peer:
        result = await peer.result("completion/complete", OF_PROMPT)

    assert ["python", "pytorch"] == result["completion"]["values"]


@spec("2025-06-18", "server/utilities/completion#requesting-completions")
@spec("2025-11-25", "server/utilities/completion#requesting-completions")
@pytest.mark.parametrize("revision", since("2025-06-18"))
async def test_earlier_arguments_reach_the_handler_as_context(revision: str) -> None:
    own = handlers(LABELS[-1])
    async with client(server(LABELS[-1], own=own), revision) as peer:
        await peer.result("completion/complete", OF_PROMPT + ',"context":{"arguments":{"language":"python"}}')

    assert {"language": "python"} == own.seen["completion/complete"].context.arguments


@spec("2025-03-26", "server/utilities/completion#error-handling")
@spec("2025-11-25", "server/utilities/completion#error-handling")
@spec("2026-07-28", "server/utilities/completion#error-handling", "9b7b9889")
@pytest.mark.parametrize("revision", since("2025-03-26"))
async def test_completions_that_are_not_declared_are_not_found(revision: str) -> None:
    declared = {key: each for key, each in CAPABILITIES.items() if key != "completions"}
    async with client(server(LABELS[-1], capabilities=declared), revision) as peer:
        assert -32601 == (await peer.error("completion/complete", OF_PROMPT))["code"]


@spec("2024-11-05", "server/utilities/completion#security", "02d66b5c")
@everywhere
@pytest.mark.parametrize(
    "params",
    [
        OF_PROMPT.replace('"py"', "5"),
        OF_PROMPT.replace('"code"', "null"),
        OF_PROMPT.replace("ref/prompt", "ref/tool"),
        OF_RESOURCE.replace('"uri":"n://{x}"', '"uri":{}'),
        '"argument":{"name":"code","value":"py"}',
        '"ref":{"type":"ref/prompt","name":"review"}',
    ],
)
async def test_params_that_are_not_valid_reach_no_handler(params: str, revision: str) -> None:
    own = handlers(LABELS[-1])
    async with client(server(LABELS[-1], own=own), revision) as peer:
        assert -32602 == (await peer.error("completion/complete", params))["code"]

    assert "completion/complete" not in own.seen


@spec("2025-11-25", "server/utilities/completion#completion-results")
@everywhere
async def test_no_more_than_a_hundred_values_are_sent(revision: str) -> None:
    """Neither the documents nor msgspec's types count; a handler that returns more must not get through."""

    async def complete(own: object, params: object, context: object) -> object:
        del params, context
        values = [str(each) for each in range(150)]
        return own.made("CompleteResult", {"completion": {"values": values}})  # type: ignore[attr-defined]

    async with client(server(LABELS[-1], complete=complete), revision) as peer:
        (said,) = await peer.ask("completion/complete", OF_PROMPT)

    assert "error" in said or len(said["result"]["completion"]["values"]) <= 100
