"""`intercomctl send`: one message, and what became of it.

Owns the command. The outcome's words are ``libintercom.texts``'s.
"""

from __future__ import annotations

from intercomctl import body, failures, joining, output, shapes
from intercomctl.options import AS_NAME, JSON, SESSION_ID, Command, argument, option
from libintercom.errors import EXIT_INTERRUPTED, IntercomError
from libintercom.identity import make_uuid
from libintercom.outcomes import unknown
from libintercom.wire.messages import DELIVERIES, QUEUE_MODES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from libintercom.client import Client
    from libintercom.devices.naming import DeviceTarget
    from libintercom.drafts import SendOptions
    from libintercom.outcomes import Outcome


def run(
    to: str,
    text: str | None,
    body_file: str | None,
    attached: tuple[str, ...],
    delivery: str | None,
    queue_mode: str | None,
    thread_id: str | None,
    reply_to: str | None,
    message_id: str | None,
    as_name: str | None,
    session_id: str | None,
    *,
    is_stdin: bool,
    as_json: bool,
) -> int:
    """Send, and say what is known of it."""
    options: SendOptions = {
        "message_id": make_uuid() if message_id is None else message_id,
        "delivery": delivery,
        "queue_mode": queue_mode,
        "thread_id": thread_id,
        "reply_to": reply_to,
    }
    try:
        options["attachments"] = body.read_attachments(attached)
        said = body.read_text(text, is_stdin=is_stdin, body_file=body_file, has_attachments=bool(attached))
        body.check(said, options)
        target = _aim(to)
        if target is not None:
            # Imported here: an ordinary message knows nothing of other devices.
            from intercomctl import devicing

            # The answer to a question goes to who waits for it, which is a session of this device.
            asker_id = devicing.find_asker(to) if reply_to is not None else ""
            if asker_id:
                return _send(joining.speak(as_name, session_id), asker_id, said, options, as_json=as_json)
            return devicing.send(target, (as_name, session_id), said, options, as_json=as_json)
        client = joining.speak(as_name, session_id)
    except (IntercomError, KeyboardInterrupt) as failure:
        return failures.tell_not_sent(options["message_id"] or "", failure, is_json=as_json)
    return _send(client, to, said, options, as_json=as_json)


def _aim(to: str) -> DeviceTarget | None:
    """The session on another device that is meant, if one is."""
    if "@" not in to:
        return None
    # Imported here: an ordinary message knows nothing of other devices.
    from intercomctl import devicing

    return devicing.aim(to)


def _send(client: Client, to: str, text: str | None, options: SendOptions, *, as_json: bool) -> int:
    """Send, tell, and only then leave: an interrupt ends the wait at any moment, and what is known is said once."""
    is_told = False
    try:
        with client:
            outcome = client.send(to, text, **options)
            is_told = True
            return _tell(to, outcome, options, as_json=as_json)
    except KeyboardInterrupt:
        if not is_told:
            lost = unknown(options["message_id"] or "", "interrupted before an acknowledgement came")
            _tell(to, lost, options, as_json=as_json)
        return EXIT_INTERRUPTED


def _tell(to: str, outcome: Outcome, options: SendOptions, *, as_json: bool) -> int:
    # Imported here: a failure to join does without them.
    from libintercom import texts

    if outcome.is_accepted and not as_json:
        output.say(texts.sent_text(to, outcome, options))
    elif not outcome.is_accepted:
        output.note(texts.failed_send_text(to, outcome) + failures.hint_at_roster(outcome))
    if as_json:
        output.emit(shapes.outcome(outcome))
    return failures.status_of(outcome)


DELIVERY = option(
    "--delivery",
    "steer (the default) wakes an idle recipient and reaches a busy one after its current tool call; queue waits for "
    "the end of its turn; passive wakes nobody.",
    metavar="|".join(DELIVERIES),
    choices=DELIVERIES,
)
COMMAND = Command(
    "send",
    run,
    "Send a message to a session.\n\n"
    "TO is a name, an ID, or at least 8 characters of an ID, as `intercomctl list` prints them; NAME@DEVICE is a main "
    "session on another device. The text is TEXT, or standard input, or a file; at a terminal without any of them the "
    "editor opens.\n\n" + body.VISIBILITY + "\n\n"
    "Example: git diff | intercomctl send reviewer --stdin --delivery queue",
    argument("to", "Whom: a target from `intercomctl list`.", metavar="TO"),
    *body.PARAMETERS,
    DELIVERY,
    option(
        "--queue-mode",
        "With --delivery queue: replace lets a later message of the same --thread take this one's place.",
        metavar="|".join(QUEUE_MODES),
        choices=QUEUE_MODES,
    ),
    option("--thread", "The thread of --queue-mode replace.", name="thread_id", metavar="THREAD"),
    option("--reply-to", "The ID of the message that this one answers.", metavar="ID"),
    option("--message-id", "The ID of this message; by default a fresh UUID.", metavar="ID"),
    AS_NAME,
    SESSION_ID,
    JSON,
)
