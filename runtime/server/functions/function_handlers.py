"""The handlers of a server with registered functions: they list, call, read and complete them."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any

from msgspec import UNSET

from mcpgen.runtime.errors import RequestError, quoted
from mcpgen.runtime.protocol.newest import ErrorCode, ServerHandlers, models
from mcpgen.runtime.protocol.value_costs import largest_costs
from mcpgen.runtime.server.access import NO_SCOPES
from mcpgen.runtime.server.functions.function_registry import PROMPT, FunctionRegistry
from mcpgen.runtime.server.functions.pagination import PAGE_SIZE
from mcpgen.runtime.server.functions.registrations import Registrations
from mcpgen.runtime.server.functions.resources import ResourceFunction, ResourceNotFound
from mcpgen.runtime.server.functions.tools import BEFORE_TASKS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from mcpgen.runtime.protocol.json_costs import JsonCosts
    from mcpgen.runtime.server.cache_hints import CacheableMethod
    from mcpgen.runtime.server.functions.pagination import PaginatedList
    from mcpgen.runtime.server.functions.prompts import Prompt
    from mcpgen.runtime.server.functions.signatures import BaseContext
    from mcpgen.runtime.server.functions.tools import TaskSupport, Tool

__all__ = ["FunctionHandlers"]

# A client decides how long a name is, and how often it is compared with others. That takes a millisecond, if the names
# are much alike.
MAX_COMPARED_CHARS = 64
MAX_COMPARED_NAMES = 100


class FunctionHandlers(Registrations, ServerHandlers["BaseContext"]):
    """Registered functions as handlers of the newest revision.

    Args:
        page_size: The number of entries in one page of a list.
        registry: Functions that are registered elsewhere; by default, those that are registered here.
    """

    def __init__(self, *, page_size: int = PAGE_SIZE, registry: FunctionRegistry | None = None) -> None:
        super().__init__(page_size=page_size)
        if registry is not None:
            self._registry = registry

    def capabilities(self) -> models.ServerCapabilities:
        """Return the capabilities that the server declares: one for each kind of function that is registered.

        ``listChanged``, ``subscribe`` and ``logging`` are always declared, because any `Context` can send these
        notifications.
        """
        resources = models.ServerCapabilitiesResources(list_changed=True, subscribe=True)
        return models.ServerCapabilities(
            logging={},
            tools=models.ServerCapabilitiesTools(list_changed=True) if self._registry.tools.had_any else UNSET,
            resources=resources if self._registry.resources.had_any or self._registry.templates.had_any else UNSET,
            prompts=models.ServerCapabilitiesPrompts(list_changed=True) if self._registry.prompts.had_any else UNSET,
            completions={} if self._registry.had_completions else UNSET,
        )

    def fast_tool(self, name: str) -> Tool | None:
        """Return the tool *name*, for `mcpgen.runtime.server.fast_path`; None if it cannot be called that way."""
        tool = self._registry.tools.entries.get(name)
        return None if tool is None or tool.task else tool

    def task_support(self, name: str) -> TaskSupport:
        """Return whether a call of the tool *name* may, must or must not be a task."""
        tool = self._registry.tools.entries.get(name)
        return "forbidden" if tool is None else tool.task_support

    def defers_task(self, name: str) -> bool:
        """Return whether the tool *name* decides by itself when its call becomes a task."""
        tool = self._registry.tools.entries.get(name)
        return tool is not None and tool.task == "deferred"

    def input_schema(self, name: str) -> dict[str, Any] | None:
        """Return the schema of a tool's arguments, which says which of them HTTP repeats in headers."""
        tool = self._registry.tools.entries.get(name)
        return None if tool is None else tool.definition.input_schema

    @property
    def json_costs(self) -> JsonCosts:
        """What the largest values in the arguments of a tool take."""
        return largest_costs({each.json_costs for each in self._registry.tools.entries.values()})  # most are equal

    @property
    def has_scopes(self) -> bool:
        """Whether a function needs scopes."""
        return self._registry.has_scopes

    def scopes(self, method: str, name: str) -> frozenset[str]:
        """Return the scopes that a request needs: of the tool, prompt or template *name*, or the resource at a URI."""
        registry = self._registry
        match method:
            case "tools/call":
                return registry.tools.scopes(name)
            case "prompts/get":
                return registry.prompts.scopes(name)
            case "completion/complete":
                return registry.prompts.scopes(name) | registry.templates.scopes(name)
            case "resources/read" | "resources/subscribe" | "subscriptions/listen":
                return self._scopes_at(name)
            case _:
                return NO_SCOPES

    def _scopes_at(self, uri: str) -> frozenset[str]:
        if uri in self._registry.resources.entries:
            return self._registry.resources.scopes(uri)
        if len(uri) <= self._registry.max_uri_chars:
            for key, each in self._registry.templates.entries.items():
                if each.arguments(uri) is not None:
                    return self._registry.templates.scopes(key) | self._registry.scopes_of_spelling(uri, key)
        return NO_SCOPES

    def may_replay(self, _method: str, params: object) -> bool:
        """Whether the function that a request is for was registered with ``replay=True``."""
        found: Tool | Prompt | ResourceFunction | None = None
        match params:
            case models.CallToolRequestParams():
                found = self._registry.tools.entries.get(params.name)
            case models.GetPromptRequestParams():
                found = self._registry.prompts.entries.get(params.name)
            case models.ReadResourceRequestParams():
                reader = self._reader(params.uri)
                found = None if reader is None else reader[0]
            case _:
                pass
        return found is not None and found.replay

    def _hint(self, method: CacheableMethod, context: BaseContext) -> dict[str, Any]:
        """Return the fields of a result that say how long it may be cached; without a hint, their defaults hold."""
        hint = self._registry.cache_hints.get(method)
        if hint is None:
            return {}
        return (hint if _grants(context) is None else hint.for_one_user()).fields

    async def list_tools(
        self, params: models.PaginatedRequestParams, context: BaseContext, /
    ) -> models.ListToolsResult:
        """List the tools, without those that run as tasks only if the client's revision has no tasks."""
        shown, following = self._registry.tools.page(params.cursor, _grants(context))
        definitions = [each.definition for each in shown if not _is_hidden(each, context)]
        return models.ListToolsResult(tools=definitions, next_cursor=following, **self._hint("tools/list", context))

    async def call_tool(
        self, params: models.CallToolRequestParams, context: BaseContext, /
    ) -> models.CallToolResult | models.InputRequiredResult:
        """Run a tool.

        Raises:
            RequestError: There is no such tool. Spec: 2026-07-28, server/tools#error-handling.
        """
        tool = self._registry.tools.entries.get(params.name)
        self._check_scopes("tools/call", params.name, context)
        if tool is None or _is_hidden(tool, context):
            tools = self._registry.tools
            known = (name for name in _listed(tools, context) if not _is_hidden(tools.entries[name], context))
            raise _unknown("tool", params.name, known)
        return await tool.call(params.arguments, context)

    async def list_resources(
        self, params: models.PaginatedRequestParams, context: BaseContext, /
    ) -> models.ListResourcesResult:
        """List the resources at fixed URIs."""
        shown, following = self._registry.resources.page(params.cursor, _grants(context))
        return models.ListResourcesResult(
            resources=[each.definition for each in shown],
            next_cursor=following,
            **self._hint("resources/list", context),
        )

    async def list_resource_templates(
        self, params: models.PaginatedRequestParams, context: BaseContext, /
    ) -> models.ListResourceTemplatesResult:
        """List the resource templates."""
        shown, following = self._registry.templates.page(params.cursor, _grants(context))
        definitions = [each.definition for each in shown]
        return models.ListResourceTemplatesResult(
            resource_templates=definitions, next_cursor=following, **self._hint("resources/templates/list", context)
        )

    async def read_resource(
        self, params: models.ReadResourceRequestParams, context: BaseContext, /
    ) -> models.ReadResourceResult | models.InputRequiredResult:
        """Read the resource at a URI, or else of the first template that the URI matches.

        Raises:
            RequestError: There is none, or the URI is too long for a template.
        """
        self._check_scopes("resources/read", params.uri, context)
        found = self._reader(params.uri)
        if found is None:
            limit = self._registry.max_uri_chars
            if len(params.uri) > limit:
                raise RequestError(
                    ErrorCode.INVALID_PARAMS, f"the URI has more than {limit} characters (max_uri_chars)"
                )
            raise ResourceNotFound(quoted(params.uri))
        reader, arguments = found
        hint = self._registry.cache_hints.get("resources/read")
        if hint is not None and self._registry.has_scopes and self._scopes_at(params.uri):
            hint = hint.for_one_user()  # a shared cache would give the contents to users without the scopes
        return await reader.read(params.uri, arguments, context, hint)

    def _check_scopes(self, method: str, name: str, context: BaseContext) -> None:
        """Check the scopes of a request again: HTTP has read its name, before its params were decoded.

        Raises:
            RequestError: Its token lacks one of them.
        """
        if not self._registry.has_scopes or (access := context.access) is None:
            return
        if access.missing(self.scopes(method, name)):
            raise RequestError(ErrorCode.INVALID_REQUEST, "the access token lacks a scope that the request needs")

    def _reader(self, uri: str) -> tuple[ResourceFunction, dict[str, Any]] | None:
        """Return the function that reads *uri*, and its arguments; None if there is none."""
        if fixed := self._registry.resources.entries.get(uri):
            return fixed.function, {}
        if len(uri) > self._registry.max_uri_chars:  # matching takes time
            return None
        for each in self._registry.templates.entries.values():
            arguments = each.arguments(uri)
            if arguments is not None:
                return each.function, arguments
        return None

    async def list_prompts(
        self, params: models.PaginatedRequestParams, context: BaseContext, /
    ) -> models.ListPromptsResult:
        """List the prompts."""
        shown, following = self._registry.prompts.page(params.cursor, _grants(context))
        return models.ListPromptsResult(
            prompts=[each.definition for each in shown], next_cursor=following, **self._hint("prompts/list", context)
        )

    async def get_prompt(
        self, params: models.GetPromptRequestParams, context: BaseContext, /
    ) -> models.GetPromptResult | models.InputRequiredResult:
        """Run a prompt.

        Raises:
            RequestError: There is no such prompt, or its arguments are invalid. Spec: 2026-07-28,
                server/prompts#error-handling.
        """
        prompt = self._registry.prompts.entries.get(params.name)
        self._check_scopes("prompts/get", params.name, context)
        if prompt is None:
            raise _unknown("prompt", params.name, _listed(self._registry.prompts, context))
        return await prompt.get(params.arguments, context)

    async def complete(self, params: models.CompleteRequestParams, context: BaseContext, /) -> models.CompleteResult:
        """Suggest values for an argument; none if it has no completion.

        Raises:
            RequestError: There is no such prompt, template or argument, or an earlier argument is unknown. Spec:
                2026-07-28, server/utilities/completion#error-handling.
        """
        reference, argument = params.ref, params.argument.name
        key = reference.name if isinstance(reference, models.PromptReference) else reference.uri
        self._check_scopes("completion/complete", key, context)
        shown = self._registry.prompts.entries if reference.type == PROMPT else self._registry.templates.entries
        known = self._registry.arguments_of(reference.type, key) if key in shown else None
        if known is None:
            raise RequestError(ErrorCode.INVALID_PARAMS, f"Unknown reference: {quoted(key)}")
        earlier = {} if params.context is UNSET else params.context.arguments
        for name in (argument, *(() if earlier is UNSET else earlier)):
            if name not in known:
                raise RequestError(ErrorCode.INVALID_PARAMS, f"Unknown argument: {quoted(name)}")
        if completion := self._registry.completions.get((reference.type, key, argument)):
            return await completion.complete(params, context)
        return models.CompleteResult(completion=models.CompleteResultCompletion(values=[], total=0, has_more=False))


