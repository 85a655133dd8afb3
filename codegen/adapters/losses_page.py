"""Write the losses between revisions as a page of Markdown: ``docs/losses.md``."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mcpgen.codegen.adapters.losses import LossRow

__all__ = ["losses_markdown"]

_HEAD = """
# What is lost between revisions

Written by `mcpgen losses`; do not edit.

A row is a loss that can occur if a message goes from a revision in the column *from* (the source) to a revision in the
column *to* (the target). `A … B` in these columns means every revision from A to B. Whether the loss occurs depends on
the message.

A program can also convert a part of a message alone, such as a `Tool`, with the function
[`definition_route`](adapters.md). The rows of the type of this part apply then too. Some rows apply only in this case,
such as `SamplingMessageContent[list[SamplingMessageContentBlock]]`.

The column *loss* has one or more of these words. If it has several words, the value decides which of them applies.

* *dropped*: the adapter removes the value.
* *degraded*: the adapter replaces the value by the nearest value that the target allows. The new value carries less
  information. In the row of an error, *degraded to C* means that the error gets the code C. There is one exception: on
  the way from 2026-07-28 to an older revision, an error that answers `resources/read` and has a `uri` in its `data`
  gets -32002 instead of -32602.
* *defaulted*: the target requires a value that the message does not have, and the adapter adds a default.
* *refused*: the target cannot express the message, and the adapter raises `AdaptationError`. A word in parentheses
  names the [service](#services) with which the server and the client of this package handle such a message. If there is
  no such word, the request to which the message belongs fails with an error.

*Unless X* means that the value `X` causes no loss. `X` is the default of the key: on the way to the newer revision, the
adapter adds `X` if the key is absent. For example, all results of 2025-11-25 are complete, so the default of
`resultType` is `complete`.

An adapter converts in steps: each step goes from one revision to the neighbouring revision. The column *reason* names
one or both revisions of the step in which the loss occurs.

The column *place* is written as follows:

* `A.b` is the key `b` of the type `A`, and `A.b.c` is the key `c` of the object under `A.b`. A name that starts with
  `io.modelcontextprotocol/` is one key. `A.b (absent)` means that the key is missing.
* `A` alone is a value of the type `A`. The reason says which part of the value is lost or replaced.
* `A[B]`: `A` is a union, and the value has the type `B`. `A.b{}` is each value in the JSON object `b`. So
  `ElicitResult.content{}[list[string]]` is a value in `content` that is a list of strings.
* `m params` and `m result` are the parameters and the result of the method `m`. `m params[B]` and `m result[B]` are
  parameters and a result of the type `B`. `m error` is an error that answers a request with the method `m`.
* `m from the client` is each message with the method `m` that a client sends.
* `error C` is an error with the code C. `application errors C … D` are the errors with codes from C to D that no
  revision defines.

In 2026-07-28, a server does not send requests to the client. If the server needs input, it answers a request of the
client with a result that contains *input requests*. The client then sends its own request again, with the answers.

## Services

| service | what the server or the client does instead |
|---|---|
| `input` | turns requests of the server into input requests, or the reverse; some requests fail (details below) |
| `negotiation` | handles `initialize`, `notifications/initialized`, `ping` and `server/discover` itself |
| `subscriptions` | replaces `resources/subscribe` by `subscriptions/listen`, or the reverse |
| `log_level` | replaces `logging/setLevel` by a log level in each request, or the reverse |
| `tasks` | sends messages about tasks only if both sides use 2025-11-25; ignores cancellations without `requestId` |
| `batching` | sends the messages of a batch one by one |
| `progress` | does not pass on the progress notifications of a client |
| `roots` | does not send `notifications/roots/list_changed` |

The service `input` turns requests of the server into input requests for a client of 2026-07-28, and input requests into
requests for an older client. It also turns the error -32042 (URL elicitation required) into input requests. It
sends `notifications/elicitation/complete` only to clients of 2025-11-25.

For some requests of a server, the revision of the client has no equivalent. For example, 2025-06-18 has no URL
elicitation. The server does not send such a request: the call in the handler of the server raises `UnsupportedByPeer`.

Sometimes a client cannot answer a request of a server, for example if the native revision of the client has no
equivalent. In revisions before 2026-07-28, the client then answers the request of the server with an error. In
2026-07-28, no error can answer an input request. So the client does not send its own request again, and the call in the
client program raises an error.

A server of 2026-07-28 needs no `notifications/roots/list_changed`: the server requests the roots each time that it
needs them.

## Unknown keys and error codes

A message can have a key or an error code that its own revision does not define. If no row of the tables names this key
or code for the source and the target, the following rules apply. *The next revision* is the revision directly after the
source.

* If no revision defines the key or the code, it is kept.
* If any other revision defines the key, the key is dropped. There is one exception: if the message goes to a newer
  revision, and the next revision defines the key and allows its value, the first step keeps the key. Further steps
  handle the key as in a message of the next revision. For example, 2025-06-18 adds `title` to tools. On the way to
  2025-11-25, a tool of 2025-03-26 keeps a `title`, and a tool of 2024-11-05 loses it.
* If any other revision defines the code, and the code is between -32768 and -32000, the code becomes -32603. There are
  two exceptions:
  * If the message goes to a newer revision, and the error is valid for the type that the next revision defines for this
    code, the first step keeps the code. Further steps handle it as in a message of the next revision. For example,
    2026-07-28 requires `supported` and `requested` in the `data` of an error -32022.
  * If an error goes from 2026-07-28 to an older revision, -32002 becomes -32602. But -32002 is kept in an error that
    answers `resources/read` and has a `uri` in its `data`.
"""


def losses_markdown(rows: Sequence[LossRow], revisions: Sequence[str]) -> str:
    """Return *rows* as Markdown."""
    lines = [_HEAD.strip(), ""]
    for title, is_down in (
        ("Going down: from a newer to an older revision", True),
        ("Going up: from an older to a newer revision", False),
    ):
        found = [row for row in rows if (revisions.index(row.sources[0]) > revisions.index(row.targets[0])) == is_down]
        if not found:
            continue
        lines += [f"## {title}", "", "| from | to | place | loss | reason |", "|---|---|---|---|---|"]
        for row in found:
            cells = (_span(row.sources), _span(row.targets), f"`{row.place}`", row.outcome, row.reason)
            lines.append(f"| {' | '.join(each.replace('|', chr(92) + '|') for each in cells)} |")
        lines.append("")
    return "\n".join(lines if rows else [*lines, "There are no losses."]).rstrip() + "\n"


def _span(revisions: Sequence[str]) -> str:
    return revisions[0] if len(revisions) == 1 else f"{revisions[0]} … {revisions[-1]}"
