"""Everything that this program prints: text for people, one JSON object for programs, both in one place.

Owns both streams: what a terminal may get, what JSON looks like, the progress line, and what happens when the reader
has gone. Nothing reaches a stream except through here, so no control character of a peer ever does. Does not own the
words (``libintercom.texts``), the JSON shapes (``shapes``) nor exit statuses (``failures``).
"""

from __future__ import annotations

import json
import os
import sys

from libintercom.errors import IntercomError
from libintercom.printable import make_line, make_printable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import TextIO

PROGRAM = "intercomctl"
# The version of every JSON shape that this program prints; shapes only ever grow members.
JSON_VERSION = 1
# ECMA-48: back to the first column and erase the line. Written to terminals only, around the progress line.
ERASE_LINE = "\r\x1b[K"

# The descriptors of streams whose reader has gone.
_silenced: set[int] = set()


class OutputFailed(IntercomError):
    """A stream did not take what was printed, for another reason than that its reader left."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason

    def __str__(self) -> str:
        return f"cannot write the output: {self.reason}. What the command did is done."


def prepare() -> None:
    """Make both streams able to take any text: what an encoding lacks is shown as an escape."""
    # A stream is None when the program was started with it closed.
    sys.stdout = sys.stdout or open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 - open until the end
    sys.stderr = sys.stderr or open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 - open until the end
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]  # files at the start of a program


def say(text: str) -> None:
    """Print what was asked for, on stdout."""
    _write(sys.stdout, f"{make_printable(text)}\n")


def note(text: str) -> None:
    """Tell a person something beside what was asked for, on stderr."""
    # Further lines stand in from the margin: no text of a peer or a broker looks like a line of ours.
    _write(sys.stderr, f"{PROGRAM}: {make_printable(text)}".replace("\n", "\n  ") + "\n")


def emit(members: Mapping[str, object]) -> None:
    """Print one JSON object, with the version, on one line of stdout."""
    _write(sys.stdout, f"{json_line(members)}\n")


def json_line(members: Mapping[str, object]) -> str:
    """One JSON object, with the version, as a line of ASCII: harmless on a terminal, and a lone surrogate survives."""
    text = json.dumps({"version": JSON_VERSION, **members}, allow_nan=False)
    # The one control character that json.dumps leaves as it is.
    return text.replace("\x7f", "\\u007f")


def is_read() -> bool:
    """Whether somebody may still read stdout; False once its reader has gone."""
    return sys.stdout.fileno() not in _silenced


def show_progress(text: str) -> None:
    """Replace the progress line on a terminal's stderr, cut to its width; nothing anywhere else. Empty: erase it."""
    if sys.stderr.isatty():
        # One column less than there are: a full line would wrap and could not be erased.
        _write(sys.stderr, ERASE_LINE + _cut(make_line(text), _columns(sys.stderr) - 1))


def _cut(text: str, columns: int) -> str:
    """As much of a text as these columns hold; ideographs and emoji take two."""
    # Imported here: only a wait at a terminal needs the tables.
    from unicodedata import east_asian_width

    for index, character in enumerate(text):
        columns -= 2 if east_asian_width(character) in "WF" else 1
        if columns < 0:
            return text[:index]
    return text


def _columns(stream: TextIO) -> int:
    # A terminal that does not know its width (a serial line, a test) says 0.
    return os.get_terminal_size(stream.fileno()).columns or 80


def _write(stream: TextIO, text: str) -> None:
    try:
        stream.write(text)
        stream.flush()
    except BrokenPipeError:
        # The reader has what it wanted (`| head`); the exit status stays the command's.
        _silence(stream)
    except OSError as failure:
        raise lose(stream, failure) from None


def lose(stream: TextIO, failure: OSError) -> OutputFailed:
    """Give a stream up that did not take what was printed; the error to raise for it."""
    _silence(stream)
    return OutputFailed(failure.strerror or str(failure))


def _silence(stream: TextIO) -> None:
    """Let everything further go nowhere, also what the stream still holds and writes at the program's end."""
    silent = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silent, stream.fileno())
    os.close(silent)
    _silenced.add(stream.fileno())
