"""The command ``adapt``: adapt one part of a message from one revision to another."""

from __future__ import annotations

import json
import sys
from collections import Counter
from typing import IO, TYPE_CHECKING, Any, Final, NoReturn

import click

from mcpgen.runtime.adapt.extensions import route
from mcpgen.runtime.adapt.routes import Adapted, Route, definition_route
from mcpgen.runtime.cli.terminal_text import as_json as json_text
from mcpgen.runtime.cli.terminal_text import json_reason, sentence
from mcpgen.runtime.errors import AdaptationError, InvalidPayload, UnknownRevision, UsageError, printable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mcpgen.runtime.adapt.routes import Loss, Part, Sender

__all__ = ["adapt"]

# A list of a thousand tools can have ten thousand losses. `--json` writes all of them.
MAX_SHOWN = 50

_MAX_BYTES: Final = 16 * 1024 * 1024  # of the input: four times what servers accept; a device has no end

_NOT_KEPT = "Note: `--keep` stored no lost values. A possible reason: the type of the output has no `_meta`."

# The attributes of an error that `--json` writes.
_ERROR_ATTRIBUTES = ("revision", "step", "pointer", "reason", "service", "losses")


class UnreadableInput(Exception):  # noqa: N818 (never leaves this module)
    """The input is not a JSON document."""


@click.command()
@click.option("--from", "source", required=True, metavar="A", help="Revision of the input, such as 2025-11-25.")
@click.option("--to", "target", required=True, metavar="B", help="Revision of the output.")
@click.option("--method", metavar="METHOD", help="Method of the message, such as tools/call.")
@click.option(
    "--part",
    type=click.Choice(["params", "result", "notification", "error"]),
    help="Part of the message that the input contains. An error is an object with code and message.",
)
@click.option(
    "--sender",
    type=click.Choice(["client", "server"]),
    help="Sender of the message, if both sides can send it. For a result or an error: the sender of the request. "
    "Without this option, the input must be valid for one of the two sides.",
)
@click.option(
    "--definition", metavar="NAME", help="Instead of --method: the input is a value of this schema definition."
)
@click.option(
    "--keep",
    is_flag=True,
    help="Store lost values in the output, if its type has _meta (for an error: in data). Adapting the output back "
    "restores them.",
)
@click.option("--strict", is_flag=True, help="Exit with status 1 if anything is lost.")
@click.option("--json", "as_json", is_flag=True, help="Write one JSON object: the value and its losses, or the error.")
@click.argument("file", type=click.File("rb"), default="-")
def adapt(  # noqa: PLR0913 (one parameter for each option)
    *,
    source: str,
    target: str,
    method: str | None,
    part: Part | None,
    sender: Sender | None,
    definition: str | None,
    keep: bool,
    strict: bool,
    as_json: bool,
    file: IO[bytes],
) -> None:
    """Adapt one part of a message from revision A to revision B.

    Reads JSON from FILE or standard input, and writes JSON to standard output. Lists on standard error what B cannot
    express (the losses).

    Example: mcpgen adapt --from 2025-11-25 --to 2024-11-05 --method tools/list --part result tools.json

    Exit status: 0 if it worked, 1 if the input is not valid in A or cannot be adapted to B, 2 if the command was used
    wrongly.
    """
    value = None
    try:
        chosen = _route(source, target, (method, part, sender), definition)
        value = _read(file)
        adapted = chosen.adapt(value, keep=keep)
    except UnknownRevision as error:
        option = "'--from'" if error.label == source else "'--to'"
        raise click.BadParameter(sentence(error), param_hint=option) from None
    except UsageError as error:
        raise click.UsageError(sentence(error)) from None
    except (AdaptationError, InvalidPayload, UnreadableInput) as error:
        _fail(error, hint=_hint(value, part), as_json=as_json)
    if hint := _hint(value, part):  # params may have any keys, so a whole message can be valid
        click.echo(f"Note: {hint.removeprefix('; ')}", err=True)
    _show(adapted, as_json=as_json)
    if keep and adapted.losses and not adapted.kept:
        click.echo(_NOT_KEPT, err=True)
    if strict and adapted.losses:
        raise SystemExit(1)


