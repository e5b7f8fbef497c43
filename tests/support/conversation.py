"""Conversations with the broker's core: who says what, and what everybody then receives.

Owns named connections and expectations. Does not own turns and time (``rig``), patterns (``matching``) nor the fake
kernel (``fake_listener``).

    talk = Conversation()
    talk.joins("a", "alice").joins("b", "bob")
    talk.says("a", send("bob", "m1", "hello"))
    talk.expects("b", {"type": "message", "...": True}).expects("a", {"type": "delivered", "messageId": "m1"})
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

from intercomd.core import events
from libintercom.errors import InvalidFrame
from libintercom.wire.codec import decode_request
from libintercom.wire.frames import encode_json
from libintercom.wire.requests import Read, Register, Send
from tests.support.fake_listener import decode_arrived
from tests.support.matching import Json, explain_mismatch
from tests.support.rig import Rig, make_router
from tests.support.sayings import register
from tests.support.spelling import gather

if TYPE_CHECKING:
    from collections.abc import Callable

    from intercomd.core.events import Event
    from intercomd.core.router import Router
    from libintercom.wire.requests import Request

    Decode = Callable[[bytes], tuple[Request, bytes]]
    Frame = dict[str, Any] | bytes


def decode_plainly(payload: bytes) -> tuple[Request, bytes]:
    """A payload's request and message bytes by the standard-library codec; the bytes are its own encoding."""
    request = decode_request(payload)
    return request, encode_json(decode_arrived(payload)["message"]) if isinstance(request, Send) else b""


