"""The load generator of HTTP counts what it says, and believes no server. No figure is asserted here."""

from __future__ import annotations

import json
import sys

import pytest

from tests.bench.http import page, serving, wire
from tests.bench.http.connections import clients
from tests.bench.http.listening import Listening
from tests.bench.http.measuring import Measurements
from tests.bench.http.serving import Contender, Cost, ServingRow
from tests.bench.load import ServerGone
from tests.bench.stopwatch import timing
from tests.bench.traffic import WrongAnswer

pytestmark = pytest.mark.slow

WHERE = wire.Address("127.0.0.1", 8000, "/mcp")

PLAIN = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"
STREAM = (
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
    b'12\r\n: hello\n\ndata: {"a\r\n6\r\n":1}\n\n\r\n0\r\n\r\n'
)

# Answers every POST in one and the same way, after a handshake.
PARROT = """
import http.server, sys
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_POST(self):
        self.rfile.read(int(self.headers["content-length"]))
        self.send_response({status})
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len({body!r})))
        self.end_headers()
        self.wfile.write({body!r})
        {after}
    def log_message(self, *_):
        pass
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
print(f"parrot: serving parrot at http://127.0.0.1:{{server.server_port}}/mcp", file=sys.stderr, flush=True)
server.serve_forever()
"""


