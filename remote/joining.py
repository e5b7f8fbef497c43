"""This command's main at the running broker of its device (seeds, "How a device is reached").

Owns under which name and ID it joins, and every reason for which it does not. It never starts a broker.
"""

from __future__ import annotations

import os

from libintercom.client import Client
from libintercom.devices.words import ID_PREFIX, LIST_ID_PREFIX, MODEL, NO_BROKER_SENTENCE, SAID_NOT_SENT
from libintercom.errors import IntercomError, NotRunning
from libintercom.identity import sha256_hex
from libintercom.profile import Profile
from libintercom.wire.values import MAX_LABEL_BYTES, scrub_label, size_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# Enough of the hash that no two senders of one person meet.
_ID_CHARS = 32
_LIST_ID_BYTES = 8


class Refusal(Exception):
    """Why a command is not carried out, in a sentence for the caller; ``parts`` are further members of the reply."""

    def __init__(self, sentence: str, outcome: str = SAID_NOT_SENT, **parts: Any) -> None:
        super().__init__(sentence)
        self.sentence, self.outcome, self.parts = sentence, outcome, parts


class NoBroker(Refusal):
    """Nobody runs here."""

    def __init__(self) -> None:
        super().__init__(NO_BROKER_SENTENCE, code="no_broker")


def join_for_list(origin: str) -> Client:
    """A connected main that lists. Raises Refusal."""
    wanted = LIST_ID_PREFIX + os.urandom(_LIST_ID_BYTES).hex()
    return _join(Profile(cwd=_home(), model=MODEL, name=_label(f"intercom-list@{origin}"), requested_id=wanted))


def join_for_message(origin: str, sender: dict[str, str]) -> Client:
    """A connected main that speaks for ``sender`` of the device ``origin``.

    Raises:
        Refusal: no broker, or another command of this sender is connected; nothing was sent.
    """
    wanted = speaking_id(origin, sender["id"])
    name = _label(f"{sender['name'] or sender['id']}@{origin}")
    client = _join(Profile(cwd=_label(sender["cwd"]), model=MODEL, name=name, requested_id=wanted))
    if client.session_id != wanted:
        client.disconnect()
        sentence = "Another command of this sender is connected there. Wait for it to finish; nothing was sent."
        raise Refusal(sentence, code="overlapping")
    return client


def speaking_id(origin: str, sender_id: str) -> str:
    """The ID under which a sender's commands join: the same for each of them (devices.md section 3)."""
    return ID_PREFIX + sha256_hex(f"{origin.lower()}\0{sender_id}".encode("utf-8", "replace"))[:_ID_CHARS]


def _join(profile: Profile) -> Client:
    client = Client(profile)
    try:
        client.connect()
    except NotRunning:
        raise NoBroker from None
    except IntercomError as failure:
        raise Refusal(str(failure), code="unreachable_there") from None
    return client


def _label(text: str) -> str:
    label = scrub_label(text)
    # Four bytes are the most that one character takes.
    return label if size_of(label) <= MAX_LABEL_BYTES else label[: MAX_LABEL_BYTES // 4]


def _home() -> str:
    return _label(os.path.expanduser("~"))
