"""Conversations whose last line breaks one rule: of messages, of the lifecycle, of eras, batches and capabilities."""

from __future__ import annotations

from tests.harness.script_lines import (
    CALL,
    LEGACY,
    LIST,
    NAMED,
    PING,
    PONG,
    PROBE,
    READY,
    ROOTS,
    SAMPLE,
    agreed,
    answers,
    asks,
    discovered,
    first,
    offer,
    opened,
    progress,
    refuses,
    stated,
    status,
    unsupported,
)

# The script, where its last line is wrong, and why.
OPENINGS = {
    # JSON-RPC
    "no JSON": (opened() + "> {", "", "not JSON"),
    "no text": (opened() + '> {"jsonrpc":"2.0","id":1,"method":"pi\\xffng"}', "", "not JSON"),
    "not a number": (opened() + CALL.replace('"x"', '"x","arguments":{"a":NaN}'), "", "NaN"),
    "a newline inside": (opened() + '> {"jsonrpc":"2.0",\\0"id":1,"method":"ping"}', "", "newlines"),
    "a name twice": (opened() + '> {"jsonrpc":"2.0","id":1,"id":1,"method":"ping"}', "", "twice"),
    "a key beside": (opened() + '> {"jsonrpc":"2.0","id":1,"x":1,"method":"ping"}', "", "envelope"),
    "two outcomes": (
        opened() + asks("ping") + '> {"jsonrpc":"2.0","id":"s","result":{},"error":{"code":1,"message":""}}',
        "",
        "envelope",
    ),
    "no outcome": (opened() + asks("ping") + '> {"jsonrpc":"2.0","id":"s"}', "", "result or an error"),
    "no version": (opened() + '> {"id":1,"method":"ping"}', "", "jsonrpc"),
    "a text": (opened() + '> "hello"', "", "object"),
    "a number for a method": (opened() + '> {"jsonrpc":"2.0","id":1,"method":5}', "/method", "string"),
    "a list for params": (opened() + '> {"jsonrpc":"2.0","id":1,"method":"ping","params":[]}', "/params", "object"),
    "a list for params of a notification": (
        opened() + '> {"jsonrpc":"2.0","method":"notifications/roots/list_changed","params":[]}',
        "",
        "object",
    ),
    "no id": (opened() + '> {"jsonrpc":"2.0","id":null,"method":"ping"}', "/id", "JSONRPCRequest"),
    "a fraction for an id": (opened() + '> {"jsonrpc":"2.0","id":1.5,"method":"ping"}', "/id", "JSONRPCRequest"),
    "an id again": (opened() + PING + PONG + PING, "/id", "used before"),
    "the id of the handshake again": (opened() + PING.replace(":1,", ':"h",'), "/id", "used before"),
    "an open id again": (first() + PROBE, "/id", "no response yet"),
    "the id of an open probe again": (PROBE + offer().replace('"h"', "1"), "/id", "no response yet"),
    "a request without an id": (opened() + '> {"jsonrpc":"2.0","method":"ping"}', "/method", "notification ping"),
    "a notification with one": (
        opened() + '> {"jsonrpc":"2.0","id":1,"method":"notifications/roots/list_changed"}',
        "/method",
        "request notifications",
    ),
    # the document
    "a missing member": (
        opened() + '> {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{}}',
        "/params",
        "CallToolRequest",
    ),
    "a key of a later revision": (
        opened("2025-06-18") + '> {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","task":{}}}',
        "/params",
        "CallToolRequest of 2025-06-18",
    ),
    "a capability of a later revision": (
        offer("2025-03-26", '{"elicitation":{}}'),
        "/params/capabilities",
        "2025-03-26",
    ),
    "a method of a later revision": (
        opened("2025-06-18") + '> {"jsonrpc":"2.0","id":1,"method":"tasks/list"}',
        "/method",
        "does not send the request tasks/list",
    ),
    "a method of an earlier revision": (stated("ping"), "/method", "does not send the request ping"),
    "a notification of a later revision": (opened("2025-06-18") + status("working"), "/method", "tasks/status"),
    "a bad notification": (
        opened() + ROOTS + '> {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"r"}}',
        "/params",
        "ProgressNotification",
    ),
    "a bad result": (opened() + ROOTS + answers("{}"), "/result", "ListRootsResult"),
    "a key of a later revision in a result": (
        opened("2025-06-18")
        + asks("sampling/createMessage", SAMPLE)
        + answers('{"role":"assistant","model":"m","content":[{"type":"text","text":"hi"}]}'),
        "/result/content",
        "CreateMessageResult of 2025-06-18",
    ),
    "something in a pong": (opened("2025-11-25") + asks("ping") + answers('{"resultType":"complete"}'), "/result", ""),
    "a bad error": (
        opened() + ROOTS + '> {"jsonrpc":"2.0","id":"s","error":{"code":"x","message":"no"}}',
        "/error/code",
        "JSONRPCError",
    ),
    "a code of a later revision": (opened() + ROOTS + refuses(-32022), "/error/code", "JSONRPCErrorResponse"),
    # lifecycle
    "a ping first of all": (PING, "", "initialize comes first"),
    "a request first of all": (LIST, "", "initialize comes first"),
    "a notification first of all": (READY, "", "first message is a request"),
    "a request before the result": (offer() + LIST, "", "before the result"),
    "ready before the result": (offer() + READY, "", "no result yet"),
    "a request before all is ready": (offer() + agreed() + LIST, "", "before notifications/initialized"),
    "a notification before all is ready": (
        offer() + agreed() + '> {"jsonrpc":"2.0","method":"notifications/roots/list_changed"}',
        "",
        "before notifications/initialized",
    ),
    "ready twice": (opened() + READY, "", "initialised once"),
    "a second handshake": (opened() + offer().replace('"h"', "1"), "", "initialised once"),
    "a second handshake at once": (offer() + offer().replace('"h"', "1"), "", "initialised once"),
    "a handshake of a revision that has none": (offer("2026-07-28"), "/params/protocolVersion", "no revision"),
    "a handshake of a revision that nobody knows": (offer("1.0"), "/params/protocolVersion", "no revision"),
    "a server that speaks what nobody knows": (offer() + agreed("1.0") + READY, "", "disconnects"),
    "a server that agrees to a revision without handshakes": (
        offer() + agreed("2026-07-28") + READY,
        "",
        "disconnects",
    ),
    "a cancelled handshake": (
        offer() + '> {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"h"}}',
        "/params/requestId",
        "never cancelled",
    ),
    # eras
    "a handshake after a discovery": (PROBE + discovered() + offer(), "", "needs no handshake"),
    "a handshake although a stateless revision is common": (
        PROBE + unsupported('"2026-07-28","2025-11-25"') + offer(),
        "",
        "needs no handshake",
    ),
    "a handshake that the server has not named": (
        PROBE + unsupported('"2025-11-25"') + offer("2024-11-05"),
        "",
        "needs no handshake",
    ),
    "a handshake after another error of the new era": (
        PROBE
        + '< {"jsonrpc":"2.0","id":1,"error":{"code":-32021,"message":"no",'
        + '"data":{"requiredCapabilities":{"roots":{}}}}}\n'
        + offer(),
        "",
        "needs no handshake",
    ),
    "a probe after something else": (first() + LEGACY + PROBE + LEGACY + offer(), "", "nothing else"),
    "a list for the params of a handshake": (
        '> {"jsonrpc":"2.0","id":1,"method":"initialize","params":[]}',
        "/params",
        "JSONRPCRequest",
    ),
    "a list for a revision": (
        stated("tools/list").replace('"2026-07-28"', '["2026-07-28"]'),
        "/params/_meta",
        "no stateless",
    ),
    "a list for an offer": (offer().replace('"2025-11-25"', "[]"), "/params/protocolVersion", "no revision"),
    "a bad ping before the result": (offer() + '> {"id":1,"method":"ping"}', "", "PingRequest"),
    "a probe that does something": (first() + LEGACY + offer(), "", "nothing else"),
    "a stated revision in a session": (opened() + stated("tools/list"), "/params/_meta", "after a handshake"),
    "a probe after the offer": (offer() + PROBE, "/params/_meta", "after a handshake"),
    "a revision with a handshake, stated": (
        stated("tools/list").replace("2026-07-28", "2025-11-25"),
        "/params/_meta",
        "no stateless",
    ),
    "a revision that the server does not speak": (
        PROBE + unsupported('"2025-11-25"') + stated("tools/list", identity="2"),
        "/params/_meta",
        "the server has said",
    ),
    "a revision that discovery has not named": (
        PROBE + discovered('"2025-11-25"') + stated("tools/list", identity="2"),
        "/params/_meta",
        "the server has said",
    ),
    "a request without a revision": (
        PROBE + discovered() + '> {"jsonrpc":"2.0","id":2,"method":"tools/list","params":{"_meta":{}}}',
        "/params/_meta",
        "protocolVersion",
    ),
    "a request without capabilities": (
        '> {"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{'
        '"io.modelcontextprotocol/protocolVersion":"2026-07-28"' + NAMED + "}}}",
        "/params/_meta",
        "clientCapabilities",
    ),
    "a request without a name": (stated("tools/list", meta=""), "/params/_meta", "name themselves"),
    "a notification without a session": (
        PROBE + discovered() + '> {"jsonrpc":"2.0","method":"notifications/roots/list_changed"}',
        "/method",
        "does not send the notification",
    ),
    "ready without a session": (PROBE + discovered() + READY, "/method", "does not send the notification"),
    "progress without a session": (PROBE + discovered() + progress("1"), "/method", "does not send the notification"),
    "a response without a session": (PROBE + asks("ping") + answers("{}"), "", "no responses"),
    # batches
    "a batch in another revision": (opened() + '> [{"jsonrpc":"2.0","id":1,"method":"ping"}]', "", "no batches"),
    "a batch without a handshake": (f"> [{PROBE[2:-1]}]", "", "no batches"),
    "a batch before the result": (
        offer("2025-03-26") + '> [{"jsonrpc":"2.0","id":1,"method":"ping"}]',
        "",
        "no batches",
    ),
    "an empty batch": (opened("2025-03-26") + "> []", "", "empty"),
    "a mixed batch": (
        opened("2025-03-26")
        + '< [{"jsonrpc":"2.0","id":"s","method":"ping"}]\n'
        + '> [{"jsonrpc":"2.0","id":"s","result":{}},{"jsonrpc":"2.0","id":1,"method":"ping"}]',
        "",
        "not both",
    ),
    "a batch of one's own answered apart": (
        opened("2025-03-26") + '< [{"jsonrpc":"2.0","id":"s","method":"ping"}]\n' + answers("{}"),
        "",
        "answered by a batch",
    ),
    "a single request answered in a batch": (
        opened("2025-03-26") + asks("ping") + '> [{"jsonrpc":"2.0","id":"s","result":{}}]',
        "/0",
        "answered by a batch",
    ),
    "a bad message in a batch": (
        opened("2025-03-26") + '> [{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{}}]',
        "/0/params",
        "CallToolRequest",
    ),
    # capabilities of the server
    **{
        f"{method} without {lacking}": (
            opened(server_can=server_can) + f'> {{"jsonrpc":"2.0","id":1,"method":"{method}","params":{{{params}}}}}',
            "/method",
            f"not declared {lacking}",
        )
        for method, params, server_can, lacking in (
            (
                "completion/complete",
                '"ref":{"type":"ref/prompt","name":"x"},"argument":{"name":"a","value":""}',
                "{}",
                "comp",
            ),
            ("logging/setLevel", '"level":"info"', "{}", "logging"),
            ("prompts/get", '"name":"x"', "{}", "prompts"),
            ("prompts/list", "", "{}", "prompts"),
            ("resources/list", "", "{}", "resources"),
            ("resources/read", '"uri":"a:b"', "{}", "resources"),
            ("resources/subscribe", '"uri":"a:b"', '{"resources":{}}', "resources.subscribe"),
            ("resources/templates/list", "", "{}", "resources"),
            ("tasks/cancel", '"taskId":"k"', '{"tasks":{}}', "tasks.cancel"),
            ("tasks/get", '"taskId":"k"', "{}", "tasks"),
            ("tasks/list", "", '{"tasks":{}}', "tasks.list"),
            ("tasks/result", '"taskId":"k"', "{}", "tasks"),
            ("tools/call", '"name":"x"', "{}", "tools"),
            ("tools/call", '"name":"x","task":{}', '{"tools":{}}', "tasks.requests.tools.call"),
            ("tools/list", "", "{}", "tools"),
        )
    },
}
