"""What the workers of one server share: records and messages, in memory or in Redis.

`mcpgen.runtime.http.server.cluster` builds sessions on them, and docs/adr/0032 has the reasons.
"""
