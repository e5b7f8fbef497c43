"""`intercomctl receipt`: what a session's own journal observed of a message.

Owns the command. The facts are the session's, their words ``libintercom.read_texts``'s.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from intercomctl import failures, joining, output
from intercomctl.options import AS_NAME, JSON, SESSION_ID, Command, argument, option
from libintercom import read_texts
from libintercom.errors import EXIT_DONE, ReadFailed
from libintercom.targets import find_row

if TYPE_CHECKING:
    from libintercom.client import Client


def run(
    to: str, message_id: str, root: str | None, as_name: str | None, session_id: str | None, *, as_json: bool
) -> int:
    """Read the receipt, and print it."""
    with joining.speak(as_name, session_id, receipt_reads=True) as client:
        try:
            receipt = client.receipt(to, root or _root_of(client, to), message_id)
        except ReadFailed as refused:
            output.note(read_texts.failed_read_text(to, refused.code, refused.reason))
            if as_json:
                output.emit({"code": refused.code, "reason": refused.reason})
            return refused.exit_status
    if as_json:
        output.emit({"receipt": receipt})
    else:
        output.say(read_texts.receipt_text(to, receipt))
    return EXIT_DONE


def _root_of(client: Client, to: str) -> str:
    """The native root of a session in view; one that is not gets its refusal from the broker."""
    row = find_row(client.list_sessions().rows, to)
    if row is None:
        return to
    if row.root_session_id is None:
        raise failures.InvalidUsage(f'"{to}" does not say its native root; give it with --root.')
    return row.root_session_id


COMMAND = Command(
    "receipt",
    run,
    "Print what a session's own journal observed of a message, without waking it.\n\n"
    "Each line is something that happened; none says that anybody read or understood the message. No receipt proves "
    "neither that the message had no effect nor that it was never sent.\n\n"
    "Example: intercomctl receipt reviewer 0f7e6a1c-5f6e-4a53-9d3c-1c1f0a3c0f11",
    argument("to", "The session: a target from `intercomctl list`.", metavar="TO"),
    argument("message_id", "The message.", metavar="MESSAGE-ID"),
    option("--root", "The native root session that the message was for (default: the target's).", metavar="ID"),
    AS_NAME,
    SESSION_ID,
    JSON,
)
