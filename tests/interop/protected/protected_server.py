"""A server of ours that demands tokens. Arguments: its port, the issuer, and the format of tokens, jwt or opaque."""

from __future__ import annotations

import sys

from mcpgen import Context, Introspection, Protect, Server

server = Server("files")


@server.tool
def whose(context: Context) -> str:
    """Say whose token it is, and what is spoken."""
    assert context.access is not None
    return f"{context.access.subject}: {' '.join(sorted(context.access.scopes))} ({context.peer.revision})"


@server.tool(scopes=["files:write"])
def write(context: Context) -> str:
    """Do what needs another scope."""
    assert context.access is not None
    return f"{context.access.subject} wrote"


if __name__ == "__main__":
    port, issuer, kind = sys.argv[1:]
    verify = Introspection(client_id="files", client_secret="of files") if kind == "opaque" else None  # noqa: S106 (of the tests)
    resource = f"http://127.0.0.1:{port}/mcp"
    auth = Protect(resource=resource, issuers=[issuer], scopes=["files:read"], verify=verify)
    server.run(http=f"127.0.0.1:{port}", auth=auth)
