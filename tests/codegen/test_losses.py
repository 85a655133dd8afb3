"""``docs/losses.md`` is what ``mcpgen losses`` says, and what it says is true of known losses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from mcpgen.codegen.adapters.build import planned
from mcpgen.codegen.adapters.losses import LossRow, loss_rows
from mcpgen.codegen.diff_commands import losses
from mcpgen.codegen.pinned import SchemaRoom

DOCS = Path(__file__).parents[2] / "docs" / "losses.md"


@pytest.fixture(scope="module")
def rows() -> list[LossRow]:
    room = SchemaRoom()
    return loss_rows(planned(room), room.revisions)


def found(rows: list[LossRow], source: str, target: str, place: str) -> str:
    (row,) = [each for each in rows if each.place == place and source in each.sources and target in each.targets]
    return row.outcome


@pytest.mark.slow
def test_the_committed_table_is_what_the_command_says() -> None:
    assert DOCS.read_text(encoding="utf-8") == CliRunner().invoke(losses).stdout


@pytest.mark.parametrize(
    ("source", "target", "place", "outcome"),
    [
        ("2026-07-28", "2024-11-05", "Tool.title", "dropped"),
        ("2025-06-18", "2025-03-26", "Tool.title", "dropped"),
        ("2026-07-28", "2025-11-25", "tools/call result[InputRequiredResult]", "refused (input)"),
        ("2025-11-25", "2026-07-28", "Tool.execution", "dropped"),
        ("2024-11-05", "2026-07-28", "ListToolsResult.ttlMs (absent)", "defaulted"),
        ("2026-07-28", "2025-11-25", "ListToolsResult.ttlMs", "dropped, unless `0`"),
        ("2026-07-28", "2025-11-25", "ListToolsResult.resultType", 'refused, unless `"complete"`'),
        ("2025-11-25", "2026-07-28", "ListToolsResult.resultType", 'dropped, unless `"complete"`'),
        ("2025-11-25", "2025-06-18", "CreateMessageRequestParams.tools", "dropped or refused (input)"),
        ("2025-11-25", "2026-07-28", "ListRootsRequestParams._meta.progressToken", "dropped"),
        ("2025-03-26", "2024-11-05", "ContentBlock[AudioContent]", "degraded"),
        ("2025-11-25", "2026-07-28", "error -32002", "degraded to -32602"),
        ("2025-03-26", "2025-11-25", "JSONRPCMessage[JSONRPCBatchRequest]", "refused (batching)"),
    ],
)
def test_a_known_loss_is_in_the_table(rows: list[LossRow], source: str, target: str, place: str, outcome: str) -> None:
    assert outcome == found(rows, source, target, place)


def test_what_a_revision_never_had_it_does_not_lose(rows: list[LossRow]) -> None:
    # Tasks came in 2025-11-25 and went again: nothing older or newer has them.
    assert {"2025-11-25"} == {source for row in rows if row.place == "Tool.execution" for source in row.sources}


@pytest.mark.parametrize(
    ("place", "sources"),
    [
        # 2025-06-18 and 2026-07-28 require the key, so their messages cannot lack it.
        ("CancelledNotificationParams.requestId (absent)", {"2025-11-25"}),
        # In older revisions the key is unknown, so the first step drops it.
        ("CallToolResult.resultType", {"2025-11-25", "2026-07-28"}),
        # 2024-11-05 and 2025-03-26 have no elicitation.
        ("elicitation/create error", {"2025-06-18", "2025-11-25"}),
    ],
)
def test_a_row_names_only_revisions_in_which_the_value_can_occur(
    rows: list[LossRow], place: str, sources: set[str]
) -> None:
    assert sources == {source for row in rows if row.place == place for source in row.sources}


def test_no_two_rows_differ_only_in_the_outcome(rows: list[LossRow]) -> None:
    keys = [(row.sources, row.targets, row.place, row.reason) for row in rows]

    assert len(keys) == len(set(keys))


def test_every_row_has_a_reason_and_lies_between_its_revisions(rows: list[LossRow]) -> None:
    for row in rows:
        assert row.reason
        assert not set(row.sources) & set(row.targets)


@pytest.mark.slow
def test_one_pair_can_be_asked_for_and_read_by_a_machine() -> None:
    result = CliRunner().invoke(losses, ["--from", "2025-06-18", "--to", "2025-03-26", "--json"])
    places = {each["place"] for each in json.loads(result.stdout)["losses"]}

    assert "Tool.title" in places
    assert "Tool.icons" not in places


@pytest.mark.slow
def test_a_direction_without_losses_has_no_empty_table() -> None:
    down = CliRunner().invoke(losses, ["--from", "2025-06-18", "--to", "2025-03-26"]).stdout
    same = CliRunner().invoke(losses, ["--from", "2025-06-18", "--to", "2025-06-18"]).stdout

    assert "## Going down" in down
    assert "## Going up" not in down
    assert same.endswith("There are no losses.\n")


def test_an_unknown_revision_is_named() -> None:
    result = CliRunner().invoke(losses, ["--from", "2023-01-01"])

    assert result.exit_code != 0
    assert "MG303" in result.stderr
