"""One message must not occupy the event loop for long: too many values are refused before they are decoded."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from tests.bounds.attacked_processes import MIB, names_a_limit
from tests.bounds.hostile_messages import DEEP, LARGE, call
from tests.bounds.raw_sessions import joined, stateless
from tests.faults.http_raw_client import posted

if TYPE_CHECKING:
    from tests.bounds.attacked_processes import Http
    from tests.bounds.conftest import Victims

pytestmark = pytest.mark.slow

NEST = '{"a":' * 100 + "0" + "}" * 100
PAIR = '{"":[0]}'
COSTLY = {
    "deep lists": DEEP,
    "lists": f"[{','.join(['[]'] * (LARGE // 3))}]",
    "numbers": f"[{','.join('0' * (LARGE // 2))}]",
    "objects": f"[{','.join(['{}'] * (LARGE // 3))}]",
    "keys": "{" + ",".join(f'"{each:x}":0' for each in range(LARGE // 11)) + "}",
    "deep objects": f"[{','.join([NEST] * (LARGE // 602))}]",
    "pairs": f"[{','.join([PAIR] * (LARGE // 9))}]",
}


def _error(http: Http, data: bytes) -> str:
    try:
        return str(http.ask(data).json.get("error"))
    except AssertionError as error:  # no answer
        return repr(error)


@pytest.mark.parametrize("values", COSTLY)
@pytest.mark.parametrize("era", ["stateless", "session"])
def test_requests_of_too_many_values_are_refused_over_http(victims: Victims, era: str, values: str) -> None:
    http = victims.http()
    arguments = f'{{"text":{COSTLY[values]}}}'
    own: tuple[str, ...] = joined(http)[1] if era == "session" else ()
    body = call("echo", arguments, revision="2025-11-25" if own else "2026-07-28")
    data = posted(body, *own) if own else stateless(body)
    with victims.watch(http) as seen, ThreadPoolExecutor(20) as pool:
        said = [*pool.map(lambda _: _error(http, data), range(20))]

    assert all(names_a_limit(each) for each in said), said[0]
    assert seen.grown < 256 * MIB  # the bodies themselves, twice at most, take 160
    assert seen.kept < 128 * MIB
    assert [] == seen.losses


@pytest.mark.parametrize("values", COSTLY)
def test_requests_of_too_many_values_are_refused_on_stdio(victims: Victims, values: str) -> None:
    stdio = victims.stdio()
    with victims.watch(stdio) as seen:
        for number in range(1, 21):
            stdio.write(call("echo", f'{{"text":{COSTLY[values]}}}', identity=f"{number}") + b"\n")
        said = stdio.answers(20)

    assert list(range(1, 21)) == [each["id"] for each in said]
    assert all(names_a_limit(each.get("error")) for each in said), said[0]
    assert seen.peak_bytes < 256 * MIB


@pytest.mark.parametrize("text", [",", "{", "[", '\\",', "\\\\"], ids=["commas", "braces", "brackets", "quotes", "\\"])
def test_a_long_text_is_served_whatever_it_holds(victims: Victims, text: str) -> None:
    http, stdio = victims.http(), victims.stdio()
    size = LARGE // len(text) // 2 * 2
    body = call("echo", f'{{"text":"{text * size}"}}', identity="7")
    with victims.watch(http) as seen:
        reply = http.ask(stateless(body)).json
        stdio.write(body + b"\n")

        assert reply["result"] == stdio.receive()["result"]
    decoded = {"\\\\": "\\", '\\",': '",'}.get(text, text)
    assert decoded * size == reply["result"]["content"][0]["text"]
    assert [] == seen.losses
