"""What a server returns, on a screen: text as text, and of what is no text its type and size, or a file."""

from __future__ import annotations

import base64
import binascii
import mimetypes
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from mcpgen.runtime.adapt.json_pointer import is_object
from mcpgen.runtime.cli.terminal_text import as_json, bytes_in_words, escaped_line, escaped_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

__all__ = ["Folder", "as_text", "decoded"]

# Endings of names, by type: what a server calls a type does not become part of a name.
_ENDING: Final = re.compile(r"\.[a-z0-9]{1,8}", re.ASCII)
_UNKNOWN: Final = ".bin"

# Of types that `mimetypes` may not know, or gives an unusual ending.
_ENDINGS: Final = {
    "application/json": ".json",
    "audio/mpeg": ".mp3",
    "audio/ogg": ".ogg",
    "audio/wav": ".wav",
    "audio/x-wav": ".wav",
    "image/jpeg": ".jpg",
    "image/webp": ".webp",
    "text/markdown": ".md",
    "text/plain": ".txt",
}

# So many files of one name are tried, before it is given up to find one that is free.
_MOST_TRIED: Final = 10_000


class Folder:
    """Where what is no text is saved, under names that no server chooses; what is there is never overwritten.

    Args:
        path: The folder, which is made if it is not there.
    """

    def __init__(self, path: str) -> None:
        self._path = Path(path)

    def save(self, data: bytes, kind: str, media_type: object) -> Path:
        """Write *data* to a new file, and return its path.

        Raises:
            OSError: That cannot be done.
        """
        self._path.mkdir(parents=True, exist_ok=True)
        ending = _ending(media_type)
        for number in range(1, _MOST_TRIED):
            path = self._path / f"{kind}-{number}{ending}"
            try:
                with path.open("xb") as file:
                    file.write(data)
            except FileExistsError:
                continue
            return path
        raise FileExistsError(17, "there are too many files", str(self._path))


def _ending(media_type: object) -> str:
    plain_type = str(media_type or "").partition(";")[0].strip().lower()
    found = _ENDINGS.get(plain_type) or mimetypes.guess_extension(plain_type) or _UNKNOWN
    return found if _ENDING.fullmatch(found) else _UNKNOWN


def decoded(text: object) -> bytes | None:
    """Return what *text* is in base64; None if it is not."""
    try:
        return base64.b64decode(str(text), validate=True)
    except (binascii.Error, ValueError):
        return None


def as_text(blocks: Sequence[Any], folder: Folder | None) -> Iterator[str]:
    """Yield the content of a result or a message as lines.

    Raises:
        OSError: Something cannot be saved in *folder*.
    """
    for block in blocks:
        if not is_object(block):
            continue
        match block.get("type"):
            case "text":
                yield escaped_text(str(block.get("text", "")))
            case "image" | "audio" as kind:
                yield _note(kind, block.get("data"), block.get("mimeType"), "", folder)
            case "resource_link":
                yield _link(block)
            case "resource" if is_object(block.get("resource")):
                yield from _resource(block["resource"], folder)
            case _:
                yield as_json(block, is_pretty=False)


def _link(link: Mapping[str, Any]) -> str:
    facts = [escaped_line(link["mimeType"])] if link.get("mimeType") else []
    size = link.get("size")
    facts += [bytes_in_words(size)] if isinstance(size, int) else []
    name = link.get("title") or link.get("name") or ""
    description = f" — {escaped_line(link['description'])}" if link.get("description") else ""
    detail = f" ({', '.join(facts)})" if facts else ""
    return f"→ {escaped_line(link.get('uri', ''))} {escaped_line(name)}{detail}{description}"


def _resource(resource: Mapping[str, Any], folder: Folder | None) -> Iterator[str]:
    uri, media_type = escaped_line(resource.get("uri", "")), resource.get("mimeType")
    if "blob" in resource:
        yield _note("resource", resource["blob"], media_type, uri, folder)
        return
    yield f"→ {uri}{f' ({escaped_line(media_type)})' if media_type else ''}:"
    yield escaped_text(str(resource.get("text", "")))


def _note(kind: str, data: object, media_type: object, uri: str, folder: Folder | None) -> str:
    """Return one line about what is no text, which is saved if there is where."""
    said = f"{kind} {uri}".rstrip()
    content = decoded(data)
    if content is None:
        return f"[{said}, {escaped_line(media_type or 'no type')}: it is not valid base64]"
    size = bytes_in_words(len(content))
    saved = ""
    if folder is not None:
        saved = f", saved as {escaped_line(str(folder.save(content, kind, media_type)))}"
    return f"[{said}, {escaped_line(media_type or 'no type')}, {size}{saved}]"
