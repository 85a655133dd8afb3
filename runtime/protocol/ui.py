"""The extension `io.modelcontextprotocol/ui` (MCP Apps): tools with an interface, which a host shows to the user.

An interface is an HTML page, a resource with the scheme ``ui``. The metadata of a tool names the resource.

Spec:
    ext-apps, 2026-01-26, "UI Resource Format" and "Resource Discovery".
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, cast

import msgspec
from msgspec import Struct, UnsetType

from mcpgen.runtime.adapt.json_pointer import is_object
from mcpgen.runtime.errors import UsageError

if TYPE_CHECKING:
    from mcpgen.generated.extensions import apps
    from mcpgen.runtime.protocol.newest import models

__all__ = ["UI_EXTENSION", "UI_MIME_TYPE", "check_ui_uri", "tool_meta", "tool_ui", "ui_meta"]

UI_EXTENSION: Final = "io.modelcontextprotocol/ui"
"""The identifier of the extension."""

UI_MIME_TYPE: Final = "text/html;profile=mcp-app"
"""The MIME type of an interface. The settings of a client name it in ``mimeTypes``."""

# The place before `_meta.ui.resourceUri`. Servers of early versions of the extension write it.
_OLD_KEY: Final = "ui/resourceUri"

_SCHEME: Final = "ui://"


def tool_ui(tool: models.Tool) -> apps.McpUiToolMeta | None:
    """Return the interface of a tool that `Client.tools` returned; None if it has none, or its metadata is invalid.

    ``resource_uri`` is the URI of the page, for `Client.read_resource`. ``visibility`` says who may call the tool: the
    ``model``, the ``app`` (the page), or both, which is the default. A host must not offer a tool to its model if
    ``visibility`` lacks ``model``.

    Raises:
        UsageError: *tool* is something else, such as its name.

    Spec:
        ext-apps, 2026-01-26, "Resource Discovery".
    """
    # Few programs need these bindings.
    from mcpgen.generated.extensions.apps import McpUiToolMeta  # noqa: PLC0415

    if not isinstance(cast("object", tool), Struct):
        raise UsageError(f"`tool` must be a Tool, such as one that `Client.tools` returned, not {tool!r}")
    meta: dict[str, Any] = {} if isinstance(tool.meta, UnsetType) else tool.meta
    found: Any = meta.get("ui")
    if not is_object(found):
        found = {"resourceUri": meta[_OLD_KEY]} if _OLD_KEY in meta else None
    if not is_object(found):
        return None
    known = {key: each for key, each in found.items() if key in McpUiToolMeta.__struct_encode_fields__}
    try:
        ui = msgspec.convert(known, McpUiToolMeta)
    except msgspec.ValidationError:
        return None
    is_named = isinstance(ui.resource_uri, UnsetType) or ui.resource_uri.startswith(_SCHEME)
    return ui if is_named and ui != McpUiToolMeta() else None


def check_ui_uri(uri: object) -> None:
    """Check the URI of an interface.

    Raises:
        UsageError: Its scheme is not ``ui``.
    """
    if not isinstance(uri, str) or not uri.startswith(_SCHEME) or uri == _SCHEME:
        raise UsageError(f"{uri!r} is not the URI of an interface; write one with the scheme ui, such as ui://clock")


def tool_meta(meta: dict[str, object] | None, ui: str | apps.McpUiToolMeta) -> dict[str, object]:
    """Return the metadata of a tool with the interface *ui*.

    Raises:
        UsageError: Its URI has another scheme, or *meta* has an interface already.
    """
    from mcpgen.generated.extensions.apps import McpUiToolMeta  # noqa: PLC0415 (few servers need these bindings)

    made = McpUiToolMeta(resource_uri=ui) if isinstance(ui, str) else ui
    if not isinstance(cast("object", made), McpUiToolMeta):
        raise UsageError(f"`ui` must be the URI of an interface, such as 'ui://clock', or an McpUiToolMeta, not {ui!r}")
    if not isinstance(made.resource_uri, UnsetType):
        check_ui_uri(made.resource_uri)
    return ui_meta(meta, made)


def ui_meta(meta: dict[str, object] | None, ui: object) -> dict[str, object]:
    """Return *meta* with the metadata *ui* of the extension, which is a model of its bindings.

    Raises:
        UsageError: *meta* has such metadata already, or *ui* is not valid.
    """
    if meta is not None and "ui" in meta:
        raise UsageError("`meta` has the key `ui`, which is also set by an argument; remove one of them")
    if not isinstance(ui, Struct):
        raise UsageError(f"`ui` of an interface must be an McpUiResourceMeta, not {ui!r}")
    try:
        made: Any = msgspec.to_builtins(ui)
        msgspec.convert(made, type(ui))
    except (msgspec.ValidationError, TypeError) as error:
        raise UsageError(f"the metadata of the interface is not valid: {error}") from error
    return {**(meta or {}), "ui": made}
