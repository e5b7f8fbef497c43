"""The broker's log: one JSON object a line in ``broker.log``, capped and rotated (wire.md 14.15).

Owns the file, its form and what may never be in it: bodies. A record holds types, ids, sizes, reasons and hashes; text
is clipped, and everything but printable ASCII is escaped, so that no record can speak to a terminal. Does not own what
is worth a record (the core, ``__main__``). A record that cannot be written is counted, and never an error.

structlog takes longer to load than the rest of the broker, so records are kept until ``load`` is called, which happens
when the broker has nothing else to do, or when one is urgent.
"""

from __future__ import annotations

import dataclasses
import hashlib
import os
import stat
import sys
import time
import traceback
from typing import TYPE_CHECKING, Any, cast

from libintercom.wire.record import Record

if TYPE_CHECKING:
    from collections.abc import Callable, MutableMapping
    from types import ModuleType

    # Level, what, time and parts make a line.
    Render = Callable[[str, str, str, dict[str, Any]], str]

LEVELS = ("debug", "info", "warning", "error")
# Kept of any text in a record: enough for a reason or a path, too little for a message.
_MAX_CHARS = 300
_MAX_ITEMS = 16
# The innermost frames of a bug's traceback.
_MAX_FRAMES = 12
# Records kept before structlog is there; a start has a handful.
_MAX_EARLY = 256
_MS_PER_S, _NS_PER_MS = 1000, 1_000_000
# Errors whose text names code and never carries a value from a message.
_PLAIN_ERRORS = (TypeError, AttributeError, NameError, IndexError, ZeroDivisionError, OSError, RecursionError)
_OPEN_FLAGS = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK


class BrokerLog:
    """The real edge behind ``intercomd.ports.Log``. One old file is kept beside ``path``, with ``.1`` at its end."""

    def __init__(self, path: str, *, max_bytes: int, level: str = "info") -> None:
        self._rank = LEVELS.index(level)
        self._file = _LogFile(path, max_bytes)
        self._early: list[tuple[str, str, str, dict[str, Any]]] = []
        self._render: Render | None = None

    def write(self, level: str, what: str, parts: dict[str, Any]) -> None:
        """One record, if its level is wanted."""
        if LEVELS.index(level) < self._rank:
            return
        record = (level, what, _utc(time.time_ns() // _NS_PER_MS), {name: clean(part) for name, part in parts.items()})
        if self._render is not None:
            self._file.append(self._render(*record))
            return
        self._early.append(record)
        if level == "error" or len(self._early) >= _MAX_EARLY:
            self.load()
        if len(self._early) >= _MAX_EARLY:
            del self._early[0]
            self._file.lose()

    def report_bug(self, error: BaseException, event: object) -> None:
        """A bug, with the event that caused it; where it happened, but no value that it happened to."""
        parts = {"error": type(error).__name__, "where": _places(error), "event": summarize(event)}
        text = str(error)
        if isinstance(error, _PLAIN_ERRORS):
            parts["text"] = text
        else:
            parts["text_sha256"] = hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:_MAX_ITEMS]
        self.write("error", "bug", parts)

    def set_level(self, level: str) -> None:
        """Write records of this level and above from now on."""
        self._rank = LEVELS.index(level)

    def load(self) -> None:
        """Load what renders records, and write those that were kept. Harmless when repeated."""
        if self._render is not None:
            return
        try:
            self._render = _make_renderer()
        except (ImportError, OSError):
            # No descriptor to read it with, or its files are being replaced: a later record tries again.
            return
        early, self._early = self._early, []
        for record in early:
            self._file.append(self._render(*record))

    def close(self) -> None:
        """Write what was kept, and close the file."""
        if self._early:
            self.load()
        self._file.close()


class _LogFile:
    """Appending whole lines to a file that is ours, private, and no larger than its cap."""

    def __init__(self, path: str, max_bytes: int) -> None:
        self._path, self._max_bytes = path, max_bytes
        self._fd, self._size_bytes = -1, 0
        self._mark = (0, 0)
        self._lost = 0

    def append(self, line: str) -> None:
        # ASCII but for DEL, which JSON leaves as it is.
        text = line.replace("\x7f", "\\u007f").encode("ascii", "backslashreplace") + b"\n"
        raw = self._say_lost() + text
        try:
            self._make_room(len(raw))
            self._write(raw)
        except OSError:
            # A full disk or a lost directory must not end the broker; the next record says how many are missing.
            self.lose()
            self.close()
        else:
            self._lost = 0

    def lose(self) -> None:
        """A record will not be written; the next one says so."""
        self._lost += 1

    def close(self) -> None:
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)

    def _say_lost(self) -> bytes:
        return b'{"level":"warning","what":"log records lost","count":%d}\n' % self._lost if self._lost else b""

    def _write(self, raw: bytes) -> None:
        written = os.write(self._fd, raw)
        self._size_bytes += written
        if written < len(raw):
            # Half a record would spoil the next one too.
            os.ftruncate(self._fd, os.fstat(self._fd).st_size - written)
            raise OSError(f"{written} of {len(raw)} bytes were written; is the disk full?")

    def _make_room(self, size_bytes: int) -> None:
        if not self._is_in_place():
            self.close()
            self._open()
        if self._size_bytes and self._size_bytes + size_bytes > self._max_bytes:
            self._rotate()

    def _is_in_place(self) -> bool:
        """Whether the path still leads to the open file: a cleaner may have taken it, or the whole directory."""
        if self._fd < 0:
            return False
        seen = os.lstat(self._path) if os.path.lexists(self._path) else None
        return seen is not None and (seen.st_dev, seen.st_ino) == self._mark

    def _rotate(self) -> None:
        try:
            os.replace(self._path, f"{self._path}.1")
        except OSError:
            # Something that is no file has the name, or there is no room for it: the cap counts more than the past.
            os.ftruncate(self._fd, 0)
            self._size_bytes = 0
            return
        self.close()
        self._open()

    def _open(self) -> None:
        fd = os.open(self._path, _OPEN_FLAGS, 0o600)
        seen = os.fstat(fd)
        if not stat.S_ISREG(seen.st_mode) or seen.st_uid != os.getuid():
            os.close(fd)
            raise OSError(f"{self._path} is not an ordinary file of ours")
        self._fd, self._size_bytes, self._mark = fd, seen.st_size, (seen.st_dev, seen.st_ino)


