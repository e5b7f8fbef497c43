"""Every kind of thing that can happen to the core, as steps of the play.

Owns the steps by name. A step that cannot be done just now (speaking on a closed connection) is no sequence. Does not
own in which order they are tried (``explorer``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from intercomd.core import events
from libintercom.wire import requests
from libintercom.wire.guards import Guard
from libintercom.wire.reads import ReadError
from tests.stateful.cast import CONSENT, INCARNATION, PARTS

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.stateful.world import World


# The token of every kept ask of the play: their message IDs tell them apart.
_TOKEN = "0123456789abcdef" * 2


@dataclass(frozen=True)
class Action:
    """One step. ``who`` is the part that acts, "" for the broker's own surroundings."""

    label: str
    who: str
    perform: Callable[[World], bool]


def connects(who: str) -> Action:
    return Action(f"{who} connects", who, lambda world: world.connect(who))


def registers(who: str) -> Action:
    return Action(f"{who} registers", who, lambda world: world.register(who))


def registers_twice(who: str) -> Action:
    from tests.stateful.cast import registration

    def perform(world: World) -> bool:
        return who in world.registered and world.say(who, registration(who), ids=("x", "y"))

    return Action(f"{who} registers twice", who, perform)


def unregisters(who: str) -> Action:
    return Action(f"{who} unregisters", who, lambda world: _told(world, who, requests.Unregister()))


def hangs_up(who: str) -> Action:
    return Action(f"{who} hangs up", who, lambda world: world.hang_up(who))


def hang_up_together(*who: str) -> Action:
    return Action(f"{', '.join(who)} hang up together", who[0], lambda world: world.hang_up_together(who))


def says_nonsense(who: str) -> Action:
    def perform(world: World) -> bool:
        return world.can_speak(who) and world.step(events.FrameRejected(world.conns[who], "not JSON"))

    return Action(f"{who} says nonsense", who, perform)


def says_half(who: str, held_bytes: int) -> Action:
    """A read ends within a frame (or, with 0, completes it; the frame itself is another step)."""

    def perform(world: World) -> bool:
        has_begun = world.can_speak(who) and world.router.state.roster.connections[world.conns[who]].partial_bytes
        if not world.can_speak(who) or (not held_bytes and not has_begun):
            return False
        return world.step(events.FrameBegun(world.conns[who], held_bytes))

    return Action(f"{who} says half a frame ({held_bytes})", who, perform)


def lists(who: str, *, stream: bool = False) -> Action:
    frame = requests.ListSessions(request_id="l", stream=True) if stream else requests.ListSessions(request_id="l")
    return Action(f"{who} lists" + (" in pieces" if stream else ""), who, lambda world: _told(world, who, frame))


def asks_health(who: str) -> Action:
    return Action(f"{who} asks for health", who, lambda world: world.say(who, requests.Health(request_id="h")))


def asks_stats(who: str) -> Action:
    return Action(f"{who} asks for stats", who, lambda world: _told(world, who, requests.Stats(request_id="s")))


def asks_letters(who: str) -> Action:
    frame = requests.ListDeadLetters(request_id="d")
    return Action(f"{who} asks for letters", who, lambda world: _told(world, who, frame))


def presents(who: str, **members: object) -> Action:
    shown = ", ".join(f"{name}={value}" for name, value in members.items())
    frame = requests.Presence(**members)
    return Action(f"{who} presents {shown}", who, lambda world: _told(world, who, frame))


def sends(who: str, to: str, **members: object) -> Action:
    shown = "".join(f", {name}={value}" for name, value in members.items())
    return Action(f"{who} sends to {to}{shown}", who, lambda world: world.send(who, to, "p", **members))


def sends_badly(who: str) -> Action:
    frame = requests.BadSend(message_id="unknown")
    return Action(f"{who} sends badly", who, lambda world: _told(world, who, frame))


