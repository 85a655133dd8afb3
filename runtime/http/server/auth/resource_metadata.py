"""The metadata of a protected resource: where clients get tokens for it.

Theory of operation. RFC 9728 puts the metadata of ``https://example.com/api/mcp`` at
``https://example.com/.well-known/oauth-protected-resource/api/mcp``. Some clients know only the path without a suffix,
so the document of the endpoint is there, too. The endpoint of HTTP+SSE is another resource, with a document of its own,
because clients compare ``resource`` with the URL that they call. If the application does not serve HTTP+SSE, this URL
can belong to another server, so there is no document for it, and tokens for it are refused. All URLs come from the
configuration: the Host header is the client's. An ASGI server decodes the escapes of a path, so the documents are found
by decoded paths.

Spec:
    RFC 9728, sections 2 and 3; 2025-11-25, basic/authorization, "Protected Resource Metadata Discovery Requirements".
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from urllib.parse import unquote, urlsplit

import msgspec

from mcpgen.runtime.http.server import responses

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mcpgen.runtime.http.server.auth.protection import Protect
    from mcpgen.runtime.http.server.responses import Header, Receive, Scope, Send

__all__ = ["ResourceMetadata"]

WELL_KNOWN: Final = "/.well-known/oauth-protected-resource"

# A page of any site may read it: a client in a browser needs it before it has a token.
_PUBLIC: Final[tuple[Header, ...]] = (
    (b"access-control-allow-origin", b"*"),
    (b"cache-control", b"public, max-age=300"),
)
_METHODS: Final[Header] = (b"access-control-allow-methods", b"GET, HEAD")


class ResourceMetadata:
    """The documents of one application, and an ASGI application that serves them.

    Args:
        protect: The configuration.
        path: The path of the endpoint.
        sse_path: The path of the stream of HTTP+SSE; None if there is none.

    Attributes:
        url: The URL of the document of the endpoint.
        sse_url: The URL of the document of HTTP+SSE.
        resources: The URLs of the endpoint and of the stream of HTTP+SSE.
    """

    def __init__(self, protect: Protect, path: str, sse_path: str | None) -> None:
        own_path = urlsplit(protect.resource).path
        origin = protect.resource[: len(protect.resource) - len(own_path)] if own_path else protect.resource
        own_path = "" if own_path == "/" else own_path
        self.url: str = f"{origin}{WELL_KNOWN}{own_path}" if protect.metadata_url is None else protect.metadata_url
        self.sse_url: str = self.url
        main = _document(protect, protect.resource)
        self._documents: dict[str, bytes] = {"": main, _suffix(unquote(own_path)): main, _suffix(path): main}
        self.resources: tuple[str, ...] = (protect.resource,)
        if sse_path is not None and own_path and own_path.rstrip("/").endswith(path.rstrip("/")):
            outer = own_path.rstrip("/").removesuffix(path.rstrip("/"))
            sse_resource = f"{origin}{outer}{sse_path}"
            self.sse_url = f"{origin}{WELL_KNOWN}{outer}{sse_path}"
            self.resources = (protect.resource, sse_resource)
            sse = _document(protect, sse_resource)
            self._documents |= {_suffix(unquote(outer) + sse_path): sse, _suffix(sse_path): sse}

    def document(self, path: str) -> bytes | None:
        """Return the document at *path*; None if there is none."""
        if not path.startswith(WELL_KNOWN):
            return None
        return self._documents.get(_suffix(path.removeprefix(WELL_KNOWN)))

    async def __call__(self, scope: Scope, _receive: Receive, send: Send) -> None:
        """Serve the documents, as ASGI 3 defines: at their own paths, or mounted at the well-known path."""
        if scope["type"] != "http":
            return
        path: str = scope["path"]
        root: str = scope.get("root_path", "")
        if root and path.startswith(root):
            path = path[len(root) :]
        found = self.document(path) or self._documents.get(_suffix(path))
        await self.serve(scope, found, send)

    @staticmethod
    async def serve(scope: Scope, document: bytes | None, send: Send) -> None:
        """Send *document*, or answer that there is none."""
        method = scope["method"]
        if method == "OPTIONS":
            requested = dict(scope["headers"]).get(b"access-control-request-headers", b"")
            allowed = ((b"access-control-allow-headers", requested),) if requested else ()
            await responses.send_empty(send, 204, (*_PUBLIC, _METHODS, *allowed))
        elif document is None:
            await responses.send_error(send, 404, "there is no metadata at this path")
        elif method not in {"GET", "HEAD"}:
            await responses.send_error(
                send, 405, "this path accepts only GET and HEAD", headers=((b"allow", b"GET, HEAD"),)
            )
        else:
            await responses.send_json(send, document, headers=_PUBLIC)


def _suffix(path: str) -> str:
    """Return a path behind the well-known one, without a slash at its end."""
    return path.rstrip("/")


def _document(protect: Protect, resource: str) -> bytes:
    found: Mapping[str, object] = {
        "resource": resource,
        "authorization_servers": protect.issuers,
        "bearer_methods_supported": ["header"],
    }
    scopes = {"scopes_supported": sorted(protect.scopes)} if protect.scopes else {}
    return msgspec.json.encode({**found, **scopes})
