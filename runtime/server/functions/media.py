"""Images, audio and files as results of functions: `Image`, `Audio` and `File` encode them, and find their MIME type.

The file is read when the object is made: in a plain function, that is a worker thread, so the event loop does not wait.
A tool sends the content block of the object, a prompt a message with that block, and a resource its contents.
"""

from __future__ import annotations

import stat
from base64 import b64encode
from os import PathLike
from typing import TYPE_CHECKING, ClassVar, Final

from msgspec import UNSET

from mcpgen.runtime.errors import UsageError
from mcpgen.runtime.limits import MAX_FRAME_BYTES
from mcpgen.runtime.protocol.argument_checks import check_texts, check_whole_numbers
from mcpgen.runtime.protocol.newest import models
from mcpgen.runtime.protocol.value_syntax import mime_type_fault

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["Audio", "File", "Image", "Media"]

# Base64 takes 4 bytes for 3. A client of mcpgen reads messages up to MAX_FRAME_BYTES, with 64 KiB for what is around.
MAX_MEDIA_BYTES: Final = (MAX_FRAME_BYTES - 64 * 1024) // 4 * 3

# The first bytes of common formats, each with its offset (https://mimesniff.spec.whatwg.org/, "Matching an image type
# pattern" and "Matching an audio or video type pattern"; RFC 9639, "Streamable format", for FLAC).
_SIGNATURES: Final = (
    (0, b"\x89PNG\r\n\x1a\n", "image/png"),
    (0, b"\xff\xd8\xff", "image/jpeg"),
    (0, b"GIF8", "image/gif"),
    (8, b"WEBPVP", "image/webp"),
    (0, b"BM", "image/bmp"),
    (8, b"WAVE", "audio/wav"),
    (0, b"ID3", "audio/mpeg"),
    (0, b"OggS\x00", "audio/ogg"),
    (0, b"fLaC", "audio/flac"),
)

# `mimetypes` has no entry for these, or a name with `x-` in some versions of Python.
_OF_FORMAT: Final = {
    "wav": "audio/wav",
    "ogg": "audio/ogg",
    "flac": "audio/flac",
    "m4a": "audio/mp4",
    "webp": "image/webp",
}


class Media:
    """Bytes with a MIME type, which become a content block, a prompt message or the contents of a resource.

    Attributes:
        data: The bytes.
        mime_type: Their MIME type.
        name: The file name, without folders; None if bytes were given without a name.
    """

    _kind: ClassVar[str] = ""  # the first part of the MIME type; empty for any
    _default: ClassVar[str | None] = None  # the MIME type if it cannot be found

    def __init__(  # noqa: PLR0913 (where the bytes are, and what they are, each by its name)
        self,
        path: str | PathLike[str] | bytes | None = None,
        *,
        data: bytes | None = None,
        format: str | None = None,  # noqa: A002 (the name that FastMCP and the official SDK have)
        mime_type: str | None = None,
        name: str | None = None,
        annotations: models.Annotations | None = None,
        max_bytes: int = MAX_MEDIA_BYTES,
    ) -> None:
        check_texts(format=format, mime_type=mime_type, name=name)
        check_whole_numbers(max_bytes=max_bytes)
        self._annotations = annotations
        given: object = data if path is None else path
        if (path is None) == (data is None):
            raise UsageError(
                f"{self._label} needs either a path or bytes; write {self._label}(path) or {self._label}(data=…)"
            )
        if isinstance(given, bytes):
            self.name: str | None = name
            self.data: bytes = given
        elif path is not None and isinstance(given, (str, PathLike)):
            from pathlib import Path  # noqa: PLC0415 (most servers send no media)

            self.name = name or Path(given).name
            self.data = _read(Path(given), max_bytes, self._label)
        else:
            expected = "`data` of {} must be" if path is None else "`path` of {} must be a path or"
            raise UsageError(f"{expected.format(self._label)} bytes, not {type(given).__name__}")
        self._check_size(max_bytes)
        self.mime_type: str = self._find_type(format, mime_type)

    def __repr__(self) -> str:
        named = "" if self.name is None else f"{self.name!r}, "
        return f"{self._label}({named}{len(self.data):,} bytes, {self.mime_type!r})"

    def to_block(self) -> models.ContentBlock:
        """Return the content block for a tool result or a prompt message."""
        raise NotImplementedError

    def to_contents(self, uri: str) -> models.TextResourceContents | models.BlobResourceContents:
        """Return the contents of the resource *uri*."""
        return models.BlobResourceContents(uri=uri, mime_type=self.mime_type, blob=b64encode(self.data).decode())

    @property
    def _label(self) -> str:
        return type(self).__name__

    def _check_size(self, max_bytes: int) -> None:
        if not self.data:
            raise UsageError(f"{self._label} is empty: {self.name or '`data`'} has no bytes")
        if len(self.data) > max_bytes:
            raise _too_large(self._label, self.name or "`data`", len(self.data), max_bytes)

    def _find_type(self, given_format: str | None, mime_type: str | None) -> str:
        """Return the MIME type: the given one, or else that of the name, or else that of the first bytes.

        Raises:
            UsageError: There is none, or it is not of the right kind.
        """
        found = mime_type or _of_format(given_format, self._kind) or _of_name(self.name) or _of_bytes(self.data)
        found = found or self._default
        if found is None:
            raise UsageError(
                f"the MIME type of {self._label} is unknown; set it, for example mime_type={self._kind + '/…'!r}"
            )
        if mime_type_fault(found):
            example = f"{self._kind or 'text'}/…"
            if not mime_type and given_format:
                known = {"image": "png", "audio": "wav"}.get(self._kind, "pdf")
                raise UsageError(
                    f"`format` of {self._label} is {given_format!r}; write one such as {known!r}, or "
                    f"mime_type={example!r}"
                )
            raise UsageError(f"`mime_type` of {self._label} is {found!r}; write one such as {example!r}")
        kind = found.partition("/")[0]
        if self._kind and kind != self._kind:
            fitting = {"image": Image, "audio": Audio}.get(kind, File)
            raise UsageError(
                f"{self.name or '`data`'} has the MIME type {found}, which {self._label} does not take; "
                f"use {fitting.__name__}"
            )
        return found


