"""Register functions: the decorators that fill a `FunctionRegistry`."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar, overload

from mcpgen.runtime.errors import UsageError
from mcpgen.runtime.limits import MAX_THREADS, MAX_URI_CHARS
from mcpgen.runtime.protocol.argument_checks import check_flags, check_required_texts
from mcpgen.runtime.protocol.ui import UI_MIME_TYPE, check_ui_uri, tool_meta, ui_meta
from mcpgen.runtime.server.functions.completions import make_completion
from mcpgen.runtime.server.functions.function_registry import PROMPT, TEMPLATE, FunctionRegistry
from mcpgen.runtime.server.functions.pagination import PAGE_SIZE
from mcpgen.runtime.server.functions.prompts import make_prompt
from mcpgen.runtime.server.functions.registration_checks import check_definition, check_scopes, check_unused
from mcpgen.runtime.server.functions.removals import Removals
from mcpgen.runtime.server.functions.resources import FixedResource, make_resource
from mcpgen.runtime.server.functions.schemas import UnknownKeys, check_unknown_keys
from mcpgen.runtime.server.functions.tools import TaskMode, make_tool
from mcpgen.runtime.server.functions.visibility import VisibleFunctions, check_names

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Sequence

    from mcpgen.generated.extensions import apps
    from mcpgen.runtime.protocol.newest import models
    from mcpgen.runtime.server.cache_hints import CacheHint

__all__ = ["Registrations"]

F = TypeVar("F", bound="Callable[..., Any]")


class Registrations(Removals, VisibleFunctions):
    """Decorators that register functions as tools, resources, prompts and completions.

    A function that cannot be registered raises UsageError at once. Lists are in the order of registration. Clients are
    notified when a list changes while the server runs.

    Args:
        page_size: The number of entries in one page of a list.
        unknown_keys: What happens to arguments that a tool does not have, unless the tool says otherwise.
        strict: Whether an empty cursor is refused.
        max_threads: The most plain functions that run at once.
        max_uri_chars: The length of the longest URI that a template reads.
    """

    def __init__(
        self,
        *,
        page_size: int = PAGE_SIZE,
        unknown_keys: UnknownKeys | None = None,
        max_threads: int = MAX_THREADS,
        strict: bool = False,
        max_uri_chars: int = MAX_URI_CHARS,
    ) -> None:
        self._registry: FunctionRegistry = FunctionRegistry(page_size, max_threads, max_uri_chars, is_strict=strict)
        self._unknown_keys: UnknownKeys | None = check_unknown_keys(unknown_keys)

    @property
    def overrides(self) -> dict[Callable[..., Any], Callable[..., Any]]:
        """The functions that replace dependencies, by the dependency: ``server.overrides[open_database] = fake``."""
        return self._registry.injector.overrides

    @contextmanager
    def _changing(self, *, registers: bool = True) -> Generator[None]:  # noqa: ARG002 (a subclass may forbid it)
        """Change the registered functions, or which of them are shown, within the block."""
        with self._registry.changing():
            yield

    @overload
    def tool(self, function: F, /) -> F: ...
    @overload
    def tool(
        self,
        /,
        *,
        name: str | None = None,
        title: str | None = None,
        description: str | None = None,
        annotations: models.ToolAnnotations | None = None,
        icons: Sequence[models.Icon] | None = None,
        meta: dict[str, object] | None = None,
        tags: Iterable[str] = (),
        scopes: Iterable[str] = (),
        replay: bool = False,
        task: TaskMode = False,
        structured: bool | None = None,
        ui: str | apps.McpUiToolMeta | None = None,
        unknown_keys: UnknownKeys | None = None,
    ) -> Callable[[F], F]: ...
    def tool(  # noqa: PLR0913 (one per member of a tool's definition)
        self,
        function: F | None = None,
        /,
        *,
        name: str | None = None,
        title: str | None = None,
        description: str | None = None,
        annotations: models.ToolAnnotations | None = None,
        icons: Sequence[models.Icon] | None = None,
        meta: dict[str, object] | None = None,
        tags: Iterable[str] = (),
        scopes: Iterable[str] = (),
        replay: bool = False,
        task: TaskMode = False,
        structured: bool | None = None,
        ui: str | apps.McpUiToolMeta | None = None,
        unknown_keys: UnknownKeys | None = None,
    ) -> F | Callable[[F], F]:
        """Register a function as a tool; a decorator, with and without parentheses, that returns it unchanged.

        Args:
            function: Its parameters become the arguments; a parameter annotated `Context` gets the context.
            name: Default: the function's.
            title: The display name.
            description: Default: the prose of the docstring.
            annotations: Hints on its behaviour.
            icons: Icons for display.
            meta: The ``_meta`` of its definition.
            tags: Names of groups that it belongs to, for `enable`, `disable` and `only`. Clients do not see them.
            scopes: The scopes that an access token needs to use it, besides those of `Protect`. Without
                ``asgi(auth=…)``, it cannot be used over HTTP. Over standard input, scopes are not checked.
            replay: Whether it may run again from its start when a client retries with answers to its requests, and the
                process that ran it is gone; also when another process takes over its task.
            task: Whether it runs as a task, whose result the client fetches later: ``True`` for clients that can take
                tasks, while others get a plain result; ``"always"`` for these clients only; ``"deferred"`` if it calls
                `Context.defer` itself.
            structured: Whether results have structured content and an output schema. By default, all results except
                text and content blocks have them.
            ui: The URI of its interface, which `ui_resource` registers; or an ``McpUiToolMeta``, which can also say who
                may call the tool. The server then declares the extension `io.modelcontextprotocol/ui`.
            unknown_keys: What happens to arguments that the function does not have: ``refuse`` or ``ignore``.
                ``refuse`` holds for the keys of nested objects, too. Default: that of the server.

        Raises:
            UsageError: The function cannot be a tool, or the name is already in use.
        """
        if ui is not None:
            meta = tool_meta(meta, ui)
            self._declare_ui()

        def register(function: F) -> F:
            with self._changing():
                tool = make_tool(
                    function,
                    name=name,
                    title=title,
                    description=description,
                    annotations=annotations,
                    icons=icons,
                    meta=meta,
                    replay=replay,
                    task=task,
                    structured=structured,
                    injector=self._registry.injector,
                    unknown_keys=self._unknown_keys if unknown_keys is None else check_unknown_keys(unknown_keys),
                )
                check_definition(tool.definition, tool.label)
                existing = self._registry.tools.get(tool.definition.name)
                check_unused("tool", tool.definition.name, tool, existing)
                self._registry.tools.add(tool.definition.name, tool, check_names("tags", tags), check_scopes(scopes))
            return function

        return register if function is None else register(function)

    def resource(  # noqa: PLR0913 (one per member of a resource's definition)
        self,
        uri: str,
        /,
        *,
        name: str | None = None,
        title: str | None = None,
        description: str | None = None,
        mime_type: str | None = None,
        annotations: models.Annotations | None = None,
        icons: Sequence[models.Icon] | None = None,
        size: int | None = None,
        meta: dict[str, object] | None = None,
        tags: Iterable[str] = (),
        scopes: Iterable[str] = (),
        cache_hint: CacheHint | None = None,
        replay: bool = False,
    ) -> Callable[[F], F]:
        """Return a decorator that registers a function as a resource and returns it unchanged.

        Args:
            uri: Its URI, or with ``{…}`` a template (RFC 6570), whose variables are the function's parameters. A fixed
                URI takes precedence over templates, and an earlier template over a later one.
            name: Default: the function's.
            title: The display name.
            description: Default: the prose of the docstring.
            mime_type: The media type of its contents.
            annotations: Audience, priority and time of the last change.
            icons: Icons for display.
            size: The size of the content in bytes, if known and fixed.
            meta: The ``_meta`` of its definition.
            tags: As for `tool`.
            scopes: As for `tool`.
            cache_hint: How long clients may reuse the contents, and for whom. Default: that of the server.
            replay: As for `tool`.

        Raises:
            UsageError: The function cannot be a resource at this URI, or the URI is already in use.
        """
        given: Any = uri
        if not isinstance(given, str):
            raise UsageError('`resource` needs a URI; write @server.resource("config://app")')
        return self._resource(
            uri,
            name=name,
            title=title,
            description=description,
            mime_type=mime_type,
            annotations=annotations,
            icons=icons,
            size=size,
            meta=meta,
            tags=tags,
            scopes=scopes,
            cache_hint=cache_hint,
            replay=replay,
        )

    def ui_resource(  # noqa: PLR0913 (one per member of a resource's definition)
        self,
        uri: str,
        /,
        *,
        name: str | None = None,
        title: str | None = None,
        description: str | None = None,
        ui: apps.McpUiResourceMeta | None = None,
        meta: dict[str, object] | None = None,
        tags: Iterable[str] = (),
        cache_hint: CacheHint | None = None,
        replay: bool = False,
    ) -> Callable[[F], F]:
        """Return a decorator that registers a function as an interface of tools, and returns it unchanged.

        The function returns an HTML page. Hosts with MCP Apps show it to the user, in place of the text of the tools
        that name it: ``@server.tool(ui="ui://clock")``. The server declares the extension `io.modelcontextprotocol/ui`.

        Args:
            uri: Its URI, with the scheme ``ui``.
            name: Default: the function's.
            title: The display name.
            description: Default: the prose of the docstring.
            ui: What the page needs: the domains that it loads from, permissions of the browser, and others.
            meta: The ``_meta`` of its definition.
            tags: As for `tool`.
            cache_hint: As for `resource`.
            replay: As for `tool`.

        Raises:
            UsageError: The URI has another scheme, the function cannot be a resource, or the URI is already in use.

        Spec:
            ext-apps, 2026-01-26, "UI Resource Format".
        """
        check_ui_uri(uri)
        self._declare_ui()
        return self._resource(
            uri,
            name=name,
            title=title,
            description=description,
            mime_type=UI_MIME_TYPE,
            annotations=None,
            icons=None,
            size=None,
            meta=meta if ui is None else ui_meta(meta, ui),
            tags=tags,
            cache_hint=cache_hint,
            replay=replay,
            contents_meta=None if ui is None else ui_meta(None, ui),
        )

    def _declare_ui(self) -> None:
        """Declare the extension `io.modelcontextprotocol/ui`; a subclass that is a server does."""

    def _resource(
        self, uri: str, *, tags: Iterable[str], scopes: Iterable[str] = (), **options: Any
    ) -> Callable[[F], F]:
        check_flags(replay=options["replay"])

        def register(function: F) -> F:
            with self._changing():
                made = make_resource(function, uri, **options, injector=self._registry.injector)
                check_definition(made.definition, made.function.label)
                existing = self._registry.resources.get(uri) or self._registry.templates.get(uri)
                check_unused("resource", uri, made.function, None if existing is None else existing.function)
                groups, needed = check_names("tags", tags), check_scopes(scopes)
                if isinstance(made, FixedResource):
                    self._registry.resources.add(uri, made, groups, needed)
                else:
                    self._registry.templates.add(uri, made, groups, needed)
            return function

        return register

    @overload
    def prompt(self, function: F, /) -> F: ...
    @overload
    def prompt(
        self,
        /,
        *,
        name: str | None = None,
        title: str | None = None,
        description: str | None = None,
        icons: Sequence[models.Icon] | None = None,
        meta: dict[str, object] | None = None,
        tags: Iterable[str] = (),
        scopes: Iterable[str] = (),
        replay: bool = False,
    ) -> Callable[[F], F]: ...
    def prompt(  # noqa: PLR0913 (one per member of a prompt's definition)
        self,
        function: F | None = None,
        /,
        *,
        name: str | None = None,
        title: str | None = None,
        description: str | None = None,
        icons: Sequence[models.Icon] | None = None,
        meta: dict[str, object] | None = None,
        tags: Iterable[str] = (),
        scopes: Iterable[str] = (),
        replay: bool = False,
    ) -> F | Callable[[F], F]:
        """Register a function as a prompt; a decorator, with and without parentheses, that returns it unchanged.

        Its parameters are the prompt's arguments; their values arrive as text and are converted to the annotated types.
        The options are those of `tool`.

        Raises:
            UsageError: The function cannot be a prompt, or the name is already in use.
        """
        check_flags(replay=replay)

        def register(function: F) -> F:
            with self._changing():
                prompt = make_prompt(
                    function,
                    name=name,
                    title=title,
                    description=description,
                    icons=icons,
                    meta=meta,
                    replay=replay,
                    injector=self._registry.injector,
                )
                check_definition(prompt.definition, prompt.label)
                existing = self._registry.prompts.get(prompt.definition.name)
                check_unused("prompt", prompt.definition.name, prompt, existing)
                self._registry.prompts.add(
                    prompt.definition.name, prompt, check_names("tags", tags), check_scopes(scopes)
                )
            return function

        return register if function is None else register(function)

    def completion(self, reference: str, argument: str, /) -> Callable[[F], F]:
        """Return a decorator that registers a function that completes an argument, and returns it unchanged.

        The function may take ``value: str``, the text that was typed, ``arguments: dict[str, str]``, the values of the
        other arguments so far, and a `Context`. It returns a list of strings, the best first.

        Args:
            reference: The name of a prompt, or a resource template; it must be registered before.
            argument: One of its arguments or variables.

        Raises:
            UsageError: There is no such argument, or it has a completion already.
        """
        check_required_texts(reference=reference, argument=argument)
        kind = TEMPLATE if reference in self._registry.templates.registered else PROMPT
        known = self._registry.arguments_of(kind, reference)
        if known is None:
            found = ", ".join([*self._registry.prompts.registered, *self._registry.templates.registered]) or "none"
            raise UsageError(
                f"there is no prompt or resource template {reference!r} to complete; register it first; "
                f"registered: {found}"
            )
        if argument not in known:
            raise UsageError(f"{reference!r} has no argument {argument!r}; it has {', '.join(known) or 'none'}")

        def register(function: F) -> F:
            with self._changing():
                completion = make_completion(function, self._registry.injector)
                existing = self._registry.completions.get((kind, reference, argument))
                check_unused("completion of", f"{reference} {argument}", completion, existing)
                self._registry.completions[kind, reference, argument] = completion
            return function

        return register
