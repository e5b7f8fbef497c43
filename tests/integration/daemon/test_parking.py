"""Parked children, late replies and dead letters at real brokers: coming back, failing to wake, and being killed."""

from __future__ import annotations

import re
import shutil
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from intercomd.edges.spool.faults import POINTS
from libintercom.client import Client
from libintercom.errors import ParkRefused
from libintercom.inbound import Inbound, WakeAsked
from libintercom.profile import Profile
from tests.support import sayings as say
from tests.support.daemon import Daemon, running_daemon, runtime_directory
from tests.support.raw_peer import RawPeer
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = "native-root"
CHILD = "child-of-root"
OTHER = "other-of-root"
TOKEN = "0123456789abcdef" * 2
SERVE = ("--idle-exit-s", "60")
# Kills the broker at the so-manieth visit of a fault point, then goes on as the command behind it.
KILLER = """
import os, runpy, signal, sys
from intercomd.edges.spool import faults
point, left = os.environ["FAULT_POINT"], [int(os.environ["FAULT_VISIT"])]
def hook(name):
    left[0] -= name == point
    if not left[0]:
        os.kill(os.getpid(), signal.SIGKILL)
faults.hook = hook
sys.argv = ["intercomd", *sys.argv[4:]]
runpy.run_module("intercomd", run_name="__main__", alter_sys=True)
"""


def main(**members: Any) -> Any:
    return say.register("boss", id="main-of-root", ext=1, rootSessionId=ROOT, **members)


def child(peer_id: str = CHILD, root: str = ROOT) -> Any:
    return say.register("kid", id=peer_id, ext=1, rootSessionId=root, parentSessionId=root)


def park(peer_id: str = CHILD) -> Any:
    return {"type": "park", "childId": peer_id}


def client(daemon: Daemon, name: str, **members: Any) -> Client:
    profile = Profile(cwd="/w", model="m", name=name, root_session_id=ROOT, **members)
    return Client(profile, path=daemon.socket_path)


def parked(daemon: Daemon, peer_id: str = CHILD) -> None:
    """A child was here and is parked now; its main has left again."""
    with RawPeer(daemon.socket_path) as boss, RawPeer(daemon.socket_path) as kid:
        boss.join(main())
        kid.join(child(peer_id))
        boss.say(park(peer_id))
        assert boss.hear_type("parked")["childId"] == peer_id


def drained(daemon: Daemon, peer_id: str = CHILD) -> list[str]:
    """The IDs that a child receives when it comes, up to a message that it sends itself through its main."""
    with RawPeer(daemon.socket_path) as kid, RawPeer(daemon.socket_path) as sender:
        kid.join(child(peer_id))
        sender.join(say.register("mark", ext=1, rootSessionId=ROOT, parentSessionId=ROOT))
        sender.say(say.send(peer_id, "mark"))
        found: list[str] = []
        while "mark" not in found:
            found.append(kid.hear_type("message")["message"]["id"])
        sender.hear()
    return found[:-1]


@pytest.fixture
def directory() -> Iterator[str]:
    with runtime_directory() as made:
        yield made


def test_a_main_that_comes_back_is_asked_and_its_child_gets_everything(directory: str) -> None:
    with running_daemon(*SERVE, directory=directory) as daemon:
        parked(daemon)
        with RawPeer(daemon.socket_path) as sib:
            sib.join(child(OTHER))
            for number in range(20):
                sib.say(say.send(CHILD, f"m{number}"))
            assert [sib.hear_type("delivery_queued")["messageId"] for _ in range(20)] == [f"m{n}" for n in range(20)]
        daemon.kill()
    with running_daemon(*SERVE, directory=directory) as daemon:
        with RawPeer(daemon.socket_path) as boss:
            boss.join(main())
            asked = boss.hear()
            assert (asked["type"], asked["childId"], asked["messageId"]) == ("wake_request", CHILD, "m0")
            assert drained(daemon) == [f"m{number}" for number in range(20)]
        # It left unparked, as any session.
        assert drained(daemon) == []


