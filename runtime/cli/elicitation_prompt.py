"""Asking the person at the terminal what a server wants to know of them.

Nothing is sent that they have not seen and agreed to; at each question they can decline, or leave. What was typed
before a question came is no answer to it. The text of the server stands apart from ours, so that it cannot pass for it,
and nothing else is written meanwhile.

Spec:
    2025-06-18, 2025-11-25 and 2026-07-28, client/elicitation, "User Interaction Model", "Security Considerations".
"""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

import anyio

from mcpgen.runtime.cli.form_fields import InvalidFieldValue, fields_of
from mcpgen.runtime.cli.page_address import address_of
from mcpgen.runtime.cli.terminal_text import display_width, escaped_line, laid_out, wrapped
from mcpgen.runtime.protocol.newest import models

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence

    from mcpgen.runtime.cli.form_fields import Field, Value
    from mcpgen.runtime.cli.keyboard import Keyboard
    from mcpgen.runtime.cli.progress_display import ProgressDisplay
    from mcpgen.runtime.cli.screen import Screen
    from mcpgen.runtime.client.base_client import ClientContext

__all__ = ["ElicitationPrompt"]

_BAR: Final = "│ "  # before what the server has written
_INDENT: Final = "  "
_LEAVING: Final = "At any question: :back, :skip (leave it out), :decline, :cancel (or Ctrl-D)."

_Leave: TypeAlias = Literal["decline", "cancel"]


class _Left(Exception):  # noqa: N818 (never leaves this module)
    def __init__(self, action: _Leave) -> None:
        self.action: _Leave = action


class _Back(Exception):  # noqa: N818 (never leaves this module)
    pass


