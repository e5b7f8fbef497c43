"""A group of one main and its children, in conversation with the core: parking, waking, coming back, restarting.

Owns the group's members and the frames of parking and late replies. Does not own what is expected of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from intercomd.core.events import Recovered
from tests.support.conversation import Conversation
from tests.support.rig import make_router
from tests.support.sayings import ask, send

if TYPE_CHECKING:
    from typing import Self

    from intercomd.core.router import Router
    from tests.support.matching import Json

ROOT = "native-root"
TOKEN = "0123456789abcdef" * 2
PARKED = "Queued until the parked session returns"
KEPT = "Kept for its ask"


def park(child: str = "child-001", **members: Json) -> Json:
    return {"type": "park", "childId": child, **members}


def unpark(child: str = "child-001", *, discard: bool = False) -> Json:
    return {"type": "unpark", "childId": child, "discard": discard}


def woke(attempt: int, outcome: str = "started", child: str = "child-001", **members: Json) -> Json:
    return {"type": "wake_outcome", "childId": child, "attempt": attempt, "outcome": outcome, **members}


def queued(message_id: str, reason: str = PARKED) -> Json:
    return {"type": "delivery_queued", "messageId": message_id, "reason": reason}


def came(message_id: str, **members: Json) -> Json:
    return {"type": "message", "from": {"...": True}, "message": {"id": message_id, **members, "...": True}}


def wakes(message_id: str, attempt: int, child: str = "child-001") -> Json:
    return {"type": "wake_request", "childId": child, "messageId": message_id, "attempt": attempt}


def fetch(token: str = TOKEN, message_id: str = "q1") -> Json:
    return {"type": "fetch_reply", "requestId": "f", "messageId": message_id, "replyToken": token}


def ack(token: str = TOKEN, message_id: str = "q1") -> Json:
    return {"type": "ack_reply", "messageId": message_id, "replyToken": token}


def fetched(state: str, **members: Json) -> Json:
    return {"type": "fetched_reply", "requestId": "f", "state": state, **members}


def keep(to: str, message_id: str = "q1", **members: Json) -> Json:
    """An ask whose reply is kept for a minute."""
    return ask(to, message_id, keepReplyMs=60_000, replyToken=TOKEN, **members)


class Group(Conversation):
    """``main`` (ext), ``kid`` under the ID ``child-001`` (ext) and ``sib`` (no extensions), all of one root."""

    def __init__(self, router: Router | None = None, **limits: Json) -> None:
        super().__init__(router, **limits)
        if router is None:
            self.join_all()

    def join_all(self) -> None:
        """Everybody who is there from the beginning."""
        self.joins("main", "boss", id="main-0001", ext=1, rootSessionId=ROOT)
        self.joins("sib", "sister", id="child-002", rootSessionId=ROOT, parentSessionId=ROOT)

    def child_comes(self, conn: str = "kid", child: str = "child-001", root: str = ROOT, **members: Json) -> Self:
        self.says(conn, self.registration(child, root, **members))
        return self

    @staticmethod
    def registration(child: str = "child-001", root: str = ROOT, **members: Json) -> Json:
        lineage = {"rootSessionId": root, "parentSessionId": root}
        session = {"cwd": "/w", "model": "m", "name": "kid", **lineage}
        return {"type": "register", "session": session, "requestedId": child, "ext": 1, **members}

    def has_parked(self, child: str = "child-001") -> Self:
        """The child was here, was parked and left."""
        self.child_comes("first", child).receives("first")
        self.says("main", park(child)).expects("main", {"type": "parked", "childId": child})
        self.hangs_up("first")
        return self

    def has_parked_second(self) -> Self:
        """Two more children, parked as well."""
        return self.has_parked_as("second", "child-003").has_parked_as("third", "child-004")

    def has_parked_as(self, conn: str, child: str) -> Self:
        self.child_comes(conn, child).receives(conn)
        self.says("main", park(child)).receives("main")
        self.hangs_up(conn)
        return self

    def rows(self, conn: str) -> list[Any]:
        answers = self.says(conn, {"type": "list", "requestId": "l"}).receives(conn)
        found: list[Any] = next(answer["sessions"] for answer in answers if answer["type"] == "sessions")
        return found

    def row(self, conn: str, child: str = "child-001") -> Any:
        return next((row for row in self.rows(conn) if row["id"] == child), None)

    def says_to_child(self, *message_ids: str, conn: str = "main", **members: Json) -> Self:
        self.says(conn, *[send("child-001", message_id, **members) for message_id in message_ids])
        return self

    def forgets(self, *conns: str) -> Self:
        """What these have received so far is no matter."""
        for conn in conns:
            self.receives(conn)
        return self

    def counts(self) -> dict[str, int]:
        counters = self.router.state.counters
        assert counters.is_balanced
        return {name: count for name, count in {**counters.counts, **counters.held}.items() if count}

    def restarted(self, **limits: Json) -> Group:
        """Another broker with what this one's spool keeps; nobody is connected to it yet."""
        again = Group(make_router(incarnation="incarnation-2", **limits))
        again.kept_items.update(self.kept_items)
        again.happens(Recovered(tuple(self.kept_items.values())))
        return again
