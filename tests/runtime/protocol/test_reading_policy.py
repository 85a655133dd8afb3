"""The deviations of JSON-RPC that are read, and what the log says of all deviations."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from msgspec import Raw

from mcpgen.runtime.limits import Limits
from mcpgen.runtime.protocol import envelope
from mcpgen.runtime.protocol.messages import Batch, ErrorResponse, Malformed, Notification, Request, Response
from mcpgen.runtime.protocol.reading_policy import ReadingPolicy, is_meant_id, meant_id

TOOLS = b'{"tools":[{"name":"echo","title":null,"inputSchema":{"type":"object"}}]}'


def reread(frame: bytes, *, strict: bool = False) -> Any:
    found = envelope.decode(frame)
    assert isinstance(found, Batch | Malformed)
    return ReadingPolicy("the peer", is_strict=strict).reread(frame, found, Limits())


@pytest.mark.parametrize(
    ("frame", "kind"),
    [
        (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":null}', Request),
        (b'{"jsonrpc":"2.0","method":"notifications/initialized","params":null}', Notification),
        (b'{"jsonrpc":"2.0","id":1,"result":{},"error":null}', Response),
        (b'{"jsonrpc":"2.0","id":1,"result":{},"method":null}', Response),
        (b'{"jsonrpc":"2.0","id":1,"result":null,"error":{"code":1,"message":"x"}}', ErrorResponse),
        (b'{"jsonrpc":"2.0","id":1,"error":{"code":"-32602","message":"x"}}', ErrorResponse),
        (b'{"jsonrpc":"2.0","id":1,"result":{"x":[NaN,-Infinity]}}', Response),
        (b'{"jsonrpc":"2.0","id":1,"result":{"x":"\\ud800"}}', Response),
    ],
)
def test_a_message_is_read_as_it_is_meant_unless_the_reader_is_strict(frame: bytes, kind: type) -> None:
    assert isinstance(reread(frame), kind)
    assert isinstance(reread(frame, strict=True), Malformed)


def test_a_message_with_more_than_a_thousand_half_pairs_is_refused() -> None:
    frame = b'{"jsonrpc":"2.0","id":1,"result":{"x":"%s"}}'
    assert isinstance(reread(frame % (b"\\ud800a" * 1000)), Response)
    assert isinstance(reread(frame % (b"\\ud800a" * 1001)), Malformed)


def test_what_is_almost_json_becomes_json() -> None:
    found = reread('{"jsonrpc":"2.0","id":1,"result":{"a":NaN,"b":"NaN \\ud83d\\ude00 \\udead","ü":1e2}}'.encode())

    assert {"a": None, "b": "NaN 😀 \ufffd", "ü": 100.0} == msgspec.json.decode(found.result)


def test_the_code_of_an_error_becomes_a_number_and_its_data_stay() -> None:
    found = reread(b'{"jsonrpc":"2.0","id":1,"error":{"code":"-32602","message":"x","data":{"y":null}}}')

    assert (-32602, {"y": None}) == (found.code, msgspec.json.decode(found.error)["data"])


@pytest.mark.parametrize(
    "frame",
    [
        b"Ready.",
        b'{"jsonrpc":"2.0","id":1,"result":{"x":NaN}',
        b'{"jsonrpc":"2.0","id":1,"result":{"x":[1e999,NaN]}}',
        b'{"jsonrpc":"2.0","id":1,"result":{"x":nan}}',
        b'{"jsonrpc":"2.0","id":1,"result":{"x":' + b"9" * 5000 + b".NaN}}",
        b'{"jsonrpc":"2.0","id":1,"result":\xff}',
        b"[" * 100_000,
        b"",
        b'{"jsonrpc":"1.0","id":1,"method":"ping","params":null}',
        b'{"jsonrpc":"2.0","id":null,"method":"ping","params":null}',
        b'{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}',
        b'{"jsonrpc":"2.0","id":1,"method":null,"params":{}}',
        b'{"jsonrpc":"2.0","id":1,"result":null}',
        b'{"jsonrpc":"2.0","id":1,"result":null,"error":null}',
        b'{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":1,"message":"x"}}',
        b'{"jsonrpc":"2.0","id":1,"error":{"code":"one","message":"x"}}',
        b'{"jsonrpc":"2.0","id":1,"error":{"code":"1"}}',
        b'{"jsonrpc":"2.0","id":"\\ud83d","method":"ping"}',
        b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"_meta":{"progressToken":"\\ud83d"}}}',
        b'{"jsonrpc":"2.0","id":1,"result":{"tools":[],"nextCursor":"\\ud83d"}}',
    ],
)
def test_a_message_whose_meaning_is_unclear_stays_malformed(frame: bytes) -> None:
    assert isinstance(reread(frame), Malformed)


def test_the_messages_of_a_batch_are_read_one_by_one() -> None:
    frame = b'[{"jsonrpc":"2.0","id":1,"method":"ping","params":null},5,{"jsonrpc":"2.0","id":2,"method":"ping"}]'
    found = reread(frame)

    assert [Request, Malformed, Request] == [type(each) for each in found.items]


def test_a_batch_of_valid_messages_is_not_looked_at_again() -> None:
    frame = b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]'
    found = envelope.decode(frame)
    assert isinstance(found, Batch)

    assert found is ReadingPolicy("the peer").reread(frame, found, Limits())


@pytest.mark.parametrize(
    ("written", "meant"), [("1", 1), ("-7", -7), ("0", 0), ("01", None), ("1.0", None), (" 1", None), ("x", None)]
)
def test_a_text_is_the_id_that_it_writes_as_a_number(written: str, meant: int | None) -> None:
    assert meant == meant_id(written)
    assert is_meant_id(written, written)
    assert is_meant_id(written, 1) == (meant == 1)
    assert not is_meant_id(1, "1")


def test_each_kind_of_deviation_is_logged_once_for_each_peer(caplog: pytest.LogCaptureFixture) -> None:
    policy = ReadingPolicy("a client")
    for peer in ("", "the client one", "the client one", "the client two"):
        assert policy.payload("2025-11-25", "tools/list", "result", "client", Raw(TOOLS), peer=peer) is not None

    assert [
        f"the result of tools/list of {peer} is not valid, but is accepted: null is read as absent, at /tools/0/title "
        "(2025-11-25)"
        for peer in ("a client", "the client one", "the client two")
    ] == caplog.messages


def test_the_log_is_bounded_and_cannot_be_forged(caplog: pytest.LogCaptureFixture) -> None:
    policy = ReadingPolicy("a client")
    for number in range(1000):
        bad = {"name": f"bad {number}\nERROR", "inputSchema": 5}
        raw = Raw(msgspec.json.encode({"tools": [{"name": "x", "inputSchema": {"type": "object"}}, bad]}))
        assert policy.payload("2025-11-25", "tools/list", "result", "client", raw) is not None

    assert 0 < len(caplog.messages) <= 200
    assert "\n" not in "".join(caplog.messages)


def test_a_strict_reader_normalises_no_payload() -> None:
    policy = ReadingPolicy("the server", is_strict=True)

    assert policy.payload("2025-11-25", "tools/list", "result", "client", Raw(TOOLS)) is None


def test_there_is_nothing_to_read_of_an_unknown_method_or_revision() -> None:
    policy = ReadingPolicy("the server")

    assert policy.payload("2025-11-25", "x/y", "result", "client", Raw(TOOLS)) is None
    assert policy.payload("2023-01-01", "tools/list", "result", "client", Raw(TOOLS)) is None
    assert policy.payload(None, "tools/list", "result", "client", Raw(TOOLS)) is None


def test_five_point_zero_is_an_integer_also_for_a_strict_reader(caplog: pytest.LogCaptureFixture) -> None:
    result = Raw(b'{"completion":{"values":[],"total":5.0}}')
    found = ReadingPolicy("the server", is_strict=True).payload(
        "2025-11-25", "completion/complete", "result", "client", result
    )

    assert found is not None
    assert {"completion": {"values": [], "total": 5}} == msgspec.json.decode(found)
    assert [] == caplog.messages


@pytest.mark.parametrize(("count", "is_read"), [(19_990, True), (20_010, False)])
def test_params_of_many_values_are_not_normalised(count: int, *, is_read: bool) -> None:
    params = Raw(msgspec.json.encode({"cursor": None, "other": [0] * count}))
    read = ReadingPolicy("a client").payload("2025-11-25", "tools/list", "params", "client", params)

    assert is_read == (read is not None)
