"""`intercomctl reply`: answer a question that waits, in the name of the session that was asked.

Owns the command. Which question a reply means is the session's to say; a live one sends it itself.
"""

from __future__ import annotations

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
    from libintercom.wire.messages import Attachment


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
            # Imported here: an event loop takes as long to load as everything else together.
            import asyncio

            outcome = asyncio.run(_reply(native_id, as_name, said, reply_to, to, message_id, attachments))
    except (IntercomError, KeyboardInterrupt) as failure:
        return failures.tell_not_sent(message_id, failure, is_json=as_json)
    return _tell(outcome, to or "the asker", as_json=as_json)


def _ask_holder(
    busy: JournalBusy,
    native_id: str,
    as_name: str | None,
    text: str,
    reply_to: str | None,
    to: str | None,
    *,
    has_attachments: bool,
) -> Outcome:
    """Have the live session send it."""
    from libintercom.session import errands  # imported here: a session that is not live sends none

    if has_attachments:
        raise failures.InvalidUsage(
            "the session is live in another process, which takes a text only. Leave out --attach. Nothing was sent."
        )
    parts = {"text": text, "reply_to": reply_to or "", "to": to or ""}
    answer = owning.ask_holder(busy, native_id, as_name, errands.REPLY, **parts)
    outcome: Outcome = parse_record(Outcome, answer["outcome"])
    return outcome


async def _reply(
    native_id: str,
    as_name: str | None,
    text: str,
    reply_to: str | None,
    to: str | None,
    message_id: str,
    attachments: tuple[Attachment, ...],
) -> Outcome:
    """Be that session for as long as a reply takes; what else waits for it goes on waiting."""
    from libintercom.session.aio import AsyncSession  # imported here: it is heavy, and a live session needs none

    profile = joining.speaking_profile(as_name, native_id)
    async with await AsyncSession.join(profile, native_id=native_id) as session:
        return await session.reply(reply_to, text, to or "", message_id=message_id, attachments=attachments)


def _tell(outcome: Outcome, to: str, *, as_json: bool) -> int:
    if outcome.is_accepted and not as_json:
        output.say(texts.replied_text(to, outcome))
    elif not outcome.is_accepted:
        output.note(texts.failed_reply_text(outcome))
    if as_json:
        output.emit(shapes.outcome(outcome))
    return failures.status_of(outcome)


COMMAND = Command(
    "reply",
    run,
    "Reply to a question that waits for a session's answer.\n\n"
    "The session is the one that joined under --as NAME in this directory, or --session-id, or "
    "INTERCOM_NATIVE_SESSION_ID; it may be connected elsewhere or not at all. When several questions wait, --reply-to "
    "or --to says which one. `intercomctl pending` lists them.\n\n" + body.VISIBILITY + "\n\n"
    'Example: intercomctl reply --as reviewer "Port 8443."',
    *body.PARAMETERS,
    option("--reply-to", "The message ID of the question.", metavar="ID"),
    option("--to", "Whose question: the asker's name or ID.", metavar="SENDER"),
    AS_NAME,
    SESSION_ID,
    JSON,
)
