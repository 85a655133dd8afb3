"""The parts of ``mcpgen trace``: relays between host and server, and the text of what a tracer found.

`stdio_relay` and `http_relay` move the bytes. ``trace_command`` passes them on to the `Tracer` of
`mcpgen.runtime.protocol.trace`.
"""
