"""A long mixture: fifty sessions that send, ask, reply, replace, list, stop reading, leave, are killed and come back.

Owns what each does, by dice, and the books: what was said to every sender against what arrived. Every accepted message
must have arrived once, be replaced by a newer one of its thread, or be a dead letter that its sender was told of;
only what was delivered to a session that was killed may be known to nobody.
"""

from __future__ import annotations

import random
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tests.support import sayings as say
from tests.trials.load.peers import Peer, Peers
from tests.trials.load.stage import Latency, Load, Stage, stage
from tests.trials.load.vitals import MIB

if TYPE_CHECKING:
    from tests.trials.load.report import Report
    from tests.trials.load.scale import Scale

_ACTORS = 50
# What remembers by design is kept small, so that growth is a leak; times are short, so that they come about.
_SMALL = {"dedupe_total": 2_000, "letters": 200}
_SHORT = {"stalled_after_s": 0.5, "disconnect_after_s": 1.5, "stage_delay_s": 0.2}
# Resident memory when all is settled, after a first part that warms the allocator and again at the end.
_FLAT_BYTES = 6 * MIB
# Deeds a second of all together: far from every budget of a session, so that only what stops is refused.
_DEEDS_PER_S = 1_500
_SIZES = (10, 500, 500, 500, 20_000, 300_000)
_PAUSE_MS = 5.0
_DEADLINE_S = 20.0


@dataclass
class Letter:
    """One message as the books know it."""

    sender: str
    recipient: str
    thread: str
    word: str = ""
    arrivals: int = 0
    is_dead: bool = False
    # A newer one of its thread was accepted.
    is_replaced: bool = False
    # Its recipient, or its sender, was killed since: nobody may know what became of it.
    is_untold: bool = False

    @property
    def key(self) -> tuple[str, str, str]:
        return (self.sender, self.recipient, self.thread)


@dataclass
class Books:
    """Every message of the run."""

    letters: dict[str, Letter] = field(default_factory=dict)
    violations: list[str] = field(default_factory=list)
    # Those of each session since it was killed last, and those of each thread that may still be replaced.
    _of_session: dict[str, list[Letter]] = field(default_factory=dict)
    _of_thread: dict[tuple[str, str, str], list[Letter]] = field(default_factory=dict)

    def open(self, message_id: str, letter: Letter) -> None:
        """A message is being sent."""
        self.letters[message_id] = letter
        for session_id in (letter.sender, letter.recipient):
            self._of_session.setdefault(session_id, []).append(letter)

    def hear(self, peer: Peer, value: say.Object) -> None:
        """Enter what a session was told."""
        kind = value["type"]
        if kind == "message":
            self._enter_arrival(value["message"]["id"])
        elif kind in ("delivered", "delivery_queued", "delivery_failed"):
            self._enter_word(value)
        elif kind == "dead_letter":
            self.letters[value["messageId"]].is_dead = True

    def mark_killed(self, session_id: str) -> None:
        """What is on its way to or from a killed session is known to nobody, unless it is told."""
        for letter in self._of_session.pop(session_id, ()):
            letter.is_untold = True

    def has_open_words(self) -> bool:
        """Whether a sender still waits for the word about one."""
        return any(not letter.word and not letter.is_untold for letter in self.letters.values())

    def judge(self) -> dict[str, int]:
        """What became of the messages; whatever is amiss is a violation."""
        ends: dict[str, int] = {}
        for message_id, letter in self.letters.items():
            end = self._end_of(letter)
            ends[end] = ends.get(end, 0) + 1
            if end.startswith("LOST"):
                self.violations.append(f"{message_id}: {end}: {letter}")
        return ends

    def _enter_arrival(self, message_id: str) -> None:
        letter = self.letters.get(message_id)
        if letter is None:
            self.violations.append(f"{message_id} arrived, and nobody sent it")
            return
        letter.arrivals += 1
        if letter.arrivals > 1:
            self.violations.append(f"{message_id} arrived {letter.arrivals} times")

    def _enter_word(self, value: say.Object) -> None:
        letter = self.letters[value["messageId"]]
        if letter.word:
            self.violations.append(f"{value['messageId']} had two words: {letter.word}, {value}")
        letter.word = value["type"]
        if letter.thread and letter.word != "delivery_failed":
            for older in self._of_thread.get(letter.key, ()):
                older.is_replaced = not older.arrivals
            self._of_thread[letter.key] = [letter]

    @staticmethod
    def _end_of(letter: Letter) -> str:
        if letter.word == "delivery_failed":
            return "LOST: refused, and arrived" if letter.arrivals else "refused"
        if letter.arrivals:
            return "LOST: a dead letter, and arrived" if letter.is_dead else "arrived"
        if letter.is_dead:
            return "dead letter"
        if letter.is_untold:
            return "its end was killed"
        if letter.is_replaced:
            return "replaced"
        return f"LOST: {letter.word or 'no word'}"


