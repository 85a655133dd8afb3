"""The registered functions of a server, and the views that show only some of them."""

from __future__ import annotations

from contextlib import contextmanager
from functools import partial
from threading import RLock
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakSet

from mcpgen.runtime.limits import MAX_THREADS, MAX_URI_CHARS
from mcpgen.runtime.server.access import NO_SCOPES
from mcpgen.runtime.server.functions.dependencies import Injector
from mcpgen.runtime.server.functions.pagination import PAGE_SIZE, PaginatedList
from mcpgen.runtime.server.functions.visibility import Visibility
from mcpgen.runtime.server.functions.worker_threads import WorkerThreads

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping

    from mcpgen.runtime.server.cache_hints import CacheHints
    from mcpgen.runtime.server.functions.completions import Completion
    from mcpgen.runtime.server.functions.prompts import Prompt
    from mcpgen.runtime.server.functions.resources import FixedResource, TemplateResource
    from mcpgen.runtime.server.functions.tools import Tool
    from mcpgen.runtime.server.functions.visibility import Component, Rule

__all__ = ["PROMPT", "TEMPLATE", "FunctionRegistry"]

PROMPT: Final = "ref/prompt"
TEMPLATE: Final = "ref/resource"

_LIST_CHANGES: Final[Mapping[Component, str]] = {
    "tool": "notifications/tools/list_changed",
    "resource": "notifications/resources/list_changed",
    "template": "notifications/resources/list_changed",
    "prompt": "notifications/prompts/list_changed",
}


