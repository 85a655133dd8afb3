"""The type of options that are whole numbers."""

from __future__ import annotations

from typing import Any

import click

__all__ = ["WholeNumber"]


class WholeNumber(click.IntRange):
    """A whole number, without click's wording "integer range"."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:  # noqa: ANN401
        """Return *value* as a number."""
        try:
            int(value)
        except ValueError:
            self.fail(f"{value!r} is not a whole number.", param, ctx)
        return super().convert(value, param, ctx)
