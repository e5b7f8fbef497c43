"""Invariants of messages: one answer each, the truth of it, order, limits, and that none is lost from the books.

Owns what each of these watches remembers of the past. Does not own sessions and questions (``session_watches``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from intercomd.core import effects, events
from intercomd.core.dedupe import message_key
from intercomd.core.refusals import KEPT, PARKED
from libintercom.wire import requests
from libintercom.wire.codec import INCOMING_OVERHEAD_BYTES
from tests.stateful.watch import ACKS, Watch, named
from tests.support.rig import START_S

if TYPE_CHECKING:
    from intercomd.core.effects import Effect
    from intercomd.core.events import Event
    from tests.stateful.world import World

_TERMINALS = ("delivered", "replaced", "drained", "fetched")


class OneAnswer(Watch):
    """Each send has exactly one answer, and so has each message taken back."""

    name = "one answer"

    def __init__(self) -> None:
        self.owed: dict[int, dict[str, int]] = {}

    def event(self, world: World, event: Event) -> None:
        if isinstance(event, events.ConnectionClosed):
            self.owed.pop(event.conn, None)
        elif isinstance(event, events.FrameReceived):
            frame = event.frame
            if isinstance(frame, requests.Send):
                self._owe(event.conn, frame.message.id)
            elif isinstance(frame, requests.BadSend | requests.CancelMessage):
                self._owe(event.conn, frame.message_id)
            elif isinstance(frame, requests.Unregister):
                self.owed.pop(event.conn, None)

    def effect(self, world: World, effect: Effect) -> None:
        if isinstance(effect, effects.Write) and effect.frame.type in ACKS:
            message_id = effect.frame.message_id  # type: ignore[attr-defined]
            owed = self.owed.get(effect.conn, {})
            self.require(owed.get(message_id), f"{effect.frame!r} to connection {effect.conn} answers nothing")
            owed[message_id] -= 1
            if not owed[message_id]:
                del owed[message_id]

    def rest(self, world: World) -> None:
        # What a connection said that is being ended needs no answer.
        # What is being stored is answered when that is done.
        storing = {effect.item.read().get("id") for effect in world.unstored}
        open_ids = {conn: owed.keys() - storing for conn, owed in self.owed.items()}
        owing = {conn: owed for conn, owed in open_ids.items() if owed and world.present(conn)}
        self.require(not owing, f"sends without an answer: {owing}")

    def _owe(self, conn: int, message_id: str) -> None:
        owed = self.owed.setdefault(conn, {})
        owed[message_id] = owed.get(message_id, 0) + 1


class TakenFirst(Watch):
    """``delivered`` is said only of what the kernel took, and nothing that was refused is taken."""

    name = "taken first"

    def __init__(self) -> None:
        self.on_its_way: dict[int, tuple[str, str]] = {}
        self.taken: set[tuple[str, str]] = set()
        self.accepted: set[tuple[str, str]] = set()
        self.refused: set[tuple[str, str]] = set()
        self.taking_back: set[tuple[str, str]] = set()

    def event(self, world: World, event: Event) -> None:
        if isinstance(event, events.DeliveriesTaken):
            for token in event.tokens:
                key = self.on_its_way.pop(token)
                self.require(key not in self.refused, f"{key} was refused and arrived")
                self.taken.add(key)
        elif isinstance(event, events.FrameReceived):
            part = world.part_of(event.conn)
            assert part
            if isinstance(event.frame, requests.Send):
                self.refused.discard((part.peer_id, event.frame.message.id))
            elif isinstance(event.frame, requests.CancelMessage):
                self.taking_back.add((part.peer_id, event.frame.message_id))

    def effect(self, world: World, effect: Effect) -> None:
        if isinstance(effect, effects.Deliver):
            self.on_its_way[effect.token] = named(effect)
        elif isinstance(effect, effects.Write) and effect.frame.type in ACKS:
            part = world.part_of(effect.conn)
            assert part
            self._acknowledge((part.peer_id, effect.frame.message_id), effect.frame.type)  # type: ignore[attr-defined]

    def _acknowledge(self, key: tuple[str, str], kind: str) -> None:
        if key in self.taking_back:
            self.taking_back.discard(key)
        elif kind == "delivered":
            self.require(key in self.taken, f"{key} was acknowledged before the kernel took it")
        elif kind == "delivery_queued":
            self.accepted.add(key)
        elif key not in self.taken and key not in self.accepted:
            # Not refused for using the id of a message that was accepted.
            self.refused.add(key)


class Order(Watch):
    """What one sender says to one recipient comes in the order it was said, and nothing comes twice."""

    name = "order"

    def __init__(self) -> None:
        self.last: dict[tuple[int, str], int] = {}
        self.staged: set[tuple[int, str]] = set()

    def event(self, world: World, event: Event) -> None:
        is_new = isinstance(event, events.FrameReceived) and isinstance(event.frame, requests.Register)
        if is_new:
            # Another session on this connection: what the one before received does not count.
            self.last = {key: number for key, number in self.last.items() if key[0] != event.conn}
            self.staged = {key for key in self.staged if key[0] != event.conn}

    def effect(self, world: World, effect: Effect) -> None:
        if not isinstance(effect, effects.Deliver):
            return
        sender_id, message_id = named(effect)
        if message_id.endswith("s"):
            # A staged message may be overtaken by what is not staged, but it comes once.
            self.require((effect.conn, message_id) not in self.staged, f"{message_id} came twice")
            self.staged.add((effect.conn, message_id))
            return
        number = int(message_id[2:-1])
        before = self.last.get((effect.conn, sender_id), 0)
        self.require(number > before, f"{message_id} came behind number {before} of {sender_id}")
        self.last[effect.conn, sender_id] = number


class Quotas(Watch):
    """No limit of what waits, or of how fast one may send, is ever passed."""

    name = "quotas"

    def __init__(self) -> None:
        self.waiting: dict[int, dict[int, int]] = {}
        self.conn_of: dict[int, int] = {}
        self.pairs: dict[tuple[str, int], list[float]] = {}
        self.passed: dict[int, int] = {}
        self.spooled: set[tuple[str, str]] = set()

    def event(self, world: World, event: Event) -> None:
        if isinstance(event, events.DeliveriesTaken):
            for token in event.tokens:
                self.waiting.get(self.conn_of.pop(token), {}).pop(token, None)
        elif isinstance(event, events.ConnectionClosed):
            self.waiting.pop(event.conn, None)
            self.passed.pop(event.conn, None)
        elif isinstance(event, events.FrameReceived) and isinstance(event.frame, requests.Send):
            self.passed[event.conn] = self.passed.get(event.conn, 0) + 1

    def effect(self, world: World, effect: Effect) -> None:
        self.spooled |= world.stored_ids("input")
        if isinstance(effect, effects.Deliver):
            size = INCOMING_OVERHEAD_BYTES + len(effect.sender) + len(effect.message)
            self.waiting.setdefault(effect.conn, {})[effect.token] = size
            self.conn_of[effect.token] = effect.conn
            self._count_pair(world, effect)
        elif isinstance(effect, effects.Write) and getattr(effect.frame, "rule", None) == "sends":
            self.passed[effect.conn] -= 1

    def _count_pair(self, world: World, effect: effects.Deliver) -> None:
        sender_id, message_id = named(effect)
        if message_id.endswith(("r", "s")) or (sender_id, message_id) in self.spooled:
            # The first reply to a live ask is exempt; a staged or spooled message was counted when it came.
            return
        limits = world.router.state.limits
        times = self.pairs.setdefault((sender_id, effect.conn), [])
        times[:] = [at for at in times if at > world.now - limits.pair_window_s]
        times.append(world.now)
        self.require(len(times) <= limits.pair_messages, f"{len(times)} messages of {sender_id} in a window")

    def rest(self, world: World) -> None:
        limits, state = world.router.state.limits, world.router.state
        for conn, waiting in self.waiting.items():
            self.require(len(waiting) <= limits.recipient_messages, f"{len(waiting)} messages wait for {conn}")
            size = sum(waiting.values())
            self.require(size <= limits.recipient_bytes or len(waiting) == 1, f"{size} bytes wait for {conn}")
            held = state.roster.connections[conn].held_messages
            self.require(held == len(waiting), f"{held} counted, {len(waiting)} wait for {conn}")
        total = sum(sum(waiting.values()) for waiting in self.waiting.values())
        self.require(state.quotas.held_bytes == total, f"{state.quotas.held_bytes} counted, {total} bytes wait")
        self.require(total <= limits.outbound_bytes, f"{total} bytes wait in all")
        self.require(len(state.stage) <= limits.stage_keys, f"{len(state.stage)} keys staged")
        self.require(state.stage.size_bytes <= limits.stage_bytes, f"{state.stage.size_bytes} bytes staged")
        for conn, passed in self.passed.items():
            # Time passes only from deadline to deadline; the bucket never grants more than this.
            granted = limits.send_burst + limits.sends_per_s * (world.now - START_S)
            self.require(passed <= granted, f"{passed} sends of {conn} passed")


class Balance(Watch):
    """accepted = terminals + gauges, after every event; and the gauges are what is there."""

    name = "balance"

    def event(self, world: World, event: Event) -> None:
        self._check(world)

    def rest(self, world: World) -> None:
        self._check(world)
        held, there = world.router.state.counters.held, len(world.router.state.stage)
        self.require(held["staged"] == there, f"{held['staged']} counted as staged, {there} are")
        for gauge, kind in (("parked", "input"), ("kept", "reply")):
            stored = len(world.stored_ids(kind))
            self.require(held[gauge] == stored, f"{held[gauge]} counted as {gauge}, {stored} are stored")

    def _check(self, world: World) -> None:
        counts, held = world.router.state.counters.counts, world.router.state.counters.held
        ended = sum(count for name, count in counts.items() if name in _TERMINALS or name.startswith("dead_"))
        self.require(counts["accepted"] == ended + sum(held.values()), f"{counts} {held}")
        self.require(min(held.values()) >= 0, f"a gauge is negative: {held}")

    def end(self, world: World) -> None:
        held = world.router.state.counters.held
        self.require(not any(held.values()), f"something is held for nobody: {held}")


class Survival(Watch):
    """What was accepted into the spool is in it until it arrived, died or was fetched, and then it is not.

    So a broker that is killed at any moment loses nothing of it, and brings nothing a second time.
    """

    name = "survival"

    def __init__(self) -> None:
        # What was promised and is not over, and what is over.
        self.admitted: set[tuple[str, str]] = set()
        self.over: set[tuple[str, str]] = set()
        self.on_its_way: dict[int, tuple[str, str]] = {}

    def survive(self) -> Watch:
        after = Survival()
        after.admitted, after.over = self.admitted, self.over
        return after

    def event(self, world: World, event: Event) -> None:
        if isinstance(event, events.DeliveriesTaken):
            self._end(*(self.on_its_way.pop(token) for token in event.tokens))
        elif isinstance(event, events.FrameReceived) and isinstance(event.frame, requests.Send):
            part = world.part_of(event.conn)
            assert part
            # Sent again, it may be another attempt.
            self.over.discard((part.peer_id, event.frame.message.id))
        elif isinstance(event, events.FrameReceived) and isinstance(event.frame, requests.AckReply):
            kept = world.router.kept.of_token(event.frame.reply_token, event.frame.message_id)
            if kept is not None and kept.reply is not None and kept.reply.is_stored:
                self._end((kept.reply.author.peer_id, kept.reply.message_id))

    def effect(self, world: World, effect: Effect) -> None:
        if isinstance(effect, effects.Deliver):
            self.on_its_way[effect.token] = named(effect)
        elif isinstance(effect, effects.Store) and effect.item.kind == "letter":
            letter = effect.item.read()["letter"]
            self._end((letter["senderId"], letter["messageId"]))
        elif isinstance(effect, effects.Write) and getattr(effect.frame, "reason", "") in (PARKED, KEPT):
            part = world.part_of(effect.conn)
            message_id = effect.frame.message_id  # type: ignore[attr-defined]
            assert part
            # Said again of one that came or died since, it is no promise any more.
            if (part.peer_id, message_id) in world.stored_ids("input", "reply") or not self._is_again(world, effect):
                self.admitted.add((part.peer_id, message_id))

    @staticmethod
    def _is_again(world: World, effect: effects.Write) -> bool:
        """Whether this is the answer to a message that went to its recipient already."""
        part = world.part_of(effect.conn)
        known = part and world.router.state.dedupe.find(
            message_key(part.peer_id, effect.frame.message_id),  # type: ignore[attr-defined]
            world.now,
        )
        return bool(known and known.spooled is None)

    def rest(self, world: World) -> None:
        stored = world.stored_ids("input", "reply")
        self.require(not self.admitted - stored, f"{self.admitted - stored} would be lost with the broker")
        self.require(not stored & self.over, f"{stored & self.over} would come again after a restart")

    def _end(self, *keys: tuple[str, str]) -> None:
        self.admitted -= set(keys)
        self.over |= set(keys)
