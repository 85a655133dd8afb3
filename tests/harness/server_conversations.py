"""Conversations within the rules, and conversations that break one rule each, to try the recorder on."""

from __future__ import annotations

# Scripts: what the client writes begins with "> ", what the server writes with "< ". NAME stands for the server's.
META = (
    '"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",'
    '"io.modelcontextprotocol/clientCapabilities":{"roots":{},"elicitation":{"form":{}}}EXTRA}'
)
NAME = '"io.modelcontextprotocol/serverInfo":{"name":"s","version":"1"}'
SIGNED = f'"_meta":{{{NAME}}}'


def opened(
    revision: str = "2025-11-25",
    client_can: str = '{"roots":{},"sampling":{},"elicitation":{}}',
    server_can: str = (
        '{"logging":{},"tools":{"listChanged":true},"prompts":{},"resources":{"subscribe":true},"completions":{}}'
    ),
    initialized: str = '> {"jsonrpc":"2.0","method":"notifications/initialized"}\n',
) -> str:
    """Return the script of a handshake."""
    if revision == "2024-11-05":
        server_can = server_can.replace(',"completions":{}', "")
    return (
        f'> {{"jsonrpc":"2.0","id":"h","method":"initialize","params":{{"protocolVersion":"{revision}",'
        f'"capabilities":{client_can},"clientInfo":{{"name":"c","version":"1"}}}}}}\n'
        f'< {{"jsonrpc":"2.0","id":"h","result":{{"protocolVersion":"{revision}","capabilities":{server_can},'
        f'"serverInfo":{{"name":"s","version":"1"}}}}}}\n{initialized}'
    )


def asked(method: str, params: str = "", identity: str = "1", meta: str = "") -> str:
    """Return the line of a stateless request."""
    rest = f"{params}," if params else ""
    with_meta = META.replace("EXTRA", f",{meta}" if meta else "")
    return f'> {{"jsonrpc":"2.0","id":{identity},"method":"{method}","params":{{{rest}{with_meta}}}}}\n'


CALL = '> {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","_meta":{"progressToken":"t"}}}\n'
LISTEN = asked("subscriptions/listen", '"notifications":{"toolsListChanged":true}', '"s"')
SUBSCRIPTION = '"_meta":{"io.modelcontextprotocol/subscriptionId":"s"}'
ACKNOWLEDGED = (
    '< {"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{'
    f'{SUBSCRIPTION},"notifications":{{"toolsListChanged":true}}}}}}\n'
)
CHANGED = f'< {{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{{{SUBSCRIPTION}}}}}\n'
TOOLS = (
    '< {"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","tools":[],"ttlMs":0,'
    f'"cacheScope":"private",{SIGNED}}}}}\n'
)
CANCELLED = '> {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}\n'


def progress(value: str) -> str:
    return (
        f'< {{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":"t","progress":{value}}}}}\n'
    )


def entry(level: str) -> str:
    return f'< {{"jsonrpc":"2.0","method":"notifications/message","params":{{"level":"{level}","data":1}}}}\n'


