"""One namespace whose broker is killed and started again: parked children, kept replies, dead letters.

Owns the acts and the plan of deaths. Does not own the promises (``broker_ledger``) nor the broker (``broker_life``).
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import socket
import threading
from typing import TYPE_CHECKING, Any

from intercomd.edges.spool.faults import POINTS
from tests.support import sayings as say
from tests.support.raw_peer import RawPeer
from tests.trials.crash.broker_ledger import Input, Ledger, Question

if TYPE_CHECKING:
    import random

    from tests.trials.crash.nursery import Nursery

ROOT, BOSS, SIB, BOB = "native-root", "main-of-root", "sib-of-root", "session-bob"
CHILDREN = ("child-one", "child-two", "child-three")
RANDOM = ""
_KEEP_MS = 3_600_000
# A life makes some tens of transactions; starting takes 50 ms, an act about 2.
_MOST_VISITS, _ACTS, _LONGEST_S = 14, 14, 0.1
_LINGERS_S = (0.0, 0.0, 0.003, 0.01)
_READY_S = 20.0
# Its connections end a moment before it does.
_DYING_S = 5.0


class Actor:
    """A session at the broker; dead letters that it hears are noted whatever it waits for."""

    def __init__(self, path: str, ledger: Ledger, name: str, register: dict[str, Any]) -> None:
        self.name, self._ledger = name, ledger
        self._peer = RawPeer(path)
        self._peer.join(register)

    def say(self, *frames: dict[str, Any]) -> None:
        self._peer.say(*frames)

    def hear(self, **members: Any) -> dict[str, Any]:
        """The next frame that has these members."""
        while True:
            frame: dict[str, Any] = self._peer.hear()
            if frame["type"] == "dead_letter":
                self._ledger.promise_letter(self.name, frame["messageId"])
            if all(frame.get(name) == value for name, value in members.items()):
                return frame

    def hear_answer(self, message_id: str) -> dict[str, Any]:
        """The broker's word on a send."""
        while True:
            frame = self.hear()
            if frame["type"].startswith("deliver") and frame.get("messageId") == message_id:
                return frame

    def hear_rest(self) -> list[str]:
        """The IDs of all messages that are still there to be read, up to the end of the connection."""
        frames = [json.loads(payload) for payload in iter(self._peer.hear_payload, b"")]
        return [frame["message"]["id"] for frame in frames if frame["type"] == "message"]

    def leave(self) -> None:
        """Go, and wait until the broker knows it."""
        self._peer.socket.shutdown(socket.SHUT_WR)
        while self._peer.hear_payload():
            pass
        self.close()

    def close(self) -> None:
        self._peer.socket.close()


