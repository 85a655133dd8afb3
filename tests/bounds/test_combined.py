"""One attacker fills all bounds of a server at once, at the default limits: the sum stays below what the guide says."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest

from mcpgen.generated.extensions import tasks
from tests.bounds.attacked_processes import HONEST, MIB, kept_bytes, names_a_limit
from tests.bounds.hostile_messages import call, initialize
from tests.bounds.raw_sessions import joined, post_all, stateless
from tests.faults.http_raw_client import META, Closed, calling, head, message, posted

if TYPE_CHECKING:
    from tests.bounds.attacked_processes import Http, Stdio
    from tests.bounds.conftest import Victims

pytestmark = pytest.mark.slow

# The bounds of one client are smaller for tasks, so the attacker has several addresses.
ADDRESSES = [f"127.0.0.{each}" for each in range(3, 9)]
BIG = "x" * (4 * MIB - 2000)
ROWS = json.dumps([{"id": each, "tags": ["a", "b"]} for each in range(3900)])  # 19,500 values
TASKS = f'"{META}clientCapabilities":{{"elicitation":{{}},"extensions":{{"{tasks.EXTENSION}":{{}}}}}}'
ELICITS = f'"{META}clientCapabilities":{{"elicitation":{{}}}}'


def declaration(number: int, size: int = 55_000) -> str:
    """Return capabilities of about *size* bytes, which differ from others."""
    return f'{{"elicitation":{{}},"experimental":{{"com.example/{number}":{{"x":"{"x" * size}"}}}}}}'


def fill_sessions(http: Http) -> None:
    for begin in range(0, 1500, 500):
        bodies = [initialize("2025-11-25", capabilities=declaration(begin + each)) for each in range(500)]
        post_all(http, map(posted, bodies))
    for number in range(5):  # and subscriptions, with messages that are kept for the sessions
        line, own, _ = joined(http)
        for each in range(60):
            uri = f"note://{number}/{each}/{'u' * 7000}"
            line.send(posted(message("resources/subscribe", each, uri=uri), *own))
            line.reply()
            line.send(posted(message("tools/call", each, name="change", arguments={"count": 1, "uri": uri}), *own))
            line.reply()


def fill_parked_calls(http: Http) -> None:
    for _ in range(12):
        http.ask(stateless(call("ask", f'{{"text":"{BIG}"}}', meta=ELICITS)))


def fill_tasks(http: Http) -> None:
    running, ended = f'{{"text":"{BIG}"}}', f'{{"size":{MIB}}}'
    for address in ADDRESSES:
        line, own, _ = joined(http, source=address)
        for number in range(15):
            arguments = json.loads(running if number < 2 else ended)
            line.send(posted(message("tools/call", number, name="bake", arguments=arguments, task={}), *own))
            line.reply()
            http.ask(stateless(call("bake", running if number < 2 else ended, meta=TASKS)), address)


def fill_events(http: Http) -> None:
    line, own, _ = joined(http)
    for number in range(80):
        line.send(posted(calling("fill", number, "p", count=10, size=MIB // 8), *own))
        line.reply()


def leave_unread(http: Http) -> None:
    body = stateless(call("big", f'{{"size":{3 * MIB}}}'))
    for _ in range(60):
        http.line(receive_bytes=4096).send(body)


def fill_open_calls(http: Http) -> None:
    for arguments, count in ((f'{{"value":"{BIG}"}}', 12), (f'{{"value":{ROWS}}}', 28)):
        for _ in range(count):
            http.line().send(stateless(call("wait_for", arguments)))
    for _ in range(20):  # with an open stream of subscriptions each
        line, own, _ = joined(http)
        line.send(head("GET", "/mcp", "Accept: text/event-stream", *own))


def stall_uploads(http: Http) -> None:
    data = posted(b"x" * (4 * MIB))
    for _ in range(80):
        with suppress(OSError, Closed):  # refused early
            http.line().send(data[:-1])


def ledger(http: Http) -> dict[str, int]:
    found: dict[str, int] = json.loads(http.call("ledger", HONEST))
    return found


def test_all_bounds_at_once_cost_less_than_1_gib_over_http(victims: Victims) -> None:
    # On a busy machine this takes more than a minute, after which the sessions would begin to end.
    http = victims.http(http={"handshake_seconds": 600}, bake=True)
    with victims.watch(http) as seen:
        for fill in (
            fill_sessions,
            fill_parked_calls,
            fill_tasks,
            fill_events,
            leave_unread,
            fill_open_calls,
            stall_uploads,
        ):
            fill(http)
            victims.note(**{fill.__name__: {kind: size // MIB for kind, size in ledger(http).items()}})
        http.until(lambda: ledger(http)["uploads"] > 32 * MIB)
        kept, resident = ledger(http), kept_bytes(http) - seen.start_bytes
    charged = sum(kept.values())
    victims.note(charged=charged // MIB, resident=resident // MIB)

    assert kept["sessions"] > 96 * MIB
    assert kept["parked requests"] > 24 * MIB
    assert kept["tasks"] > 48 * MIB
    assert kept["events"] > 48 * MIB
    assert kept["messages"] > 64 * MIB
    assert kept["open requests"] + kept["uploads"] > 192 * MIB
    assert seen.peak_bytes < 1024 * MIB
    assert charged / 2 <= resident <= 2 * charged
    assert [] == seen.losses


def subscribe(stdio: Stdio) -> None:
    for number in range(60):
        uri = f"note://{number}/{'u' * 7000}"
        stdio.write(message("resources/subscribe", f"s{number}", uri=uri) + b"\n")
        uris = f',"notifications":{{"resourceSubscriptions":["{uri}"]}}'
        listen = call("x", identity=f'"l{number}"', params=uris).replace(b"tools/call", b"subscriptions/listen")
        stdio.write(listen + b"\n")


def declare(stdio: Stdio) -> None:
    for number in range(150):
        meta = f'"{META}clientCapabilities":{declaration(number, 3800)}'
        stdio.write(call("echo", identity=f'"d{number}"', meta=meta) + b"\n")


def test_all_bounds_at_once_cost_less_than_256_mib_on_stdio(victims: Victims) -> None:
    stdio = victims.stdio("2025-11-25", is_open=False, is_read=False, bake=True)
    running, ended = f'{{"text":"{BIG}"}}', f'{{"size":{MIB}}}'
    stdio.write(initialize("2025-11-25", capabilities=declaration(0)) + b"\n")
    stdio.write(message("notifications/initialized") + b"\n")
    assert "result" in stdio.receive()
    with victims.watch(stdio) as seen:
        subscribe(stdio)
        declare(stdio)
        for number in range(40):
            stdio.write(call("ask", running, identity=f'"p{number}"', meta=ELICITS) + b"\n")
        for number in range(24):  # tasks of both kinds
            arguments = running if number < 3 else ended
            stdio.write(call("bake", arguments, identity=f'"e{number}"', meta=TASKS) + b"\n")
            body = call("bake", arguments, identity=f'"t{number}"', params=',"task":{}', revision="2025-11-25")
            stdio.write(body + b"\n")
        for number in range(40):  # calls, some of which wait for an answer of the client
            for tool, arguments in (("wait", running), ("wait_for", f'{{"value":{ROWS}}}'), ("ask", running)):
                body = call(tool, arguments, identity=f'"{tool}{number}"', revision="2025-11-25")
                stdio.write(body + b"\n")
        stdio.call(1000, "drowse", seconds=0.5)  # until all others have begun
        stdio.call(1001, "ledger")
        kept, errors = {}, []
        while not kept:
            said = stdio.receive()
            if "error" in said:
                errors.append(str(said["error"]))
            if said.get("id") == 1001:
                kept = json.loads(said["result"]["content"][0]["text"])
        resident = kept_bytes(stdio) - seen.start_bytes
        for number in range(1, 11):  # responses that are not read
            stdio.call(2000 + number, "big", size=3 * MIB)
        while stdio.receive().get("id") != 2010:
            pass
    charged = sum(kept.values())
    victims.note(charged=charged // MIB, resident=resident // MIB, **kept)

    assert all(names_a_limit(each) for each in errors), errors
    assert not any("max_values" in each for each in errors)
    assert kept["open requests"] > 48 * MIB
    assert kept["parked requests"] > 20 * MIB
    assert kept["tasks"] > 12 * MIB
    assert kept["sessions"] > 300_000
    assert seen.peak_bytes < 256 * MIB
    assert charged / 2 <= resident <= 2 * charged
