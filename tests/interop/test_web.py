"""The judges of what is said over HTTP are judged here, and the relay that writes it down, without any peer."""

from __future__ import annotations

import json
import re
import socket
import sys
from base64 import b64encode
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from tests.harness.client_state import META
from tests.interop.client_expectations import LABELS
from tests.interop.http_client_judge import misconduct
from tests.interop.http_runs import Host, missed, overseen
from tests.interop.relay import Piece, Relay, Tape
from tests.interop.server_expectations import ALONE
from tests.interop.transports import HTTP, TRANSPORTS, looked_at

HERE = Path(__file__).parent
REVISION = "2025-11-25"
POSTED = {"accept": "application/json, text/event-stream", "content_type": "application/json"}


def client(connection: int, data: bytes) -> Piece:
    return Piece(connection, is_clients=True, data=data)


def server(connection: int, data: bytes) -> Piece:
    return Piece(connection, is_clients=False, data=data)


def taped(*exchanges: tuple[bytes, bytes]) -> Tape:
    """Return a tape with exchanges, each on a connection of its own, which the client closes."""
    tape = Tape()
    for number, (asked, said) in enumerate(exchanges):
        tape.pieces += [client(number, asked), server(number, said), client(number, b"")]
    return tape


def post(message: Any, **headers: str) -> bytes:
    told: dict[str, Any] = {**POSTED, **headers}
    return request("POST", json.dumps(message).encode(), **told)


def request(method: str, body: bytes = b"", target: str = "/mcp", **headers: str) -> bytes:
    length = {"content_length": str(len(body))} if body else {}
    return f"{method} {target} HTTP/1.1\r\n{lines(host='127.0.0.1', **headers, **length)}\r\n".encode() + body


def lines(**headers: str) -> str:
    """Return the lines of *headers*; what is empty is not sent."""
    return "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items() if value)


def response(status: int, message: Any = None, **headers: str) -> bytes:
    body = b"" if message is None else json.dumps(message).encode()
    kind = {} if message is None else {"content_type": "application/json"}
    length = {} if status == 204 else {"content_length": str(len(body))}
    return f"HTTP/1.1 {status} X\r\n{lines(**{**kind, **headers, **length})}\r\n".encode() + body


def result(identity: int, **members: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": identity, "result": members}


HELLO: dict[str, Any] = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": REVISION, "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}},
}
WELCOME = result(
    1, protocolVersion=REVISION, capabilities={"tools": {}}, serverInfo={"name": "s", "version": "1", "title": "S"}
)
READY = {"jsonrpc": "2.0", "method": "notifications/initialized"}
PING = {"jsonrpc": "2.0", "id": 2, "method": "ping"}
TOLD = {"mcp_session_id": "s", "mcp_protocol_version": REVISION}


def session(**changed: str) -> list[tuple[bytes, bytes]]:
    """Return a good conversation; the ping in it has other headers, if any are given."""
    return [
        (post(HELLO), response(200, WELCOME, mcp_session_id="s")),
        (post(READY, **TOLD), response(202)),
        (post(PING, **{**TOLD, **changed}), response(200, result(2))),
        (request("DELETE", **TOLD), response(204)),
    ]


STATED = {
    META + "protocolVersion": "2026-07-28",
    META + "clientInfo": {"name": "c", "version": "1"},
    META + "clientCapabilities": {},
}
READ = {"jsonrpc": "2.0", "id": 1, "method": "resources/read", "params": {"uri": "a:b", "_meta": STATED}}
CONTENTS = {"resultType": "complete", "contents": [], "ttlMs": 0, "cacheScope": "private"}
REPEATED = {"mcp_protocol_version": "2026-07-28", "mcp_method": "resources/read", "mcp_name": "a:b"}


def test_a_client_with_good_manners_is_not_blamed() -> None:
    assert [] == misconduct(taped(*session()), [REVISION])
    assert [] == misconduct(taped((post(READ, **REPEATED), response(200, result(1, **CONTENTS)))), ["2026-07-28"])


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"accept": "application/json"}, "a POST takes both kinds of answer"),
        ({"content_type": "text/plain"}, "what is posted is JSON"),
        ({"mcp_session_id": "other"}, "the session is 's', and not 'other'"),
        ({"mcp_session_id": ""}, "the session is 's', and not None"),
        ({"mcp_protocol_version": "2025-06-18"}, "MCP-Protocol-Version is 2025-06-18"),
        ({"mcp_protocol_version": ""}, "MCP-Protocol-Version is None"),
    ],
)
def test_a_client_that_says_something_else_in_a_session_is_found(changed: dict[str, str], said: str) -> None:
    found = misconduct(taped(*session(**changed)), [REVISION])

    assert any(said in each for each in found), found


