"""The parts of ``mcpgen trace``: a relay between host and server, and a tracer that checks each message.

`tracer.Tracer` is a state machine without I/O and clock. `stdio_relay` and `http_relay` move the bytes, and
``trace_command`` passes them on to the tracer.
"""
