"""Ask the user at the terminal what a server requests by elicitation.

The user reviews the answers before anything is sent, and can decline or cancel at each question. Text that was typed
before a question was shown does not answer it. Text of the server is marked, so that it cannot pass for text of mcpgen,
and no other output appears meanwhile.

Spec:
    2025-06-18, 2025-11-25 and 2026-07-28, client/elicitation, "User Interaction Model", "Security Considerations".
"""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

import anyio

from mcpgen.runtime.cli.client.form_fields import InvalidFieldValue, parse_form
from mcpgen.runtime.cli.client.url_report import check_url
from mcpgen.runtime.cli.terminal_text import display_width, escaped_line, lay_out, wrap
from mcpgen.runtime.errors import RequestError
from mcpgen.runtime.protocol.newest import ErrorCode, models

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence

    from mcpgen.runtime.cli.client.form_fields import FieldValue, FormField
    from mcpgen.runtime.cli.client.progress_display import ProgressDisplay
    from mcpgen.runtime.cli.client.terminal import Keyboard, Screen
    from mcpgen.runtime.client.base_client import ClientContext

__all__ = ["MAX_QUESTION_CHARS", "ElicitationPrompt"]

_BAR: Final = "│ "  # before text of the server

# The label before the command, the URL, or the name in a host's configuration.
_LABELS: Final = {"command": "its command", "url": "its URL", "server": "configured as"}
_INDENT: Final = "  "

# Of a message or a description. No user reads more, and to show it would take half a minute, without heed of Ctrl-C.
MAX_QUESTION_CHARS: Final = 20_000
_COMMANDS: Final = "At each field you can also type :back, :skip (no answer), :decline or :cancel (or Ctrl-D)."

_Leave: TypeAlias = Literal["decline", "cancel"]


class _Left(Exception):  # noqa: N818 (never leaves this module)
    def __init__(self, action: _Leave) -> None:
        self.action: _Leave = action


class _Back(Exception):  # noqa: N818 (never leaves this module)
    pass


