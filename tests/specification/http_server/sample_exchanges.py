"""Exchanges for the judge of HTTP: such as break no rule, and such as break one."""

from __future__ import annotations

from tests.specification.http_server.exchange_text import (
    AGREED,
    EVENTS,
    KIND_JSON,
    Reply,
    Step,
    begin,
    call,
    events,
    get,
    json_reply,
    modern,
    old,
    post,
    tools,
)
from tests.specification.http_server.http_clients import JSON

NEW, OLD = "2025-11-25", "2025-06-18"
PONG = '{"jsonrpc":"2.0","id":1,"result":{}}'
CHANGED = '{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}'
ROOTS = '{"jsonrpc":"2.0","id":"q","method":"roots/list"}'
ABLE = '{"roots":{}}'
LOGGED = '{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":1}}'
MARKED = ',"progressToken":"p"'


def progress(marker: str = "p", value: int = 1) -> str:
    return (
        '{"jsonrpc":"2.0","method":"notifications/progress",'
        f'"params":{{"progressToken":"{marker}","progress":{value}}}}}'
    )


def error(code: int, identity: str = '"id":1,') -> str:
    data = {
        -32021: ',"data":{"requiredCapabilities":{}}',
        -32022: ',"data":{"supported":[],"requested":"x"}',
    }.get(code, "")
    return f'{{"jsonrpc":"2.0",{identity}"error":{{"code":{code},"message":"no"{data}}}}}'


def told(*messages: str, stream: str = "s", first: int = 1, prime: bool = True) -> list[str]:
    """Return events with ids, behind one that primes the client."""
    found = [f"id: {stream}:0\nretry: 100\ndata: "] if prime else []
    return [*found, *(f"id: {stream}:{first + index}\ndata: {each}" for index, each in enumerate(messages))]


def stateless(reply: Reply, body: str | None = None) -> list[Step]:
    return [post(body or modern(), reply, session=None)]


FINE: dict[str, list[Step]] = {
    "a handshake": begin(NEW),
    "an answer": [*begin(NEW), post(call(), json_reply(PONG))],
    "a stream": [*begin(NEW), post(call(marker="p"), events(*told(progress(), PONG)))],
    "a stream without ids": [*begin(OLD), post(call(marker="p"), events(f"data: {progress()}", f"data: {PONG}"))],
    "a batch": [*begin("2025-03-26"), post(f"[{call()}]", json_reply(f"[{PONG}]"))],
    "a stream of the session's own": [*begin(NEW), get(events(*told(CHANGED), then="hold"))],
    "a question": [
        *begin(NEW, capabilities=ABLE),
        post(call(), events(*told(ROOTS), then="hold")),
        post('{"jsonrpc":"2.0","id":"q","result":{"roots":[]}}', Reply()),
    ],
    "a stream that is resumed": [
        *begin(NEW),
        post(call(marker="p"), events(*told(progress()), then="hold")),
        get(events(*told(PONG, first=2, prime=False)), last="s:1"),
    ],
    "events that come again": [
        *begin(NEW),
        get(events(*told(CHANGED, CHANGED), then="hold")),
        get(events(*told(CHANGED, first=2, prime=False), then="hold"), last="s:1"),
        get(events(*told(CHANGED, first=2, prime=False), then="hold"), last="s:1"),
    ],
    "a client that is to come back": [*begin(NEW), post(call(), events(*told()))],
    "an end": [
        *begin(NEW),
        Step("DELETE", "/mcp", [("Mcp-Session-Id", "S")], "", Reply(204)),
        post(call(), json_reply(error(-32600, ""), 404)),
    ],
    "a cancelled request": [
        *begin(NEW),
        post(call(), events(*told(), then="hold")),
        post('{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}', Reply()),
    ],
    "a refusal": [*begin(NEW), post(call(), json_reply(error(-32600), 400)), post(call(), json_reply(PONG))],
    "a stateless answer": stateless(json_reply(tools())),
    "a stateless stream": stateless(events(f"data: {progress()}", ":", f"data: {tools()}"), modern(more=MARKED)),
    "a stateless method that there is not": stateless(json_reply(error(-32601), 404), modern("no/such")),
    "a stateless notification": stateless(
        Reply(), '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}'
    ),
    "http+sse": [
        old(events("event: endpoint\ndata: /messages?session=a", then="hold")),
        Step("POST", "/messages?session=a", [JSON], call(), Reply()),
    ],
}

