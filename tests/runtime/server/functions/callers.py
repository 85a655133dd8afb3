"""A peer of one revision, as a catalogue of functions sees it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

from mcpgen.runtime.protocol.newest import NEWEST, models

if TYPE_CHECKING:
    from mcpgen.runtime.server.functions.function_handlers import FunctionHandlers

META: dict[str, object] = {
    "io.modelcontextprotocol/protocolVersion": NEWEST,
    "io.modelcontextprotocol/clientCapabilities": {},
}


class Caller:
    """Sends requests to a catalogue, as a peer of one revision."""

    def __init__(self, catalogue: FunctionHandlers, revision: str = NEWEST) -> None:
        self.catalogue = catalogue
        self.context = cast("Any", SimpleNamespace(peer=SimpleNamespace(revision=revision), debug=False, access=None))

    async def call(self, name: str, arguments: dict[str, Any] | None = None) -> Any:
        params = models.CallToolRequestParams(name=name, arguments=arguments or {}, meta=META)
        return await self.catalogue.call_tool(params, self.context)

    async def read(self, uri: str) -> Any:
        params = models.ReadResourceRequestParams(uri=uri, meta=META)
        return await self.catalogue.read_resource(params, self.context)

    async def get(self, name: str, arguments: dict[str, str] | None = None) -> Any:
        params = models.GetPromptRequestParams(name=name, arguments=arguments or {}, meta=META)
        return await self.catalogue.get_prompt(params, self.context)

    async def complete(self, reference: Any, argument: str, value: str, **settled: str) -> Any:
        params = models.CompleteRequestParams(
            ref=reference,
            argument=models.CompleteRequestParamsArgument(name=argument, value=value),
            context=models.CompleteRequestParamsContext(arguments=settled),
            meta=META,
        )
        return (await self.catalogue.complete(params, self.context)).completion

    async def tools(self, **cursor: str) -> Any:
        return await self.catalogue.list_tools(models.PaginatedRequestParams(meta=META, **cursor), self.context)

    async def resources(self, **cursor: str) -> Any:
        return await self.catalogue.list_resources(models.PaginatedRequestParams(meta=META, **cursor), self.context)

    async def templates(self, **cursor: str) -> Any:
        params = models.PaginatedRequestParams(meta=META, **cursor)
        return await self.catalogue.list_resource_templates(params, self.context)

    async def prompts(self, **cursor: str) -> Any:
        return await self.catalogue.list_prompts(models.PaginatedRequestParams(meta=META, **cursor), self.context)