class ElicitationPrompt:
    """Ask the user, one request at a time.

    Args:
        screen: The screen for the questions.
        keyboard: The source of the answers.
        server: ``command``, ``url`` or ``server``; and the command, the URL, or the name in a host's configuration.
        display: The display to hold back meanwhile.
    """

    def __init__(
        self, screen: Screen, keyboard: Keyboard, *, server: tuple[str, str], display: ProgressDisplay
    ) -> None:
        self._screen = screen
        self._keyboard = keyboard
        self._kind, self._server = server
        self._display = display
        self._one_at_a_time = anyio.Lock()

    async def elicit(
        self, params: models.ElicitRequestFormParams, context: ClientContext
    ) -> models.ElicitResult | dict[str, object]:
        """Ask for the fields of a form."""
        fields = parse_form(params.requested_schema)
        for field in fields:
            _check_length(field.description)
        request = "asks you for information" if fields else "asks you to confirm"
        async with self._asking(request, params.message, context):
            if fields:
                self._screen.lines(wrap(_COMMANDS, self._screen.width, indent=_INDENT))
            try:
                content = await self._filled_in(fields)
            except _Left as left:
                return self._declined(left.action)
            # The client would add defaults to an ElicitResult, also where the user chose to give no answer.
            return {"action": "accept", "content": content}

    async def elicit_url(self, params: models.ElicitRequestURLParams, context: ClientContext) -> models.ElicitResult:
        """Ask for consent to open a URL. This does not open the URL."""
        async with self._asking("asks you to open a URL", params.message, context):
            self._show(params.url)
            try:
                while True:
                    text = await self._answer("Do you agree? [a]gree, [d]ecline, [c]ancel: ")
                    if text in ("a", "agree", "accept"):
                        note = "Now open the URL in a browser yourself; mcpgen does not open it."
                        self._screen.lines(wrap(note, self._screen.width, indent=_INDENT))
                        return models.ElicitResult(action="accept")
            except _Left as left:
                return self._declined(left.action)

    @asynccontextmanager
    async def _asking(self, request: str, message: str, context: ClientContext) -> AsyncGenerator[None]:
        _check_length(message)
        async with self._one_at_a_time:
            self._display.hold()
            try:
                self._introduce(request, message, context)
                self._keyboard.discard_typed()
                yield
            finally:
                self._display.release()

    def _introduce(self, request: str, message: str, context: ClientContext) -> None:
        screen, info = self._screen, context.peer.info
        screen.line()
        screen.line(screen.paint(f"The server {request}.", "heading"))
        name = "(unnamed)" if info is None else f"{escaped_line(info.name)} {escaped_line(info.version)}".rstrip()
        for label, text in (("its own name", name), (_LABELS[self._kind], escaped_line(self._server))):
            screen.lines(screen.fact(label, text, columns=14, indent=_INDENT))
        self._quote(message)

    def _quote(self, text: str, indent: str = _INDENT) -> None:
        room = None if self._screen.width is None else self._screen.width - len(indent) - len(_BAR)
        for line in lay_out(text, room):
            self._screen.line(f"{indent}{self._screen.paint(_BAR, 'dim')}{line}")

    def _show(self, url: str) -> None:
        screen, report = self._screen, check_url(url)
        screen.line(f"{_INDENT}{screen.paint('URL', 'dim')}   {report.text}")
        screen.line(f"{_INDENT}{screen.paint('host', 'dim')}  {screen.paint(report.host or '(none)', 'strong')}")
        for warning in report.warnings:
            for line in wrap(f"! {warning}", screen.width, indent=_INDENT, hang=_INDENT * 2):
                screen.line(screen.paint(line, "bad"))

    def _declined(self, action: _Leave) -> models.ElicitResult:
        self._screen.line(f"{_INDENT}{'Declined' if action == 'decline' else 'Cancelled'}. No data was sent.")
        return models.ElicitResult(action=action)

    # --- a form

    async def _filled_in(self, fields: Sequence[FormField]) -> dict[str, FieldValue]:
        """Ask for every field, and return the answers when the user has agreed to send them."""
        values: dict[str, FieldValue | None] = {}
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

    async def _field(self, field: FormField, place: str) -> FieldValue | None:
        screen = self._screen
        screen.line()
        required = screen.paint("required", "warning") if field.is_required else "optional"
        key = f" [{escaped_line(field.name)}]" if field.title != escaped_line(field.name) else ""
        screen.line(f"{_INDENT}{place}  {screen.paint(field.title, 'name')}{key}, {required}")
        if field.description:
            self._quote(field.description, _INDENT * 2)
        for number, (value, name) in enumerate(field.choices, 1):
            label = escaped_line(name) if name == value else f"{escaped_line(name)} [{escaped_line(value)}]"
            screen.lines(wrap(label, screen.width, indent=f"{_INDENT * 2}{number:>2}. ", hang=_INDENT * 4))
        many = " (type numbers, or the word none)" if field.takes_empty else " (type numbers)"
        how = many if field.is_many else " (type a number)" if field.choices else ""
        enter = "" if field.is_required else "; press Enter for no answer"
        enter = enter if field.default is None else f"; press Enter for {field.shown(field.default)}"
        kind = f"{field.kind}{how}{enter}"
        screen.lines(screen.paint(line, "dim") for line in wrap(kind, screen.width, indent=_INDENT * 2))
        while True:
            text = await self._line(f"{_INDENT * 2}> ")
            self._obey(text)
            if text.strip().casefold() == ":skip":
                if not field.is_required:
                    return None
                screen.line(screen.paint(f"{_INDENT * 2}This field is required.", "bad"))
                continue
            try:
                return field.read(text[1:] if text.startswith("::") else text)
            except InvalidFieldValue as reason:
                lines = wrap(str(reason), screen.width, indent=_INDENT * 2)
                screen.lines(screen.paint(line, "bad") for line in lines)

    async def _reviewed(self, fields: Sequence[FormField], values: dict[str, FieldValue | None]) -> FormField | None:
        """Show the answers. Return the field that the user wants to change; None to send them."""
        screen = self._screen
        screen.line()
        if fields:
            screen.line(f"{_INDENT}Your answers:")
        widest = max((display_width(field.title) for field in fields), default=0)
        for number, field in enumerate(fields, 1):
            title = field.title + " " * (min(widest, 30) - display_width(field.title))
            text = field.shown(values[field.name])
            screen.lines(wrap(text, screen.width, indent=f"{_INDENT}{number:>2}. {title}  ", hang=_INDENT * 4))
        change = (
            "" if not fields else ", [1] to change it" if len(fields) == 1 else f", [1-{len(fields)}] to change one"
        )
        while True:
            text = await self._answer(
                f"{'Send them to the server' if fields else 'Do you agree'}? [y]es{change}, [d]ecline, [c]ancel: "
            )
            if text in ("y", "yes"):
                return None
            if text.isascii() and text.isdigit() and len(text) < len("1000") and 1 <= int(text) <= len(fields):
                return fields[int(text) - 1]

    async def _answer(self, question: str) -> str:
        """Return the answer in lower case.

        Raises:
            _Left: The user declines or cancels.
        """
        *before, last = list(wrap(question, self._screen.width, indent=_INDENT))
        self._screen.lines(before)
        while True:
            text = (await self._line(f"{last} ")).strip().casefold()
            try:
                self._obey(text)
            except _Back:
                continue
            if text in ("d", "decline", "n", "no"):
                raise _Left("decline")
            if text in ("c", "cancel"):
                raise _Left("cancel")
            return text

    @staticmethod
    def _obey(text: str) -> None:
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
        text = None
        try:
            text = await self._keyboard.line()
        finally:
            if text is None:
                self._screen.line()
        if text is None:
            raise _Left("cancel")
        return text


def _check_length(text: str) -> None:
    """Raise a `RequestError` if a user cannot read *text*; it is not cut, since the rest may matter."""
    if len(text) > MAX_QUESTION_CHARS:
        reason = f"a text of the question has {len(text)} characters; this client shows at most {MAX_QUESTION_CHARS}"
        raise RequestError(ErrorCode.INVALID_PARAMS, reason)