def clean(part: object) -> object:
    """A part as a record may hold it: scalars, clipped texts, short lists; of anything else only its type."""
    if part is None or isinstance(part, bool | int | float):
        return part
    if isinstance(part, str):
        return part if len(part) <= _MAX_CHARS else f"{part[:_MAX_CHARS]}… ({len(part)} characters)"
    if isinstance(part, list | tuple):
        return [clean(item) for item in part[:_MAX_ITEMS]]
    if isinstance(part, dict):
        return {str(name): clean(item) for name, item in list(part.items())[:_MAX_ITEMS]}
    if isinstance(part, bytes):
        return f"{len(part)} bytes"
    return type(part).__name__


def summarize(event: object) -> dict[str, object]:
    """An event without the bodies in it: of a frame its type, of bytes their number."""
    if not dataclasses.is_dataclass(event):
        return {"type": type(event).__name__}
    values = {field.name: getattr(event, field.name) for field in dataclasses.fields(event)}
    frames = {name: getattr(value, "type", "?") for name, value in values.items() if isinstance(value, Record)}
    return {"type": type(event).__name__, **values, **frames}


def _places(error: BaseException) -> list[str]:
    """Where an error came from, innermost last: file, line and function."""
    frames = traceback.extract_tb(error.__traceback__)[-_MAX_FRAMES:]
    return [f"{'/'.join(frame.filename.split('/')[-3:])}:{frame.lineno} {frame.name}" for frame in frames]


def _utc(at_ms: int) -> str:
    moment = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(at_ms // _MS_PER_S))
    return f"{moment}.{at_ms % _MS_PER_S:03d}Z"


def _make_renderer() -> Render:
    structlog = _load_structlog()
    renderer = structlog.processors.JSONRenderer(ensure_ascii=True)
    logger = structlog.wrap_logger(_Line(), processors=[_arrange, renderer], wrapper_class=structlog.BoundLogger)

    def render(level: str, what: str, at: str, parts: dict[str, Any]) -> str:
        return str(getattr(logger, level)(what, at=at, parts=parts))

    return render


def _load_structlog() -> ModuleType:
    """Load structlog without the terminal colours of its console: rich alone is two thirds of the time, and 4 MB."""
    before = sys.modules.get("rich")
    # None makes importing it fail, which structlog expects where it is not installed.
    sys.modules["rich"] = cast("ModuleType", None)
    try:
        import structlog  # imported here: see the module's docstring
    finally:
        if before is None:
            del sys.modules["rich"]
        else:
            sys.modules["rich"] = before
    return structlog


class _Line:
    """What structlog calls a logger: its result is the rendered line."""

    def debug(self, line: str) -> str:
        return line

    info = warning = error = debug


def _arrange(_logger: object, level: str, record: MutableMapping[str, Any]) -> dict[str, Any]:
    """The members of a record in their order; a part that has the name of one of them stands aside."""
    head = {"at": record["at"], "level": level, "what": record["event"]}
    return {**head, **{f"{name}_" if name in head else name: part for name, part in record["parts"].items()}}
