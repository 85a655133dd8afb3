"""A server: sessions, dispatch of requests to handlers, and what handlers can send.

From the bottom up: `exchange` holds the records; `handler_table` the methods of a server; `engine` what its connections
share; `server_session` the state of one connection; `server_requests`, `input_required`, `subscriptions` and
`notifications` what is sent to clients; `builtin_methods` the methods without a handler; `dispatcher` brings a message
to its handler, and `connection` runs it with a `context`.
"""

from __future__ import annotations

__all__: list[str] = []