def replaces(who: str, to: str, thread: str = "t", *, is_ask: bool = False) -> Action:
    members: dict[str, object] = {"delivery": "queue", "queue_mode": "replace", "thread_id": thread}
    if is_ask:
        members["expects_reply"] = True
    shown = "asks in" if is_ask else "replaces"
    return Action(f"{who} {shown} {thread} of {to}", who, lambda world: world.send(who, to, "s", **members))


def asks(who: str, to: str, **members: object) -> Action:
    shown = "".join(f", {name}={value}" for name, value in members.items())

    def perform(world: World) -> bool:
        return world.send(who, to, "q", expects_reply=True, **members)

    return Action(f"{who} asks {to}{shown}", who, perform)


def replies(who: str, to: str, key: str, **members: object) -> Action:
    """A reply to the last question that ``key`` asked ``who`` under the name it used."""

    def perform(world: World) -> bool:
        question = next((asked for (name, asker), asked in world.questions.items() if asker == key), "")
        return bool(question) and world.send(who, to, "r", reply_to=question, **members)

    return Action(f"{who} replies to {to}", who, perform)


def replies_wrongly(who: str, to: str) -> Action:
    return Action(f"{who} replies wrongly to {to}", who, lambda world: world.send(who, to, "p", reply_to="nothing"))


def repeats(who: str) -> Action:
    return Action(f"{who} repeats itself", who, lambda world: world.send_again(who))


def reuses_id(who: str) -> Action:
    return Action(f"{who} reuses an id", who, lambda world: world.send_again(who, reply_to="else"))


def cancels_ask(who: str) -> Action:
    def perform(world: World) -> bool:
        return who in world.last and _told(world, who, requests.CancelAsk(message_id=world.last[who][1]))

    return Action(f"{who} cancels its ask", who, perform)


def takes_back(who: str) -> Action:
    def perform(world: World) -> bool:
        return who in world.last and _told(world, who, requests.CancelMessage(message_id=world.last[who][1]))

    return Action(f"{who} takes its message back", who, perform)


def holds(who: str, room_bytes: int = 0) -> Action:
    """The kernel takes nothing more for this part, or some bytes more and then nothing."""

    def perform(world: World) -> bool:
        if who not in world.conns or world.socket_of(who).room_bytes == room_bytes:
            return False
        world.socket_of(who).room_bytes = room_bytes
        return world.step()

    return Action(f"the kernel holds {who}" + (f" after {room_bytes}" if room_bytes else ""), "", perform)


def takes(who: str) -> Action:
    """The kernel takes everything for this part again."""

    def perform(world: World) -> bool:
        if who not in world.conns or world.socket_of(who).room_bytes is None:
            return False
        world.socket_of(who).room_bytes = None
        return world.step()

    return Action(f"the kernel takes for {who}", "", perform)


def resets(who: str) -> Action:
    """The next write to this part finds it gone."""

    def perform(world: World) -> bool:
        if who not in world.conns or world.socket_of(who).is_reset:
            return False
        world.socket_of(who).is_reset = True
        return world.step()

    return Action(f"the kernel resets {who}", "", perform)


def reads(who: str, to: str) -> Action:
    return Action(f"{who} reads {to}", who, lambda world: world.read(who, to))


def answers_read(who: str, asked: str = "") -> Action:
    """An answer under the token that this part, or another one, was asked with last: in time, late or again."""

    def perform(world: World) -> bool:
        token = world.tokens.get(asked or who)
        if token is None:
            return False
        error = ReadError(code="receipt_not_found", reason="none")
        return _told(world, who, requests.ReadResponse(token=token, kind="receipt", error=error))

    return Action(f"{who} answers what {asked or who} was asked", who, perform)


def sends_guarded(who: str, to: str) -> Action:
    """A message for this part as it joined."""
    part = PARTS[to]
    guard = Guard(root_session_id=part.root, peer_id=part.peer_id, incarnation=INCARNATION, application_guard=CONSENT)
    members = {"expects_reply": False, "delivery": "steer", "guard": guard}
    return Action(
        f"{who} sends {to} a guarded message", who, lambda world: world.send(who, part.peer_id, "p", **members)
    )


