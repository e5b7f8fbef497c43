"""The process-local bus: the seeds' event names, payloads and errors, version 1."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from libintercom.session import bus as names
from libintercom.session.bus import Attachment, Bus, StaleTarget

if TYPE_CHECKING:
    from collections.abc import Mapping

TARGET = {"rootSessionId": "r", "peerId": "pi-1", "incarnation": "i"}
RECEIPT = {"receipt": {"version": 1}}


class Session:
    """A witness with one fixed context."""

    def __init__(self) -> None:
        self.guard: str | None = None

    def snapshot(self) -> dict[str, Any]:
        return {"version": 1, **TARGET, "applicationGuard": self.guard}

    def set_application_guard(self, target: Mapping[str, Any], revision: str | None) -> None:
        if dict(target) != TARGET:
            raise StaleTarget
        self.guard = revision

    def attest(self, root_session_id: str, message_id: str) -> dict[str, Any]:
        return RECEIPT if (root_session_id, message_id) == ("r", "m") else {"error": "receipt_not_found"}


@pytest.fixture
def bus() -> Bus:
    return Bus()


@pytest.fixture
def session() -> Session:
    return Session()


@pytest.fixture
def attachment(bus: Bus, session: Session) -> Attachment:
    return Attachment(bus, session)


def ask(bus: Bus, event: str, **payload: Any) -> list[Any]:
    heard: list[Any] = []
    bus.emit(event, {"respond": heard.append, **payload})
    return heard


def test_observers_are_called_in_order_and_until_they_end(bus: Bus) -> None:
    heard: list[Any] = []
    off = bus.on("e", lambda payload: heard.append(("first", payload)))
    bus.on("e", lambda payload: heard.append(("second", payload)))
    bus.emit("e", 1)
    off()
    off()
    bus.emit("e", 2)
    assert heard == [("first", 1), ("second", 1), ("second", 2)]


def test_an_observer_that_ends_itself_skips_nobody(bus: Bus) -> None:
    heard: list[str] = []
    ends = [bus.on("e", lambda _payload: ends[0]())]
    bus.on("e", heard.append)
    bus.emit("e", "x")
    assert heard == ["x"]


def test_names_are_the_seeds() -> None:
    assert (names.CONTEXT_QUERY, names.CONTEXT_STATE) == ("pi-intercom:context-query", "pi-intercom:context-state")
    assert names.APPLICATION_GUARD == "pi-intercom:application-guard"
    assert names.PROVENANCE_QUERY == "pi-intercom:provenance-query"


def test_context_is_told_to_version_one(bus: Bus, session: Session, attachment: Attachment) -> None:
    assert ask(bus, names.CONTEXT_QUERY, version=1) == [session.snapshot()]
    for version in (2, "1", None):
        assert ask(bus, names.CONTEXT_QUERY, version=version) == [{"error": "unsupported_version"}]


def test_changes_are_told_and_not_replayed(bus: Bus, session: Session, attachment: Attachment) -> None:
    attachment.tell_state()
    heard: list[Any] = []
    bus.on(names.CONTEXT_STATE, heard.append)
    session.guard = "g"
    attachment.tell_state()
    assert heard == [{"version": 1, **TARGET, "applicationGuard": "g"}]


def test_a_guard_is_set_and_withdrawn(bus: Bus, session: Session, attachment: Attachment) -> None:
    for revision in ("g1", None):
        told = ask(bus, names.APPLICATION_GUARD, version=1, target=TARGET, revision=revision)
        assert told == [{"version": 1, "applicationGuard": revision}]
        assert session.guard == revision


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"version": 2}, "unsupported_version"),
        ({"target": {**TARGET, "incarnation": "old"}}, "context_changed"),
        ({"target": None}, "context_changed"),
        ({"revision": ""}, "invalid_revision"),
        ({"revision": 7}, "invalid_revision"),
    ],
)
def test_a_guard_that_cannot_be_set_changes_nothing(
    bus: Bus, session: Session, attachment: Attachment, change: dict[str, Any], error: str
) -> None:
    session.guard = "kept"
    payload = {"version": 1, "target": TARGET, "revision": "g", **change}
    assert ask(bus, names.APPLICATION_GUARD, **payload) == [{"error": error}]
    assert session.guard == "kept"


def test_provenance_is_the_sessions_word(bus: Bus, attachment: Attachment) -> None:
    assert ask(bus, names.PROVENANCE_QUERY, version=1, rootSessionId="r", messageId="m") == [RECEIPT]
    other = ask(bus, names.PROVENANCE_QUERY, version=1, rootSessionId="r", messageId="n")
    assert other == [{"error": "receipt_not_found"}]


@pytest.mark.parametrize("change", [{"version": 2}, {"rootSessionId": None}, {"messageId": 7}])
def test_a_provenance_query_that_is_none_learns_nothing(
    bus: Bus, attachment: Attachment, change: dict[str, Any]
) -> None:
    payload = {"version": 1, "rootSessionId": "r", "messageId": "m", **change}
    assert ask(bus, names.PROVENANCE_QUERY, **payload) == [{"error": "publication_unavailable"}]


def test_without_an_owner_nobody_responds(bus: Bus, attachment: Attachment) -> None:
    attachment.detach()
    assert ask(bus, names.CONTEXT_QUERY, version=1) == []
    assert ask(bus, names.APPLICATION_GUARD, version=1, target=TARGET, revision="g") == []
    assert ask(bus, names.PROVENANCE_QUERY, version=1, rootSessionId="r", messageId="m") == []