def _grants(context: BaseContext) -> Callable[[frozenset[str]], bool] | None:
    """Return which scopes the client of a list has; None if it may see entries for which it lacks a scope."""
    access = context.access
    if access is None or not context._hides:  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]  # no business of users
        return None
    return access.scopes.issuperset


def _listed(functions: PaginatedList[Any], context: BaseContext) -> Iterator[str]:
    """Yield the names of *functions* that a list shows to the client."""
    grants = _grants(context)
    return (name for name in functions.entries if grants is None or grants(functions.scopes(name)))


def _is_hidden(tool: Tool, context: BaseContext) -> bool:
    return tool.task == "always" and context.peer.revision in BEFORE_TASKS


def _unknown(kind: str, name: str, known: Iterable[str]) -> RequestError:
    """Return the error for an unknown tool or prompt. It suggests the name that is most like *name*."""
    hint = ""
    if len(name) <= MAX_COMPARED_CHARS:
        from difflib import get_close_matches  # noqa: PLC0415 (only for the message of an error)

        found = get_close_matches(name, islice(known, MAX_COMPARED_NAMES), 1)
        hint = f"; did you mean {found[0]}?" if found else ""
    return RequestError(ErrorCode.INVALID_PARAMS, f"Unknown {kind}: {quoted(name)}{hint}")