class ElicitationPrompt:
    """Asks somebody, one question after the other.

    Args:
        screen: What they see.
        keyboard: What they type.
        server: How the server was started, or where it is: its ``command`` or ``url``, and that.
        telling: What has to wait while somebody is asked.
    """

    def __init__(
        self, screen: Screen, keyboard: Keyboard, *, server: tuple[str, str], telling: ProgressDisplay
    ) -> None:
        self._screen = screen
        self._keyboard = keyboard
        self._place, self._server = server
        self._telling = telling
        self._one_at_a_time = anyio.Lock()

    async def elicit(self, params: models.ElicitRequestFormParams, context: ClientContext) -> models.ElicitResult:
        """Have a form filled in."""
        async with self._asking("wants to know something", params.message, context):
            fields = fields_of(params.requested_schema)
            if fields:
                self._screen.lines(wrapped(_LEAVING, self._screen.width, indent=_INDENT))
            try:
                content = await self._filled_in(fields)
            except _Left as left:
                return self._left(left.action)
            return models.ElicitResult(action="accept", content=content)

    async def elicit_url(self, params: models.ElicitRequestURLParams, context: ClientContext) -> models.ElicitResult:
        """Have an address looked at, which nothing here opens."""
        async with self._asking("wants you to visit a page", params.message, context):
            self._show(params.url)
            try:
                while True:
                    text = await self._answer("Agree to this? [a]gree, [d]ecline, [c]ancel: ")
                    if text in ("a", "agree", "accept"):
                        note = "Open it in a browser yourself; nothing was opened for you."
                        self._screen.lines(wrapped(note, self._screen.width, indent=_INDENT))
                        return models.ElicitResult(action="accept")
            except _Left as left:
                return self._left(left.action)

    @asynccontextmanager
    async def _asking(self, what: str, message: str, context: ClientContext) -> AsyncGenerator[None]:
        async with self._one_at_a_time:
            self._telling.hold()
            try:
                self._introduce(what, message, context)
                self._keyboard.forget()
                yield
            finally:
                self._telling.release()

    def _introduce(self, what: str, message: str, context: ClientContext) -> None:
        screen, info = self._screen, context.peer.info
        screen.line()
        screen.line(screen.paint(f"A server {what}.", "heading"))
        name = (
            "(it does not say)" if info is None else f"{escaped_line(info.name)} {escaped_line(info.version)}".rstrip()
        )
        for label, text in (("it calls itself", name), (f"its {self._place} is", escaped_line(self._server))):
            margin = _INDENT + " " * 17
            lines = list(wrapped(text, screen.width, indent=margin)) or [margin]
            screen.line(f"{_INDENT}{screen.paint(f'{label:<17}', 'dim')}{lines[0][len(margin) :]}")
            screen.lines(lines[1:])
        self._quote(message)

    def _quote(self, text: str, indent: str = _INDENT) -> None:
        room = None if self._screen.width is None else self._screen.width - len(indent) - len(_BAR)
        for line in laid_out(text, room):
            self._screen.line(f"{indent}{self._screen.paint(_BAR, 'dim')}{line}")

    def _show(self, url: str) -> None:
        screen, address = self._screen, address_of(url)
        screen.line(f"{_INDENT}{screen.paint('address', 'dim')}  {address.text}")
        screen.line(f"{_INDENT}{screen.paint('host', 'dim')}     {screen.paint(address.host or '(none)', 'strong')}")
        for warning in address.warnings:
            for line in wrapped(f"! {warning}", screen.width, indent=_INDENT, hang=_INDENT * 2):
                screen.line(screen.paint(line, "bad"))

    def _left(self, action: _Leave) -> models.ElicitResult:
        self._screen.line(f"{_INDENT}{'Declined' if action == 'decline' else 'Cancelled'}; nothing was sent.")
        return models.ElicitResult(action=action)

    # --- a form

    async def _filled_in(self, fields: Sequence[Field]) -> dict[str, Value]:
        """Return the answers, when they were looked at and agreed to."""
        values: dict[str, Value | None] = {}
        index = 0
        while index < len(fields):
            try:
                field = fields[index]
                values[field.name] = await self._field(field, f"{index + 1}/{len(fields)}")
                index += 1
            except _Back:
                index = max(0, index - 1)
        while True:
            chosen = await self._reviewed(fields, values)
            if chosen is None:
                return {name: value for name, value in values.items() if value is not None}
            try:
                values[chosen.name] = await self._field(chosen, "change")
            except _Back:
                continue

    async def _field(self, field: Field, place: str) -> Value | None:
        screen = self._screen
        screen.line()
        required = screen.paint("required", "odd") if field.is_required else "may be left out"
        key = f" [{escaped_line(field.name)}]" if field.title != escaped_line(field.name) else ""
        screen.line(f"{_INDENT}{place}  {screen.paint(field.title, 'name')}{key}, {required}")
        if field.description:
            self._quote(field.description, _INDENT * 2)
        for number, (value, name) in enumerate(field.choices, 1):
            said = escaped_line(name) if name == value else f"{escaped_line(name)} [{escaped_line(value)}]"
            screen.lines(wrapped(said, screen.width, indent=f"{_INDENT * 2}{number:>2}. ", hang=_INDENT * 4))
        default = "" if field.default is None else f"; Enter for {field.shown(field.default)}"
        leave = "; Enter to leave it out" if field.default is None and not field.is_required else ""
        how = "numbers or none" if field.is_many else "a number" if field.choices else ""
        kind = f"{field.kind}{f' ({how})' if how else ''}{default}{leave}"
        screen.lines(screen.paint(line, "dim") for line in wrapped(kind, screen.width, indent=_INDENT * 2))
        while True:
            text = await self._line(f"{_INDENT * 2}> ")
            self._heed(text)
            if text.strip().casefold() == ":skip":
                if not field.is_required:
                    return None
                screen.line(screen.paint(f"{_INDENT * 2}It has to be filled in.", "bad"))
                continue
            try:
                return field.read(text[1:] if text.startswith("::") else text)
            except InvalidFieldValue as reason:
                lines = wrapped(str(reason), screen.width, indent=_INDENT * 2)
                screen.lines(screen.paint(line, "bad") for line in lines)

    async def _reviewed(self, fields: Sequence[Field], values: dict[str, Value | None]) -> Field | None:
        """Return the field that is to be changed; None if all is to be sent."""
        screen = self._screen
        screen.line()
        if fields:
            screen.line(f"{_INDENT}This would be sent:")
        widest = max((display_width(field.title) for field in fields), default=0)
        for number, field in enumerate(fields, 1):
            said = field.title + " " * (min(widest, 30) - display_width(field.title))
            text = field.shown(values[field.name])
            screen.lines(wrapped(f"{text}", screen.width, indent=f"{_INDENT}{number:>2}. {said}  ", hang=_INDENT * 4))
        change = (
            "" if not fields else ", [1] to change it" if len(fields) == 1 else f", [1-{len(fields)}] to change one"
        )
        while True:
            text = await self._answer(f"{'Send this' if fields else 'Agree'}? [y]es{change}, [d]ecline, [c]ancel: ")
            if text in ("y", "yes"):
                return None
            if text.isascii() and text.isdigit() and len(text) < len("1000") and 1 <= int(text) <= len(fields):
                return fields[int(text) - 1]

    async def _answer(self, question: str) -> str:
        """Return one of the answers that are offered, in small letters.

        Raises:
            _Left: It is to decline or to cancel.
        """
        *before, last = list(wrapped(question, self._screen.width, indent=_INDENT))
        self._screen.lines(before)
        while True:
            text = (await self._line(f"{last} ")).strip().casefold()
            try:
                self._heed(text)
            except _Back:
                continue
            if text in ("d", "decline", "n", "no"):
                raise _Left("decline")
            if text in ("c", "cancel"):
                raise _Left("cancel")
            return text

    @staticmethod
    def _heed(text: str) -> None:
        match text.strip().casefold():
            case ":decline":
                raise _Left("decline")
            case ":cancel":
                raise _Left("cancel")
            case ":back":
                raise _Back
            case _:
                pass

    async def _line(self, prompt: str) -> str:
        self._screen.write(prompt)
        has_come = False
        try:
            text = await self._keyboard.line()
            has_come = text is not None
        finally:
            if not has_come:
                self._screen.line()
        if text is None:
            raise _Left("cancel")
        return text