class Actor:
    """One of the sessions; it is itself again when it comes back."""

    def __init__(self, scene: Scene, number: int) -> None:
        self._scene, self._number = scene, number
        self.id = f"soak-{number:03}"
        self.peer: Peer | None = None
        self._asked: list[tuple[str, str]] = []

    @property
    def is_present(self) -> bool:
        return self.peer is not None and bool(self.peer.session_id) and not self.peer.has_ended

    def act(self, dice: random.Random) -> None:
        """One deed. Whoever is away comes back."""
        self.notice_end()
        if self.peer is None:
            self._come()
        elif self.is_present and not self.peer.is_writing:
            deed = dice.choices(self._DEEDS, self._WEIGHTS)[0]
            deed(self, dice)

    def finish(self) -> None:
        """Read everything that is left."""
        if self.peer is not None:
            self.peer.read_on()

    def notice_end(self) -> None:
        """Whoever was disconnected, for reading nothing, was killed."""
        if self.peer is not None and self.peer.has_ended:
            self._be_gone()

    def _come(self) -> None:
        registration = say.register(self.id, id=self.id, ext=1, status="idle", acceptsAsks=True)
        self.peer = self._scene.peers.connect(self._scene.at.path, registration, on_frame=self._hear)

    def _hear(self, peer: Peer, value: say.Object) -> None:
        if value["type"] == "message" and value["message"].get("expectsReply"):
            self._asked.append((value["from"]["id"], value["message"]["id"]))
        self._scene.books.hear(peer, value)

    def _send(self, dice: random.Random) -> None:
        self._say(self._scene.anybody(dice), "x" * dice.choice(_SIZES))

    def _ask(self, dice: random.Random) -> None:
        self._say(self._scene.anybody(dice), "?", expectsReply=True, timeoutMs=dice.choice((0, 100, 5_000)))

    def _reply(self, dice: random.Random) -> None:
        if self._asked:
            to, message_id = self._asked.pop(0)
            self._say(to, "!", replyTo=message_id)

    def _replace(self, dice: random.Random) -> None:
        thread = f"thread {dice.randrange(3)}"
        self._say(self._scene.anybody(dice), "newer", delivery="queue", queueMode="replace", threadId=thread)

    def _present(self, dice: random.Random) -> None:
        status = dice.choice(("idle", "thinking", "tool:bash"))
        self._heard(say.presence(status=status, acceptsAsks=status == "idle"))

    def _list(self, dice: random.Random) -> None:
        self._heard(say.list_sessions("l", stream=dice.random() < 0.5))

    def _stop(self, _dice: random.Random) -> None:
        if self.peer is not None:
            self.peer.stop_reading()

    def _read_on(self, _dice: random.Random) -> None:
        if self.peer is not None:
            self.peer.read_on()

    def _leave(self, _dice: random.Random) -> None:
        """In order, but what is on its way is lost as with a kill."""
        self._heard({"type": "unregister"})
        self._be_gone()

    def _be_gone(self) -> None:
        if self.peer is not None:
            self._scene.books.mark_killed(self.id)
            self._scene.peers.drop(self.peer)
        self.peer = None
        self._asked.clear()

    def _kill(self, _dice: random.Random) -> None:
        self._be_gone()

    def _say(self, to: str, text: str, **members: object) -> None:
        if to == self.id:
            return
        message_id = self._scene.next_id()
        thread = str(members.get("threadId", ""))
        self._scene.books.open(message_id, Letter(self.id, to, thread))
        self._heard(say.send(to, message_id, text, **members))

    def _heard(self, value: say.Object) -> None:
        if self.peer is not None:
            self.peer.say(value)

    _DEEDS = (_send, _ask, _reply, _replace, _present, _list, _stop, _read_on, _leave, _kill)
    _WEIGHTS = (60, 8, 10, 8, 4, 2, 1, 4, 0.5, 0.5)