class FunctionRegistry:
    """The registered functions.

    Args:
        page_size: The number of entries in one page of a list.
        max_threads: The most plain functions that run at once.
        max_uri_chars: The length of the longest URI that a template reads.
        is_strict: Whether an empty cursor is refused.

    Attributes:
        max_uri_chars: The same.
        tools: By name.
        resources: By URI.
        templates: By template.
        prompts: By name.
        completions: By kind of reference, reference and argument.
        had_completions: Whether there is or was a completion; a declared capability stays declared.
        lists: All that clients can list, by kind.
        visibility: Which of these are shown.
        threads: Where plain functions run.
        injector: Calls them with their dependencies.
        has_scopes: Whether a function needs scopes.
        cache_hints: The hints of the lists, and of resources that have none of their own, by method.
        on_change: Called after each change, with the notifications that clients get for it.
    """

    def __init__(
        self,
        page_size: int = PAGE_SIZE,
        max_threads: int = MAX_THREADS,
        max_uri_chars: int = MAX_URI_CHARS,
        *,
        is_strict: bool = False,
    ) -> None:
        self.max_uri_chars: int = max_uri_chars
        self.threads: WorkerThreads = WorkerThreads(max_threads)
        self.injector: Injector = Injector(self.threads)
        self.visibility: Visibility = Visibility()
        shows = self.visibility.shows
        paginated = partial(PaginatedList[Any], page_size=page_size, is_strict=is_strict)
        self.tools: PaginatedList[Tool] = paginated("tool", shows=partial(shows, "tool"))
        self.resources: PaginatedList[FixedResource] = paginated("resource", shows=partial(shows, "resource"))
        self.templates: PaginatedList[TemplateResource] = paginated(
            "resource template", shows=partial(shows, "template")
        )
        self.prompts: PaginatedList[Prompt] = paginated("prompt", shows=partial(shows, "prompt"))
        self.lists: Mapping[Component, PaginatedList[Any]] = {
            "tool": self.tools,
            "resource": self.resources,
            "template": self.templates,
            "prompt": self.prompts,
        }
        self.completions: dict[tuple[str, str, str], Completion] = {}
        self.had_completions: bool = False
        self.cache_hints: CacheHints = {}
        self.on_change: Callable[[tuple[str, ...]], object] = _ignore
        self.has_scopes: bool = False
        # The fixed resources, and the scopes of their plain spellings: one attribute, because threads may share it.
        self._spelled: tuple[Mapping[str, FixedResource], Mapping[str, frozenset[str]]] = ({}, {})
        self._page_size = page_size
        self._is_strict = is_strict
        self._applied_rules = self.visibility.rules
        self._base: FunctionRegistry | None = None
        self._views: WeakSet[FunctionRegistry] = WeakSet()
        self._lock: RLock = RLock()

    @contextmanager
    def changing(self) -> Generator[None]:
        """Change functions within the block, in one thread at a time; report what clients see of it."""
        with self._lock:
            before = {component: each.entries for component, each in self.lists.items()}
            yield
            self._refresh()
            # A dict, which keeps the order; resources and templates have the same notification.
            changed = {
                _LIST_CHANGES[component]: None
                for component, each in self.lists.items()
                if each.entries is not before[component]
            }
            self.on_change(tuple(changed))
            for each in list(self._views):
                with each.changing():
                    pass

    def view(self, rule: Rule) -> FunctionRegistry:
        """Return a registry that follows this one, and shows only what *rule* matches."""
        view = FunctionRegistry(self._page_size, max_uri_chars=self.max_uri_chars, is_strict=self._is_strict)
        view.threads, view.injector, view.completions = self.threads, self.injector, self.completions
        # Clients of the server and of the view see different lists, and may reach both at one URL.
        view.cache_hints = {method: each.for_one_user() for method, each in self.cache_hints.items()}
        view.visibility.show_only(rule)
        view._base = self
        with self._lock:
            self._views.add(view)
            view._refresh()
        return view

    def refresh_handlers(self) -> None:
        """Have the handlers read again, of this registry and of its views, although no function has changed."""
        self.on_change(())
        for each in list(self._views):
            each.refresh_handlers()

    def forget(self, name: str) -> None:
        """Let no rule about *name* hold for a function that is registered under it later."""
        if not any(name in each.registered for each in self.lists.values()):
            self.visibility.forget(name)
            for each in list(self._views):
                each.forget(name)

    def arguments_of(self, kind: str, reference: str) -> tuple[str, ...] | None:
        """Return the arguments of a prompt or resource template, even a hidden one; None if there is none."""
        if kind == PROMPT:
            prompt = self.prompts.get(reference)
            return None if prompt is None else prompt.arguments
        template = self.templates.get(reference)
        return None if template is None else tuple(each.name for each in template.template.variables)

    def forget_completions(self, kind: str, reference: str) -> None:
        """Remove the completions of a prompt or resource template."""
        for key in [each for each in self.completions if each[:2] == (kind, reference)]:
            del self.completions[key]

    def scopes_of_spelling(self, uri: str, found: str) -> frozenset[str]:
        """Return the scopes of the resources and templates that another spelling of *uri* matches.

        *found* is the template that *uri* itself matches; only templates before it count.
        """
        # With `urllib.parse`, it takes two milliseconds to import, and few servers have scopes.
        from mcpgen.runtime.server.functions.uri_spellings import covers, is_plain, plain  # noqa: PLC0415

        if is_plain(uri):
            return NO_SCOPES
        entries = self.resources.entries
        if self._spelled[0] is not entries:
            scopes_of: dict[str, frozenset[str]] = {}
            for each in entries:
                scopes_of[plain(each)] = scopes_of.get(plain(each), NO_SCOPES) | self.resources.scopes(each)
            self._spelled = entries, scopes_of
        spelling = plain(uri)
        needed = self._spelled[1].get(spelling, NO_SCOPES)
        for key, template in self.templates.entries.items():
            if key == found:
                break
            scopes = self.templates.scopes(key)
            if scopes and covers(template.template, spelling):
                needed |= scopes
        return needed

    def _refresh(self) -> None:
        if self._base is not None:
            for component, each in self.lists.items():
                each.follow(self._base.lists[component])
        elif self.visibility.rules is not self._applied_rules:
            for each in self.lists.values():
                each.refresh()
        self._applied_rules = self.visibility.rules
        self.has_scopes = any(each.has_scopes for each in self.lists.values())
        shown = self.prompts.entries.keys() | self.templates.entries.keys()
        if self.completions and (self._base is None or any(reference in shown for _, reference, _ in self.completions)):
            self.had_completions = True


def _ignore(_notifications: tuple[str, ...]) -> None:
    """Report no change, because nothing serves these functions."""
