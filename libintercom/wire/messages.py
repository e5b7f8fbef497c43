"""What peers say about sessions and messages: rows, registrations, messages (wire.md section 2).

Owns the nested values of the wire and their rules across fields. Does not own the frames that carry them
(``requests``: client to broker, ``answers``: broker to client).
"""

from __future__ import annotations

from libintercom.errors import InvalidFrame
from libintercom.wire import values
from libintercom.wire.guards import Guard, ReplyHint
from libintercom.wire.record import ABSENT, Record, nullable, optional, required
from libintercom.wire.values import BOOL, COUNT, HEX64, LABEL, NUMBER, STRING, TEXT, Rule, one_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# The two kinds of client (wire.md section 8.1): the seeds' own lineage, and its sibling.
NATIVE = "native"
SIBLING = "sibling"

DELIVERIES = ("steer", "queue", "passive")
QUEUE_MODES = ("stack", "replace")
ATTACHMENT_TYPES = ("file", "snippet", "context")
RECEIPT_STATUSES = (
    "receiver_received",
    "queued",
    "injected",
    "acknowledged",
    "expired",
    "cancelled",
    "superseded",
    "cancellation_requested",
)
# How waking a parked child may end (wire.md 9.5).
WAKE_OUTCOMES = ("started", "failed")
# What a kept ask may have come to (wire.md 9.7).
REPLY_STATES = ("waiting", "replied", "expired", "unknown")


def nested(record: type[Record]) -> Rule:
    """The rule of a member that is one such object."""
    return Rule(f"a valid {record.__name__}", "record", lambda value: isinstance(value, record), record=record)


def list_of(record: type[Record]) -> Rule:
    """The rule of a member that is a list of such objects."""
    return Rule(f"a list of {record.__name__}", "records", lambda value: isinstance(value, tuple), record=record)


def leniently(record: type[Record]) -> Rule:
    """The rule of a member that should be such an object, and is ``UNUSABLE`` when it is not."""
    return Rule(f"a valid {record.__name__}", "lenient", lambda _value: True, record=record, trivial=True)


class Host(Record):
    """What the program behind a session can do with an inbound message (sessions.md section 2)."""

    steer: bool | None = optional(BOOL, default=None)
    wake: bool | None = optional(BOOL, default=None)
    turn_end: bool | None = optional(BOOL, default=None)
    prompt_only: bool | None = optional(BOOL, default=None)


class Registration(Record):
    """The ``session`` member of ``register``. Labels are checked by ``admit_registration``, per dialect."""

    cwd: str = required(STRING)
    model: str = required(STRING)
    name: str | None = optional(STRING, default=None)
    project_id: str | None = optional(HEX64, default=None)
    status: str | None = optional(STRING, default=None)
    last_seen: float | None = optional(NUMBER, default=None)
    last_intercom_activity: float | None = optional(NUMBER, default=None)
    pending_asks: int | None = optional(COUNT, default=None)
    accepts_asks: bool | None = optional(BOOL, default=None)
    pid: float | None = optional(NUMBER, default=None)
    started_at: float | None = optional(NUMBER, default=None)
    last_activity: float | None = optional(NUMBER, default=None)
    runtime_fallback_alias: bool | None = optional(BOOL, default=None)
    context_pct: float | None = nullable(NUMBER, default=ABSENT)
    context_tokens: float | None = nullable(NUMBER, default=ABSENT)
    context_window: float | None = nullable(NUMBER, default=ABSENT)
    tmux_pane: str | None = optional(STRING, default=None)
    root_session_id: str | None = optional(STRING, default=None)
    parent_session_id: str | None = optional(STRING, default=None)
    incarnation: str | None = optional(LABEL, default=None)
    host: Host | None = optional(nested(Host), default=None)
    application_guard: str | None = nullable(LABEL, default=ABSENT)

    def violation(self) -> str:
        """Lineage (wire.md 9.2): main = root only, child = both and equal; never blank, never padded."""
        root, parent = self.root_session_id, self.parent_session_id
        for name, value in (("rootSessionId", root), ("parentSessionId", parent)):
            if value is not None and (not values.is_label(value) or values.js_trim(value) != value):
                return f"{name} is not an exact session id"
        if parent is not None and parent != root:
            return "parentSessionId differs from rootSessionId"
        return ""