DONE = '< {"jsonrpc":"2.0","id":1,"result":{"content":[]}}\n'
FINE = {
    "a session": opened() + CALL + progress("1") + entry("info") + progress("1.5") + DONE,
    "a ping before the handshake": '> {"jsonrpc":"2.0","id":1,"method":"ping"}\n< {"jsonrpc":"2.0","id":1,"result":{}}',
    "a stateless request": asked("tools/list") + TOOLS,
    "a stream": LISTEN
    + ACKNOWLEDGED
    + CHANGED
    + '< {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"s",'
    + '"_meta":{"io.modelcontextprotocol/subscriptionId":"s"}}}\n'
    + f'< {{"jsonrpc":"2.0","id":"s","result":{{"resultType":"complete","_meta":{{{NAME},'
    + '"io.modelcontextprotocol/subscriptionId":"s"}}}',
    "a question with the id of a stream, which is cancelled": opened()
    + LISTEN
    + ACKNOWLEDGED
    + '< {"jsonrpc":"2.0","id":"s","method":"roots/list"}\n'
    + '< {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"s"}}',
    "a question": opened() + '< {"jsonrpc":"2.0","id":1,"method":"roots/list"}',
    "a batch": opened("2025-03-26")
    + '> [{"jsonrpc":"2.0","id":1,"method":"ping"}]\n< [{"jsonrpc":"2.0","id":1,"result":{}}]',
    "a batch with a response that waits, and a cancelled request with the same id": opened("2025-03-26")
    + '> [{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","id":2,"method":"ping"}]\n'
    + CALL
    + CANCELLED
    + '> {"jsonrpc":"2.0","id":1,"method":"ping"}\n< {"jsonrpc":"2.0","id":1,"result":{}}\n'
    + '< [{"jsonrpc":"2.0","id":1,"result":{}},{"jsonrpc":"2.0","id":2,"result":{}}]',
    "a demand": asked("tools/call", '"name":"x"')
    + '< {"jsonrpc":"2.0","id":1,"result":{"resultType":"input_required","inputRequests":{"a":{"method":"roots/list"}},'
    + f"{SIGNED}}}}}",
    "a refusal of nonsense": opened() + '> {"jsonrpc\n< {"jsonrpc":"2.0","error":{"code":-32700,"message":"no"}}',
}

