"""`intercomctl last`: a session's last response, read without waking it.

Owns the command and following pages. The words are ``libintercom.read_texts``'s.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from intercomctl import failures, joining, output, shapes
from intercomctl.options import AS_NAME, JSON, SESSION_ID, Command, argument, flag, option
from libintercom import read_texts
from libintercom.errors import EXIT_DONE, ReadFailed

if TYPE_CHECKING:
    from libintercom.client import Client
    from libintercom.wire.reads import Page

EMPTY = "empty_history"


def run(
    to: str,
    entry_id: str | None,
    offset: int,
    as_name: str | None,
    session_id: str | None,
    *,
    is_whole: bool,
    as_json: bool,
) -> int:
    """Read, and print the text alone; what else is known goes to stderr or into the JSON object."""
    if offset < 0:
        raise failures.InvalidUsage(f"--offset is {offset}; it takes the nextOffset that the page before told.")
    with joining.speak(as_name, session_id) as client:
        try:
            pages = _read(client, to, entry_id, offset, is_whole=is_whole)
        except ReadFailed as refused:
            return _tell_refused(to, refused, as_json=as_json)
    _tell(to, pages, as_json=as_json)
    return EXIT_DONE


def _read(client: Client, to: str, entry_id: str | None, offset: int, *, is_whole: bool) -> list[Page]:
    """The page asked for, with all that follow when the whole is wanted; all of one entry."""
    pages = [client.last(to, entry_id, offset)]
    while is_whole and pages[-1].next_offset is not None:
        pages.append(client.last(to, pages[-1].entry_id, pages[-1].next_offset))
    return pages


def _tell(to: str, pages: list[Page], *, as_json: bool) -> None:
    last = pages[-1]
    text = "".join(page.text for page in pages)
    if as_json:
        output.emit(shapes.page(pages[0], last, text))
        return
    output.say(text)
    if last.next_offset is not None:
        output.note(read_texts.following_text(to, last, read_texts.COMMAND_LAST_CALL))


def _tell_refused(to: str, refused: ReadFailed, *, as_json: bool) -> int:
    """An empty history is an answer: nothing was said yet."""
    output.note(read_texts.failed_read_text(to, refused.code, refused.reason))
    if as_json:
        output.emit({"code": refused.code, "reason": refused.reason})
    return EXIT_DONE if refused.code == EMPTY else refused.exit_status


COMMAND = Command(
    "last",
    run,
    "Print the last completed response of a session, without waking it.\n\n"
    "TO is a name, an ID, or at least 8 characters of an ID, as `intercomctl list` prints them. A long response comes "
    "in pages of 16384 UTF-16 code units; --all reads them to the end. A newer response does not take the place of one "
    "that is being read.\n\n"
    "Example: intercomctl last reviewer --all > response.md",
    argument("to", "Whose: a target from `intercomctl list`.", metavar="TO"),
    option("--entry-id", "Read this response, not the newest one.", metavar="ID"),
    option("--offset", "Where to begin: the nextOffset of the page before.", kind=int, default=0, metavar="N"),
    flag("--all", "Read to the end.", name="is_whole"),
    AS_NAME,
    SESSION_ID,
    JSON,
)
