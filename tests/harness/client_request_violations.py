"""Conversations whose last line breaks one rule: of what clients ask and tell."""

from __future__ import annotations

from tests.harness.script_lines import (
    CALL,
    CALLED,
    CANCEL,
    CANCELLED,
    FORM_TASK,
    LIST,
    LISTEN,
    REFUSED,
    ROOTS,
    SUBSCRIBE,
    TASK_CALL,
    TASK_MADE,
    UNSUBSCRIBE,
    answers,
    listed,
    opened,
    progress,
    status,
    task,
)

# The script, where its last line is wrong, and why.
ASKING = {
    # requests
    "a token that is taken": (
        opened() + CALL + CALL.replace('"id":1', '"id":2'),
        "/params/_meta/progressToken",
        "has this token",
    ),
    **{
        f"the token of a task that is not over: {frame}": (
            opened()
            + CALL.replace('"name":"x"', '"name":"x","task":{}')
            + f'< {{"jsonrpc":"2.0","id":1,"result":{{"task":{{{task()}}}}}}}\n'
            + '> {"jsonrpc":"2.0","id":2,"method":"tasks/get","params":{"taskId":"k"}}\n'
            + f"< {frame}\n"
            + CALL.replace('"id":1', '"id":3'),
            "/params/_meta/progressToken",
            "has this token",
        )
        for frame in (
            f'{{"jsonrpc":"2.0","method":"notifications/tasks/status","params":{{{task()}}}}}',
            '{"jsonrpc":"2.0","method":"x/y","params":{"taskId":"k","status":"failed"}}',
            f'{{"jsonrpc":"2.0","id":2,"result":{{{task()}}}}}',
        )
    },
    "the token of a task": (
        opened()
        + CALL.replace('"name":"x"', '"name":"x","task":{}')
        + f'< {{"jsonrpc":"2.0","id":1,"result":{{"task":{{{task()}}}}}}}\n'
        + CALL.replace('"id":1', '"id":2'),
        "/params/_meta/progressToken",
        "has this token",
    ),
    "a token that is no token": (
        opened() + CALL.replace('"t"', "null"),
        "/params/_meta/progressToken",
        "CallToolRequest",
    ),
    "a cursor that is made up": (
        opened() + LIST + listed("") + LIST.replace('"l"', "2").replace("}\n", ',"params":{"cursor":"q"}}\n'),
        "/params/cursor",
        "cursors are the server's",
    ),
    "a cursor of another list": (
        opened() + LIST + listed("") + '> {"jsonrpc":"2.0","id":2,"method":"prompts/list","params":{"cursor":"p"}}',
        "/params/cursor",
        "cursors are the server's",
    ),
    "the end of no subscription": (opened() + UNSUBSCRIBE, "/params/uri", "not subscribed"),
    "the end of a refused subscription": (
        opened() + SUBSCRIBE + REFUSED + UNSUBSCRIBE,
        "/params/uri",
        "not subscribed",
    ),
    "the end of a subscription twice": (
        opened() + SUBSCRIBE + UNSUBSCRIBE + UNSUBSCRIBE.replace(":2,", ":3,"),
        "/params/uri",
        "not subscribed",
    ),
    "a task of a tool that still makes none": (
        opened()
        + LIST
        + listed("")
        + '< {"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":1}}\n'
        + TASK_CALL,
        "/params/task",
        "does not become",
    ),
    "a task of a tool that makes none": (opened() + LIST + listed("") + TASK_CALL, "/params/task", "does not become"),
    "no task of a tool that makes nothing else": (
        opened() + LIST + listed(',"execution":{"taskSupport":"required"}') + CALL,
        "/params",
        "always becomes",
    ),
    "a task named twice": (
        opened()
        + '> {"jsonrpc":"2.0","id":1,"method":"tasks/get","params":{"taskId":"k",'
        + '"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"k"}}}}',
        "/params/_meta",
        "twice",
    ),
    # notifications
    "a cancellation first of all": (CANCEL, "/params/requestId", "no open request"),
    "a cancellation of true": (
        opened() + CALL + CANCEL.replace(":1,", ":true,"),
        "/params/requestId",
        "no open request",
    ),
    "a cancellation of nobody knows what": (
        opened() + CALL + '> {"jsonrpc":"2.0","method":"notifications/cancelled"}'.replace("}", ',"params":{}}'),
        "/params/requestId",
        "no open request",
    ),
    "a notification without a name": (opened() + '> {"jsonrpc":"2.0","method":5}', "", "a text"),
    "a cancellation of nothing": (opened() + CANCEL, "/params/requestId", "no open request"),
    "a cancellation of what is answered": (opened() + CALL + CALLED + CANCEL, "/params/requestId", "no open request"),
    "a second cancellation": (opened() + CALL + CANCEL + CANCEL, "/params/requestId", "no open request"),
    "a cancellation of what the server asks": (
        opened() + ROOTS + CANCEL.replace(":1,", ':"s",'),
        "/params/requestId",
        "no open request",
    ),
    "a cancellation of a stream that is over": (
        LISTEN + CANCELLED.replace('"s"', "1") + CANCEL,
        "/params/requestId",
        "no open request",
    ),
    "a cancellation of no stream": (LISTEN + CANCEL.replace(":1,", ":2,"), "/params/requestId", "no open request"),
    "a cancellation of a task": (opened() + TASK_CALL + CANCEL, "/params/requestId", "tasks/cancel"),
    "a bad cancellation": (
        LISTEN + '> {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1,"reason":5}}',
        "/params/reason",
        "ClientNotification",
    ),
    "progress of nothing": (opened() + progress("1"), "/params/progressToken", "no open request"),
    "progress after the answer": (
        opened() + ROOTS + answers('{"roots":[]}') + progress("1"),
        "/params/progressToken",
        "no open request",
    ),
    "progress of what is cancelled": (opened() + ROOTS + CANCELLED + progress("1"), "/params/progressToken", "no open"),
    "progress of a task that is over": (
        opened() + FORM_TASK + TASK_MADE + status("failed") + progress("1"),
        "/params/progressToken",
        "no open request",
    ),
    "progress of another": (opened() + ROOTS + progress("1").replace('"r"', '"q"'), "/params/progressToken", "no open"),
    "progress that is no number": (
        opened() + ROOTS + progress("1") + progress('"x"'),
        "/params/progress",
        "ProgressNotification",
    ),
    "progress back": (opened() + ROOTS + progress("2") + progress("2"), "/params/progress", "must increase"),
    "roots have changed, undeclared": (
        opened(client_can='{"roots":{}}') + '> {"jsonrpc":"2.0","method":"notifications/roots/list_changed"}',
        "/method",
        "roots.listChanged",
    ),
    "the status of no task": (opened() + status("working"), "/params/taskId", "no such task"),
}