def _route(
    source: str, target: str, message: tuple[str | None, Part | None, Sender | None], definition: str | None
) -> Route:
    method, part, sender = message
    if definition is None and method is not None and part is not None:
        return route(source, target, method, part, sender=sender)
    if definition is None or message != (None, None, None):
        raise click.UsageError("Give `--method` and `--part` (`--sender` if needed), or `--definition` alone.")
    return definition_route(source, target, definition)


def _read(file: IO[bytes]) -> Any:  # noqa: ANN401 (any JSON value)
    """Return the JSON value in *file*.

    Raises:
        UnreadableInput: The file cannot be read, or is not valid JSON.
    """
    try:
        # Not msgspec's decoder, which silently keeps the last of two equal keys.
        content = file.read(_MAX_BYTES + 1)
        if len(content) > _MAX_BYTES:
            raise UnreadableInput(f"the input has more than {_MAX_BYTES} bytes")
        text = content.decode("utf-8")
        if not text.strip():
            raise UnreadableInput("the input is empty")
        return json.loads(text, object_pairs_hook=_unique, parse_constant=_refuse)
    except UnicodeDecodeError as error:
        raise UnreadableInput(f"the input is not UTF-8, at byte {error.start}") from None
    except RecursionError:
        raise UnreadableInput("the input is nested too deeply") from None
    except json.JSONDecodeError as error:
        raise UnreadableInput(f"the input is not JSON: {json_reason(error)}") from None
    except ValueError:  # an integer with more digits than Python converts
        raise UnreadableInput("the input has a number with too many digits") from None
    except OSError as error:
        raise UnreadableInput(f"the input cannot be read: {error.strerror}") from None


def _unique(members: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(members)
    if len(made) < len(members):
        ((twice, _),) = Counter(key for key, _ in members).most_common(1)
        raise UnreadableInput(f"the input has an object with the key {twice[:100]!r} twice")
    return made


def _refuse(constant: str) -> NoReturn:
    raise UnreadableInput(f"the input is not JSON: JSON has no {constant}")


def _show(adapted: Adapted, *, as_json: bool) -> None:
    losses = adapted.losses
    if as_json:
        _echo_json({"value": adapted.value, "losses": losses, "kept": adapted.kept, "restored": adapted.restored})
        return
    _echo_json(adapted.value)
    _echo_losses(losses)


def _hint(value: object, part: Part | None) -> str:
    """Return what to do if *value* is a whole message, where only a part of one is adapted."""
    if part is None or not isinstance(value, dict) or "jsonrpc" not in value:
        return ""
    return f"; the input looks like a whole message; give only its `{'params' if part == 'notification' else part}`"


def _fail(error: Exception, *, hint: str, as_json: bool) -> NoReturn:
    losses = error.losses if isinstance(error, AdaptationError) else ()
    if as_json:
        facts = {name: getattr(error, name) for name in _ERROR_ATTRIBUTES if hasattr(error, name)}
        _echo_json({"error": {"kind": type(error).__name__, "message": str(error), **facts}})
    else:
        _echo_losses(losses)
        click.echo(f"Error: {printable(str(error))}{hint}", err=True)
    raise SystemExit(1)


def _echo_losses(losses: Sequence[Loss]) -> None:
    for loss in losses[:MAX_SHOWN]:
        place = loss.pointer or "(whole value)"
        click.echo(printable(f"{loss.severity} {place}: {loss.reason} ({loss.step})"), err=True)
    if len(losses) > MAX_SHOWN:
        click.echo(f"and {len(losses) - MAX_SHOWN} more; --json lists them all", err=True)


def _echo_json(value: object) -> None:
    click.echo(json_text(value, is_pretty=sys.stdout.isatty()))
