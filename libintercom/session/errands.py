"""Asking the process that holds a session's journal: a private exchange between programs of one native session.

Owns the badge beside a journal and the form of an errand and of its answer. Does not own who runs one (``intercomctl
pending`` and ``reply``) nor what it does in the session (``errand_desk``).

While a session holds its journal it keeps a *badge* beside it, readable by this user alone: its peer ID at the broker
and a secret key, made anew by each holder. Another program of the same user sends an ordinary ask to that peer ID, with
one attachment of type ``context`` and the name ``intercom-errand``; its content is a JSON object with the key and
``action``: ``pending``, or ``reply`` with ``text`` and optionally ``replyTo`` and ``to``. The session takes a message
with its key out before anything else sees it (no checkpoint, no question, no turn), and answers with an ordinary
reply whose text is one JSON object: ``{"v":1,"pending":[…]}``, ``{"v":1,"outcome":{…}}`` or ``{"v":1,"error":"…"}``.
Nothing of this is new on the wire, and a message without the key is a message like any other.
"""

from __future__ import annotations

import json
import os

from libintercom.errors import IntercomError
from libintercom.identity import sha256_hex
from libintercom.wire.record import Record, dump_record, optional, parse_record, required
from libintercom.wire.values import COUNT, HEX32, LABEL, STRING, TEXT, one_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from libintercom.client import Client
    from libintercom.wire.messages import Message

VERSION = 1
PENDING = "pending"
REPLY = "reply"
ATTACHMENT_NAME = "intercom-errand"
# What a person reads who meets an errand as a message, because the session it was meant for is gone.
TEXT_FOR_PEOPLE = "A request of this session's own command line; it needs no answer."
# The session answers from memory; past this it is stuck.
ANSWER_TIMEOUT_S = 5.0
_KEY_BYTES = 16
_MOST_BYTES = 4096


class Badge(Record):
    """Who holds a journal: its process, its peer ID at the broker, and the key of its errands."""

    v: int = required(COUNT)
    pid: int = required(COUNT)
    peer_id: str = required(LABEL)
    key: str = required(HEX32)


class Errand(Record):
    """One request. ``reply_to`` and ``to`` say which question a reply is for, as in ``Session.reply``."""

    v: int = required(COUNT)
    key: str = required(HEX32)
    action: str = required(one_of(PENDING, REPLY))
    text: str | None = optional(TEXT, default=None)
    reply_to: str | None = optional(STRING, default=None)
    to: str | None = optional(STRING, default=None)


class ErrandFailed(IntercomError):
    """The process that holds the journal did not answer, or said why it could not."""

    def __init__(self, pid: int, reason: str) -> None:
        super().__init__(pid, reason)
        self.pid, self.reason = pid, reason

    def __str__(self) -> str:
        return f"process {self.pid} holds this session's journal: {self.reason}"


def make_key() -> str:
    """A fresh key; nobody guesses it."""
    return os.urandom(_KEY_BYTES).hex()


def badge_path(folder: str, native_id: str) -> str:
    """Where the holder of a native session's journal keeps its badge."""
    return os.path.join(folder, f"{sha256_hex(native_id.encode('utf-8', 'surrogatepass'))}.badge")


def write_badge(path: str, peer_id: str, key: str) -> None:
    """Put up the badge, whole or not at all. Raises OSError."""
    badge = Badge(v=VERSION, pid=os.getpid(), peer_id=peer_id, key=key)
    fresh = f"{path}.{os.getpid()}"
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(fresh, flags, 0o600)
    try:
        os.write(descriptor, json.dumps(dump_record(badge)).encode())
    finally:
        os.close(descriptor)
    os.replace(fresh, path)


def read_badge(folder: str, native_id: str) -> Badge | None:
    """The badge of whoever holds that journal; None when there is none, or it was left behind by another user."""
    try:
        descriptor = os.open(badge_path(folder, native_id), os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        is_ours = os.fstat(descriptor).st_uid == os.getuid()
        return parse_record(Badge, json.loads(os.read(descriptor, _MOST_BYTES))) if is_ours else None
    except (OSError, ValueError, IntercomError):
        return None
    finally:
        os.close(descriptor)


def find_errand(message: Message, key: str) -> Errand | None:
    """The errand that a message carries, if it carries one with this key."""
    attachments = message.content.attachments or ()
    if not key or len(attachments) != 1 or attachments[0].name != ATTACHMENT_NAME:
        return None
    try:
        errand = parse_record(Errand, json.loads(attachments[0].content))
    except (ValueError, IntercomError):
        return None
    # Imported here: hardly any message is one.
    from hmac import compare_digest

    return errand if compare_digest(errand.key, key) else None


def run_errand(client: Client, badge: Badge, action: str, **parts: str) -> dict[str, Any]:
    """Have the holder of the journal run an errand; its answer's object.

    ``parts``: ``text``, ``reply_to`` and ``to`` of a reply.

    Raises:
        ErrandFailed: it is not at this broker, did not answer, or said why it could not.

    """
    errand = Errand(v=VERSION, key=badge.key, action=action, **{name: part for name, part in parts.items() if part})
    attachment = {"type": "context", "name": ATTACHMENT_NAME, "content": json.dumps(dump_record(errand))}
    answered = client.ask(
        badge.peer_id,
        TEXT_FOR_PEOPLE,
        timeout_s=ANSWER_TIMEOUT_S,
        attachments=[attachment],
        # An explicit delivery: whether the session takes questions now does not matter.
        delivery="queue",
    )
    if answered.reply is None:
        raise ErrandFailed(badge.pid, answered.outcome.reason or f"no answer ({answered.ended_by})")
    return _read_answer(badge, answered.reply.message.content.text)


def _read_answer(badge: Badge, text: str) -> dict[str, Any]:
    try:
        told = json.loads(text)
    except ValueError:
        told = None
    if not isinstance(told, dict):
        raise ErrandFailed(badge.pid, "its answer is not understood; it may be of another version")
    if "error" in told:
        raise ErrandFailed(badge.pid, str(told["error"]))
    return told
