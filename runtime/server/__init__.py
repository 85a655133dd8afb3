"""A server: sessions, dispatch of requests to handlers, and what handlers can send.

From the bottom up: `exchange` holds the records; `handler_table` the methods of a server; `engine` what its connections
share; `server_session` the state of one connection; `server_requests`, `input_required`, `subscriptions` and
`notifications` what is sent to clients; `builtin_methods` the methods without a handler; `dispatcher` brings a message
to its handler, and `connection` runs it with a `context`.

Theory of operation: one `tools/call`, in the order in which a debugger sees it.

1. A transport has a frame. On stdio, and in memory, `Connection.receive` gets all frames of one read, and no handler
   starts before the last of them is decoded. Over HTTP, `PostRequest.serve` has the body of one request.
2. `envelope.decode` tells what kind of message it is; its params stay undecoded. `read_meta` reads what decides about
   a request: the revision, the client's capabilities, the name of the tool, and its arguments, undecoded.
3. `dispatcher._open` finds the client, refuses what exceeds a limit, and makes an `OpenRequest`.
4. `dispatcher._serve` finds the `MethodHandler` of the revision. If it has a `FastPath`, that decodes the arguments
   as the parameters of the function. This is the one fast exit. Otherwise the codec decodes the params as the
   revision writes them, and adapts them; middleware, tasks, retries and invalid arguments need that.
5. `Connection.start` counts the `Exchange`, and the spawner starts `Connection.serve`: in a task that it shares with
   the other calls of the read, until one waits. `serve` calls the function.
6. `dispatcher.complete` writes the result. `plain_json` writes one that is only a text or structured content; the codec
   checks, adapts and encodes any other. `ServerSession.end` makes the response, and the connection hands it to the
   transport.

Over HTTP, `direct_calls` replaces the steps 3, 5 and 6 for functions without a `Context`, and for `async def` functions
with one that contain no ``await``: the function starts in the task of its HTTP request. If it has its result at once,
this is the response. Otherwise the call goes on with step 5.
"""

from __future__ import annotations

__all__: list[str] = []
