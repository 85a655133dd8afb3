"""Registering functions: the decorators, and what there is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, overload

import msgspec

from mcpgen.runtime.errors import UsageError
from mcpgen.runtime.protocol.newest import models
from mcpgen.runtime.server.functions.completions import Completion, make_completion
from mcpgen.runtime.server.functions.pagination import PAGE_SIZE, PaginatedList
from mcpgen.runtime.server.functions.prompts import Prompt, make_prompt
from mcpgen.runtime.server.functions.resources import FixedResource, ReadableFunction, TemplateResource, make_resource
from mcpgen.runtime.server.functions.tools import Tool, make_tool

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


__all__ = ["RegisteredFunctions", "Registrations"]

F = TypeVar("F", bound="Callable[..., Any]")

PROMPT = "ref/prompt"
TEMPLATE = "ref/resource"


_Labelled: TypeAlias = Tool | Prompt | Completion | ReadableFunction


class RegisteredFunctions:
    """The functions that are registered.

    Attributes:
        tools: By name.
        resources: By URI.
        templates: By template.
        prompts: By name.
        completions: By kind of reference, reference and argument.
        completes: Whether anything is or was completed: what was offered once stays offered.
    """

    def __init__(self, page_size: int = PAGE_SIZE) -> None:
        self.tools: PaginatedList[Tool] = PaginatedList("tool", page_size)
        self.resources: PaginatedList[FixedResource] = PaginatedList("resource", page_size)
        self.templates: PaginatedList[TemplateResource] = PaginatedList("resource template", page_size)
        self.prompts: PaginatedList[Prompt] = PaginatedList("prompt", page_size)
        self.completions: dict[tuple[str, str, str], Completion] = {}
        self.completes: bool = False


class Registrations:
    """Functions, registered as tools, resources, prompts and completions.

    Whatever is wrong with a function is said when it is registered, as a UsageError. Everything is listed in the order
    of registration. What comes or goes later is not announced: that is for `Context.tools_changed` and its like.

    Args:
        page_size: How many entries one answer to a list request holds.

    """

    def __init__(self, *, page_size: int = PAGE_SIZE) -> None:
        self._offered: RegisteredFunctions = RegisteredFunctions(page_size)

    def _will_change(self) -> None:
        """Learn that something is about to be registered or removed; raise what forbids it."""

    def _has_changed(self) -> None:
        """Learn that something was registered or removed."""

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
        replay: bool = False,
        structured: bool | None = None,
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
        replay: bool = False,
        structured: bool | None = None,
    ) -> F | Callable[[F], F]:
        """Register a function as a tool; a decorator, with and without parentheses, that returns it unchanged.

        Args:
            function: Its parameters become the arguments, one annotated `Context` gets the Context.
            name: Default: the function's.
            title: The name to show to people.
            description: Default: the prose of the docstring.
            annotations: Hints on how it behaves.
            icons: Pictures that stand for it.
            meta: The ``_meta`` of its definition.
            replay: Whether it may run again from its start when a client comes back with answers to its questions and
                nobody remembers it.
            structured: Whether results have structured content and a schema. Default: unless they are text or blocks.

        Raises:
            UsageError: The function cannot be a tool, or the name is taken.
        """

        def register(function: F) -> F:
            self._will_change()
            tool = make_tool(
                function,
                name=name,
                title=title,
                description=description,
                annotations=annotations,
                icons=icons,
                meta=meta,
                replay=replay,
                structured=structured,
            )
            _checked(tool.definition, tool.label)
            taken = self._offered.tools.entries.get(tool.definition.name)
            _refuse_second("tool", tool.definition.name, tool, taken)
            self._offered.tools.add(tool.definition.name, tool)
            self._has_changed()
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
        replay: bool = False,
    ) -> Callable[[F], F]:
        """Return a decorator that registers a function as a resource and returns it unchanged.

        Args:
            uri: Its URI; with ``{…}`` a template (RFC 6570), whose variables are the function's parameters. A fixed URI
                precedes templates, and an earlier template a later one.
            name: Default: the function's.
            title: The name to show to people.
            description: Default: the prose of the docstring.
            mime_type: Media type of what it returns.
            annotations: Hints on audience, weight and age.
            icons: Pictures that stand for it.
            size: Bytes of the content, if known and fixed.
            meta: The ``_meta`` of its definition.
            replay: As for `tool`.

        Raises:
            UsageError: The function cannot be a resource there, or the URI is taken.
        """
        if callable(uri):
            raise UsageError('a resource needs a URI: write @server.resource("config://app")')

        def register(function: F) -> F:
            self._will_change()
            made = make_resource(
                function,
                uri,
                name=name,
                title=title,
                description=description,
                mime_type=mime_type,
                annotations=annotations,
                icons=icons,
                size=size,
                meta=meta,
                replay=replay,
            )
            _checked(made.definition, made.reading.label)
            taken = self._offered.resources.entries.get(uri) or self._offered.templates.entries.get(uri)
            _refuse_second("resource", uri, made.reading, None if taken is None else taken.reading)
            if isinstance(made, FixedResource):
                self._offered.resources.add(uri, made)
            else:
                self._offered.templates.add(uri, made)
            self._has_changed()
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
        replay: bool = False,
    ) -> F | Callable[[F], F]:
        """Register a function as a prompt; a decorator, with and without parentheses, that returns it unchanged.

        Its parameters are the prompt's arguments; they arrive as text and become what they are annotated with. The
        options are those of `tool`.

        Raises:
            UsageError: The function cannot be a prompt, or the name is taken.
        """

        def register(function: F) -> F:
            self._will_change()
            prompt = make_prompt(
                function, name=name, title=title, description=description, icons=icons, meta=meta, replay=replay
            )
            _checked(prompt.definition, prompt.label)
            taken = self._offered.prompts.entries.get(prompt.definition.name)
            _refuse_second("prompt", prompt.definition.name, prompt, taken)
            self._offered.prompts.add(prompt.definition.name, prompt)
            self._has_changed()
            return function

        return register if function is None else register(function)

    def completion(self, reference: str, argument: str, /) -> Callable[[F], F]:
        """Return a decorator that registers a function as what completes an argument, and returns it unchanged.

        The function takes ``value: str``, what has been typed, and if it likes ``arguments: dict[str, str]``, what is
        settled already, and a Context. It returns texts, the best first.

        Args:
            reference: The name of a prompt, or a resource template; it must be registered already.
            argument: One of its arguments or variables.

        Raises:
            UsageError: There is no such argument, or something completes it already.
        """
        kind = TEMPLATE if reference in self._offered.templates.entries else PROMPT
        known = self._arguments_of(kind, reference)
        if known is None:
            raise UsageError(f"there is no prompt or resource template {reference!r} to complete; register it first")
        if argument not in known:
            raise UsageError(f"{reference!r} has no argument {argument!r}; it has {', '.join(known) or 'none'}")

        def register(function: F) -> F:
            self._will_change()
            completion = make_completion(function)
            taken = self._offered.completions.get((kind, reference, argument))
            _refuse_second("completion of", f"{reference} {argument}", completion, taken)
            self._offered.completions[kind, reference, argument] = completion
            self._offered.completes = True
            self._has_changed()
            return function

        return register

    def remove_tool(self, name: str) -> None:
        """Remove a tool. Raises UsageError if there is none."""
        self._will_change()
        self._offered.tools.remove(name)
        self._has_changed()

    def remove_resource(self, uri: str) -> None:
        """Remove a resource or, with its completions, a resource template. Raises UsageError if there is none."""
        self._will_change()
        if uri in self._offered.templates.entries:
            self._offered.templates.remove(uri)
            self._forget_completions(TEMPLATE, uri)
        else:
            self._offered.resources.remove(uri)
        self._has_changed()

    def remove_prompt(self, name: str) -> None:
        """Remove a prompt and its completions. Raises UsageError if there is none."""
        self._will_change()
        self._offered.prompts.remove(name)
        self._forget_completions(PROMPT, name)
        self._has_changed()

    def _arguments_of(self, kind: str, reference: str) -> tuple[str, ...] | None:
        """Return the names of the arguments of a prompt or resource template; None if there is none of that name."""
        if kind == PROMPT:
            prompt = self._offered.prompts.entries.get(reference)
            return None if prompt is None else prompt.arguments
        template = self._offered.templates.entries.get(reference)
        return None if template is None else tuple(each.name for each in template.template.variables)

    def _forget_completions(self, kind: str, reference: str) -> None:
        for key in [each for each in self._offered.completions if each[:2] == (kind, reference)]:
            del self._offered.completions[key]


def _checked(definition: msgspec.Struct, label: str) -> None:
    """Refuse what a list could not say.

    Raises:
        UsageError: An option is of the wrong type.
    """
    kind: Any = type(definition)
    try:
        models.decode(msgspec.json.encode(definition), kind)
    except (msgspec.MsgspecError, TypeError) as error:
        raise UsageError(f"an option of {label} is not what {kind.__name__} allows: {error}") from error


def _refuse_second(kind: str, key: str, made: _Labelled, taken: _Labelled | None) -> None:
    if taken is not None:
        raise UsageError(f"the {kind} {key!r} of {made.label} is there already, of {taken.label}; rename one of them")