# The members of a registration or presence that are shown to people and so must be labels.
_LABEL_MEMBERS = ("cwd", "model", "name", "status", "tmux_pane")


def labels_of(record: Record, dialect: str) -> dict[str, str]:
    """The label members that are present; a sibling's are scrubbed instead of refused (wire.md 14.8)."""
    given = {name: getattr(record, name, None) for name in _LABEL_MEMBERS}
    labels = {name: value for name, value in given.items() if value is not None}
    return {name: values.scrub_label(value) for name, value in labels.items()} if dialect == SIBLING else labels


def label_fault(labels: dict[str, str]) -> str:
    """Which of these members is no label, ``""`` when all are."""
    for name, label in labels.items():
        if not values.is_label(label):
            return f"{name} is not a label of at most {values.MAX_LABEL_BYTES} bytes"
    return ""


def admit_labels(record: Record, dialect: str) -> dict[str, str]:
    """The label members that are present, valid.

    Raises:
        InvalidFrame: a native client's label breaks the rule, or any label is over its limit.
    """
    labels = labels_of(record, dialect)
    fault = label_fault(labels)
    if fault:
        raise InvalidFrame(fault)
    return labels


class ParkedRow(Record):
    """What others see of a parked child that its main describes anew; absent members stay as they were last seen."""

    cwd: str = required(LABEL)
    model: str = required(LABEL)
    name: str | None = optional(LABEL, default=None)
    project_id: str | None = optional(HEX64, default=None)


class WakeFailure(Record):
    """The last time that waking a parked child failed. ``at_ms``: Unix milliseconds."""

    reason: str = required(STRING)
    at_ms: float = required(NUMBER)


class Row(Record):
    """One session as others see it (``SessionInfo``). A superset that native and sibling clients accept."""

    id: str = required(STRING)
    cwd: str = required(STRING)
    model: str = required(STRING)
    name: str | None = optional(STRING, default=None)
    project_id: str | None = optional(HEX64, default=None)
    status: str | None = optional(STRING, default=None)
    last_seen: float | None = optional(NUMBER, default=None)
    last_intercom_activity: float | None = optional(NUMBER, default=None)
    pending_asks: int | None = optional(COUNT, default=None)
    accepts_asks: bool | None = optional(BOOL, default=None)
    pid: float | None = optional(NUMBER, default=None)
    started_at: float | None = optional(NUMBER, default=None)
    last_activity: float | None = optional(NUMBER, default=None)
    endpoint_epoch: str | None = optional(STRING, default=None)
    runtime_fallback_alias: bool | None = optional(BOOL, default=None)
    trusted_local: bool | None = optional(BOOL, default=None)
    peer_uid: float | None = optional(NUMBER, default=None)
    context_pct: float | None = optional(NUMBER, default=None)
    context_tokens: float | None = optional(NUMBER, default=None)
    context_window: float | None = optional(NUMBER, default=None)
    tmux_pane: str | None = optional(STRING, default=None)
    root_session_id: str | None = optional(STRING, default=None)
    parent_session_id: str | None = optional(STRING, default=None)
    incarnation: str | None = optional(STRING, default=None)
    stalled: bool | None = optional(BOOL, default=None)
    host: Host | None = optional(nested(Host), default=None)
    parked: bool | None = optional(BOOL, default=None)
    queued_input: int | None = optional(COUNT, default=None)
    last_wake_failure: WakeFailure | None = optional(nested(WakeFailure), default=None)
    guarded_delivery: int | None = optional(COUNT, default=None)
    application_guard: str | None = optional(STRING, default=None)

    def violation(self) -> str:
        """A received row must be printable as labels (wire.md section 2.1)."""
        for name in ("id", "cwd", "model", "name", "status"):
            value = getattr(self, name)
            if value is not None and not values.is_label(value):
                return f"{name} is not a label"
        return ""