@pytest.mark.parametrize("name", REPEATED)
@pytest.mark.parametrize("value", ["", "other"])
def test_a_client_that_does_not_repeat_what_it_asks_for_is_found(name: str, value: str) -> None:
    asked = post(READ, **{**REPEATED, name: value})
    found = misconduct(taped((asked, response(200, result(1, **CONTENTS)))), ["2026-07-28"])

    assert any(f"{name.replace('_', '-')} is" in each for each in found), found


@pytest.mark.parametrize("method", ["GET", "DELETE"])
def test_a_client_that_wants_a_session_where_there_is_none_is_found(method: str) -> None:
    asked = (post(READ, **REPEATED), response(200, result(1, **CONTENTS)))
    [said] = misconduct(taped(asked, (request(method, accept="text/event-stream"), response(405))), ["2026-07-28"])

    assert said.startswith(f"no {method} without a handshake")


def test_a_client_that_leaves_its_session_behind_is_found() -> None:
    [said] = misconduct(taped(*session()[:-1]), [REVISION])

    assert said.startswith("clients SHOULD end a session")


def test_a_client_that_comes_back_to_a_session_that_it_ended_is_found() -> None:
    late = (post({**PING, "id": 3}, **TOLD), response(200, result(3)))
    found = misconduct(taped(*session(), late), [REVISION])

    assert any(each.startswith("the session is over") for each in found)


def test_a_client_whose_messages_are_wrong_is_found() -> None:
    again = (post(PING, **TOLD), response(200, result(2)))
    found = misconduct(taped(*session()[:-1], again, session()[-1]), [REVISION])

    assert any("this id was used before" in each for each in found)


def test_what_was_refused_was_no_message() -> None:
    refused = (post(HELLO), response(405))

    assert [] == misconduct(taped(refused, *session()), [REVISION])


def pair(endpoint: str, target: str) -> Tape:
    """Return a conversation over HTTP+SSE: the stream stays open while messages are posted."""
    hello = {**HELLO, "params": {**HELLO["params"], "protocolVersion": "2024-11-05"}}
    welcome = result(1, protocolVersion="2024-11-05", capabilities={}, serverInfo={"name": "s", "version": "1"})
    begun = b"HTTP/1.1 200 X\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
    tape = Tape()
    tape.pieces += [
        client(1, request("GET", target="/sse", accept="text/event-stream")),
        server(1, begun + chunk(f"event: endpoint\ndata: {endpoint}\n\n")),
        client(2, request("POST", json.dumps(hello).encode(), target, content_type="application/json")),
        server(2, response(202)),
        server(1, chunk(f"event: message\ndata: {json.dumps(welcome)}\n\n")),
        client(3, request("POST", json.dumps(READY).encode(), target, content_type="application/json")),
        server(3, response(202)),
        client(1, b""),
    ]
    return tape


def chunk(text: str) -> bytes:
    return b"%x\r\n%s\r\n" % (len(text.encode()), text.encode())


def test_a_client_of_two_endpoints_posts_to_the_one_that_it_is_told() -> None:
    assert [] == misconduct(pair("/messages?s=1", "/messages?s=1"), ["2024-11-05"])
    assert any("posted to /messages?s=1" in each for each in misconduct(pair("/messages?s=1", "/sse"), ["2024-11-05"]))


def served(*exchanges: tuple[bytes, bytes]) -> list[str]:
    return overseen(taped(*exchanges), [REVISION, "2026-07-28"])


def test_a_server_that_keeps_the_rules_is_not_blamed() -> None:
    assert [] == served(*session())


@pytest.mark.parametrize(
    ("number", "answer", "said"),
    [
        (0, response(200, WELCOME), "this one has none"),
        (1, response(202, {}), "a 202 has no body"),
        (2, response(200, result(3)), "a response to another request"),
        (2, response(202), "is answered with JSON or a stream"),
        (2, response(500, result(2)), "the server failed with 500"),
        (2, response(200, result(2), content_type="text/plain"), "JSON or a stream, and not 'text/plain'"),
        (2, b"hello\r\n\r\n", "the server does not speak HTTP"),
    ],
)
def test_a_server_that_breaks_a_rule_is_found(number: int, answer: bytes, said: str) -> None:
    exchanges = session()
    exchanges[number] = (exchanges[number][0], answer)
    found = served(*exchanges)

    assert any(said in each for each in found), found


