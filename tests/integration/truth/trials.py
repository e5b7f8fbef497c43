"""The trials: the broker killed before each of its writes, and the recipient ended at random moments of a flood.

Owns the moments and the judgement. Words allowed for what the recipient's kernel had: ``delivered`` only for a whole
frame; ``delivery_failed`` never for a whole frame; no word (the broker died) claims nothing.
"""

from __future__ import annotations

import dataclasses
import os
import signal
import subprocess
from typing import TYPE_CHECKING

from tests.integration.truth.ends import End, received_ids, resume, sends, stop, words_of
from tests.support.daemon import Daemon, running_daemon, runtime_directory
from tests.support.waiting import DEADLINE_S, NotSeen, wait_until

if TYPE_CHECKING:
    import random
    from collections.abc import Iterator

# One write of the sender, so that the broker's flushes follow one another in one turn: small messages, and some that
# overflow a socket's buffer (208 KiB by default) so that the last ones are held.
SCENARIOS = ((1, 40), (3, 40), (6, 60_000), (3, 900_000))
# More writes than any scenario makes; reaching it means that the broker never stopped writing.
_MAX_WRITES = 200


@dataclasses.dataclass
class Tally:
    """What was tried and seen."""

    runs: int = 0
    words: dict[str, int] = dataclasses.field(default_factory=dict)
    whole_frames: int = 0
    violations: list[str] = dataclasses.field(default_factory=list)

    def count(self, words: dict[str, str]) -> None:
        """Count the words that were said."""
        for word in words.values():
            self.words[word] = self.words.get(word, 0) + 1

    def judge(self, where: str, words: dict[str, str], had: list[str], *, prefix: str) -> None:
        """Compare the sender's words with what the recipient's kernel had."""
        self.runs += 1
        self.whole_frames += len(had)
        self.count(words)
        if len(set(had)) != len(had):
            self.violations.append(f"{where}: a message came twice: {had}")
        if had != sorted(had, key=lambda message_id: int(message_id.removeprefix(prefix))):
            self.violations.append(f"{where}: out of order: {had}")
        for message_id, word in words.items():
            if word == "delivered" and message_id not in had:
                self.violations.append(f"{where}: {message_id} was called delivered and was not in the kernel")
            if word == "delivery_failed" and message_id in had:
                self.violations.append(f"{where}: {message_id} was called failed and was in the kernel")


def kill_at_each_write(tally: Tally) -> int:
    """Kill the broker on entering each of its writes in turn; how many moments there were."""
    return sum(1 for count, size in SCENARIOS for _moment in _moments(tally, count, size))


def _moments(tally: Tally, count: int, size_bytes: int) -> Iterator[int]:
    for write in range(1, _MAX_WRITES):
        with runtime_directory() as directory:
            daemon = Daemon(directory).wait_ready()
            try:
                recipient, sender = End(daemon, "recipient"), End(daemon, "sender")
                tracer = _trace(daemon, write)
                sender.say(*sends(recipient.session_id, count, size_bytes, "m"))
                was_killed = _await_end(daemon, sender, count)
                # It lets go of the broker: a traced one does not stand still by itself.
                tracer.terminate()
                tracer.wait(DEADLINE_S)
                _judge_dead(tally, f"{count} x {size_bytes} bytes, killed at write {write}", daemon, recipient, sender)
            finally:
                if daemon.is_running:
                    daemon.kill()
        yield write
        if not was_killed:
            return
    tally.violations.append(f"{count} x {size_bytes}: the broker was still writing after {_MAX_WRITES} writes")


def _trace(daemon: Daemon, write: int) -> subprocess.Popen[bytes]:
    """Attach a tracer that kills the broker when it enters its ``write``-th write to a socket."""
    command = ["strace", "-f", "-qq", "-o", f"{daemon.directory}/trace", "-p", str(daemon.pid)]
    calls = "sendto,sendmsg,write,writev"
    command += ["-e", f"trace={calls}", "-e", f"inject=sendto,sendmsg:signal=SIGKILL:when={write}"]
    tracer = subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    wait_until(lambda: _is_traced(daemon.pid), "strace to attach")
    return tracer


def _is_traced(pid: int) -> bool:
    with open(f"/proc/{pid}/status", encoding="ascii") as status:
        return any(line.startswith("TracerPid:") and line.split()[1] != "0" for line in status)


def _await_end(daemon: Daemon, sender: End, count: int) -> bool:
    """Wait until the broker is dead or every send has its word; whether it is dead."""
    wait_until(
        lambda: not daemon.is_running or len(words_of(sender.examine())) == count, "the broker's end or every word"
    )
    try:
        wait_until(lambda: not daemon.is_running, "the kill", deadline_s=0.2)
    except NotSeen:
        return False
    return True


def _judge_dead(tally: Tally, where: str, daemon: Daemon, recipient: End, sender: End) -> None:
    if daemon.is_running:
        stop(daemon)
        os.kill(daemon.pid, signal.SIGKILL)
        daemon.wait_exit()
    tally.judge(where, words_of(sender.examine()), received_ids(recipient.examine()), prefix="m")
    recipient.close()
    sender.close()


def end_recipient_at_random(tally: Tally, rounds: int, dice: random.Random) -> None:
    """Flood a recipient that reads nothing; stop the broker at a random word, look, end the recipient, go on."""
    with running_daemon() as daemon:
        for number in range(rounds):
            count, size = dice.choice(((1, 40), (20, 40), (20, 30_000), (4, 400_000), (40, 8_000)))
            recipient, sender = End(daemon, f"recipient{number}"), End(daemon, f"sender{number}")
            moment = dice.randint(0, count)
            prefix = f"r{number}-"
            batches = _split(sends(recipient.session_id, count, size, prefix), moment)
            for batch in batches[:1]:
                sender.say(*batch)
            wait_until(lambda sender=sender, moment=moment: _has_words(sender, moment), "the first words")
            # What was called delivered by now must be in the kernel: nobody has read there.
            stop(daemon)
            had = list(received_ids(recipient.examine()))
            tally.judge(f"round {number} at {moment}/{count} x {size}", words_of(sender.examine()), had, prefix=prefix)
            recipient.close()
            resume(daemon)
            sender.say(*batches[1])
            wait_until(lambda sender=sender, count=count: _has_words(sender, count), "every word")
            _judge_after_end(tally, f"round {number}", sender, had)
            sender.close()


def _split(whole: list[dict[str, object]], at: int) -> tuple[list[dict[str, object]], list[dict[str, object]]]:
    return whole[:at], whole[at:]


def _has_words(sender: End, count: int) -> bool:
    return len(words_of(sender.examine())) >= count


def _judge_after_end(tally: Tally, where: str, sender: End, had: list[str]) -> None:
    """After the recipient's end: no new ``delivered``, and a dead letter for everything that was queued and not had."""
    words = words_of(sender.frames)
    tally.count({message_id: word for message_id, word in words.items() if word == "delivery_failed"})
    false = [message_id for message_id, word in words.items() if word == "delivered" and message_id not in had]
    if false:
        tally.violations.append(f"{where}: called delivered after the recipient's end: {false}")
    queued = {message_id for message_id, word in words.items() if word == "delivery_queued"} - set(had)

    def letters() -> set[str]:
        return {value["messageId"] for value in sender.examine() if value["type"] == "dead_letter"}

    try:
        wait_until(lambda: queued <= letters(), "a dead letter for everything that was queued")
    except NotSeen:
        tally.violations.append(f"{where}: queued without an end: {sorted(queued - letters())}")
