"""The command ``adapt``."""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from typing import IO, TYPE_CHECKING, Any, NoReturn

import click
import msgspec

from mcpgen.runtime.adapt.routes import Adapted, Route, definition_route, route
from mcpgen.runtime.errors import AdaptationError, InvalidPayload, UsageError, printable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mcpgen.runtime.adapt.routes import Loss, Part, Sender

__all__ = ["adapt"]

# The first losses are what one reads; a list of a thousand tools can have ten thousand. --json has all.
MOST_SHOWN = 50


class UnreadableInput(Exception):  # noqa: N818 (never leaves this module)
    """The input is no JSON document."""


@click.command()
@click.option("--from", "source", required=True, metavar="A", help="The revision that the input is written in.")
@click.option("--to", "target", required=True, metavar="B", help="The revision to write it in.")
@click.option("--method", metavar="M", help="The method: tools/call.")
@click.option(
    "--part",
    type=click.Choice(["params", "result", "notification", "error"]),
    help="Which part of the message the input is; an error is an object with a code and a message.",
)
@click.option(
    "--sender", type=click.Choice(["client", "server"]), help="Who sends the request or notification; default: any."
)
@click.option("--definition", metavar="NAME", help="Adapt a definition of A instead, such as ContentBlock.")
@click.option("--keep", is_flag=True, help="Stash in the message what is lost, so that the way back restores it.")
@click.option("--strict", is_flag=True, help="Exit with status 1 on any loss.")
@click.option("--json", "as_json", is_flag=True, help="Write one object with the value and the losses, or the error.")
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
    """Adapt a part of a message from one revision to another.

    JSON from FILE, or standard input, comes out as JSON. What B cannot say is listed on standard error.
    The exit status is 1 if the input is not valid in A, or has no meaning in B, and then nothing is written.
    """
    _check_usage(method, part, sender, definition)
    try:
        chosen = _route(source, target, (method, part, sender), definition)
        adapted = chosen.adapt(_read(file), keep=keep)
    except UsageError as error:
        raise click.UsageError(printable(str(error))) from None
    except (AdaptationError, InvalidPayload, UnreadableInput) as error:
        _fail(error, as_json=as_json)
    _show(adapted, as_json=as_json)
    if strict and adapted.losses:
        raise SystemExit(1)


def _check_usage(method: str | None, part: Part | None, sender: Sender | None, definition: str | None) -> None:
    is_message = method is not None and part is not None
    is_partial = (method, part, sender) != (None, None, None)
    if is_message == (definition is not None) or (definition is not None and is_partial):
        raise click.UsageError("Give --method M and --part, perhaps with --sender; or --definition NAME alone.")


def _route(
    source: str, target: str, message: tuple[str | None, Part | None, Sender | None], definition: str | None
) -> Route:
    method, part, sender = message
    if method is not None and part is not None:
        return route(source, target, method, part, sender=sender)
    return definition_route(source, target, str(definition))


def _read(file: IO[bytes]) -> Any:  # noqa: ANN401 (any JSON value)
    """Return the JSON value in *file*.

    Raises:
        UnreadableInput: There is none.
    """
    try:
        # Not msgspec's decoder, which keeps the last of two equal keys without a word.
        return json.loads(file.read().decode("utf-8"), object_pairs_hook=_unique, parse_constant=_refuse)
    except UnicodeDecodeError as error:
        raise UnreadableInput(f"the input is not UTF-8, at byte {error.start}") from None
    except RecursionError:
        raise UnreadableInput("the input is nested too deeply") from None
    except ValueError as error:  # of the decoder; or an integer of more digits than Python converts
        raise UnreadableInput(f"the input is not JSON: {error}") from None
    except OSError as error:
        raise UnreadableInput(f"the input cannot be read: {error.strerror}") from None


def _unique(members: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(members)
    if len(made) < len(members):
        ((twice, _),) = Counter(key for key, _ in members).most_common(1)
        raise UnreadableInput(f"an object has the key {twice[:100]!r} twice")
    return made


def _refuse(constant: str) -> NoReturn:
    raise UnreadableInput(f"the input is not JSON: it has {constant}")


def _show(adapted: Adapted, *, as_json: bool) -> None:
    losses = adapted.losses
    if as_json:
        _echo_json({"value": adapted.value, "losses": losses, "kept": adapted.kept, "restored": adapted.restored})
        return
    _echo_json(adapted.value)
    _echo_losses(losses)


def _fail(error: Exception, *, as_json: bool) -> NoReturn:
    losses = error.losses if isinstance(error, AdaptationError) else ()
    if as_json:
        facts = {name: getattr(error, name) for name in _FACTS if hasattr(error, name)}
        _echo_json({"error": {"kind": type(error).__name__, "message": str(error), **facts}})
    else:
        _echo_losses(losses)
        click.echo(f"Error: {printable(str(error))}", err=True)
    raise SystemExit(1)


_FACTS = ("revision", "step", "pointer", "reason", "service", "losses")


def _echo_losses(losses: Sequence[Loss]) -> None:
    for loss in losses[:MOST_SHOWN]:
        place = loss.pointer or "(the whole)"
        click.echo(printable(f"{loss.severity} {place}: {loss.reason} ({loss.step})"), err=True)
    if len(losses) > MOST_SHOWN:
        click.echo(f"and {len(losses) - MOST_SHOWN} more; --json lists them all", err=True)


_BEYOND_ASCII = re.compile(r"[^\x20-\x7e\n]")


def _echo_json(value: object) -> None:
    """Write *value* to stdout as JSON, in ASCII so that no terminal's encoding can refuse it, nor obey it."""
    data = msgspec.json.encode(value)
    if sys.stdout.isatty():
        data = msgspec.json.format(data, indent=2)
    click.echo(_BEYOND_ASCII.sub(_escaped, data.decode("utf-8")))


def _escaped(match: re.Match[str]) -> str:
    return json.dumps(match[0])[1:-1] if match[0] != "\x7f" else "\\u007f"