BROKEN: dict[str, tuple[list[Step], str]] = {
    # --- headers
    "upper case": (stateless(Reply(200, (("Content-Type", "application/json"),), tools())), "no name in lower case"),
    "smuggled header": (stateless(json_reply(tools(), 200, ("x", "a\r\nb: c"))), "a value that HTTP does not carry"),
    "two types": (stateless(json_reply(tools(), 200, KIND_JSON)), "content-type is there twice"),
    "session id with a space": (
        [post(begin(NEW)[0].body, json_reply(AGREED % NEW, 200, ("mcp-session-id", "a b")), session=None)],
        "visible ASCII",
    ),
    "session id that is empty": (
        [post(begin(NEW)[0].body, json_reply(AGREED % NEW, 200, ("mcp-session-id", "")), session=None)],
        "visible ASCII",
    ),
    "405 without allow": ([Step("PUT", "/mcp", [], "", Reply(405))], "what is allowed"),
    "204 with a length": ([Step("DELETE", "/mcp", [], "", Reply(204, (("content-length", "0"),)))], "has no length"),
    "stream with a length": (
        stateless(events(f"data: {tools()}", lines=(*EVENTS, ("content-length", "1000")))),
        "a stream has no length",
    ),
    "stream that is cached": (
        stateless(events(f"data: {tools()}", lines=(EVENTS[0], EVENTS[2]))),
        "not to be cached",
    ),
    "stream that is buffered": (stateless(events(f"data: {tools()}", lines=EVENTS[:2])), "X-Accel-Buffering"),
    # --- bodies
    "wrong length": (stateless(json_reply(tools(), 200, ("content-length", "1"))), "the length is"),
    "202 with a body": ([*begin(NEW), post(CHANGED, Reply(202, (), "ok"))], "a 202 has no body"),
    "202 to a request": ([*begin(NEW), post(call(), Reply(202))], "answered with JSON or a stream"),
    "202 to a stateless request": (stateless(Reply(202)), "answered with JSON or a stream"),
    "html": (stateless(Reply(200, (("content-type", "text/html"),), "<p>")), "JSON or a stream, and not"),
    "nothing": (stateless(json_reply("")), "an answer is not empty"),
    "no json": (stateless(json_reply("{")), "not the JSON that it says"),
    "batch of a later revision": ([*begin(NEW), post(call(), json_reply(f"[{PONG}]"))], "and not a batch"),
    "a call for an answer": ([*begin(NEW), post(call(), json_reply(CHANGED))], "a response, and no call"),
    "refusal that is a result": ([*begin(NEW), post(call(), json_reply(PONG, 400))], "is a JSON-RPC error"),
    "refusal with more": (
        [*begin(NEW), post(call(), json_reply(error(-1)[:-1] + ',"status":400}', 400))],
        "does not hold",
    ),
    "refusal without a code": (
        [*begin(NEW), post(call(), json_reply('{"jsonrpc":"2.0","error":{"message":"no"}}', 400))],
        "a code and a message",
    ),
    "refusal with another id": ([*begin(NEW), post(call(2), json_reply(error(-1), 400))], "that of no request here"),
    "refusal with null": (
        [*begin(NEW), post(call(), json_reply(error(-1, '"id":null,'), 400))],
        "that of no request here",
    ),
    "refusal of another type of id": ([*begin(NEW), post(call('"1"'), json_reply(error(-1), 400))], "no request here"),
    # --- statuses
    "result with 400": (stateless(json_reply(tools(), 400)), "a result has the status 200"),
    "no message with 200": (stateless(json_reply(error(-32600))), "what is no message has an error status"),
    "-32020 with 200": (stateless(json_reply(error(-32020))), "-32020 has the status 400"),
    "-32021 with 200": (stateless(json_reply(error(-32021))), "-32021 has the status 400"),
    "-32022 with 200": (stateless(json_reply(error(-32022))), "-32022 has the status 400"),
    "-32022 with 404": (stateless(json_reply(error(-32022), 404)), "-32022 has the status 400"),
    "-32601 with 200": (stateless(json_reply(error(-32601))), "-32601 has the status 404"),
    "-32601 with 400": (stateless(json_reply(error(-32601), 400)), "-32601 has the status 404"),
    "error without its id": (stateless(json_reply(error(-32020, ""), 400)), "bears the id of its request"),
    "500": ([*begin(NEW), post(call(), json_reply(error(-32603), 500))], "the server failed with 500"),
    # --- sessions
    "session after its end": (
        [
            *begin(NEW),
            Step("DELETE", "/mcp", [("Mcp-Session-Id", "S")], "", Reply(204)),
            post(call(), json_reply(PONG)),
        ],
        "a session that is over is 404",
    ),
    "session without an id": (
        [post(begin(NEW)[0].body, json_reply(AGREED % NEW), session=None)],
        "this one has none",
    ),
    "session id twice": ([*begin(NEW), *begin(NEW)], "a session id is unique"),
    "session of another": (
        [*begin(NEW), *begin(NEW, "T"), post(call(), json_reply(PONG, 200, ("mcp-session-id", "T")))],
        "not the session of the request",
    ),
    "session in the stateless era": (
        stateless(json_reply(tools(), 200, ("mcp-session-id", "S"))),
        "no session id in the stateless era",
    ),
    "answer to another request": ([*begin(NEW), post(call(2), json_reply(PONG))], "a response to another request"),
    "answer to a request of another session": (
        [
            *begin(NEW),
            *begin(NEW, "T"),
            post(call(1), events(*told(), then="hold")),
            get(events(*told(PONG, stream="t"), then="hold"), session="T"),
        ],
        "a response on a stream of its own",
    ),
    "progress of another session": (
        [
            *begin(NEW),
            *begin(NEW, "T"),
            post(call(1, marker="p"), events(*told(), then="hold")),
            post(call(2), events(*told(progress(), stream="t"), then="hold"), session="T"),
        ],
        "no open request has given this token",
    ),
    # --- streams
    "stream with 201": (stateless(Reply(201, EVENTS, f"data: {tools()}\n\n")), "a stream has the status 200"),
    "stream that nobody takes": (
        [post(modern(), events(f"data: {tools()}"), session=None, lines=[JSON, ("Accept", "application/json")])],
        "not said that it takes a stream",
    ),
    "event of a kind": (stateless(events(f"event: answer\ndata: {tools()}")), "is no message"),
    "ids in the stateless era": (stateless(events(f"id: 1\ndata: {tools()}")), "nothing to resume"),
    "retry in the stateless era": (stateless(events(f"retry: 1\ndata: {tools()}")), "nothing to resume"),
    "priming before 2025-11-25": (
        [*begin(OLD), post(call(), events("id: s:0\ndata: ", f"id: s:1\ndata: {PONG}"))],
        "none before 2025-11-25",
    ),
    "priming without an id": ([*begin(NEW), post(call(), events("data: ", *told(PONG)))], "tells an id"),
    "message before the priming": (
        [*begin(NEW), post(call(), events(*told(PONG, prime=False)))],
        "the priming event comes first",
    ),
    "more after the response": (
        [*begin(NEW), post(call(marker="p"), events(*told(PONG, LOGGED)))],
        "nothing comes behind the final response",
    ),
    "more after the stateless response": (
        stateless(events(f"data: {tools()}", f"data: {progress()}"), modern(more=MARKED)),
        "nothing comes behind the final response",
    ),
    "event that is no message": (stateless(events("data: hello", f"data: {tools()}")), "an event holds a message"),
    "question in the stateless era": (
        stateless(events(f"data: {ROOTS}", f"data: {tools()}")),
        "no requests on a stream",
    ),
    "change on a stateless stream": (stateless(events(f"data: {CHANGED}", f"data: {tools()}")), "nobody is meant"),
    "entry that nobody asked for": (stateless(events(f"data: {LOGGED}", f"data: {tools()}")), "asked for log entries"),
    "response on the session's own stream": (
        [*begin(NEW), post(call(), events(*told(), then="hold")), get(events(*told(PONG, stream="t"), then="hold"))],
        "a response on a stream of its own",
    ),
    "response on another request's stream": (
        [
            *begin(NEW),
            post(call(1), events(*told(), then="hold")),
            post(call(2), events(*told(PONG, stream="t"), then="hold")),
        ],
        "a response on another request's stream",
    ),
    "-32601 on a stream": (stateless(events(f"data: {error(-32601)}")), "a status of its own"),
    "-32021 on a stream": (stateless(events(f"data: {error(-32021)}")), "a status of its own"),
    "no response": ([*begin(NEW), post(call(), events(*told()[:0], "id: s:0\ndata: "))], "no response to [1]"),
    "no stateless response": (stateless(events(":")), "no response to [1]"),
    "no response before 2025-11-25": ([*begin(OLD), post(call(), events("retry: 5"))], "no response to [1]"),
    "half of a batch": (
        [*begin("2025-03-26"), post(f"[{call()},{call(2)}]", json_reply(f"[{PONG}]"))],
        "no response to [2]",
    ),
    "question on two streams": (
        [
            *begin(NEW, capabilities=ABLE),
            post(call(), events(*told(ROOTS), then="hold")),
            get(events(*told(ROOTS, stream="t"), then="hold")),
        ],
        "this id was used before",
    ),
    "question that is not declared": (
        [*begin(NEW), post(call(), events(*told(ROOTS), then="hold"))],
        "the client has not declared roots",
    ),
    "key of a later revision": (
        [*begin("2025-03-26"), post(call(1, "tools/list"), json_reply(tools()))],
        "of 2025-03-26",
    ),
    "text that is cut off": (stateless(Reply(200, EVENTS, f"data: {tools()}\n\ndata: {{")), "middle of an event"),
    "field that nobody knows": (stateless(events(f"date: 1\ndata: {tools()}")), "nobody knows the field"),
    "field twice": ([*begin(OLD), post(call(), events(f"id: 1\nid: 2\ndata: {PONG}"))], "a field twice"),
    "retry that is none": (
        [*begin(NEW), post(call(), events("id: s:0\nretry: soon\ndata: ", f"data: {PONG}"))],
        "retry is",
    ),
    "id that is empty": ([*begin(OLD), post(call(), events(f"id: \ndata: {PONG}"))], "cannot come back with"),
    "bytes that are no text": (
        stateless(Reply(200, EVENTS, b": \xff\n\ndata: " + tools().encode() + b"\n\n")),
        "a stream is UTF-8",
    ),
    # --- events that come again
    "event of another stream": (
        [
            *begin(NEW),
            get(events(*told(CHANGED), then="hold")),
            post(call(marker="p"), events(*told(progress(), stream="t"), then="hold")),
            get(events(*told(CHANGED, stream="s", prime=False), then="hold"), last="t:0"),
        ],
        "was on another stream",
    ),
    "id used twice": ([*begin(NEW), get(events(*told(CHANGED), *told(CHANGED, prime=False)))], "was used before"),
    "id used on two streams": (
        [
            *begin(NEW),
            get(events(*told(CHANGED), then="hold")),
            post(call(marker="p"), events(*told(progress(), first=1), then="hold")),
        ],
        "was on another stream",
    ),
    "event that has changed": (
        [
            *begin(NEW),
            post(call(marker="p"), events(*told(progress(value=1), progress(value=2)), then="hold")),
            get(events(*told(progress(value=3), first=2, prime=False), then="hold"), last="s:1"),
        ],
        "is not what it was",
    ),
    "event that was seen": (
        [
            *begin(NEW),
            get(events(*told(CHANGED, CHANGED), then="hold")),
            get(events(*told(CHANGED, first=2, prime=False), then="hold"), last="s:2"),
        ],
        "was used before",
    ),
    # --- http+sse
    "no endpoint": ([old(events(f"event: message\ndata: {PONG}", then="hold"))], "endpoint comes first"),
    "endpoint twice": (
        [old(events("event: endpoint\ndata: /messages?a", "event: endpoint\ndata: /messages?b", then="hold"))],
        "endpoint comes first, and once",
    ),
    "endpoint of another": (
        [old(events("event: endpoint\ndata: /messages?a", then="hold")) for _ in range(2)],
        "two clients have one endpoint",
    ),
    "message of a kind": (
        [old(events("event: endpoint\ndata: /messages?a", f"event: answer\ndata: {PONG}", then="hold"))],
        "events named message",
    ),
    "answer to nobody": (
        [old(events("event: endpoint\ndata: /messages?a", f"data: {PONG}", then="hold"))],
        "answers nothing that is open",
    ),
    "post when it is over": (
        [
            old(events("event: endpoint\ndata: /messages?session=a")),
            Step("POST", "/messages?session=a", [JSON], call(), Reply()),
        ],
        "a session that is over is 404",
    ),
    # --- applications
    "nothing at all": (stateless(Reply(0, (), "", "return")), "in the middle of a response"),
    "a response that breaks off": (stateless(Reply(200, EVENTS, ":\n\n", "return")), "in the middle of a response"),
    "an application that fails": (stateless(Reply(200, (), "", "fail")), "the application failed"),
    "more for who is gone": (stateless(Reply(200, EVENTS, ":\n\n", "go on")), "nothing more for who is gone"),
}