BROKEN = {
    # JSON-RPC
    "no JSON": (opened() + "< {", "", "not JSON"),
    "not a number": (opened() + CALL + progress("NaN"), "", "NaN"),
    "a newline inside": (opened() + CALL + '< {"jsonrpc":"2.0",\\0"id":1,"result":{"content":[]}}', "", "newlines"),
    "a name twice": (opened() + CALL + '< {"jsonrpc":"2.0","id":1,"id":1,"result":{"content":[]}}', "", "twice"),
    "a key beside": (opened() + CALL + '< {"jsonrpc":"2.0","id":1,"x":1,"result":{"content":[]}}', "", "envelope"),
    "two outcomes": (
        opened() + CALL + '< {"jsonrpc":"2.0","id":1,"result":{"content":[]},"error":{"code":1,"message":""}}',
        "",
        "envelope",
    ),
    "no outcome": (opened() + CALL + '< {"jsonrpc":"2.0","id":1}', "", "result or an error"),
    "no version": (opened() + CALL + '< {"id":1,"result":{"content":[]}}', "", "jsonrpc"),
    "a text": (opened() + '< "hello"', "", "object"),
    "another id": (opened() + CALL + '< {"jsonrpc":"2.0","id":"1","result":{"content":[]}}', "/id", "nothing"),
    "a second answer": (opened() + CALL + DONE + DONE, "/id", "nothing"),
    "an answer to a notification": (opened() + '< {"jsonrpc":"2.0","id":null,"result":{}}', "/id", "nothing"),
    "an answer to what was cancelled": (opened() + CALL + CANCELLED + DONE, "/id", "nothing"),
    "an error without an id where one is needed": (
        opened("2025-06-18") + '> nonsense\n< {"jsonrpc":"2.0","error":{"code":-32700,"message":"no"}}',
        "",
        "id",
    ),
    # the document
    "a missing member": (opened() + CALL + '< {"jsonrpc":"2.0","id":1,"result":{}}', "/result", "CallToolResult"),
    "a wrong type": (
        opened() + CALL + '< {"jsonrpc":"2.0","id":1,"result":{"content":[],"isError":1}}',
        "/result/isError",
        "boolean",
    ),
    "a foreign key": (
        opened("2025-03-26") + CALL + '< {"jsonrpc":"2.0","id":1,"result":{"content":[],"structuredContent":{}}}',
        "/result",
        "structuredContent",
    ),
    "a foreign block": (
        opened("2024-11-05")
        + CALL
        + '< {"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"audio","data":"","mimeType":"a/b"}]}}',
        "/result/content/0",
        "CallToolResult of 2024-11-05",
    ),
    "a foreign code": (
        opened() + CALL + '< {"jsonrpc":"2.0","id":1,"error":{"code":-32021,"message":""}}',
        "/error/code",
        "JSONRPCErrorResponse of 2025-11-25",
    ),
    "an error without its data": (
        asked("tools/list") + '< {"jsonrpc":"2.0","id":1,"error":{"code":-32022,"message":""}}',
        "/error",
        "UnsupportedProtocolVersionError",
    ),
    "a reserved code": (
        asked("tools/list") + '< {"jsonrpc":"2.0","id":1,"error":{"code":-32050,"message":""}}',
        "/error/code",
        "reserved",
    ),
    "something in an empty result": (
        opened() + '> {"jsonrpc":"2.0","id":1,"method":"ping"}\n< {"jsonrpc":"2.0","id":1,"result":{"resultType":"x"}}',
        "/result",
        "resultType",
    ),
    # direction
    "a request of clients": (opened() + '< {"jsonrpc":"2.0","id":1,"method":"tools/list"}', "/method", "send"),
    "a request that came later": (
        opened("2025-03-26")
        + '< {"jsonrpc":"2.0","id":1,"method":"elicitation/create","params":{"message":"","requestedSchema":{}}}',
        "/method",
        "send",
    ),
    "a notification of clients": (
        opened() + '< {"jsonrpc":"2.0","method":"notifications/roots/list_changed"}',
        "/method",
        "send",
    ),
    "a request without a session": (
        asked("tools/call", '"name":"x"') + '< {"jsonrpc":"2.0","id":1,"method":"roots/list"}',
        "",
        "no handshake",
    ),
    "an id of a question twice": (
        opened() + '< {"jsonrpc":"2.0","id":1,"method":"ping"}\n< {"jsonrpc":"2.0","id":1,"method":"ping"}',
        "/id",
        "used before",
    ),
    "a question before initialized": (
        opened(initialized="") + '< {"jsonrpc":"2.0","id":1,"method":"roots/list"}',
        "",
        "initialized",
    ),
    "a cancellation of a stream without its id": (
        LISTEN + ACKNOWLEDGED + '< {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"s"}}',
        "/params/_meta",
        "without its id",
    ),
    "a cancellation of nothing": (
        opened() + '< {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}',
        "/params/requestId",
        "no open request",
    ),
    # capabilities
    "a question that nobody offered to answer": (
        opened(client_can="{}") + '< {"jsonrpc":"2.0","id":1,"method":"roots/list"}',
        "/method",
        "declared roots",
    ),
    "tools for a client that cannot": (
        opened()
        + '< {"jsonrpc":"2.0","id":1,"method":"sampling/createMessage",'
        + '"params":{"messages":[],"maxTokens":1,"tools":[]}}',
        "/method",
        "declared sampling.tools",
    ),
    "a page for a client with forms": (
        opened()
        + '< {"jsonrpc":"2.0","id":1,"method":"elicitation/create","params":{"mode":"url","message":"","url":"a:b",'
        + '"elicitationId":"1"}}',
        "/method",
        "declared elicitation.url",
    ),
    "an undeclared change": (
        opened() + '< {"jsonrpc":"2.0","method":"notifications/prompts/list_changed"}',
        "/method",
        "declared prompts.listChanged",
    ),
    "an undeclared entry": (opened(server_can="{}") + entry("info"), "/method", "declared logging"),
    "an undeclared service": (opened(server_can="{}") + CALL + DONE, "", "tools is not declared"),
    # what was agreed on
    "a version that nobody knows": (
        opened("2099-01-01", initialized=""),
        "/result/protocolVersion",
        "agreed on",
    ),
    "another version than was offered": (
        opened().replace('"result":{"protocolVersion":"2025-11-25"', '"result":{"protocolVersion":"2025-03-26"'),
        "/result/protocolVersion",
        "no answer",
    ),
    "a service before the handshake": (
        '> {"jsonrpc":"2.0","id":1,"method":"tools/list"}\n< {"jsonrpc":"2.0","id":1,"result":{"tools":[]}}',
        "",
        "before initialize",
    ),
    "a batch in a revision without": (opened() + '< [{"jsonrpc":"2.0","method":"x"}]', "", "no batches"),
    "an empty batch": (opened("2025-03-26") + "< []", "", "empty"),
    "progress that does not grow": (opened() + CALL + progress("1") + progress("1"), "/params/progress", "increase"),
    "progress after the answer": (opened() + CALL + DONE + progress("1"), "/params/progressToken", "no open request"),
    "an entry below the level": (
        opened()
        + '> {"jsonrpc":"2.0","id":1,"method":"logging/setLevel","params":{"level":"error"}}\n'
        + '< {"jsonrpc":"2.0","id":1,"result":{}}\n'
        + entry("info"),
        "/params/level",
        "error and above",
    ),
    "an update of what nobody watches": (
        opened() + '< {"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"a:b"}}',
        "/params/uri",
        "subscribed",
    ),
    # 2026-07-28
    "no type of result": (
        asked("tools/list") + TOOLS.replace('"resultType":"complete",', ""),
        "/result/resultType",
        "neither",
    ),
    "an unknown type of result": (
        asked("tools/list") + TOOLS.replace('"complete"', '"partial"'),
        "/result/resultType",
        "neither",
    ),
    "no hint for caches": (asked("tools/list") + TOOLS.replace('"ttlMs":0,', ""), "/result", "ttlMs"),
    "no name": (asked("tools/list") + TOOLS.replace(NAME, ""), "/result/_meta", "name themselves"),
    "a demand where none may be": (
        asked("tools/list")
        + f'< {{"jsonrpc":"2.0","id":1,"result":{{"resultType":"input_required","requestState":"x",{SIGNED}}}}}',
        "",
        "cannot be answered by a demand",
    ),
    "a demand for nothing": (
        asked("tools/call", '"name":"x"')
        + f'< {{"jsonrpc":"2.0","id":1,"result":{{"resultType":"input_required",{SIGNED}}}}}',
        "/result",
        "inputRequests or requestState",
    ),
    "a demand that the client cannot meet": (
        asked("tools/call", '"name":"x"')
        + '< {"jsonrpc":"2.0","id":1,"result":{"resultType":"input_required","inputRequests":{"a":{"method":'
        + f'"sampling/createMessage","params":{{"messages":[],"maxTokens":1}}}}}},{SIGNED}}}}}',
        "/result/inputRequests/a",
        "declared sampling",
    ),
    "a demand with an envelope": (
        asked("tools/call", '"name":"x"')
        + '< {"jsonrpc":"2.0","id":1,"result":{"resultType":"input_required","inputRequests":{"a":{"jsonrpc":"2.0",'
        + f'"id":1,"method":"roots/list"}}}},{SIGNED}}}}}',
        "/result/inputRequests/a",
        "InputRequiredResult",
    ),
    "an entry that nobody asked for": (asked("tools/list") + entry("error"), "", "no open request"),
    "an entry below what was asked for": (
        asked("tools/list", meta='"io.modelcontextprotocol/logLevel":"error"') + entry("info"),
        "/params/level",
        "error and above",
    ),
    "a change without a stream": (
        asked("tools/list") + '< {"jsonrpc":"2.0","method":"notifications/tools/list_changed"}',
        "",
        "nobody is meant",
    ),
    "a change before the acknowledgement": (LISTEN + CHANGED, "", "comes first"),
    "a change that was not asked for": (
        LISTEN + ACKNOWLEDGED + CHANGED.replace("tools/list", "prompts/list"),
        "/method",
        "not among",
    ),
    "more acknowledged than asked for": (
        LISTEN + ACKNOWLEDGED.replace('"toolsListChanged"', '"promptsListChanged"'),
        "/params/notifications/promptsListChanged",
        "not asked",
    ),
    "acknowledged twice": (LISTEN + ACKNOWLEDGED + ACKNOWLEDGED, "", "once"),
    "a change on a stream that is cancelled": (
        LISTEN + ACKNOWLEDGED + CANCELLED.replace(":1}", ':"s"}') + CHANGED,
        "/params/_meta",
        "no open subscription",
    ),
    "a change on a stream that there is not": (CHANGED, "/params/_meta", "no open subscription"),
    "a cancellation of what is no stream": (
        asked("tools/call", '"name":"x"') + CANCELLED.replace("> ", "< "),
        "",
        "nobody is meant",
    ),
    "a stateless answer in a batch": (
        opened("2025-03-26") + asked("tools/list") + "< [" + TOOLS[2:-1] + "]",
        "/0",
        "single response",
    ),
}
