"""`intercomctl reply`: answer a question that waits, in the name of the session that was asked.

Owns the command. Which question a reply means is the session's to say; a live one sends it itself.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from intercomctl import body, failures, joining, output, owning, shapes
from intercomctl.options import AS_NAME, JSON, SESSION_ID, Command, option
from libintercom import texts
from libintercom.errors import IntercomError
from libintercom.identity import make_uuid
from libintercom.outcomes import Outcome
from libintercom.wire.record import parse_record

if TYPE_CHECKING:
    from libintercom.session.journal import JournalBusy


def run(
    text: str | None,
    body_file: str | None,
    attached: tuple[str, ...],
    reply_to: str | None,
    to: str | None,
    as_name: str | None,
    session_id: str | None,
    *,
    is_stdin: bool,
    as_json: bool,
) -> int:
    """Reply, and say what is known of it."""
    message_id = make_uuid()
    try:
        said = body.read_text(text, is_stdin=is_stdin, body_file=body_file, has_attachments=False) or ""
        attachments = body.read_attachments(attached)
        body.check(said, {"message_id": message_id, "attachments": attachments})
        native_id = owning.require_native(as_name, session_id)
        held = owning.open_journal(native_id)
        if isinstance(held, Exception):
            outcome = _ask_holder(held, native_id, as_name, said, reply_to, to, has_attachments=bool(attachments))
        else:
            held.close()
            outcome = asyncio.run(_reply(native_id, as_name, said, reply_to, to, message_id, attachments))
    except (IntercomError, KeyboardInterrupt) as failure:
        return failures.tell_not_sent(message_id, failure, is_json=as_json)
    return _tell(outcome, reply_to or to or "the asker", as_json=as_json)
