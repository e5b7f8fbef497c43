"""A client's exchange with a test at the other end: no socket, no clock, every identifier known beforehand.

Owns running a flow step by step and reading what it said. Does not own what a broker would answer: tests say that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, TypeVar

from libintercom import flows
from libintercom.calls import Exchange
from libintercom.profile import Profile
from libintercom.wire.frames import FrameReader, decode_json, encode_json, frame

if TYPE_CHECKING:
    from libintercom.flows import Flow
    from libintercom.wire.record import Record

T = TypeVar("T")
Object = dict[str, Any]

NOW_MS = 1_700_000_000_000
ME = "pi-me000001"
HELLO: Object = {"program": "intercomd", "version": "0.1.0", "pid": 7, "incarnation": "i-1"}


def row(peer_id: str, name: str | None = None, **members: object) -> Object:
    """A row as a broker sends it."""
    named = {} if name is None else {"name": name}
    return {"id": peer_id, "cwd": "/work", "model": "model-a", **named, **members}


def incoming(sender: Object, message_id: str, text: str = "hello", **members: object) -> Object:
    """A ``message`` frame."""
    message = {"id": message_id, "timestamp": NOW_MS, "content": {"text": text}, **members}
    return {"type": "message", "from": sender, "message": message}


class Desk:
    """An exchange whose IDs are ``id-1``, ``id-2``, … and whose time is ``NOW_MS``."""

    def __init__(self, **profile: Any) -> None:
        self._made = 0
        self._reader = FrameReader()
        described = {"cwd": "/work", "model": "model-a", "name": "me", **profile}
        self.exchange = Exchange(Profile(**described), make_id=self._make_id, now_ms=lambda: NOW_MS)

    def join(self, *, ext: bool = True) -> Desk:
        """Register, at a broker of ours or at an old one."""
        running = self.run(flows.register(self.exchange))
        self.said()
        extras: Object = {"ext": 1, "broker": HELLO} if ext else {}
        self.hear({"type": "registered", "sessionId": ME, **extras})
        assert running.resume() == ME
        return self

    def run(self, flow: Flow[T]) -> Running[T]:
        """Begin a flow; it stands at its first wait, or has ended."""
        return Running(flow)

    def hear(self, *frames: Object) -> None:
        """The broker says this."""
        for heard in frames:
            self.exchange.receive(frame(encode_json(heard)))

    def said(self) -> list[Object]:
        """What the client said since the last look, all of it taken by the kernel."""
        output = self.exchange.take_output()
        self.exchange.note_written(len(output))
        return [decode_json(payload) for payload in self._reader.feed(output)]

    def events(self) -> list[Record]:
        """What arrived unasked since the last look."""
        room = self.exchange.mailroom
        return list(iter(room.take, None))

    def _make_id(self) -> str:
        self._made += 1
        return f"id-{self._made}"


class Running(Generic[T]):
    """A flow under way: the call it waits for and for how long, or its result."""

    def __init__(self, flow: Flow[T]) -> None:
        self._flow = flow
        self.is_done = False
        self.result: T | None = None
        self._step(None)

    def resume(self, elapsed_s: float = 0.0) -> T | None:
        """Go on as the shells do, after so many seconds; the result once the flow ended."""
        self._step(elapsed_s)
        return self.result

    def go_on(self) -> T | None:
        """Resume for as long as what it waits for is there."""
        while not self.is_done and self.call.is_settled:
            self._step(0.0)
        return self.result

    def close(self) -> None:
        """Interrupt it where it stands."""
        self._flow.close()

    def _step(self, elapsed_s: float | None) -> None:
        try:
            self.call, self.timeout_s = next(self._flow) if elapsed_s is None else self._flow.send(elapsed_s)
        except StopIteration as done:
            self.is_done, self.result = True, done.value
