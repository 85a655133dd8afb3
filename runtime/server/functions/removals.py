"""Remove registered functions, also while the server runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mcpgen.runtime.server.functions.function_registry import PROMPT, TEMPLATE

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from mcpgen.runtime.server.functions.function_registry import FunctionRegistry

__all__ = ["Removals"]


class Removals:
    """The methods that remove functions from a registry; a subclass has the registry."""

    _registry: FunctionRegistry

    def _changing(self, *, registers: bool = True) -> AbstractContextManager[None]:
        """Change the registered functions, or which of them are shown, within the block."""
        raise NotImplementedError

    def remove_tool(self, name: str) -> None:
        """Remove a tool. Raises UsageError if there is none."""
        with self._changing():
            self._registry.tools.remove(name)
            self._registry.forget(name)

    def remove_resource(self, uri: str) -> None:
        """Remove a resource or, with its completions, a resource template. Raises UsageError if there is none."""
        with self._changing():
            if uri in self._registry.templates.registered:
                self._registry.templates.remove(uri)
                self._registry.forget_completions(TEMPLATE, uri)
            else:
                self._registry.resources.remove(uri)
            self._registry.forget(uri)

    def remove_prompt(self, name: str) -> None:
        """Remove a prompt and its completions. Raises UsageError if there is none."""
        with self._changing():
            self._registry.prompts.remove(name)
            self._registry.forget_completions(PROMPT, name)
            self._registry.forget(name)