def test_a_failed_wake_ends_the_wait_and_the_late_answer_still_comes(daemon: Daemon) -> None:
    with client(daemon, "boss") as boss, client(daemon, "asker", parent_session_id=ROOT) as asker:
        with RawPeer(daemon.socket_path) as kid:
            kid.join(child())
            boss.park(CHILD)
        answered: list[Any] = []
        waiting = threading.Thread(target=lambda: answered.append(asker.ask(CHILD, "are you there?", timeout_s=60.0)))
        waiting.start()
        asked = next(event for event in boss.events(10.0) if isinstance(event, WakeAsked))
        boss.answer_wake(asked, failure="no such program")
        waiting.join(10.0)
        (answer,) = answered
        assert (answer.ended_by, answer.reason, answer.outcome.outcome) == ("wake_failed", "no such program", "queued")
        row = next(row for row in asker.list_sessions().rows if row.id == CHILD)
        assert row.parked is True
        assert row.last_wake_failure is not None
        with client(daemon, "kid", parent_session_id=ROOT, requested_id=CHILD) as kid_again:
            question = next(event for event in kid_again.events(10.0) if isinstance(event, Inbound))
            assert kid_again.reply(question, "now I am").is_accepted
        late = next(event for event in asker.events(10.0) if isinstance(event, Inbound))
        assert late.message.reply_to == answer.outcome.message_id


def test_a_stranger_gets_neither_the_id_nor_the_input(daemon: Daemon) -> None:
    parked(daemon)
    with RawPeer(daemon.socket_path) as boss, RawPeer(daemon.socket_path) as thief:
        boss.join(main())
        boss.say(say.send(CHILD, "m1"))
        boss.hear_type("delivery_queued")
        assert thief.join(child(root="another-root"))["sessionId"] != CHILD
        thief.say({"type": "health", "requestId": "h"})
        assert thief.hear()["type"] == "health_ok"
    assert drained(daemon) == ["m1"]


def test_nothing_overtakes_while_it_is_stored_and_drained(daemon: Daemon) -> None:
    # Less than a child has room for, and than one pair may say in a minute.
    count = 40
    with RawPeer(daemon.socket_path) as boss:
        boss.join(main())
        for _round in range(3):
            with RawPeer(daemon.socket_path) as kid:
                kid.join(child())
                boss.say(park())
                boss.hear_type("parked")
            # All in one write: the child comes while they are being stored.
            boss.say(*[say.send(CHILD, f"m{number}") for number in range(count)])
            with RawPeer(daemon.socket_path) as kid:
                kid.join(child())
                boss.say(*[say.send(CHILD, f"n{number}") for number in range(count)])
                found = [kid.hear_type("message")["message"]["id"] for _ in range(2 * count)]
            assert found == [*(f"m{number}" for number in range(count)), *(f"n{number}" for number in range(count))]
            for _answer in range(2 * count):
                assert next(iter(hear_answers(boss)))["type"] in ("delivered", "delivery_queued")


def hear_answers(peer: RawPeer) -> Iterator[Any]:
    while True:
        value = peer.hear()
        if value["type"].startswith("deliver"):
            yield value


