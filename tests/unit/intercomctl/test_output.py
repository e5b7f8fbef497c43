"""What reaches a stream: never a control character of a peer, whatever is printed and wherever."""

from __future__ import annotations

import fcntl
import io
import json
import os
import pty
import struct
import sys
import termios

import pytest

from intercomctl import output

# One of each kind that acts on a terminal, hides from a reader, or cannot be encoded.
HOSTILE = "a\x1b[31mb\x1b]52;c;cm0=\x07c\x9b1md\u202ee\U000e0041f\ud83dg\x7fh\u2028i\u200bj"
MARKUP = "[red]x[/red] :warning: 100%% {0} \\u001b"


def unsafe(text, allowed="\n"):
    """The characters of ``text`` that a terminal must not get."""
    return [c for c in text if c not in allowed and (not c.isprintable() or 0x7F <= ord(c) < 0xA0)]


@pytest.fixture
def streams(capsys):
    """What was written to both streams so far, by name."""
    output.prepare()
    return lambda: dict(zip(("stdout", "stderr"), capsys.readouterr(), strict=True))


@pytest.mark.parametrize(("verb", "stream"), [(output.say, "stdout"), (output.note, "stderr")])
def test_hostile_text_is_shown_harmless(streams, verb, stream):
    verb(f"{HOSTILE}\nnext")
    shown = streams()[stream]
    assert not unsafe(shown)
    assert all(letter in shown for letter in "abcdefghij")
    # On stderr a further line stands in from the margin, where the program's own name begins each of its lines.
    assert shown.endswith("\nnext\n" if verb is output.say else "\n  next\n")


@pytest.mark.parametrize(("verb", "stream"), [(output.say, "stdout"), (output.note, "stderr")])
def test_markup_of_a_printing_library_means_nothing_here(streams, verb, stream):
    verb(MARKUP)
    assert MARKUP in streams()[stream]


def test_json_is_ascii_and_keeps_every_character(streams):
    output.emit({"text": HOSTILE})
    shown = streams()["stdout"]
    assert shown.isascii()
    assert not unsafe(shown)
    assert json.loads(shown) == {"version": 1, "text": HOSTILE}


def test_json_refuses_what_is_no_json():
    with pytest.raises(ValueError, match="not JSON compliant"):
        output.json_line({"number": float("nan")})


def test_a_poor_encoding_shows_escapes(monkeypatch):
    poor = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr(sys, "stdout", poor)
    output.prepare()
    output.say("häh")
    poor.flush()
    assert poor.buffer.getvalue() == b"h\\xe4h\n"


def test_a_closed_stream_takes_everything(monkeypatch):
    with monkeypatch.context() as closed:
        closed.setattr(sys, "stdout", None)
        output.prepare()
        output.say("x")
        sys.stdout.close()


def test_a_reader_that_left_ends_nothing(monkeypatch):
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w", encoding="utf-8") as stream:
        monkeypatch.setattr(sys, "stdout", stream)
        output.say("x")
        output.say("y")


def test_a_full_disk_is_an_error_with_its_reason(monkeypatch):
    with open("/dev/full", "w", encoding="utf-8") as full:
        monkeypatch.setattr(sys, "stdout", full)
        with pytest.raises(output.OutputFailed, match="No space left"):
            output.say("x")
        # Once is enough: closing it writes what it still holds.
        output.say("y")


@pytest.fixture
def terminal(monkeypatch):
    """A pseudo-terminal for stderr: its other end, and the stream."""
    master, slave = pty.openpty()
    with os.fdopen(slave, "w", encoding="utf-8") as stream:
        yield master, stream
    os.close(master)


@pytest.mark.parametrize("columns", [80, 160])
def test_the_progress_line_fits_the_terminal_and_is_harmless(monkeypatch, terminal, columns):
    master, stream = terminal
    fcntl.ioctl(stream, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    monkeypatch.setattr(sys, "stderr", stream)
    output.show_progress(HOSTILE + "\n" + "x" * 400)
    shown = os.read(master, 65536).decode().removeprefix(output.ERASE_LINE)
    assert len(shown) == columns - 1
    assert not unsafe(shown, allowed="")
    output.show_progress("")
    assert os.read(master, 65536).decode() == output.ERASE_LINE


def test_wide_characters_take_two_columns_of_the_progress_line(monkeypatch, terminal):
    master, stream = terminal
    fcntl.ioctl(stream, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    monkeypatch.setattr(sys, "stderr", stream)
    output.show_progress("査" * 100)
    assert os.read(master, 65536).decode() == output.ERASE_LINE + "査" * 39


def test_a_pipe_gets_no_progress(streams):
    output.show_progress("waiting")
    assert not streams()["stderr"]