class BrokerStory:
    """``directory``: the namespace and its spool; ``planted``: a fault in every life of the broker."""

    def __init__(self, directory: str, nursery: Nursery, dice: random.Random, planted: str = "") -> None:
        self._directory, self._nursery, self._dice, self._planted = directory, nursery, dice, planted
        self.ledger = Ledger()
        self.ends: list[str] = []
        self._made = 0

    def run(self, points: list[str]) -> list[str]:
        for point in points:
            self._live(point, self._act_on)
        self._live(RANDOM, self._look_at_all, is_last=True)
        return self.ledger.violations

    # ------------------------------------------------------------------ lives

    def _live(self, point: str, acts: Any, *, is_last: bool = False) -> None:
        self.ledger.begin_life()
        dice = self._dice
        order = {
            # The spool stands where it does by default: a setting would cost the time to load the checks of settings.
            "environment": {
                "PI_INTERCOM_RUNTIME_DIR": self._directory,
                "XDG_STATE_HOME": f"{self._directory}/state",
            },
            "output": f"{self._directory}/output.txt",
            "point": point,
            "nth": dice.randint(1, _MOST_VISITS),
            "lingers_s": dice.choice(_LINGERS_S),
            "plant": self._planted,
        }
        pidfd, channel = self._nursery.begin(order)
        killer = _Killer(pidfd)
        if not point and not is_last:
            killer.kill_after(dice.uniform(0.0, _LONGEST_S))
        with channel, contextlib.ExitStack() as stack:
            broken = self._act_until_it_breaks(stack, channel, acts)
        was_early = killer.end(_DYING_S if broken else 0.0)
        if broken and not was_early:
            self.ledger.violations.append(f"life {self.ledger.life}: a broker that lived broke off: {broken}")
        self.ends.append(_name_end(self._nursery.ended(), point, was_early=was_early, is_last=is_last))

    def _act_until_it_breaks(self, stack: contextlib.ExitStack, channel: Any, acts: Any) -> str:
        """What the kill broke; what does not hold is noted by the ledger."""
        try:
            self._wait_ready(channel)
            self._meet(stack)
            acts()
        except (AssertionError, OSError) as error:
            return f"{type(error).__name__}: {error}"
        return ""

    @staticmethod
    def _wait_ready(channel: Any) -> None:
        channel.settimeout(_READY_S)
        said = channel.recv(4096)
        assert said, "it was killed before it served"
        assert json.loads(said) == {"result": "ready"}, said

    def _meet(self, stack: contextlib.ExitStack) -> None:
        self._stack = stack
        self._boss = self._join("boss", BOSS, rootSessionId=ROOT)
        self._sib = self._join("sib", SIB, rootSessionId=ROOT, parentSessionId=ROOT)
        self._bob = self._join("bob", BOB, rootSessionId="native-bob")

    def _join(self, name: str, peer_id: str, **lineage: str) -> Actor:
        register = say.register(name, id=peer_id, ext=1, **lineage)
        actor = Actor(f"{self._directory}/broker.sock", self.ledger, name, register)
        self._stack.callback(actor.close)
        return actor

    def _next(self, kind: str) -> str:
        self._made += 1
        return f"{kind}-{self._made}"

    # ------------------------------------------------------------------ acts

    def _act_on(self) -> None:
        for _act in range(_ACTS):
            self._dice.choices(
                (self._send, self._park, self._come, self._ask, self._fetch, self._drop, self._read_letters),
                (8, 4, 3, 4, 2, 2, 1),
            )[0]()

    def _send(self) -> None:
        """A burst to one parked child, then every answer."""
        parked = sorted(self.ledger.parked)
        if not parked:
            self._park()
            return
        child, sender = self._dice.choice(parked), self._dice.choice((self._boss, self._sib))
        burst = [self._next("m") for _message in range(self._dice.randint(1, 4))]
        self.ledger.inputs.update({one: Input(one, sender.name, child) for one in burst})
        sender.say(*[say.send(child, one, delivery=self._dice.choice(("passive", "queue"))) for one in burst])
        for one in burst:
            answer = sender.hear_answer(one)
            if answer["type"] == "delivery_queued":
                self.ledger.promise_input(one)
            elif answer["type"] == "delivery_failed":
                self.ledger.refuse_input(one, str(answer.get("code")))

    def _park(self) -> None:
        """A child that is not parked comes, is parked and leaves."""
        others = [child for child in CHILDREN if child not in self.ledger.parked]
        if others:
            child = self._dice.choice(others)
            # It may have been parked by a life that could not say so any more.
            kid = self._join("kid", child, rootSessionId=ROOT, parentSessionId=ROOT)
            self._drain(kid, child)
            self._say_park(child)
            kid.leave()

    def _say_park(self, child: str) -> None:
        self._boss.say({"type": "park", "childId": child})
        answer = self._boss.hear(childId=child)
        while answer["type"] not in ("parked", "park_failed"):
            answer = self._boss.hear(childId=child)
        if answer["type"] == "parked":
            self.ledger.promise_park(child)
        else:
            self.ledger.violations.append(f"{child} could not be parked: {answer}")

    def _come(self) -> None:
        """A parked child comes, gets what waited, is parked again and leaves."""
        parked = sorted(self.ledger.parked)
        if parked:
            child = self._dice.choice(parked)
            # Once it is here it is no more parked, until the main says so again.
            self.ledger.parked.discard(child)
            kid = self._join("kid", child, rootSessionId=ROOT, parentSessionId=ROOT)
            self._drain(kid, child)
            self._say_park(child)
            kid.leave()

    def _drain(self, kid: Actor, child: str) -> None:
        """All that comes before a mark, which is sent now."""
        mark = self._next("mark")
        heard: list[str] = []
        try:
            self._sib.say(say.send(child, mark))
            while mark not in heard:
                heard.append(kid.hear(type="message")["message"]["id"])
            self._sib.hear_answer(mark)
        except (AssertionError, OSError):
            # What the kernel has is the child's, whether its broker lives or not.
            heard += kid.hear_rest()
            raise
        finally:
            # Marks of earlier lives were sent to a child that was here; they may have been spooled behind others.
            self.ledger.hear(child, [one for one in heard if not one.startswith("mark")], is_all=mark in heard)

    def _ask(self) -> None:
        question = Question(self._next("q"), f"{self._dice.getrandbits(128):032x}")
        self._boss.say(say.ask("bob", question.id, timeoutMs=0, keepReplyMs=_KEEP_MS, replyToken=question.token))
        self._boss.hear_answer(question.id)
        while self._bob.hear(type="message")["message"]["id"] != question.id:
            pass
        question.reply = self._next("r")
        self.ledger.questions[question.id] = question
        self._bob.say(say.reply(BOSS, question.reply, question.id))
        if self._bob.hear_answer(question.reply)["type"] == "delivery_queued":
            self.ledger.promise_reply(question.id)

    def _fetch(self) -> None:
        if self.ledger.questions:
            question = self._dice.choice(list(self.ledger.questions.values()))
            if self._read(question) == "replied" and self._dice.random() < 0.5:
                self._boss.say({"type": "ack_reply", "messageId": question.id, "replyToken": question.token})
                self.ledger.acknowledge(question.id)
                self._boss.say({"type": "health", "requestId": question.id})
                self._boss.hear(type="health_ok", requestId=question.id)

    def _read(self, question: Question) -> str:
        about = {"messageId": question.id, "replyToken": question.token}
        self._boss.say({"type": "fetch_reply", "requestId": question.id, **about})
        fetched = self._boss.hear(type="fetched_reply", requestId=question.id)
        self.ledger.fetch(question.id, fetched["state"], fetched.get("message", {}).get("id", ""))
        return str(fetched["state"])

    def _drop(self) -> None:
        parked = sorted(self.ledger.parked)
        if parked:
            child = self._dice.choice(parked)
            self.ledger.ask_drop(child)
            # Until it is answered nobody knows.
            self.ledger.parked.discard(child)
            self._boss.say({"type": "unpark", "childId": child, "discard": True})
            answer = self._boss.hear(childId=child)
            while answer["type"] not in ("unparked", "park_failed"):
                answer = self._boss.hear(childId=child)
            if answer["type"] == "unparked":
                self.ledger.promise_drop(child, answer["dropped"])
            else:
                self.ledger.violations.append(f"{child} was parked and could not be dropped: {answer}")

    def _read_letters(self) -> None:
        for actor in (self._boss, self._sib):
            request_id = self._next("letters")
            actor.say({"type": "dead_letters", "requestId": request_id})
            letters = actor.hear(type="dead_letters_result", requestId=request_id)["letters"]
            self.ledger.list_letters(actor.name, {letter["messageId"] for letter in letters})

    def _look_at_all(self) -> None:
        """Without a kill: every promise is still true."""
        for question in list(self.ledger.questions.values()):
            self._read(question)
        self._read_letters()
        for child in CHILDREN:
            kid = self._join("kid", child, rootSessionId=ROOT, parentSessionId=ROOT)
            self._drain(kid, child)
            kid.leave()
        self.ledger.account()


class _Killer:
    """Kills one life: after a time, or at the end."""

    def __init__(self, pidfd: int) -> None:
        self._pidfd = pidfd
        self._timer: threading.Timer | None = None

    def kill_after(self, delay_s: float) -> None:
        self._timer = threading.Timer(delay_s, self._kill)
        self._timer.start()

    def end(self, patience_s: float) -> bool:
        """Kill what still lives after ``patience_s``; False when it did."""
        if self._timer is not None:
            self._timer.join()
        # Readable once it is dead (pidfd_open(2)).
        was_early = bool(select.select([self._pidfd], [], [], patience_s)[0])
        self._kill()
        os.close(self._pidfd)
        return was_early

    def _kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(self._pidfd, signal.SIGKILL)


def _name_end(status: int, point: str, *, was_early: bool, is_last: bool) -> str:
    if not os.WIFSIGNALED(status) or os.WTERMSIG(status) != signal.SIGKILL:
        return f"status {status}"
    if is_last:
        return "last"
    return point if point and was_early else "random"


DEADLY = tuple(POINTS)
