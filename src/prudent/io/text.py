"""Open a text file, whatever its compression and encoding, and refuse what is none."""

from __future__ import annotations

import atexit
import codecs
import gzip
import os
import sys
import tempfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO, cast

from prudent.io.errors import TableError, closest, shown

CHUNK = 1 << 20
LONGEST_PATH = 1000
# Tables that have names of their own, see `prudent.datasets`.
BUNDLED_NAMES = ("breast_cancer", "digits", "iris", "wine")
GZIP = b"\x1f\x8b"
# First bytes of files that people mistake for tables.
SIGNATURES = {
    b"\x89PNG": "a PNG file",
    b"\xff\xd8\xff": "a JPEG file",
    b"%PDF": "a PDF file",
    b"PK\x03\x04": "an Excel file",
    b"\xd0\xcf\x11\xe0": "an old Excel file",
    b"\x89HDF": "an HDF5 file",
    b"\x93NUMPY": "a NumPy file",
    b"\x80\x04\x95": "a pickle file",
}
BYTE_ORDER_MARKS = {
    codecs.BOM_UTF8: "utf-8",
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}


@dataclass(frozen=True)
class TextSource:
    """UTF-8 text that can be read from its start again and again.

    Attributes
    ----------
    name : str
        What the user calls it.
    reopen : callable
        Returns a seekable binary stream at the start of the text.
    """

    name: str
    reopen: Callable[[], BinaryIO]

    @contextmanager
    def open(self, start: int = 0) -> Iterator[BinaryIO]:
        """Open at a byte; damaged compression is a `TableError`."""
        try:
            with self.reopen() as stream:
                stream.seek(start)
                yield stream
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise TableError(
                f"{self.name} is damaged: its gzip data end early or fail their "
                "checksum. Copy the file again."
            ) from error

    def chunks(self) -> Iterator[bytes]:
        """Read through once, a megabyte at a time."""
        with self.open() as stream:
            while chunk := stream.read(CHUNK):
                yield chunk


def find_file(path: str) -> Path:
    """Return the path of a file that exists and may be read.

    Raises
    ------
    TableError
        If it is absent (naming a similar one), a directory, or not readable.
    """
    file = Path(path)
    try:
        if len(path) <= LONGEST_PATH and file.is_dir():
            raise TableError(f"{path} is a directory, not a table. Name a file in it.")
        with file.open("rb") as stream:
            if not stream.read(1):
                raise TableError(f"file is empty: {path}.")
    except PermissionError as error:
        raise TableError(
            f"no permission to read {path}. Change its mode or copy it."
        ) from error
    except OSError as error:
        if len(path) > LONGEST_PATH:
            raise TableError(
                f"file not found: {shown(path)}, a path of {len(path)} characters. "
                "Check the path."
            ) from error
        siblings = (
            [p.name for p in file.parent.iterdir()] if file.parent.is_dir() else []
        )
        similar = closest(file.name, [*siblings, *BUNDLED_NAMES])
        raise TableError(
            f"file not found: {path}."
            + (f" Similar here: {similar}" if similar else " Check the path.")
        ) from error
    return file


def open_text(path: str, encoding: str | None = None) -> TextSource:
    """Open a text file, or standard input for `-`, as UTF-8.

    Plain UTF-8 files are streamed from the disk; gzip is recognised by its first
    bytes; any other encoding (named, or told by a byte order mark) is transcoded.

    Parameters
    ----------
    path : str
        A path, or "-" for standard input.
    encoding : str, default=None
        Name of the encoding; None means UTF-8 unless a byte order mark says else.

    Raises
    ------
    TableError
        If there is no such file, it is empty, or it is not text.
    """
    source = _from_standard_input() if path == "-" else _from_file(find_file(path))
    first = _first_bytes(source)
    if not first:
        raise TableError(f"file is empty: {source.name}.")
    for signature, kind in SIGNATURES.items():
        if first.startswith(signature):
            raise TableError(
                f"{source.name} looks like {kind}, not a table. "
                "Open it where it came from and export to CSV or parquet"
            )
    for mark, marked in BYTE_ORDER_MARKS.items():
        if first.startswith(mark):
            encoding = marked
            break
    return _transcoded(source, encoding or "utf-8")


def _from_standard_input() -> TextSource:
    received = iter(lambda: sys.stdin.buffer.read(CHUNK), b"")
    return replace(_from_file(_spooled(received)), name="standard input")


def _from_file(file: Path) -> TextSource:
    plain = TextSource(str(file), lambda: cast(BinaryIO, file.open("rb")))
    if not _first_bytes(plain).startswith(GZIP):
        return plain
    return TextSource(str(file), lambda: cast(BinaryIO, gzip.open(file)))


def _first_bytes(source: TextSource) -> bytes:
    with source.open() as stream:
        return stream.read(8)


def _transcoded(source: TextSource, encoding: str) -> TextSource:
    try:
        if codecs.lookup(encoding).name == "utf-8":
            return source
        decoded = codecs.iterdecode(source.chunks(), encoding)
        return replace(
            _from_file(_spooled(text.encode() for text in decoded)), name=source.name
        )
    except LookupError as error:
        raise TableError(
            f"unknown encoding {shown(encoding)}. Try --encoding latin-1 or utf-8."
        ) from error
    except UnicodeDecodeError as error:
        raise TableError(
            f"{source.name} is not valid {encoding} ({error.reason}). "
            "Try another --encoding."
        ) from error


def _spooled(chunks: Iterable[bytes]) -> Path:
    """Keep what can be read only once in a file, until the process ends."""
    handle, name = tempfile.mkstemp(prefix="prudent-")
    atexit.register(Path(name).unlink, missing_ok=True)
    with os.fdopen(handle, "wb") as file:
        file.writelines(chunks)
    return Path(name)