def waits() -> Action:
    return Action("the next deadline comes", "", lambda world: world.wait())


def passes(seconds: float) -> Action:
    """So much time passes, with every deadline within it."""

    def perform(world: World) -> bool:
        world.advance(seconds)
        return world.step()

    return Action(f"{seconds} s pass", "", perform)


def spools(mode: str) -> Action:
    def perform(world: World) -> bool:
        if world.spool == mode:
            return False
        world.spool = mode
        return world.step()

    return Action(f"the spool {mode}", "", perform)


def answers_letters(*, is_stored: bool) -> Action:
    def perform(world: World) -> bool:
        return bool(world.unstored or world.unforgotten) and world.step(*world.store_answers(is_stored=is_stored))

    return Action("what waits is stored" if is_stored else "what waits is not stored", "", perform)


def parks(who: str, child: str) -> Action:
    frame = requests.Park(child_id=PARTS[child].peer_id)
    return Action(f"{who} parks {child}", who, lambda world: _told(world, who, frame))


def unparks(who: str, child: str, *, discard: bool) -> Action:
    frame = requests.Unpark(child_id=PARTS[child].peer_id, discard=discard)
    shown = " and gives up its input" if discard else ""
    return Action(f"{who} unparks {child}{shown}", who, lambda world: _told(world, who, frame))


def wakes(who: str, child: str, outcome: str) -> Action:
    """A main answers the last try of waking a child."""

    def perform(world: World) -> bool:
        attempt = world.router.parking.attempt_of(PARTS[child].peer_id)
        frame = requests.WakeOutcome(child_id=PARTS[child].peer_id, attempt=attempt, outcome=outcome)
        return attempt > 0 and _told(world, who, frame)

    return Action(f"waking {child} {outcome}", who, perform)


def keeps(who: str, to: str, **members: object) -> Action:
    """An ask whose reply is kept for a minute."""
    kept: dict[str, object] = {"keep_reply_ms": 60_000, "reply_token": _TOKEN, **members}
    return Action(f"{who} asks {to} for keeps", who, lambda world: world.send(who, to, "q", expects_reply=True, **kept))


def fetches(who: str) -> Action:
    def perform(world: World) -> bool:
        questions = world.router.kept.questions()
        frame = requests.FetchReply(
            request_id="f", message_id=questions[0][1] if questions else "m", reply_token=_TOKEN
        )
        return _told(world, who, frame)

    return Action(f"{who} fetches", who, perform)


def acknowledges(who: str) -> Action:
    def perform(world: World) -> bool:
        questions = world.router.kept.questions()
        frame = requests.AckReply(message_id=questions[0][1] if questions else "m", reply_token=_TOKEN)
        return _told(world, who, frame)

    return Action(f"{who} acknowledges", who, perform)


def restarts() -> Action:
    return Action("the broker is killed and started again", "", lambda world: world.restart())


def stops() -> Action:
    return Action("a stop is asked for", "", lambda world: world.step(events.StopRequested("SIGTERM")))


def releases() -> Action:
    def perform(world: World) -> bool:
        return world.has_stop_waiting and world.step(events.EndpointReleased())

    return Action("the endpoint is released", "", perform)


def stays() -> Action:
    def perform(world: World) -> bool:
        return world.has_stop_waiting and world.is_stop_cancellable and world.step(events.StopCancelled())

    return Action("the stop is cancelled", "", perform)


def exhausts() -> Action:
    def perform(world: World) -> bool:
        return world.listener.is_accepting and world.step(events.DescriptorsExhausted())

    return Action("descriptors run out", "", perform)


def _told(world: World, who: str, frame: requests.Request) -> bool:
    return who in world.registered and world.say(who, frame)
