"""What a message says: from the command line, standard input, files, or the editor.

Owns reading bodies and attachments, and the options for it that `send` and `ask` share. Does not own the value rules
of a message (``libintercom.drafts``), which are checked before anything is sent.
"""

from __future__ import annotations

import os
import sys

from intercomctl.failures import InvalidUsage
from intercomctl.options import argument, flag, option, options
from libintercom.drafts import draft_message
from libintercom.errors import TooLarge
from libintercom.wire.frames import MAX_FRAME_BYTES
from libintercom.wire.messages import ATTACHMENT_TYPES, Attachment
from libintercom.wire.values import scrub_label

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from libintercom.drafts import SendOptions

TEXT = argument(
    "text",
    "The text. Other users of this machine can see it there; --stdin hides it.",
    metavar="[TEXT]",
    is_required=False,
)
STDIN = flag("--stdin", "Read the text from standard input.", name="is_stdin")
BODY_FILE = option("--body-file", "Read the text from a file.", metavar="FILE")
ATTACH = options(
    "--attach",
    "Attach a text file; a colon and one of snippet, file, context after its name says as what (default: file). "
    "May be said several times.",
    name="attached",
    metavar="FILE[:TYPE]",
)
PARAMETERS = (TEXT, STDIN, BODY_FILE, ATTACH)


class BodyTooLarge(TooLarge):
    """A text or an attachment that no message can hold. It is not read whole, so only the limit is known exactly."""

    def __init__(self, source: str) -> None:
        super().__init__(MAX_FRAME_BYTES + 1, MAX_FRAME_BYTES)
        self.source = source

    def __str__(self) -> str:
        return f"{self.source} is over {self.limit_bytes} bytes, the most that a message can hold. Nothing was sent."


# Said in the help of every command that takes a body.
VISIBILITY = (
    "Every user of this machine can see the command lines of running programs, TEXT included. Use --stdin or "
    "--body-file for what is not meant for them."
)
DEFAULT_TYPE = "file"
# What `git commit` falls back to as well: POSIX has it.
DEFAULT_EDITOR = "vi"


def read_text(text: str | None, *, is_stdin: bool, body_file: str | None, has_attachments: bool) -> str | None:
    """The text of a message, exactly as given; None when attachments stand for it.

    Raises:
        InvalidUsage: more than one source, none at all, or one that cannot be read as UTF-8 text.
        TooLarge: it cannot fit a message.

    """
    sources = {"TEXT": text is not None, "--stdin": is_stdin, "--body-file": bool(body_file)}
    given = [name for name, is_given in sources.items() if is_given]
    if len(given) > 1:
        raise InvalidUsage(f"{' and '.join(given)} are given; the text comes from one of them.")
    if text is not None:
        return _read_word(text)
    if is_stdin:
        return _decode(_read_input(), "standard input")
    if body_file:
        return _read_file(body_file)
    if has_attachments:
        return None
    # It is None when the program was started with it closed.
    if sys.stdin is not None and sys.stdin.isatty() and sys.stderr.isatty():
        return _edit()
    raise InvalidUsage("there is no text. Give TEXT, --stdin or --body-file, or attach a file.")


def read_attachments(given: Sequence[str]) -> tuple[Attachment, ...]:
    """The attachments that ``FILE`` and ``FILE:TYPE`` stand for.

    Raises:
        InvalidUsage: a file that cannot be read as UTF-8 text.
        TooLarge: it cannot fit a message.

    """
    return tuple(_read_attachment(text) for text in given)


def check(text: str | None, options: SendOptions) -> None:
    """Check a message against the value rules before a broker is even looked for.

    Raises:
        InvalidMessage: it breaks one; the reason names it.

    """
    draft_message(options.get("message_id") or "", 0, text, options)


def _read_attachment(text: str) -> Attachment:
    path, _, kind = text.rpartition(":")
    if kind not in ATTACHMENT_TYPES or not path:
        path, kind = text, DEFAULT_TYPE
    name = scrub_label(os.fsencode(os.path.basename(path)).decode("utf-8", "replace"))
    return Attachment(type=kind, name=name, content=_read_file(path))


def _read_word(text: str) -> str:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        # Bytes that the locale does not know arrive as lone surrogates: UTF-8 all the same, or what no peer can print.
        return os.fsencode(text).decode("utf-8", "replace")
    return text


def _read_input() -> bytes:
    try:
        if sys.stdin is None:
            raise InvalidUsage("standard input is closed. Nothing was sent.")
        return sys.stdin.buffer.read(MAX_FRAME_BYTES + 1)
    except OSError as failure:
        raise InvalidUsage(f"cannot read standard input: {failure.strerror}. Nothing was sent.") from None


def _read_file(path: str) -> str:
    try:
        with open(path, "rb") as file:
            # One byte more than fits tells a file that is too large without reading all of it.
            return _decode(file.read(MAX_FRAME_BYTES + 1), path)
    except OSError as failure:
        raise InvalidUsage(f"cannot read {path}: {failure.strerror}. Nothing was sent.") from None


def _decode(raw: bytes, source: str) -> str:
    if len(raw) > MAX_FRAME_BYTES:
        raise BodyTooLarge(source)
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as wrong:
        raise InvalidUsage(f"{source} is not UTF-8 text (byte {wrong.start}). Nothing was sent.") from None


def _edit() -> str:
    # Imported here: only a person at a terminal pays for them.
    import shlex
    import subprocess
    import tempfile

    editor = os.environ.get("VISUAL") or os.environ.get("EDITOR") or DEFAULT_EDITOR
    try:
        words = shlex.split(editor)
    except ValueError as wrong:
        raise InvalidUsage(f"cannot read the editor's command line ({editor}): {wrong}. Set EDITOR.") from None
    descriptor, path = tempfile.mkstemp(prefix="intercom-", suffix=".txt")
    os.close(descriptor)
    try:
        command = [*words, path]
        status = subprocess.run(command, check=False).returncode  # noqa: S603 - the user's own choice
        if status:
            raise InvalidUsage(f"the editor ({editor}) ended with status {status}. Nothing was sent.")
        text = _read_file(path).rstrip("\n")
    except OSError as failure:
        reason = f"cannot start the editor ({editor}): {failure.strerror}. Set EDITOR, or give TEXT."
        raise InvalidUsage(reason) from None
    finally:
        os.unlink(path)
    if not text.strip():
        raise InvalidUsage("the text is empty. Nothing was sent.")
    return text