class Attachment(Record):
    """One attached file, snippet or piece of context. No limit of its own: the frame bounds all."""

    type: str = required(one_of(*ATTACHMENT_TYPES))
    name: str = required(LABEL)
    content: str = required(TEXT)
    language: str | None = optional(LABEL, default=None)


class Content(Record):
    """A message's text and attachments."""

    text: str = required(TEXT)
    attachments: tuple[Attachment, ...] | None = optional(list_of(Attachment), default=None)


class Message(Record):
    """One message as its sender made it (wire.md 2.2). ``expects_reply`` makes it an ask."""

    id: str = required(LABEL)
    timestamp: float = required(NUMBER)
    content: Content = required(nested(Content))
    reply_to: str | None = optional(LABEL, default=None)
    expects_reply: bool | None = optional(BOOL, default=None)
    delivery: str | None = optional(one_of(*DELIVERIES), default=None)
    passive: bool | None = optional(BOOL, default=None)
    queue_mode: str | None = optional(one_of(*QUEUE_MODES), default=None)
    thread_id: str | None = optional(values.THREAD, default=None)
    timeout_ms: int | None = optional(values.ASK_TIMEOUT, default=None)
    keep_reply_ms: int | None = optional(values.KEEP_TIME, default=None)
    reply_token: str | None = optional(values.HEX32, default=None)
    # A ``Guard`` and a ``ReplyHint``, or ``UNUSABLE``: refused as such, never as if they were not there.
    guard: Any = optional(leniently(Guard), default=None)
    reply_hint: Any = optional(leniently(ReplyHint), default=None)

    @property
    def is_ask(self) -> bool:
        return self.expects_reply is True

    @property
    def is_passive(self) -> bool:
        return self.passive is True or self.delivery == "passive"

    @property
    def is_replace(self) -> bool:
        return self.queue_mode == "replace"

    def violation(self) -> str:
        """Rules across fields; ``passive:false`` may stand beside any delivery."""
        if self.passive is True and self.delivery not in (None, "passive"):
            return "passive conflicts with delivery"
        if self.is_passive and self.is_ask:
            return "a passive message cannot expect a reply"
        if self.queue_mode is not None and self.delivery != "queue":
            return 'queueMode needs delivery "queue"'
        if (self.thread_id is not None) != self.is_replace:
            return 'threadId goes with queueMode "replace", and only with it'
        return ""


class Receipt(Record):
    """A sibling client's word about a message it received; forwarded, never believed."""

    message_id: str = required(STRING)
    status: str = required(one_of(*RECEIPT_STATUSES))
    timestamp: float = required(NUMBER)
    detail: str | None = optional(STRING, default=None)


class Candidate(Record):
    """A session that an ambiguous or mistyped target may have meant; only ever one the sender may see."""

    id: str = required(STRING)
    target: str = required(STRING)
    name: str | None = optional(STRING, default=None)
    cwd: str | None = optional(STRING, default=None)


class DeadLetter(Record):
    """An accepted message that can no longer arrive; no body is kept (wire.md 9.8)."""

    id: str = required(STRING)
    sender_id: str = required(STRING)
    recipient_id: str = required(STRING)
    message_id: str = required(STRING)
    reason: str = required(one_of("recipient_left", "expired", "discarded", "store_failed"))
    at_ms: float = required(NUMBER)


class BrokerHello(Record):
    """Who answers: told to ``ext:1`` clients in ``registered`` (wire.md 14.9)."""

    program: str = required(STRING)
    version: str = required(STRING)
    pid: int = required(COUNT)
    start_identity: Any = optional(values.ANYTHING, default=None)
    starter: str | None = optional(STRING, default=None)
    incarnation: str = required(STRING)
