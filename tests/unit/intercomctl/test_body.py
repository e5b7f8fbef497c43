"""Bodies and attachments: exactly what was given, from one source, or a refusal before anything is sent."""

from __future__ import annotations

import io
import os
import sys

import pytest

from intercomctl import body
from intercomctl.failures import InvalidUsage
from libintercom.errors import TooLarge
from libintercom.wire.frames import MAX_FRAME_BYTES


class Stdin(io.TextIOWrapper):
    """Standard input with some bytes, as a terminal or not."""

    def __init__(self, raw=b"", *, is_terminal=False):
        super().__init__(io.BytesIO(raw), encoding="utf-8")
        self.is_terminal = is_terminal

    def isatty(self):
        return self.is_terminal


def read(text=None, *, is_stdin=False, body_file=None, has_attachments=False):
    return body.read_text(text, is_stdin=is_stdin, body_file=body_file, has_attachments=has_attachments)


def test_the_argument_is_taken_as_it_is():
    assert read(" two\nlines \n") == " two\nlines \n"
    assert read("") == ""


def test_bytes_of_the_command_line_that_are_no_text_are_replaced():
    assert read(os.fsdecode(b"a\xffb")) == "a\ufffdb"


def test_what_another_encoding_of_the_locale_could_read_stays(monkeypatch):
    monkeypatch.setattr(os, "fsencode", lambda text: text.encode("iso8859-1", "surrogateescape"))
    assert read("M\u00f6we") == "M\u00f6we"


def test_standard_input_and_files_are_taken_to_the_byte(monkeypatch, tmp_path):
    raw = "häl\r\nlo \n\n".encode()
    monkeypatch.setattr(sys, "stdin", Stdin(raw))
    file = tmp_path / "body.txt"
    file.write_bytes(raw)
    assert read(is_stdin=True) == read(body_file=str(file)) == "häl\r\nlo \n\n"


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"text": "a", "is_stdin": True}, "TEXT and --stdin"),
        ({"text": "", "body_file": "f"}, "TEXT and --body-file"),
        ({"is_stdin": True, "body_file": "f"}, "--stdin and --body-file"),
    ],
)
def test_two_sources_are_refused(given, named):
    with pytest.raises(InvalidUsage, match=named):
        read(**given)


def test_without_a_source_an_attachment_stands_for_the_text():
    assert read(has_attachments=True) is None


@pytest.mark.parametrize(("stdin", "stderr"), [(False, False), (True, False), (False, True)])
def test_without_a_source_and_a_terminal_on_both_ends_nothing_is_asked(monkeypatch, stdin, stderr):
    monkeypatch.setattr(sys, "stdin", Stdin(is_terminal=stdin))
    monkeypatch.setattr(sys, "stderr", Stdin(is_terminal=stderr))
    with pytest.raises(InvalidUsage, match="no text"):
        read()


@pytest.mark.parametrize("source", ["stdin", "file"])
def test_what_is_no_text_is_refused_with_its_place(monkeypatch, tmp_path, source):
    monkeypatch.setattr(sys, "stdin", Stdin(b"abc\xff"))
    (tmp_path / "x").write_bytes(b"abc\xff")
    with pytest.raises(InvalidUsage, match=r"not UTF-8 text \(byte 3\)"):
        read(is_stdin=True) if source == "stdin" else read(body_file=str(tmp_path / "x"))


def test_what_cannot_fit_a_message_is_refused_before_it_is_read_whole(monkeypatch):
    monkeypatch.setattr(sys, "stdin", Stdin(b"a" * (MAX_FRAME_BYTES + 10)))
    with pytest.raises(TooLarge) as refused:
        read(is_stdin=True)
    assert refused.value.limit_bytes == MAX_FRAME_BYTES


def test_a_missing_file_is_named():
    with pytest.raises(InvalidUsage, match=r"cannot read /nonexistent/f: No such file.* Nothing was sent"):
        read(body_file="/nonexistent/f")


@pytest.mark.parametrize(
    ("suffix", "kind"), [("", "file"), (":file", "file"), (":snippet", "snippet"), (":context", "context")]
)
def test_an_attachment_is_a_file_unless_its_type_is_said(tmp_path, suffix, kind):
    path = tmp_path / "a:b.py"
    path.write_text("x = 1\n", encoding="utf-8")
    (attachment,) = body.read_attachments([f"{path}{suffix}"])
    assert (attachment.type, attachment.name, attachment.content) == (kind, "a:b.py", "x = 1\n")


def test_a_colon_that_names_no_type_belongs_to_the_file(tmp_path):
    path = tmp_path / "notes:image"
    path.write_text("n", encoding="utf-8")
    (attachment,) = body.read_attachments([str(path)])
    assert (attachment.type, attachment.name) == ("file", "notes:image")


def test_a_hostile_file_name_becomes_a_label(tmp_path):
    path = os.fsencode(tmp_path) + b"/a\x1b[31m\xff"
    with open(path, "w", encoding="utf-8") as file:
        file.write("n")
    (attachment,) = body.read_attachments([os.fsdecode(path)])
    assert attachment.name == "a\ufffd[31m\ufffd"


def at_a_terminal(monkeypatch, script):
    monkeypatch.setattr(sys, "stdin", Stdin(is_terminal=True))
    monkeypatch.setattr(sys, "stderr", Stdin(is_terminal=True))
    monkeypatch.delenv("VISUAL", raising=False)
    monkeypatch.setenv("EDITOR", script)


def editor(tmp_path, line):
    """A program that is given the file's path."""
    path = tmp_path / "editor"
    path.write_text(f'#!/bin/sh\nprintf %s "$1" > {tmp_path}/path\n{line}\n', encoding="utf-8")
    path.chmod(0o700)
    return str(path)


def edited_path(tmp_path):
    return (tmp_path / "path").read_text(encoding="utf-8")


def test_at_a_terminal_the_editor_is_asked(monkeypatch, tmp_path):
    at_a_terminal(monkeypatch, editor(tmp_path, 'printf "hello\\nyou\\n\\n" > "$1"'))
    assert read() == "hello\nyou"
    assert not os.path.exists(edited_path(tmp_path))


@pytest.mark.parametrize(
    ("line", "reason"), [("exit 3", "ended with status 3. Nothing was sent"), ("true", "the text is empty")]
)
def test_an_editor_that_gives_no_text_sends_nothing(monkeypatch, tmp_path, line, reason):
    at_a_terminal(monkeypatch, editor(tmp_path, line))
    with pytest.raises(InvalidUsage, match=reason):
        read()
    assert not os.path.exists(edited_path(tmp_path))


def test_a_missing_editor_is_named(monkeypatch):
    at_a_terminal(monkeypatch, "/nonexistent/editor -w")
    with pytest.raises(InvalidUsage, match=r"cannot start the editor .*Set EDITOR"):
        read()


def test_an_editor_that_is_no_command_line_is_named(monkeypatch):
    at_a_terminal(monkeypatch, 'vi "')
    with pytest.raises(InvalidUsage, match=r"cannot read the editor's command line \(vi \"\)"):
        read()


def test_the_editors_file_is_private(monkeypatch, tmp_path):
    at_a_terminal(monkeypatch, editor(tmp_path, f'stat -c %a "$1" > {tmp_path}/mode; echo x > "$1"'))
    read()
    assert (tmp_path / "mode").read_text(encoding="utf-8").strip() == "600"