class Conversation(Rig):
    """A router between fakes. Connections have names; an unknown one connects when it first speaks."""

    def __init__(
        self, router: Router | None = None, *, decode: Decode | None = None, gathers: bool = False, **limits: Json
    ) -> None:
        super().__init__(make_router(**limits) if router is None else router)
        # Whether usual sends that arrive in one read are one event, as the real listener has it.
        self._gathers = gathers
        self.kept: dict[str, Any] = {}
        self._decode_request = decode or decode_plainly
        self._numbers: dict[str, int] = {}
        self._ids_made = 0
        self._backlog: deque[int] = deque()
        self._unread: dict[int, deque[Frame]] = {}

    # What happens.

    def connects(self, *conns: str) -> Conversation:
        """Connections arrive; while accepting is paused they stay in the backlog."""
        for conn in conns:
            number = self._numbers[conn] = len(self._numbers) + 1
            self._unread[number] = deque()
            self._backlog.append(number)
        return self.happens()

    def says(self, conn: str, *frames: Frame) -> Conversation:
        """Frames that arrive in one read: JSON objects, or bytes to be decoded."""
        if conn not in self._numbers:
            self.connects(conn)
        self._unread[self.number(conn)].extend(frames)
        return self.happens()

    def joins(self, conn: str, name: str | None = None, **members: Json) -> Conversation:
        """Register ``conn`` under the id ``session-<conn>`` (or ``id=``) and swallow what it receives."""
        self.says(conn, register(name, **{"id": f"session-{conn}", **members}))
        first = [frame["type"] for frame in self.receives(conn)][:1]
        assert first == ["registered"], f"{conn} did not register: received {first}"
        return self

    def hangs_up(self, conn: str) -> Conversation:
        self.listener.drop(self.number(conn))
        return self.happens(events.ConnectionClosed(self.number(conn), "closed by peer"))

    def happens(self, *happened: Event) -> Conversation:
        self.read_on()
        self.run(*happened)
        return self

    def after(self, seconds: float) -> Conversation:
        """Let time pass; every deadline on the way fires at its own moment."""
        self.advance(seconds)
        return self

    # What the kernels and the spool do.

    def holds(self, conn: str, room_bytes: int = 0) -> Conversation:
        """From now on the kernel of ``conn`` takes ``room_bytes`` more and then nothing."""
        self.listener.sockets[self.number(conn)].room_bytes = room_bytes
        return self.happens()

    def reads(self, conn: str) -> Conversation:
        """The kernel of ``conn`` takes everything again."""
        self.listener.sockets[self.number(conn)].room_bytes = None
        return self.happens()

    def resets(self, conn: str) -> Conversation:
        """The next write to ``conn`` finds the connection reset."""
        self.listener.sockets[self.number(conn)].is_reset = True
        return self

    def stores(self, *, is_stored: bool = True) -> Conversation:
        """A spool that "waits" answers for every letter it was given."""
        return self.happens(*self.store_answers(is_stored=is_stored))

    # What is seen.

    def number(self, conn: str) -> int:
        return self._numbers[conn]

    def receives_bytes(self, conn: str) -> list[bytes]:
        """Take the payloads that arrived at ``conn`` since somebody last looked."""
        arrived = self.listener.sockets[self.number(conn)].arrived
        seen = list(arrived)
        arrived.clear()
        return seen

    def receives(self, conn: str) -> list[Json]:
        """Do the same as JSON values."""
        return [decode_arrived(payload) for payload in self.receives_bytes(conn)]

    def is_accepted(self, conn: str) -> bool:
        return self.number(conn) in self.listener.sockets

    def is_reading(self, conn: str) -> bool:
        """Whether the broker accepted ``conn`` and reads from it."""
        return self.is_accepted(conn) and self.listener.sockets[self.number(conn)].is_readable

    def is_closed(self, conn: str) -> bool:
        return bool(self.listener.sockets[self.number(conn)].close_reason)

    def expects(self, conn: str, *patterns: Json) -> Conversation:
        """Exactly these frames arrived at ``conn``, in this order, since somebody last looked."""
        wrong = explain_mismatch(list(patterns), self.receives(conn), self.kept, conn)
        assert not wrong, wrong
        return self

    def expects_nothing(self, *conns: str) -> Conversation:
        for conn in conns or self._numbers:
            self.expects(conn)
        return self

    def expects_closed(self, *conns: str) -> Conversation:
        for conn in conns:
            assert self.is_closed(conn), f"{conn} is still open"
        return self

    def expects_open(self, *conns: str) -> Conversation:
        for conn in conns:
            reason = self.listener.sockets[self.number(conn)].close_reason
            assert not reason, f"{conn} was closed: {reason}"
        return self

    # What waits to be read.

    def read_on(self) -> bool:
        """Accept from the backlog and read, as far as neither is paused; each frame is decided before the next."""
        has_decided = False
        while self._backlog and self.listener.is_accepting:
            number = self._backlog.popleft()
            self.listener.accept(number)
            self.decide(events.ConnectionAccepted(number, self.at_ms))
            has_decided = True
        for number, unread in self._unread.items():
            while unread and number in self.listener.sockets and self.listener.sockets[number].is_readable:
                for event in self._read_some(number, unread):
                    self.decide(event)
                has_decided = True
        return has_decided

    def _read_some(self, number: int, unread: deque[Frame]) -> list[Event]:
        """The next frame, or all of them."""
        if not self._gathers:
            return [self._decode(number, unread.popleft())]
        frames = list(unread)
        unread.clear()
        return gather(self._decode(number, frame) for frame in frames)

    def _decode(self, number: int, frame: Frame) -> Event:
        payload = frame if isinstance(frame, bytes) else encode_json(frame)
        try:
            request, message = self._decode_request(payload)
        except InvalidFrame as error:
            return events.FrameRejected(number, error.reason)
        ids = self._make_ids() if isinstance(request, Read | Register) else ()
        return events.FrameReceived(number, request, len(payload), self.at_ms, message, ids)

    def _make_ids(self) -> tuple[str, str]:
        self._ids_made += 2
        return fake_uuid(self._ids_made - 1), fake_uuid(self._ids_made)


def fake_uuid(number: int) -> str:
    """A version 4 UUID that can be told from any other by its number."""
    return f"{number:08x}-0000-4000-8000-{number:012x}"
