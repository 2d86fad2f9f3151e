"""Bytes in: files, compression and encodings, and how much memory may be taken."""

from __future__ import annotations

import atexit
import codecs
import gzip
import os
import sys
import tempfile
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, BinaryIO, cast

from prudent.core.validation import closest
from prudent.io.errors import NoFileError, TableError, shown

CHUNK = 1 << 20
LONGEST_PATH = 1000
# Tables that have names of their own, see `prudent.datasets`.
BUNDLED_NAMES = ("breast_cancer", "digits", "iris", "wine")
GZIP = b"\x1f\x8b"
# No table of so many bytes shrinks to so small a part of them: such a file is made to
# fill the memory of who opens it.
MUCH, MOST_SHRUNK = 1 << 28, 200
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
MEMINFO = Path("/proc/meminfo")
CGROUP = Path("/sys/fs/cgroup")


@dataclass(frozen=True)
class TextSource:
    """UTF-8 text in a file, that can be read from its start again and again."""

    name: str  # what the user calls it
    path: Path
    packed: bool  # by gzip

    @contextmanager
    def open(self, start: int = 0) -> Iterator[BinaryIO]:
        """Open at a byte; damaged compression is a `TableError`."""
        opened: Any = gzip.open if self.packed else Path.open
        try:
            with opened(self.path, "rb") as stream:
                stream.seek(start)
                yield cast(BinaryIO, stream)
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise TableError(
                f"{self.name} is damaged: its gzip data end early or fail their "
                "checksum. Copy the file again."
            ) from error

    def chunks(self) -> Iterator[bytes]:
        """Read through once, a megabyte at a time."""
        n_bytes, limit = 0, max(MUCH, MOST_SHRUNK * self.path.stat().st_size)
        with self.open() as stream:
            while chunk := stream.read(CHUNK):
                n_bytes += len(chunk)
                if self.packed and n_bytes > limit:
                    raise TableError(
                        f"{self.name} unpacks to more than {MOST_SHRUNK} times its "
                        "size, as no table does. Unpack it by gunzip if it is one."
                    )
                yield chunk


def find_file(path: str) -> Path:
    """Return the path of a file that exists, holds something, and may be read."""
    file = Path(path)
    try:
        if len(path) <= LONGEST_PATH and file.is_dir():
            raise TableError(f"{path} is a directory, not a table. Name a file in it.")
        if file.stat().st_size == 0 and file.is_file():
            raise TableError(f"file is empty: {path}.")
        if file.is_file():  # a pipe gives its bytes only once
            file.open("rb").close()
    except TableError:
        raise
    except PermissionError as error:
        raise TableError(
            f"no permission to read {path}. Change its mode or copy it."
        ) from error
    except (OSError, ValueError) as error:
        if len(path) > LONGEST_PATH:
            raise NoFileError(
                f"file not found: {shown(path)}, a path of {len(path)} characters. "
                "Check the path."
            ) from error
        raise NoFileError(
            f"file not found: {path}. {_similar(file) or 'Check the path.'}"
        ) from error
    return file


def _similar(file: Path) -> str | None:
    try:
        siblings = [p.name for p in file.parent.iterdir()]
    except (OSError, ValueError):
        siblings = []
    similar = closest(file.name, [*siblings, *BUNDLED_NAMES])
    return similar and f"Similar here: {similar}"


def open_text(path: str, encoding: str | None = None) -> TextSource:
    """Open a text file, or standard input for `-`, as UTF-8.

    Plain UTF-8 files are streamed from the disk; gzip is recognised by its first
    bytes; any other encoding (named, or told by a byte order mark) is transcoded.
    """
    if path == "-":
        name, file = "standard input", standard_input()
    else:
        name, file = path, find_file(path)
    if not file.is_file():
        with file.open("rb") as pipe:
            file = _spooled(iter(lambda: pipe.read(CHUNK), b""))
    with file.open("rb") as stream:
        source = TextSource(name, file, packed=stream.read(2) == GZIP)
    with source.open() as unpacked:
        first = unpacked.read(8)
    if not first:
        raise TableError(f"file is empty: {name}.")
    for signature, kind in SIGNATURES.items():
        if first.startswith(signature):
            raise TableError(
                f"{name} looks like {kind}, not a table. "
                "Open it where it came from and export to CSV or parquet"
            )
    marked = (e for mark, e in BYTE_ORDER_MARKS.items() if first.startswith(mark))
    return _transcoded(source, next(marked, encoding or "utf-8"))


def standard_input() -> Path:
    """What came on standard input, in a file: its bytes are read once, and kept."""
    return _received(sys.stdin)


@lru_cache(maxsize=1)
def _received(stream: Any) -> Path:
    return _spooled(iter(lambda: stream.buffer.read(CHUNK), b""))


def _transcoded(source: TextSource, encoding: str) -> TextSource:
    try:
        codec = codecs.lookup(encoding)
        if codec.name == "utf-8":
            return source
        if not codec._is_text_encoding:
            raise LookupError
        decoded = codecs.iterdecode(source.chunks(), encoding)
        file = _spooled(text.encode() for text in decoded)
        return TextSource(source.name, file, packed=False)
    except TableError:
        raise
    except UnicodeError as error:
        reason = getattr(error, "reason", error)
        raise TableError(
            f"{source.name} is not valid {encoding} ({reason}). Try another --encoding."
        ) from error
    except (LookupError, ValueError) as error:
        raise TableError(
            f"unknown encoding {shown(encoding)}. Try --encoding latin-1 or utf-8."
        ) from error


def _spooled(chunks: Iterable[bytes]) -> Path:
    """Keep what can be read only once in a file, until the process ends."""
    handle, name = tempfile.mkstemp(prefix="prudent-")
    atexit.register(Path(name).unlink, missing_ok=True)
    with os.fdopen(handle, "wb") as file:
        file.writelines(chunks)
    return Path(name)


def available_memory() -> int | None:
    """Bytes that can be taken without swapping; None where that is unknown.

    On Linux what the kernel calls available, and no more than a container may
    still take; elsewhere the free pages.
    """
    limits = []
    with suppress(OSError, LookupError):
        limits.append(_field(MEMINFO, "MemAvailable:") * 1024)
    with suppress(OSError, LookupError, ValueError):  # no such file, or no limit: "max"
        limit = int((CGROUP / "memory.max").read_text())
        used = int((CGROUP / "memory.current").read_text())
        # Pages of files that were read are given up when memory is asked for.
        limits.append(limit - used + _field(CGROUP / "memory.stat", "inactive_file"))
    if not limits:
        with suppress(AttributeError, OSError, ValueError):
            limits.append(os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    return min(limits, default=None)


def _field(path: Path, name: str) -> int:
    for line in path.read_text().splitlines():
        if line.startswith(f"{name} "):
            return int(line.split()[1])
    raise LookupError(f"{path} has no {name}")
