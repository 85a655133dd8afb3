"""Conversations of clients within the rules, and some that are so only where messages may cross."""

from __future__ import annotations

from tests.harness.script_lines import (
    BOTH,
    CALL,
    CALLED,
    CANCEL,
    CANCELLED,
    CLIENT,
    FORM,
    FORM_INPUT,
    FORM_TASK,
    LEGACY,
    LIST,
    LISTEN,
    NAME_GIVEN,
    NAMED,
    NO_HANDSHAKE,
    PING,
    PONG,
    PROBE,
    READY,
    REFUSED,
    RELATED,
    ROOTS,
    ROOTS_GIVEN,
    ROOTS_INPUT,
    SAMPLE,
    STATE,
    SUBSCRIBE,
    TASK_CALL,
    TASK_MADE,
    TEXT,
    TOOLS,
    UNSUBSCRIBE,
    URL,
    USE,
    USE_BLOCK,
    agreed,
    answers,
    asks,
    demanded,
    discovered,
    first,
    listed,
    offer,
    opened,
    progress,
    refuses,
    retried,
    stated,
    status,
    task,
    unsupported,
)

FINE = {
    **{
        f"a session of {revision}": opened(revision)
        + PING
        + PONG
        + '> {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"x","_meta":{"progressToken":1}}}\n'
        + asks("ping")
        + answers("{}")
        + asks("roots/list", identity='"r"')
        + answers('{"roots":[{"uri":"file:///r"}]}', '"r"')
        + asks("sampling/createMessage", SAMPLE, "7")
        + answers(TEXT, "7")
        + '> {"jsonrpc":"2.0","method":"notifications/roots/list_changed"}\n'
        + '> {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}\n'
        + '> {"jsonrpc":"2.0","id":3,"method":"logging/setLevel","params":{"level":"info"}}\n'
        for revision in CLIENT
    },
    "an older revision is agreed on": offer() + agreed("2024-11-05", '{"tools":{}}') + READY + LIST,
    "pings before all is ready": offer()
    + PING
    + asks("ping")
    + answers("{}")
    + agreed()
    + PONG
    + PING.replace("1,", "2,"),
    "a refused handshake, and another": offer()
    + '< {"jsonrpc":"2.0","id":"h","error":{"code":-32602,"message":"no"}}\n'
    + offer("2024-11-05").replace('"h"', '"i"'),
    "progress of what the server asks": opened() + ROOTS + progress("1") + progress("1.5") + answers('{"roots":[]}'),
    "batches": opened("2025-03-26")
    + '> [{"jsonrpc":"2.0","id":1,"method":"ping"},'
    + '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}]\n'
    + '< [{"jsonrpc":"2.0","id":"s","method":"ping"}]\n> [{"jsonrpc":"2.0","id":"s","result":{}}]\n',
    "a form": opened() + FORM + answers('{"action":"accept","content":{"name":"n","size":"m"}}'),
    "a form of 2025-06-18": opened("2025-06-18") + FORM + answers('{"action":"accept","content":{"name":"n"}}'),
    "a form that nobody fills in": opened() + FORM + answers('{"action":"decline"}'),
    "a page": opened() + URL + answers('{"action":"accept"}'),
    "tools for a model": opened() + asks("sampling/createMessage", TOOLS) + answers(USE),
    "no roots": opened(client_can="{}") + ROOTS + refuses(-32601),
    "a foreign mode": opened(client_can='{"elicitation":{}}') + URL + refuses(-32602),
    "a refusal of nonsense": opened() + '< {"jsonrpc\n> {"jsonrpc":"2.0","error":{"code":-32700,"message":"no"}}\n',
    "nobody answers what was cancelled": opened() + ROOTS + CANCELLED + PING,
    "a subscription": opened() + SUBSCRIBE + UNSUBSCRIBE,
    "all pages": opened() + LIST + listed("") + LIST.replace('"l"', "2").replace("}\n", ',"params":{"cursor":"p"}}\n'),
    "a task of the server": opened()
    + LIST
    + listed(',"execution":{"taskSupport":"optional"}')
    + TASK_CALL
    + f'< {{"jsonrpc":"2.0","id":1,"result":{{"task":{{{task()}}}}}}}\n'
    + '> {"jsonrpc":"2.0","id":2,"method":"tasks/get","params":{"taskId":"k"}}\n'
    + '> {"jsonrpc":"2.0","id":3,"method":"tasks/cancel","params":{"taskId":"k"}}\n',
    "a task of the client": opened()
    + FORM_TASK
    + TASK_MADE
    + progress("1")
    + asks("tasks/get", '"taskId":"k"')
    + answers(f"{{{task()}}}")
    + status("input_required")
    + asks("tasks/result", '"taskId":"k"')
    + answers(
        '{"action":"accept","content":{"name":"n"},"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"k"}}}'
    ),
    "a probe of a server without handshakes": PROBE + discovered() + stated("tools/list", identity="2"),
    "a probe of an old server": PROBE + LEGACY + opened(),
    "a probe that nobody answers": PROBE + CANCEL + opened(),
    "a probe that is answered late": PROBE + offer() + LEGACY + agreed() + READY,
    "a probe of a server that speaks nothing else of ours": PROBE + unsupported('"2027-01-01","2025-11-25"') + opened(),
    "no probe": stated("tools/list") + stated("prompts/list", identity='"1"', meta=NAMED + ',"progressToken":1'),
    "an id that is free again": PROBE + discovered() + PROBE,
    "a stream that the client ends": LISTEN + CANCEL,
    "a demand": first() + demanded(BOTH) + retried(f"{NAME_GIVEN},{ROOTS_GIVEN}"),
    "a demand without a state": first() + demanded(f'"b":{ROOTS_INPUT}', "") + retried(ROOTS_GIVEN, ""),
    "a demand of nothing but patience": first() + demanded() + retried(),
    "a demand after a demand": first()
    + demanded(f'"a":{FORM_INPUT}')
    + retried(NAME_GIVEN)
    + demanded(f'"b":{ROOTS_INPUT}', ',"requestState":"2"', "2")
    + retried(ROOTS_GIVEN, ',"requestState":"2"', "3"),
    "demands of two calls at once": first()
    + first(identity="2")
    + demanded(f'"a":{FORM_INPUT}')
    + demanded(f'"a":{FORM_INPUT}', ',"requestState":"2"', "2")
    + retried(NAME_GIVEN, ',"requestState":"2"', "3")
    + retried(NAME_GIVEN, STATE, "4"),
    "a retry that came to nothing, and another": first()
    + demanded(f'"a":{FORM_INPUT}')
    + retried(NAME_GIVEN, identity="2")
    + REFUSED.replace(":1,", ":2,")
    + retried(NAME_GIVEN, identity="3"),
    "a retry that was cancelled, and another": first()
    + demanded(f'"a":{FORM_INPUT}')
    + retried(NAME_GIVEN, identity="2")
    + CANCEL.replace(":1,", ":2,")
    + retried(NAME_GIVEN, identity="3"),
    "the id of a probe that is over, in a session": PROBE + LEGACY + opened() + PING,
    "the id of a handshake that failed, without one": offer() + NO_HANDSHAKE + stated("tools/list", identity='"h"'),
    "a call that belongs to a task": opened() + CALL.replace('"progressToken":"t"', RELATED),
    "a call of a tool that makes no tasks": opened() + LIST + listed("") + CALL,
    "a call of a tool whose list has changed": opened()
    + LIST
    + listed("")
    + '< {"jsonrpc":"2.0","method":"notifications/tools/list_changed"}\n'
    + TASK_CALL,
    "a task of a tool that makes nothing else": opened()
    + LIST
    + listed(',"execution":{"taskSupport":"required"}')
    + TASK_CALL,
    "no task of a server that has none": opened(server_can='{"tools":{}}')
    + LIST
    + listed(',"execution":{"taskSupport":"required"}')
    + CALL,
    "an answer to the second request with an id": opened() + ROOTS + CANCELLED + asks("ping") + answers("{}"),
    "a refusal of a bad request": opened(client_can="{}")
    + asks("roots/list").replace("}\n", ',"params":5}\n')
    + refuses(-32600),
    "a refusal of an unknown method": opened("2025-03-26") + FORM + refuses(-32601),
    "a refusal of a model": opened(client_can='{"elicitation":{}}')
    + asks("sampling/createMessage", SAMPLE)
    + refuses(-1),
    "a refusal of a form": opened(client_can="{}") + FORM + refuses(-32601),
    "a form that fails": opened() + FORM + refuses(-32603),
    "a task that the server may not ask for": opened("2025-06-18")
    + asks("roots/list", '"task":{}')
    + answers('{"roots":[]}'),
    "the status of a task, without roots": opened(
        client_can='{"elicitation":{},"tasks":{"requests":{"elicitation":{"create":{}}}}}'
    )
    + FORM_TASK
    + TASK_MADE
    + status("working"),
    "progress beside a request without a token": opened() + asks("ping", identity="7") + ROOTS + progress("1"),
    "context that is not given": opened()
    + asks("sampling/createMessage", SAMPLE + ',"includeContext":"allServers"')
    + answers(TEXT),
    "a tool that was used before": opened()
    + asks(
        "sampling/createMessage",
        TOOLS.replace(
            '"maxTokens"',
            '"toolChoice":{"mode":"required"},"maxTokens"',
        ).replace('"content":{"type":"text","text":"hi"}}]', f'"content":[{USE_BLOCK}]}}]'),
    )
    + answers(TEXT),
    "the token of a task that is over": opened()
    + CALL.replace('"name":"x"', '"name":"x","task":{}')
    + f'< {{"jsonrpc":"2.0","id":1,"result":{{"task":{{{task()}}}}}}}\n'
    + f'< {{"jsonrpc":"2.0","method":"notifications/tasks/status","params":{{{task("failed")}}}}}\n'
    + CALL.replace('"id":1', '"id":2'),
    "the token of a task that is done": opened()
    + CALL.replace('"name":"x"', '"name":"x","task":{}')
    + f'< {{"jsonrpc":"2.0","id":1,"result":{{"task":{{{task()}}}}}}}\n'
    + '> {"jsonrpc":"2.0","id":2,"method":"tasks/get","params":{"taskId":"k"}}\n'
    + f'< {{"jsonrpc":"2.0","id":2,"result":{{{task("completed")}}}}}\n'
    + CALL.replace('"id":1', '"id":3'),
    "the token of a task that was done at once": opened()
    + CALL.replace('"name":"x"', '"name":"x","task":{}')
    + f'< {{"jsonrpc":"2.0","id":1,"result":{{"task":{{{task("completed")}}}}}}}\n'
    + CALL.replace('"id":1', '"id":3'),
    "the token of a task whose result is there": opened()
    + CALL.replace('"name":"x"', '"name":"x","task":{}')
    + f'< {{"jsonrpc":"2.0","id":1,"result":{{"task":{{{task()}}}}}}}\n'
    + '> {"jsonrpc":"2.0","id":2,"method":"tasks/result","params":{"taskId":"k"}}\n'
    + '< {"jsonrpc":"2.0","id":2,"result":{"content":[]}}\n'
    + CALL.replace('"id":1', '"id":3'),
    "an answer to what was cancelled, and its id again": stated("tools/list") + CANCEL + LEGACY + stated("tools/list"),
    "a handshake after an error that only looks like one of the new era": (
        PROBE + '< {"jsonrpc":"2.0","id":1,"error":{"code":-32022,"message":"no"}}\n' + offer()
    ),
    "a handshake after an answer to everything": PROBE + PONG + offer(),
    **{
        f"a cancellation after what is no answer: {frame}": opened() + CALL + f"< {frame}\n" + CANCEL
        for frame in (
            '[{"jsonrpc":"2.0","id":1,"result":{"content":[]}}]',
            '{"id":1,"result":{"content":[]}}',
            '{"jsonrpc":"2.0","id":1,"result":{"content":[]},"error":{"code":1,"message":""}}',
            '{"jsonrpc":"2.0","id":2,"result":{"content":[]}}',
            '{"jsonrpc":"2.0","id":true,"result":{"content":[]}}',
            '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}',
        )
    },
    "a cancellation of one stream of two": LISTEN + LISTEN.replace('"id":1', '"id":"s"') + CANCELLED + CANCEL,
    "an answer beside what is cancelled": opened() + ROOTS + CANCELLED.replace('"s"', '"z"') + answers('{"roots":[]}'),
    "the end of a subscription to what could not be read": opened()
    + SUBSCRIBE
    + PONG
    + '> {"jsonrpc":"2.0","id":3,"method":"resources/read","params":{"uri":"a:b"}}\n'
    + REFUSED.replace(":1,", ":3,")
    + UNSUBSCRIBE,
    "a refused offer of a later revision": offer()
    + '< {"jsonrpc":"2.0","id":"h","error":{"code":-32022,"message":"no","data":{"supported":[],"requested":""}}}\n'
    + stated("tools/list"),
    "a demand after a refusal": first()
    + REFUSED
    + first(identity="2")
    + demanded(identity="2")
    + retried(identity="3"),
    "the token of a call that became no task": opened()
    + CALL.replace('"name":"x"', '"name":"x","task":{}')
    + CALLED
    + CALL.replace('"id":1', '"id":2'),
    "a model that is the user": opened()
    + asks("sampling/createMessage", TOOLS)
    + answers(TEXT.replace("assistant", "user")),
    "a tool as chosen": opened()
    + asks("sampling/createMessage", TOOLS + ',"toolChoice":{"mode":"required"}')
    + answers(USE),
    "a list that belongs to a task": opened()
    + LIST.replace('"tools/list"', f'"tools/list","params":{{"_meta":{{{RELATED}}}}}'),
    "an answer that names a task": opened() + asks("ping") + answers(f'{{"_meta":{{{RELATED}}}}}'),
    "progress of two": opened()
    + ROOTS
    + ROOTS.replace('"r"', '"q"').replace('"s"', '"z"')
    + progress("2").replace('"r"', '"q"')
    + progress("1"),
    "progress of a task that goes on": opened() + FORM_TASK + TASK_MADE + status("input_required") + progress("1"),
    "a demand that is not met": first() + demanded(BOTH) + stated("tools/list", identity="2"),
}

# Fine where messages of both sides may cross, and not otherwise.
CROSSING = {
    "a cancellation of what is answered": opened() + CALL + CALLED + CANCEL,
    "a cancellation of a stream that is over": LISTEN + CANCELLED.replace('"s"', "1") + CANCEL,
    "an answer to what is cancelled": opened() + ROOTS + CANCELLED + answers('{"roots":[]}'),
    "progress of what is cancelled": opened() + ROOTS + CANCELLED + progress("1"),
    "a handshake that crosses the answer to the probe": PROBE + discovered() + offer(),
    "a revision that is being refused": PROBE + unsupported('"2025-11-25"') + stated("tools/list", identity="2"),
}
