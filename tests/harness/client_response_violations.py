"""Conversations whose last line breaks one rule: of what clients answer, in responses and in retries."""

from __future__ import annotations

from tests.harness.script_lines import (
    BOTH,
    CANCELLED,
    FIELDS,
    FORM,
    FORM_INPUT,
    FORM_TASK,
    NAME_GIVEN,
    PAGE,
    RELATED,
    ROOTS,
    ROOTS_GIVEN,
    ROOTS_INPUT,
    SAMPLE,
    SIGNED,
    STATE,
    TASK_MADE,
    TEXT,
    TOOLS,
    URL,
    USE,
    answers,
    asks,
    demanded,
    first,
    opened,
    progress,
    refuses,
    retried,
    stated,
    task,
)

# The script, where its last line is wrong, and why.
ANSWERING = {
    # responses
    "an answer to nothing": (opened() + answers("{}"), "/id", "answers nothing"),
    "an answer to true": (opened() + asks("ping", identity="1") + answers("{}", "true"), "/id", "answers nothing"),
    "a result of something unreadable": (opened() + "< x\n" + answers("{}", "null"), "/id", "answers nothing"),
    "an error of something else than the unreadable": (opened() + "< x\n" + refuses(-32700), "/id", "answers nothing"),
    "two errors of something unreadable": (
        opened() + "< x\n" + 2 * '> {"jsonrpc":"2.0","error":{"code":-32700,"message":"no"}}\n',
        "/id",
        "answers nothing",
    ),
    "a text for a result": (opened() + ROOTS + answers('"x"'), "/result", "object"),
    "another id": (opened() + asks("ping", identity="1") + answers("{}", '"1"'), "/id", "answers nothing"),
    "a second answer": (opened() + ROOTS + refuses(-32603) + answers('{"roots":[]}'), "/id", "answers nothing"),
    "an answer to a notification": (opened() + '> {"jsonrpc":"2.0","id":null,"result":{}}', "/id", "answers nothing"),
    "an answer to what is cancelled": (opened() + ROOTS + CANCELLED + answers('{"roots":[]}'), "/id", "cancelled"),
    "an error to nothing unreadable": (
        opened() + '> {"jsonrpc":"2.0","error":{"code":-32700,"message":"no"}}',
        "/id",
        "answers nothing",
    ),
    "an error without an id where one is needed": (
        opened("2025-06-18") + '< nonsense\n> {"jsonrpc":"2.0","error":{"code":-32700,"message":"no"}}',
        "",
        "id",
    ),
    "a result of an unknown method": (opened() + asks("x/y") + answers("{}"), "", "no request of servers"),
    "a result of a method of a later revision": (
        opened("2025-03-26") + FORM + answers('{"action":"decline"}'),
        "",
        "no request of servers",
    ),
    **{
        f"{method} is answered, undeclared: {lacking}": (
            opened(client_can=can) + asks(method, params) + answers(result),
            "/result",
            f"{lacking} is not declared",
        )
        for method, params, can, result, lacking in (
            ("roots/list", "", "{}", '{"roots":[]}', "roots"),
            ("sampling/createMessage", SAMPLE, "{}", TEXT, "sampling"),
            ("sampling/createMessage", TOOLS, '{"sampling":{}}', TEXT, "sampling.tools"),
            ("elicitation/create", FIELDS, "{}", '{"action":"decline"}', "elicitation.form"),
            ("elicitation/create", PAGE, '{"elicitation":{}}', '{"action":"decline"}', "elicitation.url"),
            ("tasks/list", "", '{"tasks":{}}', '{"tasks":[]}', "tasks.list"),
        )
    },
    "no roots, with another code": (opened(client_can="{}") + ROOTS + refuses(-32603), "/error/code", "-32601"),
    "a foreign mode, with another code": (
        opened(client_can='{"elicitation":{}}') + URL + refuses(-32601),
        "/error/code",
        "-32602",
    ),
    # elicitation, sampling, roots
    "content of a declined form": (
        opened() + FORM + answers('{"action":"decline","content":{"name":"n"}}'),
        "/result/content",
        "only an accepted form",
    ),
    "content of a page": (
        opened() + URL + answers('{"action":"accept","content":{"name":"n"}}'),
        "/result/content",
        "only an accepted form",
    ),
    "a form without what it requires": (
        opened() + FORM + answers('{"action":"accept","content":{}}'),
        "/result/content",
        "required",
    ),
    "a form without content": (opened() + FORM + answers('{"action":"accept"}'), "/result/content", "required"),
    "a form with another type": (
        opened() + FORM + answers('{"action":"accept","content":{"name":1}}'),
        "/result/content/name",
        "string",
    ),
    "a form with another choice": (
        opened("2025-06-18") + FORM + answers('{"action":"accept","content":{"name":"n","size":"l"}}'),
        "/result/content/size",
        "form asks for",
    ),
    "a tool that was not given": (
        opened() + asks("sampling/createMessage", SAMPLE) + answers(USE),
        "/result/content",
        "not given tools",
    ),
    "a tool against the choice": (
        opened() + asks("sampling/createMessage", TOOLS + ',"toolChoice":{"mode":"none"}') + answers(USE),
        "/result/content",
        "not given tools",
    ),
    "no tool against the choice": (
        opened() + asks("sampling/createMessage", TOOLS + ',"toolChoice":{"mode":"required"}') + answers(TEXT),
        "/result/content",
        "at least one tool",
    ),
    "a tool that the user uses": (
        opened() + asks("sampling/createMessage", TOOLS) + answers(USE.replace("assistant", "user")),
        "/result/role",
        "the assistant",
    ),
    "a root that is none": (opened() + ROOTS + answers('{"roots":[{"uri":5}]}'), "/result/roots/0/uri", "string"),
    "a block that is none": (
        opened() + asks("sampling/createMessage", SAMPLE) + answers('{"role":"user","model":"m","content":[5]}'),
        "/result/content",
        "CreateMessageResult",
    ),
    "a root elsewhere": (
        opened() + ROOTS + answers('{"roots":[{"uri":"file:///r"},{"uri":"https://example.com/"}]}'),
        "/result/roots/1/uri",
        "file://",
    ),
    # tasks that the client runs
    "a result instead of a task": (opened() + FORM_TASK + answers('{"action":"decline"}'), "/result", "a task is made"),
    "a task although none are declared": (
        opened(client_can='{"elicitation":{}}') + FORM_TASK + TASK_MADE,
        "/result",
        "a task is made",
    ),
    "the result of a task without its name": (
        opened() + FORM_TASK + TASK_MADE + asks("tasks/result", '"taskId":"k"') + answers('{"action":"decline"}'),
        "/result/_meta",
        "the task is named",
    ),
    "an answer for a task without its name": (
        opened()
        + asks("roots/list", '"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"k"}}')
        + answers('{"roots":[]}'),
        "/result/_meta",
        "the task is named",
    ),
    "a task named wrongly": (
        opened() + asks("roots/list", f'"_meta":{{{RELATED}}}') + answers('{"roots":[],"_meta":5}'),
        "/result/_meta",
        "the task is named",
    ),
    "progress of a task that is known to be over": (
        opened()
        + FORM_TASK
        + TASK_MADE
        + asks("tasks/get", '"taskId":"k"')
        + answers(f"{{{task('failed')}}}")
        + progress("1"),
        "/params/progressToken",
        "no open request",
    ),
    "progress of a task whose result is there": (
        opened()
        + FORM_TASK
        + TASK_MADE
        + asks("tasks/result", '"taskId":"k"')
        + answers(f'{{"action":"decline","_meta":{{{RELATED}}}}}')
        + progress("1"),
        "/params/progressToken",
        "no open request",
    ),
    "the state of no task": (
        opened() + asks("tasks/get", '"taskId":"k"') + answers(f"{{{task()}}}"),
        "/result",
        "no such task",
    ),
    "the result of no task": (
        opened() + asks("tasks/result", '"taskId":"k"') + answers(f'{{"_meta":{{{RELATED}}}}}'),
        "/result",
        "no such task",
    ),
    "a bad result of a task": (
        opened()
        + FORM_TASK
        + TASK_MADE
        + asks("tasks/result", '"taskId":"k"')
        + answers('{"action":"x","_meta":{"io.modelcontextprotocol/related-task":{"taskId":"k"}}}'),
        "/result/action",
        "ElicitResult",
    ),
    "a bad form of a task": (
        opened()
        + FORM_TASK
        + TASK_MADE
        + asks("tasks/result", '"taskId":"k"')
        + answers('{"action":"accept","_meta":{"io.modelcontextprotocol/related-task":{"taskId":"k"}}}'),
        "/result/content",
        "required",
    ),
    # retries
    "a retry of nothing": (retried(), "/params", "nothing was demanded"),
    "a retry of what is done": (
        first()
        + f'< {{"jsonrpc":"2.0","id":1,"result":{{"resultType":"complete","content":[],{SIGNED}}}}}\n'
        + retried(),
        "/params",
        "nothing was demanded",
    ),
    "a retry of what demands nothing": (
        stated("tools/list") + demanded() + stated("tools/list", '"requestState":"1"', "2"),
        "/params",
        "nothing was demanded",
    ),
    "inputs that are none": (
        first()
        + demanded(f'"b":{ROOTS_INPUT}')
        + retried("").replace('"requestState"', '"inputResponses":5,"requestState"'),
        "/params/inputResponses",
        "object",
    ),
    "an input that is none": (
        first() + demanded(f'"b":{ROOTS_INPUT}') + retried('"b":5'),
        "/params/inputResponses/b",
        "ListRootsResult",
    ),
    "an input for a demand that is none": (
        first() + demanded('"b":5') + retried(""),
        "/params/inputResponses",
        "b was demanded",
    ),
    "a retry with other params": (
        first()
        + demanded(f'"a":{FORM_INPUT}')
        + stated("tools/call", f'"name":"y","inputResponses":{{{NAME_GIVEN}}}{STATE}', "2"),
        "/params",
        "nothing was demanded",
    ),
    "a retry of another method": (
        first() + demanded() + stated("prompts/get", f'"name":"x"{STATE}', "2"),
        "/params",
        "nothing was demanded",
    ),
    "a second retry": (first() + demanded() + retried() + retried(identity="3"), "/params", "nothing was demanded"),
    "a retry with the same id": (first() + demanded() + retried(identity="1"), "/id", "id of its own"),
    "another state": (
        first() + demanded(f'"a":{FORM_INPUT}') + retried(NAME_GIVEN, ',"requestState":"2"'),
        "/params/requestState",
        "echoed",
    ),
    "no state": (first() + demanded(f'"a":{FORM_INPUT}') + retried(NAME_GIVEN, ""), "/params/requestState", "echoed"),
    "a state where there was none": (
        first() + demanded(f'"a":{FORM_INPUT}', "") + retried(NAME_GIVEN),
        "/params/requestState",
        "there was none",
    ),
    "an input too few": (first() + demanded(BOTH) + retried(NAME_GIVEN), "/params/inputResponses", "b was demanded"),
    "an input too many": (
        first() + demanded(f'"a":{FORM_INPUT}') + retried(f"{NAME_GIVEN},{ROOTS_GIVEN}"),
        "/params/inputResponses/b",
        "nobody has demanded",
    ),
    "no inputs": (first() + demanded(f'"a":{FORM_INPUT}') + retried(), "/params/inputResponses", "a was demanded"),
    "the answers of another round": (
        first()
        + demanded(f'"a":{FORM_INPUT}')
        + retried(NAME_GIVEN)
        + demanded(f'"a":{FORM_INPUT}', ',"requestState":"2"', "2")
        + retried(NAME_GIVEN, STATE, "3"),
        "/params/requestState",
        "echoed",
    ),
    "a bad input": (
        first() + demanded(f'"b":{ROOTS_INPUT}') + retried('"b":{"action":"decline"}'),
        "/params/inputResponses/b",
        "ListRootsResult",
    ),
    "a bad form as an input": (
        first() + demanded(f'"a":{FORM_INPUT}') + retried('"a":{"action":"accept","content":{"name":5}}'),
        "/params/inputResponses/a/content/name",
        "form asks for",
    ),
    "a root elsewhere as an input": (
        first() + demanded(f'"b":{ROOTS_INPUT}') + retried('"b":{"roots":[{"uri":"a:b"}]}'),
        "/params/inputResponses/b/roots/0/uri",
        "file://",
    ),
    "an input that is not declared": (
        first(client_can="{}") + demanded(f'"b":{ROOTS_INPUT}') + retried(ROOTS_GIVEN, client_can="{}"),
        "/params/inputResponses/b",
        "has not declared roots",
    ),
    "an input that nobody can be asked for": (
        first() + demanded('"b":{"method":"ping"}') + retried(ROOTS_GIVEN),
        "/params/inputResponses/b",
        "no demand for input",
    ),
}
