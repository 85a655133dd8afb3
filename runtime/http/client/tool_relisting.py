"""Listing a server's tools again, since it misses headers that nobody knew of.

Spec:
    2026-07-28, basic/transports/streamable-http, "Client Behavior": after a HeaderMismatch a client SHOULD list the
    tools, and make the request again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import UNSET, Struct, UnsetType, field

from mcpgen.runtime.http.client.outgoing_messages import LIST_TOOLS, headers_of, own
from mcpgen.runtime.protocol.messages import Response

if TYPE_CHECKING:
    from mcpgen.runtime.http.client.outgoing_messages import OutgoingMessage
    from mcpgen.runtime.http.client.post_requests import PostRequests

__all__ = ["relist"]


class _Params(Struct):
    meta: dict[str, Any] | UnsetType = field(name="_meta", default=UNSET)


class _Page(Struct, rename="camel"):
    next_cursor: str | UnsetType | None = UNSET


async def relist(posts: PostRequests, call: OutgoingMessage, max_pages: int) -> None:
    """Ask for all pages of the tools, for whom *call* is made; what can be learnt of them is learnt on the way.

    Raises:
        RequestLost: A page could not be had.
    """
    params: dict[str, Any] = {"_meta": _meta_of(call)}
    for _ in range(max_pages):
        listing = own(LIST_TOOLS, params)
        refused = await posts.ask(listing, headers_of(listing, None), None)
        if refused is not None or not isinstance(listing.answer, Response):
            return
        try:
            cursor = msgspec.json.decode(listing.answer.result, type=_Page).next_cursor
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return
        if not isinstance(cursor, str):
            return
        params = {**params, "cursor": cursor}


def _meta_of(call: OutgoingMessage) -> dict[str, Any]:
    """Return what a call says about who makes it; its progress is its own."""
    if isinstance(call.params, UnsetType):
        return {}
    meta = msgspec.json.decode(call.params, type=_Params).meta
    return {} if isinstance(meta, UnsetType) else {name: meta[name] for name in meta if name != "progressToken"}
