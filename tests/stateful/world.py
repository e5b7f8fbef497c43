"""A router with the cast around it, a scripted kernel and spool, and watches that look at everything.

Owns who has which connection, what was said, and taking one step. The whole can be copied at any moment. Does not own
which steps there are (``actions``) nor what must always hold (``watches``).
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from intercomd.core import events
from intercomd.core.router import Router
from libintercom.wire.frames import encode_json
from libintercom.wire.messages import Content, Message
from libintercom.wire.record import dump_record
from libintercom.wire.requests import Read, Send
from tests.stateful.cast import PARTS, Part, registration
from tests.stateful.watches import WATCHES
from tests.support.conversation import fake_uuid
from tests.support.fake_listener import FakeListener
from tests.support.rig import HELLO, Rig

if TYPE_CHECKING:
    from intercomd.core.effects import Effect
    from intercomd.core.events import Event
    from libintercom.wire.requests import Request
    from tests.stateful.actions import Action
    from tests.stateful.watch import Watch

# Deadlines that may still fire when everybody has left.
_MAX_LAST_DEADLINES = 100
_FRAME_BYTES = 200


# Names of everything that happened in this interpreter: events, frames, and deadlines that were due.
KINDS_SEEN: set[str] = set()


@cache
def compose(message_id: str, members: tuple[tuple[str, Any], ...]) -> tuple[Message, bytes]:
    """A message and its bytes."""
    message = Message(id=message_id, timestamp=1, content=Content(text="t"), **dict(members))
    return message, encode_json(dump_record(message))


class World(Rig):
    """The play at one moment."""

    def __init__(self, router: Router) -> None:
        super().__init__(router)
        self.endpoint = "waits"
        # The open connection of each part, and whether it is registered there.
        self.conns: dict[str, int] = {}
        self.registered: set[str] = set()
        self.watches: list[Watch] = [watch() for watch in WATCHES]
        self.is_broken = False
        # Whether what everybody receives is kept, until somebody takes it out of here.
        self.is_listened_to = False
        self.heard: dict[str, list[bytes]] = {}
        self.has_stop_waiting = self.is_stop_cancellable = False
        self._parts: dict[int, str] = {}
        self._last_conn = 0
        self._lives = 1
        self._said = dict.fromkeys(PARTS, 0)
        self._joined = dict.fromkeys(PARTS, 0)
        # The last message of each part (to, id, members), and the last question that each was asked by each.
        self.last: dict[str, tuple[str, str, dict[str, Any]]] = {}
        self.questions: dict[tuple[str, str], str] = {}
        # The last read that each part was asked for, by its token, and how many reads each has begun.
        self.tokens: dict[str, str] = {}
        self._reads = dict.fromkeys(PARTS, 0)

    # Looking.

    def part_of(self, conn: int) -> Part | None:
        """Who has, or had last, this connection."""
        key = self._parts.get(conn)
        return PARTS[key] if key else None

    def present(self, conn: int) -> Part | None:
        """Who is registered on this connection just now."""
        part = self.part_of(conn)
        return part if part and part.key in self.registered and self.conns.get(part.key) == conn else None

    def socket_of(self, key: str) -> Any:
        return self.listener.sockets[self.conns[key]]

    def can_speak(self, key: str) -> bool:
        return key in self.conns and self.socket_of(key).is_readable and not self.router.lifetime.is_over

    def perform(self, action: Action) -> bool:
        """One step of an alphabet; False when it cannot be done just now."""
        return action.perform(self)

    def is_to_be_parked(self, part: Part) -> bool:
        """Whether a part that leaves now was parked before: by what its main was told, or by input that waits."""
        session = self.router.state.roster.sessions.get(part.peer_id)
        return session is not None and self.router.parking.expects(session)

    def stored_ids(self, *kinds: str) -> set[tuple[str, str]]:
        """Author and ID of every message of these kinds that the spool keeps."""
        facts = [item.read() for item in self.kept_items.values() if item.kind in kinds]
        return {(fact["sender"], fact["id"]) for fact in facts}

    # Stepping: each returns whether it could be done.

    def connect(self, key: str) -> bool:
        if key in self.conns or not self.listener.is_accepting or self.has_stop_waiting or self.exit:
            return False
        self._last_conn += 1
        self.conns[key] = self._last_conn
        self._parts[self._last_conn] = key
        self.listener.accept(self._last_conn)
        return self.step(events.ConnectionAccepted(self._last_conn, self.at_ms))

    def register(self, key: str) -> bool:
        if not self.can_speak(key) or key in self.registered:
            return False
        self._joined[key] += 1
        ids = [fake_uuid(1000 * sorted(PARTS).index(key) + 2 * self._joined[key] + at) for at in (0, 1)]
        return self.say(key, registration(key), ids=tuple(ids))

    def say(self, key: str, request: Request, message: bytes = b"", ids: tuple[str, ...] = ()) -> bool:
        if not self.can_speak(key):
            return False
        return self.step(
            events.FrameReceived(self.conns[key], request, _FRAME_BYTES + len(message), self.at_ms, message, ids)
        )

    def read(self, key: str, to: str) -> bool:
        """Read a receipt; every read has the same request id."""
        if key not in self.registered:
            return False
        self._reads[key] += 1
        token = fake_uuid(100_000 * (1 + sorted(PARTS).index(key)) + self._reads[key])
        frame = Read(request_id="r", kind="receipt", to=to, root_session_id="main-of-b", message_id="m")
        return self.say(key, frame, ids=(token,))

    def send(self, key: str, to: str, mark: str, **members: Any) -> bool:
        """A message under a fresh id; its mark says what it is: ``p`` plain, ``s`` staged, ``r`` reply, ``q`` ask."""
        if not self.can_speak(key) or key not in self.registered:
            return False
        self._said[key] += 1
        message_id = f"{key}-{self._said[key]}{mark}"
        self.last[key] = (to, message_id, members)
        return self.send_again(key)

    def send_again(self, key: str, **changes: Any) -> bool:
        """The last message of a part, or with changes another one under its id."""
        if key not in self.last or not self.can_speak(key) or key not in self.registered:
            return False
        to, message_id, members = self.last[key]
        message, raw = compose(message_id, tuple(sorted({**members, **changes}.items())))
        return self.say(key, Send(to=to, message=message), raw)

    def hang_up(self, key: str) -> bool:
        if key not in self.conns:
            return False
        conn = self.conns[key]
        self.listener.drop(conn)
        return self.step(events.ConnectionClosed(conn, "closed by peer"))

    def hang_up_together(self, keys: tuple[str, ...]) -> bool:
        """Writing showed that several are gone at once."""
        conns = [self.conns[key] for key in keys if key in self.conns]
        if len(conns) < 2:
            return False
        for conn in conns:
            self.listener.drop(conn)
        ends = [events.ConnectionClosed(conn, "writing failed") for conn in conns]
        return self.step(events.ConnectionsLost(tuple(conns)), *ends)

    def restart(self) -> bool:
        """The broker is killed, and another one finds what the spool kept; everybody has to come again."""
        if self.exit:
            return False
        self._lives += 1
        state = self.router.state
        hello = HELLO.replace(incarnation=f"incarnation-{self._lives}")
        self.router, self.listener = Router(state.limits, hello, self.at_ms, self.now), FakeListener()
        self.unstored, self.unforgotten, self.last = [], [], {}
        self.conns, self.registered, self.has_stop_waiting = {}, set(), False
        self.watches = [watch.survive() for watch in self.watches]
        return self.step(events.Recovered(tuple(self.kept_items.values())))

    def wait(self) -> bool:
        """Nothing happens until the next deadline."""
        deadline = self.router.next_deadline()
        if deadline is None or self.exit:
            return False
        self.is_broken = True
        # One that is set again at once has come all the same.
        KINDS_SEEN.update(f"deadline {key[0]}" for key, at in self.router.state.deadlines._at.items() if at <= deadline)
        self.fire(deadline)
        return self._rest()

    def step(self, *happened: Event) -> bool:
        """Let something happen; then everything that must hold is looked at. After the exit nothing can."""
        if self.exit:
            return False
        # Until it has come to rest again, an invariant may have been found broken.
        self.is_broken = True
        self.run(*happened)
        return self._rest()

    def wind_down(self) -> None:
        """Everybody leaves and all time passes; then nothing may be left."""
        self.spool = "stores"
        self.step(*self.store_answers(is_stored=True))
        for key in list(self.conns):
            self.hang_up(key)
        for _deadline in range(_MAX_LAST_DEADLINES):
            if self.has_stop_waiting or not self.wait():
                break
        if not self.exit:
            for watch in self.watches:
                watch.end(self)

    def outline(self) -> tuple[Any, ...]:
        """What tells one state from another, without clocks, tokens and message numbers."""
        state = self.router.state
        sessions = tuple(
            (key, conn, key in self.registered, self.socket_of(key).room_bytes, self.socket_of(key).waiting_bytes)
            for key, conn in sorted(self.conns.items())
        )
        asks = tuple((ask.asker_id, ask.recipient_id, ask.is_waiting, ask.is_delivered) for ask in state.asks)
        rows = [part.registered for part in state.roster.sessions.values()]
        shown = tuple((row.status, row.accepts_asks, str(row.application_guard)) for row in rows)
        held = tuple(state.counters.held.values()), tuple(state.counters.counts.values())
        waiting = state.deadlines.keys()
        reads = tuple(sorted((opened.reader_id, opened.owner.peer_id) for opened in self.router.reads))
        due = tuple(sorted(str(key[0]) for key in waiting))
        spool = (self.spool, len(self.unstored), len(self.unforgotten))
        around = (spool, self.has_stop_waiting, self.listener.is_accepting, self.exit is None)
        away = tuple(sorted(state.roster.parked)), tuple(sorted(item.kind for item in self.kept_items.values()))
        return sessions, asks, shown, held, due, reads, around, away, tuple(sorted(map(repr, state.stage.all_keys())))

    # What the rig runs.

    def decide(self, event: Event) -> None:
        KINDS_SEEN.add(type(event).__name__)
        if isinstance(event, events.FrameReceived):
            KINDS_SEEN.add(event.frame.type)
        for watch in self.watches:
            watch.event(self, event)
        self._follow(event)
        super().decide(event)
        if isinstance(event, events.ConnectionClosed):
            del self.listener.sockets[event.conn]

    def carry_out(self, effect: Effect) -> None:
        for watch in self.watches:
            watch.effect(self, effect)
        kind = type(effect).__name__
        if kind == "StopAccepting":
            self.has_stop_waiting, self.is_stop_cancellable = True, effect.is_cancellable
        elif kind == "Write" and effect.frame.type == "registered":
            self.registered.add(self._parts[effect.conn])
        elif kind == "Write" and effect.frame.type == "read_request":
            self.tokens[self._parts[effect.conn]] = effect.frame.token
        super().carry_out(effect)

    def _follow(self, event: Event) -> None:
        """Who is there, from what happened."""
        if isinstance(event, events.ConnectionClosed):
            key = self._parts[event.conn]
            self.conns.pop(key, None)
            self.registered.discard(key)
        elif isinstance(event, events.FrameReceived):
            key = self._parts[event.conn]
            if event.frame.type == "unregister":
                self.registered.discard(key)
            elif isinstance(event.frame, Send) and event.frame.message.is_ask:
                self.questions[event.frame.to, key] = event.frame.message.id
        elif isinstance(event, events.EndpointReleased | events.StopCancelled):
            self.has_stop_waiting = False

    def _rest(self) -> bool:
        if not self.exit:
            for watch in self.watches:
                watch.rest(self)
        self.log.clear()
        for conn, socket in self.listener.sockets.items():
            if self.is_listened_to:
                self.heard.setdefault(self._parts[conn], []).extend(socket.arrived)
            socket.arrived.clear()
        self.is_broken = False
        return True