def test_a_late_reply_is_kept_through_a_restart(directory: str) -> None:
    with running_daemon(*SERVE, directory=directory) as daemon:
        with client(daemon, "cli") as cli, RawPeer(daemon.socket_path) as bob:
            bob.join(say.register("bob", id="session-bob", ext=1, rootSessionId=ROOT))
            answer = cli.ask("bob", "well?", timeout_s=0.2, keep_reply_s=3_600.0)
            question = bob.hear_type("message")["message"]
            assert not {"keepReplyMs", "replyToken"} & question.keys()
        daemon.kill()
    assert answer.ended_by == "timeout"
    about = (answer.outcome.message_id, answer.reply_token)
    with running_daemon(*SERVE, directory=directory) as daemon:
        with RawPeer(daemon.socket_path) as bob:
            bob.join(say.register("bob", id="session-bob", ext=1, rootSessionId=ROOT))
            bob.say(say.reply("cli", "r1", about[0]))
            assert bob.hear_type("delivery_queued")["reason"] == "Kept for its ask"
        daemon.kill()
    with running_daemon(*SERVE, directory=directory) as daemon, client(daemon, "later") as later:
        fetched = later.fetch_reply(*about)
        assert (fetched.state, fetched.reply.message.id) == ("replied", "r1")
        later.ack_reply(*about)
        assert later.fetch_reply(*about).state == "unknown"


def test_refusals_and_giving_up(daemon: Daemon) -> None:
    parked(daemon)
    with client(daemon, "boss") as boss:
        with pytest.raises(ParkRefused, match="no child of this main's group"):
            boss.park("never-was-here")
        boss.send(CHILD, "for later")
        with pytest.raises(ParkRefused, match="say discard"):
            boss.unpark(CHILD)
        assert boss.unpark(CHILD, discard=True) == 1


# -- failing disks -----------------------------------------------------------------------------------


def test_where_nothing_can_be_stored_it_is_said_and_nothing_is_lost() -> None:
    nowhere = {"PI_INTERCOM_SPOOL": "/dev/null/spool.sqlite"}
    with (
        running_daemon(*SERVE, environment=nowhere) as daemon,
        RawPeer(daemon.socket_path) as boss,
        RawPeer(daemon.socket_path) as kid,
    ):
        boss.join(main())
        kid.join(child())
        boss.say(park())
        assert boss.hear_type("park_failed")["code"] == "store_failed"
        # Ordinary messages need no store.
        boss.say(say.send(CHILD, "m1"))
        assert boss.hear()["type"] == "delivered"


def test_a_disk_that_is_full_refuses_what_it_cannot_keep(directory: str) -> None:
    limit = ["prlimit", "--fsize=200000"]
    with running_daemon(*SERVE, directory=directory, prefix=limit) as daemon:
        parked(daemon)
        with RawPeer(daemon.socket_path) as boss:
            boss.join(main())
            answers: list[Any] = []
            for number in range(12):
                boss.say(say.send(CHILD, f"m{number}", "x" * 30_000, delivery="passive"))
                answers.append(boss.hear())
        kept = [answer["messageId"] for answer in answers if answer["type"] == "delivery_queued"]
        failed = [answer for answer in answers if answer["type"] == "delivery_failed"]
        assert kept
        assert failed
        assert {(answer["code"], answer["retryable"]) for answer in failed} == {("store_failed", True)}
        daemon.kill()
    with running_daemon(*SERVE, directory=directory) as daemon:
        assert drained(daemon) == kept


# -- SIGKILL -----------------------------------------------------------------------------------------


class Play:
    """What was said until the broker was killed, and what was promised by then."""

    def __init__(self, daemon: Daemon) -> None:
        self.promised: list[str] = []
        self.has_reply = self.has_letter = False
        try:
            with RawPeer(daemon.socket_path) as boss, RawPeer(daemon.socket_path) as bob:
                self._perform(daemon, boss, bob)
        except (AssertionError, OSError):
            # It was killed at the point that was chosen.
            pass

    def _perform(self, daemon: Daemon, boss: RawPeer, bob: RawPeer) -> None:
        boss.join(main())
        bob.join(say.register("bob", id="session-bob", ext=1, rootSessionId=ROOT))
        for peer_id in (CHILD, OTHER):
            with RawPeer(daemon.socket_path) as kid:
                kid.join(child(peer_id))
                boss.say(park(peer_id))
                boss.hear_type("parked")
        for number in range(3):
            boss.say(say.send(CHILD, f"m{number}", delivery="passive"))
            self.promised.append(boss.hear_type("delivery_queued")["messageId"])
        boss.say(say.ask("bob", "q1", timeoutMs=0, keepReplyMs=3_600_000, replyToken=TOKEN))
        bob.hear_type("message")
        bob.say(say.reply("main-of-root", "r1", "q1"))
        bob.hear_type("delivery_queued")
        self.has_reply = True
        boss.say(say.send(OTHER, "d1", delivery="passive"))
        boss.hear_type("delivery_queued")
        boss.say({"type": "unpark", "childId": OTHER, "discard": True})
        boss.hear_type("dead_letter")
        self.has_letter = True
        boss.say(say.send(CHILD, "m3", delivery="passive"))
        self.promised.append(boss.hear_type("delivery_queued")["messageId"])


