"""The benchmarks measure what they say. No figure is asserted here: that a machine is slow breaks nothing."""

from __future__ import annotations

import json

import pytest

from tests.bench import adapting, calling, contenders, page, payloads, startup, stopwatch
from tests.bench.adapting import AdaptingRow
from tests.bench.http import measuring

pytestmark = pytest.mark.slow


@pytest.fixture(params=payloads.REVISIONS)
def revision(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.mark.parametrize("codec", contenders.CODECS, ids=lambda codec: codec.name)
def test_every_message_is_valid_and_comes_back_equal(codec: contenders.Codec, revision: str) -> None:
    contenders.check(codec, revision, contenders.ours(codec, revision) | contenders.floor(codec, revision))


def test_a_contender_that_loses_a_key_is_disqualified(revision: str) -> None:
    codec = contenders.CODECS[0]
    text = json.dumps({**json.loads(codec.text(revision)), "id": 0}).encode()

    with pytest.raises(ValueError, match="careless changes the CallToolRequest"):
        contenders.check(codec, revision, {"careless": lambda: text})


def test_the_tool_result_has_eleven_blocks_of_all_kinds(revision: str) -> None:
    content = json.loads(payloads.tool_result(revision))["content"]

    assert 11 == len(content)
    assert {"text", "image", "audio", "resource_link", "resource"} == {block["type"] for block in content}


def test_a_race_times_every_contender() -> None:
    times = stopwatch.race({"nothing": lambda: None, "something": lambda: sum(range(100))}, rounds=3)

    assert times.keys() == {"nothing", "something"}
    assert all(0 < each.least <= each.median for each in times.values())


class UncheckedModel:
    """A model of a package that is installed for measuring only."""

    def model_validate_json(self, text: bytes) -> None:
        pass


def test_what_is_adapted_is_valid_and_every_row_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contenders, "surface_model", lambda *_: UncheckedModel())
    found = list(adapting.rows(rounds=1))

    assert 13 == len(found)
    assert all(0 < each.ours.least for each in found)


def test_a_start_reports_its_cost_and_what_it_loads() -> None:
    statement = "from mcpgen.generated.v2025_11_25 import models"
    (cost,) = startup.measure([startup.Start(name="ours", statement=statement)], rounds=1)

    assert 0 < cost.cpu.median
    assert {"v2025_11_25"} == startup.revisions_loaded(cost.modules)


def test_a_revision_that_nobody_asked_for_is_noticed() -> None:
    statement = "from importlib import import_module; import_module('mcpgen.generated.v2025_' + '11_25')"

    with pytest.raises(RuntimeError, match="also loads v2025_11_25"):
        startup.measure([startup.Start(name="sly", statement=statement)], rounds=1)


def row(*, ours: float, fastest: float, floor: float = 0.6) -> page.CodecRow:
    return page.CodecRow(
        name="message",
        revision="2025-11-25",
        size=1_000,
        ours=stopwatch.timing([ours]),
        functions=stopwatch.timing([100.0]),
        methods=stopwatch.timing([60.0]),
        fastest=stopwatch.timing([fastest]),
        fastest_way="some way",
        floor=stopwatch.timing([floor]),
        least_ratio=8,
        most_microseconds=8,
    )


def page_of(codec: page.CodecRow, *, cpu: float, build: float, step: float) -> str:
    start = startup.Start(name="import", statement="pass", most_milliseconds=20)
    cost = startup.Cost(stopwatch.timing([cpu]), stopwatch.timing([1.0]), frozenset())
    return page.text(
        page.Measurements(
            codecs=[codec],
            constructions=[],
            adapting=[
                AdaptingRow(
                    name="one step",
                    ours=stopwatch.timing([step]),
                    beside=("parsing", stopwatch.timing([10.0])),
                    most_microseconds=3,
                    most_ratio=0.5,
                )
            ],
            starts=[(start, cost)],
            serving=[],
            openings=[],
            calling=calling.Measurements(rows=[], openings=[]),
            http=measuring.Measurements(serving=[], sessions=[], streams=[], calling=[]),
            build_clock=stopwatch.timing([build]),
            build_cpu=stopwatch.timing([build]),
        ),
        versions={"mcpgen": "1"},
    )


def test_the_page_says_which_promises_were_kept() -> None:
    text = page_of(row(ours=5, fastest=50), cpu=5, build=5, step=2)

    assert "| 60.0 (60.0) | **12.0** | 50.0 (50.0) | **10.0** | ≥ 8 times: kept; ≤ 8 µs: kept | 0.60 (0.60) |" in text
    assert "≤ 20 ms: kept" in text
    assert "≤ 10 s: kept" in text
    assert "| one step | 2.00 (2.00) | parsing | 10.0 (10.0) | **0.20** | ≤ 3 µs: kept; ≤ 0.5 of it: kept |" in text
    assert "missed" not in text


def test_the_page_says_that_a_machine_is_slower_than_that_of_the_promises() -> None:
    assert "needs 2.5 times that" in page_of(row(ours=5, fastest=50, floor=1.5), cpu=5, build=5, step=2)


def test_the_page_says_which_promises_were_missed() -> None:
    text = page_of(row(ours=10, fastest=50), cpu=50, build=50, step=6)

    assert "≥ 8 times: **missed**; ≤ 8 µs: **missed**" in text
    assert "≤ 20 ms: **missed**" in text
    assert "≤ 10 s: **missed**" in text
    assert "≤ 3 µs: **missed**; ≤ 0.5 of it: **missed**" in text
    assert "kept" not in text
