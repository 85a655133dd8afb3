"""The load generator counts what it says, and believes no server. No figure is asserted here either."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

import pytest

from tests.bench import serving, serving_page, sustained, traffic
from tests.bench.load import ServerGone, Started
from tests.bench.serving import Contender, OpeningRow, ServingRow
from tests.bench.stopwatch import timing
from tests.bench.sustained import Sample
from tests.bench.traffic import Traffic, WrongAnswer

if TYPE_CHECKING:
    from collections.abc import Sequence

pytestmark = pytest.mark.slow

PARROT = """
import sys
for number, line in enumerate(sys.stdin):
    {body}
"""


@pytest.fixture(params=traffic.REVISIONS)
def revision(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


def program(body: str) -> tuple[str, ...]:
    """Return a server with *body* for each line that it gets."""
    return (sys.executable, "-I", "-u", "-c", PARROT.format(body=body))


def answer(number: int, text: str) -> bytes:
    result = {"content": [{"type": "text", "text": text}]}
    return json.dumps({"jsonrpc": "2.0", "id": number, "result": result}).encode() + b"\n"


def test_the_calls_of_a_batch_are_equally_long_and_have_ids_of_their_own(revision: str) -> None:
    talk = Traffic(revision)
    batches = [talk.calls(3), talk.calls(2)]
    ids = [json.loads(message)["id"] for batch in batches for message in batch.messages()]

    assert list(range(traffic.FIRST_ID, traffic.FIRST_ID + 5)) == ids
    assert [[*batch.texts] for batch in batches] == [ids[:3], ids[3:]]
    assert all(len(message) == batch.length for batch in batches for message in batch.messages())


def test_a_call_asks_for_the_text_that_is_expected(revision: str) -> None:
    batch = Traffic(revision).calls(2)
    asked = {call["id"]: call["params"]["arguments"]["text"] for call in map(json.loads, batch.messages())}

    assert batch.texts == asked


def test_only_a_stateless_client_says_who_it_is_in_each_call() -> None:
    said = ["_meta" in json.loads(Traffic(each).call("echo", text="a"))["params"] for each in traffic.REVISIONS]

    assert [False, False, True] == said


def test_answers_may_come_in_any_order_and_in_pieces() -> None:
    batch = Traffic("2025-11-25").calls(2)
    first, second = batch.texts
    data = answer(second, batch.texts[second]) + answer(first, batch.texts[first])

    traffic.check(batch, [data[:7], data[7:]])


@pytest.mark.parametrize(
    "answers",
    [
        [answer(10_000_000, "hello, 10000000")],
        [answer(10_000_000, "hello, 10000000")] * 2,
        [answer(10_000_000, "hello, 10000000"), answer(10_000_001, "hello, 10000000")],
        [answer(10_000_000, "hello, 10000000"), b'{"jsonrpc":"2.0","id":10000001,"error":{"code":-32603}}\n'],
        [answer(10_000_000, "hello, 10000000"), answer(10_000_001, "hello, 10000001"), b'{"method":"more"}\n'],
        [
            answer(10_000_000, "hello, 10000000"),
            answer(10_000_001, "hello, 10000001").replace(b'"content"', b'"isError": true, "content"'),
        ],
    ],
    ids=["missing", "twice", "of another call", "an error", "something else too", "failed"],
)
def test_wrong_answers_are_noticed(answers: Sequence[bytes]) -> None:
    with pytest.raises(WrongAnswer):
        traffic.check(Traffic("2025-11-25").calls(2), answers)


def test_two_answers_to_one_call_are_noticed() -> None:
    with pytest.raises(WrongAnswer):
        traffic.text_of(answer(1, "a") + answer(1, "a"))


@pytest.mark.parametrize("contender", serving.floors(), ids=lambda each: each.name)
def test_every_floor_answers_every_call(contender: Contender, revision: str) -> None:
    with Started(contender.command, Traffic(revision)) as server:
        alone = server.one_at_a_time(server.traffic.calls(10))
        few = server.pipelined(server.traffic.calls(500), window=serving.NARROW)
        many = server.pipelined(server.traffic.calls(5000), window=serving.WIDE)

    assert 10 == len(alone)
    assert all(0 < each.clock for each in (few, many))


@pytest.mark.parametrize(
    "contender",
    [each for each in dict.fromkeys(serving.starters() + serving.contenders()) if each.is_ours],
    ids=lambda each: each.name,
)
def test_our_server_answers_every_call(contender: Contender, revision: str) -> None:
    with Started(contender.command, Traffic(revision)) as server:
        server.one_at_a_time(server.traffic.calls(10))
        server.pipelined(server.traffic.calls(3000), window=serving.WIDE)

        assert "hi" == traffic.text_of(server.ask(server.traffic.call("echo", text="hi")))


def test_a_window_that_no_pipe_holds_is_made_smaller(revision: str) -> None:
    with Started(serving.command("floor.py", "blocking"), Traffic(revision)) as server:
        many = server.pipelined(server.traffic.calls(20_000), window=1_000_000)

    assert 0 < many.clock


def test_a_server_that_ends_is_not_waited_for() -> None:
    with pytest.raises(ServerGone, match="no thanks"):
        Started(program("sys.exit('no thanks')"), Traffic("2025-11-25"))


def test_a_server_that_does_not_answer_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.bench.load.PATIENCE_SECONDS", 0.2)

    with pytest.raises(ServerGone, match="it said nothing"):
        Started(program("pass"), Traffic("2025-11-25"))


def test_a_server_that_refuses_to_begin_is_disqualified() -> None:
    refusal = """print('{"jsonrpc":"2.0","id":10000000,"error":{"code":-32603,"message":"no"}}')"""

    with pytest.raises(WrongAnswer, match="-32603"):
        Started(program(refusal), Traffic("2025-11-25"))


def test_a_race_of_servers_has_a_row_for_each_and_every_revision(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serving, "_BATCH_SECONDS", 0.001)
    floors = serving.floors()
    serving_rows = list(serving.rows(floors, rounds=1))
    opening_rows = list(serving.openings(floors, rounds=1))
    expected = [(revision, each.name) for revision in traffic.REVISIONS for each in floors]

    assert expected == [(row.revision, row.contender.name) for row in serving_rows]
    assert expected == [(row.revision, row.contender.name) for row in opening_rows]
    assert all(row.median.median <= row.tail.median for row in serving_rows)
    assert all(0 < row.clock.median and 0 < row.memory.median for row in opening_rows)


def page_of(*, median: float, wide: float, clock: float, memory: float) -> str:
    rows = [
        ServingRow(
            contender=Contender(name, ()),
            revision="2025-11-25",
            median=timing([factor * median]),
            tail=timing([factor * median]),
            narrow=timing([factor * wide]),
            wide=timing([factor * wide]),
            cpu=None,
        )
        for name, factor in ((serving.OURS, 1), (serving.SDK, 40), (serving.FLOOR, 0.5))
    ]
    openings = [
        OpeningRow(
            contender=Contender(name, ()),
            revision="2025-11-25",
            clock=timing([factor * clock]),
            cpu=timing([factor * clock]),
            memory=timing([factor * memory]),
        )
        for name, factor in ((serving.OURS, 1), (serving.SDK, 4))
    ]
    return serving_page.text(rows, openings)


def test_the_page_says_which_promises_a_server_kept() -> None:
    text = page_of(median=60, wide=10, clock=100, memory=30)

    assert "| 60.0 (60.0) | **0.03** | **2.00** | 60.0 (60.0) |" in text
    assert "| 100,000 (100,000) | **40.0** | **0.50** |  | ≤ 75 µs: kept; ≥ 80,000 calls/s: kept |" in text
    assert "| 100 (100) | **0.25** | 100 (100) | 30.0 (30.0) | **0.25** | ≤ 120 ms: kept; ≤ 34 MiB: kept |" in text
    assert "missed" not in text


def test_the_page_says_which_promises_a_server_missed() -> None:
    text = page_of(median=80, wide=20, clock=130, memory=40)

    assert "≤ 75 µs: **missed**; ≥ 80,000 calls/s: **missed**" in text
    assert "≤ 120 ms: **missed**; ≤ 34 MiB: **missed**" in text
    assert "kept" not in text


def samples(*, bytes_a_call: float, tasks_a_call: float = 0, descriptors_a_call: float = 0) -> list[Sample]:
    return [
        Sample(
            calls=n,
            memory=min(n, 50_000) / 10_000 + n * bytes_a_call / 2**20,  # the first calls fill caches
            tasks=int(3 + n * tasks_a_call),
            descriptors=int(7 + n * descriptors_a_call),
        )
        for n in range(10_000, 1_000_001, 10_000)
    ]


def test_a_server_that_fills_its_caches_and_leaves_it_at_that_has_not_grown() -> None:
    assert [] == sustained.grown(samples(bytes_a_call=0.5))


def test_a_server_that_keeps_a_reference_for_each_call_has_grown() -> None:
    assert ["memory grew by 8.0 bytes a call"] == sustained.grown(samples(bytes_a_call=8))


def test_a_server_that_keeps_tasks_has_grown() -> None:
    assert ["there are 8 more tasks at the end"] == sustained.grown(samples(bytes_a_call=0, tasks_a_call=1e-5))


def test_a_server_that_keeps_descriptors_has_grown() -> None:
    assert ["there are 8 more descriptors at the end"] == sustained.grown(
        samples(bytes_a_call=0, descriptors_a_call=1e-5)
    )


def test_our_server_can_be_watched_and_holds_a_thousand_calls(capsys: pytest.CaptureFixture[str]) -> None:
    # Too few calls to tell what grows: what is tried is that they are answered, and that it can be watched.
    sustained.run(calls=400, batch=20)

    assert len(traffic.REVISIONS) == capsys.readouterr().out.count("1,000 calls waited at once: all answered")


def test_a_server_that_cannot_be_watched_fails_the_sustained_run() -> None:
    wrong = sustained.run(program("sys.exit('no thanks')"), calls=10, batch=10)

    assert [f"{revision}: ServerGone: no thanks\n" for revision in traffic.REVISIONS] == wrong