class Scene:
    """All actors, and where they act."""

    def __init__(self, at: Stage, peers: Peers) -> None:
        self.at, self.peers, self.books = at, peers, Books()
        self.actors = [Actor(self, number) for number in range(_ACTORS)]
        self._count = 0

    def next_id(self) -> str:
        self._count += 1
        return f"soak-message-{self._count}"

    def anybody(self, dice: random.Random) -> str:
        return dice.choice(self.actors).id

    def play(self, dice: random.Random, seconds: float) -> None:
        """Deeds by dice for so long."""
        began_s, deeds = time.monotonic(), 0
        while (now_s := time.monotonic()) < began_s + seconds:
            while deeds < (now_s - began_s) * _DEEDS_PER_S:
                dice.choice(self.actors).act(dice)
                deeds += 1
            self.peers.turn(0.002)

    def settle(self) -> None:
        """Everybody reads, until nothing waits anywhere."""
        for actor in self.actors:
            actor.finish()

        def is_settled() -> bool:
            self.peers.turn(0.01)
            for actor in self.actors:
                actor.notice_end()
            gauges = self.at.observe()["gauges"]
            return not (gauges["buffered"] or gauges["staged"] or self.books.has_open_words())

        self.peers.turn_until(is_settled, "everything to arrive", _DEADLINE_S)
        # What the kernel has is read too.
        for _turn in range(20):
            self.peers.turn(0.01)


def soak(report: Report, scale: Scale) -> None:
    """Play, settle, and look at the books."""
    with stage(report, **_SMALL, **_SHORT) as at, Peers() as peers:
        descriptors = at.vitals.descriptors
        dice = random.Random(scale.seed)
        calm, pressed = [at.pair.measure(scale.pair_messages)], []
        scene = Scene(at, peers)
        residents: list[int] = []

        def work(load: Load) -> None:
            load.has_begun.set()
            for share in (1 / 3, 2 / 3):
                scene.play(dice, scale.soak_s * share)
                scene.settle()
                residents.append(at.vitals.resident_bytes)

        with at.pair.going_on(_PAUSE_MS, pressed):
            at.press(work, lambda: None)
        _judge_books(report, scene)
        grown_bytes = residents[1] - residents[0]
        report.figure("growth over the last two thirds", grown_bytes / MIB, "MiB", bar=_FLAT_BYTES / MIB)
        report.say(f"beside it another pair: {pressed[0]}; unloaded {calm[0]}")
        _judge_lost(report, pressed[0])
        for peer in peers:
            peers.drop(peer)
        at.judge_settled(descriptors)
        _judge_counters(at)
        at.judge_log()


def _judge_books(report: Report, scene: Scene) -> None:
    ends = scene.books.judge()
    told = ", ".join(f"{count:,} {end}" for end, count in sorted(ends.items()))
    report.say(f"{len(scene.books.letters):,} messages: {told}")
    for violation in scene.books.violations[:20]:
        report.violate(violation)


def _judge_lost(report: Report, latency: Latency) -> None:
    report.expect(not latency.lost, f"another pair lost {latency.lost}")


def _judge_counters(at: Stage) -> None:
    stats = at.judge_balance()
    waiting = {name: stats["gauges"][name] for name in ("buffered", "staged", "heldBytes", "stagedBytes", "openAsks")}
    at.report.expect(not any(waiting.values()), f"left behind when everybody is gone: {waiting}")
    counters = {name: count for name, count in stats["counters"].items() if count}
    at.report.say(", ".join(f"{name} {count:,}" for name, count in counters.items()))
