"""`intercomctl ask`: a question, and its reply.

Owns the command; the wait itself is beside it (``waiting``). Its rules are ``libintercom.asking``'s, the words
``libintercom.texts``'s.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from intercomctl import body, devicing, failures, joining, output, shapes
from intercomctl.options import AS_NAME, JSON, SESSION_ID, Command, argument, option
from libintercom import texts
from libintercom.asking import DEFAULT_TIMEOUT_S, MAX_TIMEOUT_S
from libintercom.errors import EXIT_INTERRUPTED, EXIT_NO_REPLY, IntercomError
from libintercom.identity import make_uuid
from libintercom.wire.values import MAX_KEEP_REPLY_MS

if TYPE_CHECKING:
    from libintercom.drafts import SendOptions
    from libintercom.outcomes import Answered

# A day, the longest that a broker keeps a reply.
MOST_KEPT_S = MAX_KEEP_REPLY_MS / 1000
# How a late reply is fetched.
FETCH_CALL = "intercomctl pending --mine"
# Passive input is read when its recipient is active anyway, so nobody would be made to reply to it.
DELIVERIES = ("steer", "queue")


def run(
    to: str,
    text: str | None,
    body_file: str | None,
    attached: tuple[str, ...],
    timeout_s: float,
    keep_s: float,
    delivery: str | None,
    message_id: str | None,
    as_name: str | None,
    session_id: str | None,
    *,
    is_stdin: bool,
    as_json: bool,
) -> int:
    """Ask, wait, and print the reply."""
    options: SendOptions = {"message_id": make_uuid() if message_id is None else message_id, "delivery": delivery}
    try:
        _check_timeout(timeout_s)
        _check_keeping(keep_s)
        options["attachments"] = body.read_attachments(attached)
        said = body.read_text(text, is_stdin=is_stdin, body_file=body_file, has_attachments=bool(attached))
        body.check(said, {**options, "expects_reply": True})
        target = devicing.aim(to)
        if target is not None:
            session = (as_name, session_id)
            return devicing.ask(target, session, said or "", timeout_s, options, as_json=as_json)
        profile = joining.speaking_profile(as_name, session_id)
        # Imported here: an event loop takes as long to load as everything else together.
        from intercomctl.commands.ask.waiting import Asked, ask

        answered = ask(profile, session_id, Asked(to, said or "", timeout_s, keep_s, options))
    except (IntercomError, KeyboardInterrupt) as failure:
        return failures.tell_not_sent(options["message_id"] or "", failure, is_json=as_json)
    return _tell(to, answered, timeout_s, as_json=as_json)


def _check_timeout(timeout_s: float) -> None:
    # Written so that "not a number" fails as well.
    if not 0 < timeout_s <= MAX_TIMEOUT_S:
        allowed = f"more than 0 and at most {MAX_TIMEOUT_S:g} seconds"
        raise failures.InvalidUsage(f"--timeout is {timeout_s:g}; it takes {allowed}.")


def _check_keeping(keep_s: float) -> None:
    # Written so that "not a number" fails as well.
    if not 0 <= keep_s <= MOST_KEPT_S:
        raise failures.InvalidUsage(f"--keep-reply is {keep_s:g}; it takes 0 to {MOST_KEPT_S:g} seconds.")


def _tell(to: str, answered: Answered, timeout_s: float, *, as_json: bool) -> int:
    told = shapes.outcome(answered.outcome)
    if answered.reply is not None:
        told["reply"] = shapes.reply(answered.reply)
        if not as_json:
            output.say(texts.reply_text(to, answered.reply))
    else:
        if answered.ended_by:
            told["endedBy"] = answered.ended_by
        call = FETCH_CALL if answered.reply_token else ""
        said = texts.failed_ask_text(to, answered, timeout_s, call)
        output.note(said + failures.hint_at_roster(answered.outcome))
        if answered.reply_token:
            told["isReplyKept"] = True
    if as_json:
        output.emit(told)
    if answered.ended_by == "cancelled":
        return EXIT_INTERRUPTED
    if answered.outcome.is_accepted and answered.reply is None:
        return EXIT_NO_REPLY
    return failures.status_of(answered.outcome)


COMMAND = Command(
    "ask",
    run,
    "Ask a session and wait for its reply.\n\n"
    "TO is a name, an ID, or at least 8 characters of an ID, as `intercomctl list` prints them; NAME@DEVICE is a main "
    "session on another device. The text is TEXT, or standard input, or a file; at a terminal without any of them the "
    "editor opens.\n\n"
    "When no reply comes in time, or the wait is interrupted, the question stands and a reply that comes later is "
    "kept: `intercomctl pending --mine` fetches it. With --keep-reply 0, and on another device, the question is "
    "withdrawn instead.\n\n"
    + body.VISIBILITY
    + "\n\n"
    'Example: intercomctl ask reviewer --timeout 600 --delivery steer "Which port does the API use?"',
    argument("to", "Whom: a target from `intercomctl list`.", metavar="TO"),
    *body.PARAMETERS,
    option(
        "--timeout",
        f"How many seconds to wait for the reply (default: {DEFAULT_TIMEOUT_S:g}).",
        name="timeout_s",
        kind=float,
        default=DEFAULT_TIMEOUT_S,
        metavar="SECONDS",
    ),
    option(
        "--keep-reply",
        f"How many seconds a reply is kept that comes too late (default: {MOST_KEPT_S:g}, a day).",
        name="keep_s",
        kind=float,
        default=MOST_KEPT_S,
        metavar="SECONDS",
    ),
    option(
        "--delivery",
        "Without it a busy recipient is asked and not waited for. steer reaches a busy recipient after its current "
        "tool call, queue at the end of its turn; both wait for the reply.",
        metavar="|".join(DELIVERIES),
        choices=DELIVERIES,
    ),
    option("--message-id", "The ID of the question; by default a fresh UUID.", metavar="ID"),
    AS_NAME,
    SESSION_ID,
    JSON,
)
