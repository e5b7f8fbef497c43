"""`intercomctl trace`: everything that is known here of one message.

Owns the command and the order in which it looks: the journals of this user's sessions, then the broker's dead letters
of the session that asks. Their words are ``libintercom.read_texts``'s; nobody is woken and nothing is changed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from intercomctl import joining, output
from intercomctl.options import AS_NAME, JSON, SESSION_ID, Command, argument
from libintercom import read_texts
from libintercom.errors import EXIT_DONE, EXIT_REFUSED, IntercomError
from libintercom.paths import find_places
from libintercom.session.entries import fold
from libintercom.session.receipts import make_receipt
from libintercom.wire.reads import ReadError
from libintercom.wire.record import dump_record

if TYPE_CHECKING:
    from typing import Any

    from libintercom.session.entries import Entry

    Found = dict[str, Any]


def run(message_id: str, as_name: str | None, session_id: str | None, *, as_json: bool) -> int:
    """Look, and print what was found; the exit status says whether anything was."""
    journals, unread = _look_into_journals(message_id)
    letters = _dead_letters(message_id, as_name, session_id)
    for path in unread:
        output.note(path)
    if as_json:
        told = {"messageId": message_id, "journals": journals, "unreadable": unread, "deadLetters": letters}
        output.emit(told)
    else:
        output.say(read_texts.trace_text(message_id, journals, letters or []))
    return EXIT_DONE if journals or letters else EXIT_REFUSED


def _look_into_journals(message_id: str) -> tuple[list[Found], list[str]]:
    """What each journal of this user has of it, and why one could not be read."""
    # Imported here: every other command does without SQLite.
    from libintercom.session.journal import JournalUnavailable, find_entries, list_journals

    found, unread = [], []
    for listed in list_journals(find_places().journals):
        try:
            entries = find_entries(listed.path, message_id)
        except JournalUnavailable as refusal:
            unread.append(str(refusal))
            continue
        if entries:
            found.append(_tell(listed.native_id, message_id, entries))
    return found, unread


def _tell(native_id: str, message_id: str, entries: list[Entry]) -> Found:
    """One journal's word: where the message stands there, its entries without its text, and the receipt it attests."""
    standing = fold(entries)
    first = standing.admitted if standing is not None else None
    root = native_id
    receipt = make_receipt(entries, root_session_id=root, message_id=message_id, session=native_id, root=root)
    return {
        "nativeId": native_id,
        "standing": "" if standing is None else standing.kind,
        "ask": "" if standing is None else standing.fact,
        "isAsk": standing is not None and standing.is_ask,
        "from": None if first is None else {name: first.body["from"].get(name) for name in ("id", "name", "cwd")},
        "entries": [{"kind": entry.kind, "atMs": entry.at_ms, "entryId": entry.entry_id} for entry in entries],
        "receipt": None if isinstance(receipt, ReadError) else dump_record(receipt),
    }


def _dead_letters(message_id: str, as_name: str | None, session_id: str | None) -> list[Found] | None:
    """What the broker has of the asking session's own dead letters; None when it could not be asked, and a note."""
    try:
        client = joining.speak(as_name, session_id, may_start=False)
    except IntercomError as failure:
        output.note(f"the broker was not asked: {failure}")
        return None
    with client:
        if not client.has_ext:
            output.note("the running broker is older than this program and keeps no dead letters.")
            return None
        letters = client.dead_letters().letters
    return [dump_record(letter) for letter in letters if letter.message_id == message_id]


COMMAND = Command(
    "trace",
    run,
    "Print everything that is known here of a message: where it stands in the journals of this user's sessions, and "
    "whether it became a dead letter.\n\n"
    "The broker tells a session's own dead letters only: --as or --session-id says whose. Texts are not printed. Exit "
    "status 1: nothing is known here, which proves neither that the message was never sent nor that it had no effect."
    "\n\n"
    "Example: intercomctl trace 0f7e6a1c-5f6e-4a53-9d3c-1c1f0a3c0f11 --as planner",
    argument("message_id", "The message.", metavar="MESSAGE-ID"),
    AS_NAME,
    SESSION_ID,
    JSON,
)