def check_kept(daemon: Daemon, play: Play) -> None:
    """Everything that was promised is there."""
    with RawPeer(daemon.socket_path) as boss:
        boss.join(main())
        boss.say({"type": "fetch_reply", "requestId": "f", "messageId": "q1", "replyToken": TOKEN})
        state = boss.hear_type("fetched_reply")["state"]
        assert state == "replied" if play.has_reply else state in ("unknown", "waiting", "replied")
        boss.say({"type": "dead_letters", "requestId": "d"})
        dead = [letter["messageId"] for letter in boss.hear_type("dead_letters_result")["letters"]]
        assert dead == ["d1"] if play.has_letter else dead in ([], ["d1"])


@pytest.mark.parametrize("visit", [1, 4, 7])
@pytest.mark.parametrize("point", POINTS)
def test_a_broker_killed_at_any_point_lost_nothing_that_it_promised(point: str, visit: int, directory: str) -> None:
    environment = {"FAULT_POINT": point, "FAULT_VISIT": str(visit)}
    prefix = [sys.executable, "-c", KILLER]
    daemon = Daemon(directory, *SERVE, environment=environment, prefix=prefix).wait_ready()
    play = Play(daemon)
    assert daemon.wait_exit() == -9, f"{point} was not reached {visit} times"
    with running_daemon(*SERVE, directory=directory) as again:
        check_kept(again, play)
        found = drained(again)
        # What was not promised any more may have been kept all the same: one message was under way.
        assert found[: len(play.promised)] == play.promised
        assert found[len(play.promised) :] in ([], [f"m{len(play.promised)}"])
    with running_daemon(*SERVE, directory=directory) as last:
        assert drained(last) == []


# -- before the acknowledgement ------------------------------------------------------------------------


@pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed")
def test_it_is_on_the_disk_before_it_is_acknowledged(directory: str) -> None:
    trace = Path(directory) / "trace"
    calls = "fdatasync,fsync,read,recvfrom,recvmsg,sendto,sendmsg,write,writev"
    prefix = ["strace", "-D", "-f", "-qq", "-s", "300", "-e", f"trace={calls}", "-o", str(trace)]
    with running_daemon(*SERVE, directory=directory, prefix=prefix) as daemon:
        parked(daemon)
        with RawPeer(daemon.socket_path) as boss:
            boss.join(main())
            boss.say(say.send(CHILD, "m-traced", delivery="passive"))
            boss.hear_type("delivery_queued")
            lines = wait_until(lambda: traced(trace, "delivery_queued"), "the acknowledgement in the trace")
    came = next(at for at, line in enumerate(lines) if "m-traced" in line)
    acknowledged = next(at for at, line in enumerate(lines) if "delivery_queued" in line)
    synced = [line for line in lines[came:acknowledged] if re.search(r"(fdatasync|fsync).*= 0$", line)]
    assert synced, lines[came : acknowledged + 1]


def traced(trace: Path, word: str) -> list[str]:
    """The lines of a trace, once one of them holds the word."""
    lines = trace.read_text(errors="replace").splitlines()
    return lines if any(word in line for line in lines) else []