def test_a_server_that_closes_a_connection_in_the_middle_is_found() -> None:
    tape = taped((post(HELLO), b"HTTP/1.1 200 X\r\ncontent-length: 2\r\n\r\n{"))
    tape.pieces[-1] = server(0, b"")
    found = overseen(tape, [REVISION])

    assert any("peer closed connection without sending" in each for each in found), found


def test_what_nobody_said_is_not_taken_for_good() -> None:
    assert ["nothing was said"] == misconduct(Tape(), [REVISION])
    assert ["nothing was said"] == overseen(Tape(), [REVISION])


def test_a_server_may_answer_before_it_has_read_all() -> None:
    tape = Tape()
    asked = post(HELLO)
    tape.pieces += [client(1, asked[:-5]), server(1, response(405)), client(1, asked[-5:])]
    tape.pieces += [client(1, b"")]

    assert [] == misconduct(tape, [REVISION])


@pytest.mark.parametrize(
    ("feature", "said"),
    [
        ("reconnect", b"Last-Event-ID: 7"),
        ("parameter headers", b"Mcp-Param-Region: =?base64?" + b64encode("Zürich".encode()) + b"?="),
    ],
)
def test_what_a_client_was_brought_to_say_is_missed(feature: str, said: bytes) -> None:
    tape = Tape()
    tape.pieces += [client(1, b"GET / HTTP/1.1\r\n"), server(1, said)]
    [(found, (outcome, _))] = missed(tape, ["call", feature])

    assert (feature, "failed") == (found, outcome)
    tape.pieces.append(client(1, said))
    assert [] == list(missed(tape, ["call", feature]))


def test_what_there_is_over_http_in_one_revision_is_looked_at_nowhere_else() -> None:
    cells = [(transport, label) for transport in TRANSPORTS for label in LABELS]

    for feature, only in (("reconnect", "2025-11-25"), ("parameter headers", "2026-07-28")):
        assert [(HTTP, only)] == [each for each in cells if looked_at([feature], *each)]


def test_the_driver_is_asked_for_what_there_is_without_sessions() -> None:
    source = (HERE / "peers" / "mcpgen_client.py").read_text(encoding="utf-8")
    table = source.partition("ALONE = [")[2].partition("\n]")[0]

    assert ALONE == [*re.findall(r'"([a-z ]+)"', table), "wire"]


def connected(tape: Tape) -> socket.socket:
    """Return a connection to the door, which gives up after a while."""
    return socket.create_connection(("127.0.0.1", int(tape.url.rpartition(":")[2])), timeout=5)


def test_a_relay_hands_on_at_once_what_it_writes_down() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener, Relay() as relay:
        port = listener.getsockname()[1]
        with relay.door(port) as tape, connected(tape) as one:
            other, _ = listener.accept()
            with other:
                for sent, got in ((one, other), (other, one)):
                    sent.sendall(b"part")

                    assert b"part" == got.recv(100)
                one.shutdown(socket.SHUT_WR)
                assert b"" == other.recv(100)
                other.close()
                assert b"" == one.recv(100)
    pieces = [(1, True, b"part"), (1, False, b"part"), (1, True, b"")]
    assert pieces == tape.pieces[:3]


def test_a_relay_closes_the_door_of_a_server_that_is_gone() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with Relay() as relay, relay.door(port) as tape, connected(tape) as one:
        assert b"" == one.recv(100)


def test_relayed_connections_do_not_wait_for_each_other() -> None:
    def echo(connection: socket.socket) -> None:
        with connection:
            connection.sendall(connection.recv(100))

    with (
        socket.create_server(("127.0.0.1", 0)) as listener,
        Relay() as relay,
        relay.door(listener.getsockname()[1]) as tape,
        connected(tape) as silent,
        connected(tape) as talker,
    ):
        for each in (listener.accept()[0], listener.accept()[0]):
            Thread(target=echo, args=(each,), daemon=True).start()
        talker.sendall(b"two")

        assert b"two" == talker.recv(100)
        silent.sendall(b"one")
        assert b"one" == silent.recv(100)
    assert {1, 2} == {each.connection for each in tape.pieces}


def test_a_server_is_found_by_what_it_prints_and_ended() -> None:
    says = "import sys, time; print('x http://127.0.0.1:9/mcp', flush=True); time.sleep(60)"
    host = Host([sys.executable, "-c", says])

    assert "http://127.0.0.1:9/mcp" == host.wait()
    assert 0 != host.end(5)
    silent = Host([sys.executable, "-c", "print('no')"])
    assert "" == silent.wait()
    silent.end(5)
    assert "no" in silent.noise
