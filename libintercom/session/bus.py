"""A process-local bus for companions of a session, with the event names of the seeds. Synchronous.

Owns calling observers in order, and answering the three questions about a session that a companion of the same
program may ask (seeds, "Conditional native context targeting", "Native-owned receipts"). Nothing here is a frame,
a registry or consent. Does not own the session's facts: ``Witness`` says what the bus needs of it.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any, Protocol

    class Witness(Protocol):
        """What a session tells the bus."""

        def snapshot(self) -> dict[str, Any]: ...

        def set_application_guard(self, target: Mapping[str, Any], revision: str | None) -> None: ...

        def attest(self, root_session_id: str, message_id: str) -> dict[str, Any]: ...

    Observer = Callable[[Any], object]


CONTEXT_QUERY = "pi-intercom:context-query"
CONTEXT_STATE = "pi-intercom:context-state"
APPLICATION_GUARD = "pi-intercom:application-guard"
PROVENANCE_QUERY = "pi-intercom:provenance-query"

VERSION = 1
UNSUPPORTED_VERSION = "unsupported_version"
CONTEXT_CHANGED = "context_changed"
# Ours: the seeds name no error for a revision that is neither null nor a nonempty string.
INVALID_REVISION = "invalid_revision"
PUBLICATION_UNAVAILABLE = "publication_unavailable"
RECEIPT_NOT_FOUND = "receipt_not_found"


class StaleTarget(Exception):
    """The target of a guard is not the session's present root, peer and incarnation."""


class Bus:
    """Observers by event name, called in the order in which they came, before ``emit`` returns.

    What an observer raises reaches whoever emitted; the observers behind it are not called.
    """

    def __init__(self) -> None:
        self._observers: dict[str, list[Observer]] = {}

    def on(self, event: str, observer: Observer) -> Callable[[], None]:
        """Call ``observer`` with each payload of ``event``; the result ends that."""
        self._observers.setdefault(event, []).append(observer)

        def off() -> None:
            observers = self._observers.get(event, [])
            if observer in observers:
                observers.remove(observer)

        return off

    def emit(self, event: str, payload: Any) -> None:
        """Tell everybody who observes ``event`` now."""
        for observer in list(self._observers.get(event, ())):
            observer(payload)


class Attachment:
    """One session on a bus: it answers queries and says its changes until ``detach``."""

    def __init__(self, bus: Bus, witness: Witness) -> None:
        self._bus, self._witness = bus, witness
        self._ends = [
            bus.on(CONTEXT_QUERY, self._tell_snapshot),
            bus.on(APPLICATION_GUARD, self._take_guard),
            bus.on(PROVENANCE_QUERY, self._tell_provenance),
        ]

    def tell_state(self) -> None:
        """Emit the present snapshot; states are not replayed to those who come later."""
        self._bus.emit(CONTEXT_STATE, self._witness.snapshot())

    def detach(self) -> None:
        """Answer no more."""
        for end in self._ends:
            end()

    def _tell_snapshot(self, query: Mapping[str, Any]) -> None:
        is_known = query.get("version") == VERSION
        query["respond"](self._witness.snapshot() if is_known else {"error": UNSUPPORTED_VERSION})

    def _take_guard(self, query: Mapping[str, Any]) -> None:
        query["respond"](self._judge_guard(query))

    def _judge_guard(self, query: Mapping[str, Any]) -> dict[str, Any]:
        if query.get("version") != VERSION:
            return {"error": UNSUPPORTED_VERSION}
        revision = query.get("revision")
        if revision is not None and not (isinstance(revision, str) and revision):
            return {"error": INVALID_REVISION}
        try:
            self._witness.set_application_guard(query.get("target") or {}, revision)
        except StaleTarget:
            return {"error": CONTEXT_CHANGED}
        return {"version": VERSION, "applicationGuard": revision}

    def _tell_provenance(self, query: Mapping[str, Any]) -> None:
        query["respond"](self._attest(query))

    def _attest(self, query: Mapping[str, Any]) -> dict[str, Any]:
        root, message_id = query.get("rootSessionId"), query.get("messageId")
        if query.get("version") != VERSION or not isinstance(root, str) or not isinstance(message_id, str):
            # Whoever does not speak the version learns nothing about the journal.
            return {"error": PUBLICATION_UNAVAILABLE}
        return self._witness.attest(root, message_id)