class Image(Media):
    """An image as the result of a tool, a prompt or a resource: ``return Image("chart.png")``.

    Args:
        path: The path of the file; or the bytes of the image.
        data: The bytes of the image, instead of a path.
        format: The format, such as ``png``. By default, it follows from the file name, or from the first bytes.
        mime_type: The MIME type, instead of a format.
        name: The file name; by default that of the path.
        annotations: For whom the image is, and how important it is.
        max_bytes: The size above which the image is refused. By default, about 3 MiB: as base64, that fits in the
            longest message that most clients read.

    Raises:
        UsageError: The image is empty, too large, or of an unknown type; or it is not an image.
        OSError: The file cannot be read.
    """

    _kind = "image"

    def to_block(self) -> models.ImageContent:
        """Return the content block for a tool result or a prompt message."""
        data = b64encode(self.data).decode()
        return models.ImageContent(data=data, mime_type=self.mime_type, annotations=self._annotations or UNSET)


class Audio(Media):
    """Audio as the result of a tool, a prompt or a resource: ``return Audio("answer.wav")``.

    Clients of 2024-11-05 get a blob, because that revision has no audio. The arguments and errors are those of `Image`.
    """

    _kind = "audio"

    def to_block(self) -> models.AudioContent:
        """Return the content block for a tool result or a prompt message."""
        data = b64encode(self.data).decode()
        return models.AudioContent(data=data, mime_type=self.mime_type, annotations=self._annotations or UNSET)


class File(Media):
    """A file of any type as the result of a tool, a prompt or a resource: ``return File("report.pdf")``.

    A tool or a prompt embeds it as a resource with the URI ``file:///`` and the name, without the folders of this
    machine. Text in UTF-8 is sent as text. The arguments are those of `Image`. A file of unknown type is
    ``application/octet-stream``.
    """

    _default = "application/octet-stream"

    def to_block(self) -> models.EmbeddedResource:
        """Return the content block for a tool result or a prompt message."""
        from urllib.parse import quote  # noqa: PLC0415 (most servers send no files)

        contents = self.to_contents(f"file:///{quote(self.name or 'data')}")
        return models.EmbeddedResource(resource=contents, annotations=self._annotations or UNSET)

    def to_contents(self, uri: str) -> models.TextResourceContents | models.BlobResourceContents:
        """Return the contents of the resource *uri*."""
        if self.mime_type.startswith("text/"):
            try:
                return models.TextResourceContents(uri=uri, mime_type=self.mime_type, text=self.data.decode())
            except UnicodeDecodeError:
                pass  # text in another encoding: the client gets its bytes
        return super().to_contents(uri)


def _read(path: Path, max_bytes: int, label: str) -> bytes:
    """Return the bytes of a regular file.

    Raises:
        UsageError: It is too large, or not a regular file.
        OSError: It cannot be read.
    """
    status = path.stat()
    if not stat.S_ISREG(status.st_mode):  # a pipe may never end, or never open
        raise UsageError(f"{label} cannot read {str(path)!r}: it is not a regular file")
    if status.st_size > max_bytes:
        raise _too_large(label, path.name, status.st_size, max_bytes)
    with path.open("rb") as file:
        return file.read(max_bytes + 1)  # it may have grown


def _too_large(label: str, name: str, size: int, max_bytes: int) -> UsageError:
    return UsageError(
        f"{label} is too large: {name} has {size:,} bytes, and `max_bytes` is {max_bytes:,}; in a tool or a prompt, "
        "return a ResourceLink; or raise `max_bytes` if your clients read longer messages"
    )


def _of_format(given: str | None, kind: str) -> str | None:
    """Return the MIME type of a format, such as ``png``."""
    if given is None:
        return None
    suffix = given.lower().lstrip(".")
    return _of_name(f"x.{suffix}") or f"{kind or 'application'}/{suffix}"


def _of_name(name: str | None) -> str | None:
    if name is None:
        return None
    import mimetypes  # noqa: PLC0415 (most servers send no media)

    return _OF_FORMAT.get(name.lower().rpartition(".")[2]) or mimetypes.guess_type(name, strict=False)[0]


def _of_bytes(data: bytes) -> str | None:
    found = (each for offset, start, each in _SIGNATURES if data.startswith(start, offset))
    return next(found, None)
