"""The client's side of a connection: its requests, those of the server, and how both agree on a revision.

Theory of operation: the path of ``await client.call_tool(name, arguments)``. It is the same over stdio, over HTTP and
in memory, except between `Channel.write` and `ClientConnection.receive`.

1.  `Client.call_tool` calls `ClientEngine.call`, or `ToolTasks.call` if the server may run tools as tasks.
2.  `ClientEngine._call` encodes the params. `FastCall.params` does so for a name and arguments without options.
    Everything else takes the regular path: the `OutgoingRequestCodec` of the method adapts, checks and encodes them.
3.  `RequestSender.send` calls `RequestSender.send_once`. There, `ClientSession.send` makes a `PendingRequest`, encodes
    the envelope and writes it to the channel. `Deadlines.start` sets the deadline. Then the caller's task waits for
    the event of the `PendingRequest`. What happens to the message depends on the transport:

    * stdio: `Pump.write` adds a line to a buffer, which `_LoopPump._flush_now` writes in this turn of the event loop.
    * memory: a queue holds the message until `_Delivery` hands it to the server, in the next turn.
    * HTTP: `HttpChannel.write` starts a task, which makes one POST request (`PostRequests.send_request`).
4.  The transport hands the frames of the answer to `ClientConnection.receive`. Over HTTP, `IncomingMessages.receive`
    reads each one first. `MessageDispatcher.dispatch` decodes the envelope and finds the `PendingRequest` by its id.
    `ClientSession.resolve` stores the undecoded result and sets the event.
5.  The caller's task goes on in `send_once`. `FastCall.result` decodes a result that is complete and, in a handshake
    revision, only text. Everything else takes the regular path: `RequestSender.send` collects the input that the server
    requires and sends the request again, and `ClientEngine._read` decodes and adapts the final result.

So the caller's task encodes the request and decodes the result, and an invalid result fails this request only. The
result cache, progress, resending, extensions, spans and the checks of structured content are beside this path. A call
that does not use them pays at most one comparison for each.
"""