@pytest.fixture(params=serving.REVISIONS)
def revision(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Measure as little as possible."""
    monkeypatch.setattr(serving, "_BATCH_SECONDS", 0)
    monkeypatch.setattr(serving, "_LEAST_CALLS", 64)
    monkeypatch.setattr(serving, "_WARM_UP", 16)
    monkeypatch.setattr(serving, "MANY", 32)


def parrot(body: bytes, *, status: int = 200, after: str = "pass") -> tuple[str, ...]:
    return (sys.executable, "-I", "-c", PARROT.format(body=body, status=status, after=after))


def answer(number: int, text: str) -> bytes:
    result = {"content": [{"type": "text", "text": text}], "resultType": "complete"}
    return json.dumps({"jsonrpc": "2.0", "id": number, "result": result}).encode()


def test_a_response_is_whole_when_all_of_its_length_is_there() -> None:
    assert [False] * len(PLAIN) == [wire.is_complete(PLAIN[:end]) for end in range(len(PLAIN))]
    assert wire.is_complete(PLAIN)
    assert [b"{}"] == wire.messages(PLAIN)


def test_a_stream_is_whole_when_its_last_chunk_is_there() -> None:
    assert [False] * len(STREAM) == [wire.is_complete(STREAM[:end]) for end in range(len(STREAM))]
    assert wire.is_complete(STREAM)
    assert [b'{"a":1}'] == wire.messages(STREAM)


@pytest.mark.parametrize(
    "response", [PLAIN.replace(b"200", b"503"), PLAIN[:-1], PLAIN + PLAIN], ids=["refused", "cut off", "two"]
)
def test_what_is_no_good_response_is_noticed(response: bytes) -> None:
    with pytest.raises(WrongAnswer):
        wire.messages(response)


def test_a_session_is_named_as_the_server_wrote_it() -> None:
    assert "aB-9" == wire.session(PLAIN.replace(b"Content-Type", b"Mcp-Session-Id: aB-9\r\nContent-Type"))
    assert "" == wire.session(PLAIN)


def test_only_a_stateless_client_repeats_the_body_in_headers(revision: str) -> None:
    head = wire.post(WHERE, revision, "tools/call", length=7, name="echo", session="s").decode()
    said = [name in head for name in ("mcp-method: tools/call\r\n", "mcp-name: echo\r\n")]

    assert head.startswith("POST /mcp HTTP/1.1\r\nhost: 127.0.0.1:8000\r\n")
    assert head.endswith("\r\n\r\n")
    assert "content-length: 7\r\n" in head
    assert [revision == serving.STATELESS] * 2 == said


@pytest.mark.parametrize("contender", serving.floors(), ids=lambda each: each.name)
def test_every_floor_answers_every_call(contender: Contender, revision: str) -> None:
    with Listening(contender.command) as server, clients(server, revision, 16) as callers:
        driven = callers.call(200)

    assert 200 == len(driven.waits)
    assert all(0 < each for each in driven.waits)


@pytest.mark.parametrize("command", [serving.ours(), serving.command("http_ours.py")], ids=["serve", "asgi"])
def test_our_server_answers_every_call(command: tuple[str, ...], revision: str) -> None:
    with Listening(command) as server, clients(server, revision, 16) as callers:
        driven = callers.call(200)
        callers.send("echo", text="hi")

        assert "hi" == callers.receive()
        assert 200 == len(driven.waits)
        callers.end_sessions()


def test_the_protected_server_answers_calls_with_its_token_alone(revision: str) -> None:
    contender = serving.protected()
    with Listening(contender.command, contender.token) as server, clients(server, revision, 2) as callers:
        assert 20 == len(callers.call(20).waits)
    with (
        Listening(contender.command) as server,
        pytest.raises(WrongAnswer, match="401"),
        clients(server, revision, 1) as callers,
    ):
        callers.call(1)


def test_sessions_outlive_their_connections(revision: str) -> None:
    with Listening(serving.ours()) as server, clients(server, revision, 2) as callers:
        callers.reconnect()

        assert 4 == len(callers.call(4).waits)


def test_fewer_calls_than_clients_are_fine(revision: str) -> None:
    with Listening(serving.ours()) as server, clients(server, revision, 4) as callers:
        assert 2 == len(callers.call(2).waits)


def test_a_wrong_answer_is_noticed() -> None:
    body = answer(10_000_000, "hello, 10000001")
    with (
        Listening(parrot(body)) as server,
        clients(server, serving.STATELESS, 1) as callers,
        pytest.raises(WrongAnswer),
    ):
        callers.call(1)


def test_an_answer_that_is_given_twice_is_noticed() -> None:
    body = answer(10_000_000, "hello, 10000000")
    with (
        Listening(parrot(body)) as server,
        clients(server, serving.STATELESS, 1) as callers,
        pytest.raises(WrongAnswer),
    ):
        callers.call(2)


def test_a_refusal_is_noticed() -> None:
    with (
        Listening(parrot(b"{}", status=503)) as server,
        clients(server, serving.STATELESS, 1) as callers,
        pytest.raises(WrongAnswer, match="503"),
    ):
        callers.call(1)


def test_a_server_that_closes_a_connection_is_disqualified() -> None:
    command = parrot(answer(10_000_000, "hello, 10000000"), after="self.close_connection = True")
    with Listening(command) as server, clients(server, serving.STATELESS, 1) as callers, pytest.raises(ServerGone):
        callers.call(2)


def test_a_server_that_refuses_a_session_is_disqualified() -> None:
    with Listening(parrot(b'{"error":{}}')) as server, pytest.raises(WrongAnswer):
        clients(server, serving.HANDSHAKE, 1)


def test_a_server_that_does_not_start_is_not_waited_for() -> None:
    with pytest.raises(ServerGone, match="no thanks"):
        Listening((sys.executable, "-I", "-c", "import sys; sys.exit('no thanks')"))


@pytest.mark.usefixtures("small")
def test_a_race_of_servers_has_a_row_for_each_and_every_revision() -> None:
    racing = (*serving.floors(), Contender("once", serving.floors()[0].command, (serving.HANDSHAKE,)))
    rows = list(serving.rows(racing, rounds=1))
    expected = [
        (revision, each.name) for revision in serving.REVISIONS for each in racing if revision in each.revisions
    ]

    assert expected == [(row.revision, row.contender.name) for row in rows]
    assert all(cost.median.median <= cost.tail.median for row in rows for cost in (row.few, row.many))


def cost(*, clock: float, cpu: float | None = None) -> Cost:
    return Cost(
        clock=timing([clock]),
        cpu=None if cpu is None else timing([cpu]),
        median=timing([clock * 16]),
        tail=timing([clock * 32]),
    )


def page_of(ours: Cost, floor: Cost) -> str:
    rows = [
        ServingRow(contender=Contender(name, ()), revision="2026-07-28", few=each, many=each)
        for name, each in ((serving.OURS, ours), (serving.FLOOR, floor))
    ]
    return page.text(Measurements(serving=rows, sessions=[], streams=[], calling=[]))


def test_the_page_holds_the_promise_against_the_work_of_the_server() -> None:
    text = page_of(cost(clock=40, cpu=30), cost(clock=20, cpu=20))

    assert "| 2026-07-28 | mcpgen | 25,000 (25,000) |  | **0.50** | 30.0 (30.0) | **0.67** |" in text
    assert "≥ 0.6 of floor at 16: kept" in text


def test_the_page_says_that_a_server_missed_the_promise() -> None:
    assert "≥ 0.6 of floor at 16: **missed**" in page_of(cost(clock=40, cpu=40), cost(clock=30, cpu=20))
    assert "≥ 0.6 of floor at 16: **missed**" in page_of(cost(clock=40), cost(clock=20))
