"""Sessions by the thousand: passing through one after the other, and all at once.

Owns who they are (every kind of client) and what must hold: every message of those who pass arrives, a list of all is
streamed whole and cut with a count, all may leave at once, and nothing of them stays.
"""

from __future__ import annotations

import random
import time
from typing import TYPE_CHECKING

from intercomd.core.limits import Limits
from libintercom.wire.frames import MAX_FRAME_BYTES, decode_json, encode_json
from tests.support import sayings as say
from tests.support.raw_peer import RawPeer
from tests.trials.load.peers import Peer, Peers
from tests.trials.load.stage import Latency, Load, Stage, stage
from tests.trials.load.vitals import MIB, raise_descriptors

if TYPE_CHECKING:
    from tests.trials.load.report import Report
    from tests.trials.load.scale import Scale

# Passing at once; the broker takes 64 unregistered connections.
_WINDOW = 40
_HUB = "hub-of-those-who-pass"
# What remembers by design is kept small, so that growth is a leak.
_SMALL = {"dedupe_total": 500, "letters": 100}
# Resident memory between two crowds of the same size; the first one warms the allocator.
_FLAT_BYTES = 3 * MIB
# A pause that a person does not notice; a host that takes a processor away makes longer ones by itself.
_WAIT_MS = 100.0
# Of so many, one is an older client: it is told of everybody who leaves.
_OLD_SHARE = 10
# A frame's length for a list of any size to be sent whole.
_DEADLINE_S = 30.0


def pass_through(report: Report, scale: Scale) -> None:
    """Join, say something, leave; thousands, a few at a time."""
    with stage(report, **_SMALL) as at, Peers() as peers:
        descriptors = at.vitals.descriptors
        calm, pressed = [at.pair.measure(scale.pair_messages)], []
        arrived: set[str] = set()
        (hub,) = peers.join(at.path, [say.register("hub", id=_HUB, ext=1)], on_frame=_note_into(arrived))
        residents: list[int] = []

        def work(load: Load) -> None:
            began_s, passed = time.monotonic(), 0
            for count in (scale.passers_by // 2, scale.passers_by - scale.passers_by // 2):
                _pass(at, peers, passed, count, load)
                passed += count
                residents.append(at.vitals.resident_bytes)
            report.say(f"{passed:,} sessions passed, {passed / (time.monotonic() - began_s):,.0f} a second")

        at.press(work, lambda: pressed.append(at.pair.measure(scale.pair_messages)))
        wanted = {f"passing-{number}" for number in range(scale.passers_by)}
        peers.turn_until(lambda: len(arrived) >= len(wanted), "what they said to arrive")
        report.expect(arrived == wanted, f"{len(wanted - arrived)} messages did not arrive")
        report.figure("growth over the second half", (residents[1] - residents[0]) / MIB, "MiB", bar=_FLAT_BYTES / MIB)
        at.judge_pair(calm, pressed[0], "sessions that pass")
        peers.drop(hub)
        _judge_nothing_left(at, descriptors)


def _note_into(arrived: set[str]):
    def note(_peer: Peer, value: say.Object) -> None:
        if value["type"] == "message":
            arrived.add(value["message"]["id"])

    return note


def _pass(at: Stage, peers: Peers, first: int, count: int, load: Load) -> None:
    """So many pass; each leaves once its message had its word, half of them without saying so."""
    numbers = iter(range(first, first + count))
    passing: dict[Peer, int] = {}
    end = time.monotonic() + _DEADLINE_S + count / 100
    is_over = False
    while passing or not is_over:
        assert time.monotonic() < end, f"{len(passing)} sessions do not get through"
        while not is_over and len(passing) < _WINDOW:
            number = next(numbers, None)
            is_over = number is None
            if number is not None:
                hello = say.send(_HUB, f"passing-{number}")
                passing[peers.connect(at.path, _registration(number, "passing"), hello)] = number
        peers.turn()
        load.has_begun.set()
        for peer, number in list(passing.items()):
            assert not peer.has_ended, f"a passing session was ended: {peer.heard}"
            if peer.heard["delivered"] + peer.heard["delivery_queued"]:
                if number % 2:
                    peer.say({"type": "unregister"})
                del passing[peer]
                peers.drop(peer)


def _registration(number: int, name: str) -> say.Object:
    """Every kind of client: ours, an older one, the sibling's, a child."""
    kind = number % _OLD_SHARE
    if kind == 0:
        return say.register(f"{name}{number}", id=f"{name}-{number:06}")
    if kind == 1:
        return say.register_sibling(f"{name}{number}", id=f"{name}-{number:06}")
    return say.register(f"{name}{number}", id=f"{name}-{number:06}", ext=1, projectId=f"{number % 50:064x}")


def be_many(report: Report, scale: Scale) -> None:
    """As many as may be at once, twice: listed, seen by others, and gone all at once."""
    raise_descriptors()
    most = min(scale.crowd, Limits().max_sessions - _room_of_others())
    with stage(report, **_SMALL) as at:
        descriptors, calm = at.vitals.descriptors, [at.pair.measure(scale.pair_messages)]
        residents, pressed = [], []
        for round_ in range(3):
            with Peers() as peers:
                at.press(lambda load, peers=peers: _fill(at, peers, most, load), lambda: None)
                if not round_:
                    _judge_full(at, peers, most, scale)
                pressed.append(at.pair.measure(scale.pair_messages))
                began_s, found = time.monotonic(), []
                with at.pair.going_on(1.0, found):
                    at.press(lambda load, peers=peers: _leave(peers, load), lambda: None)
                    at.judge_settled(descriptors)
                report.say(f"round {round_}: {most:,} left at once, all gone {time.monotonic() - began_s:.2f} s later")
                at.judge_pair(calm, found[0], "while thousands leave at once")
                _judge_longest(report, found[0], most)
                residents.append(at.vitals.resident_bytes)
        at.judge_pair(calm, _worst(pressed), f"among {most:,} sessions")
        grown = (residents[2] - residents[1]) / MIB
        report.figure("growth from the second crowd to the third", grown, "MiB", bar=_FLAT_BYTES / MIB)
        _judge_nothing_left(at, descriptors)


def _room_of_others() -> int:
    # The pair's sessions, and one that lists.
    return 64 + 1


def _fill(at: Stage, peers: Peers, count: int, load: Load) -> None:
    load.has_begun.set()
    began_s = time.monotonic()
    joined = peers.join(at.path, (_registration(number, "crowd") for number in range(count)))
    inside = sum(bool(peer.session_id) for peer in joined)
    took_s = time.monotonic() - began_s
    at.report.expect(inside == count, f"{inside:,} of {count:,} sessions were let in")
    at.report.say(f"{inside:,} sessions joined in {took_s:.1f} s; {at.vitals.resident_bytes / MIB:.1f} MiB resident")


def _judge_full(at: Stage, peers: Peers, count: int, scale: Scale) -> None:
    """Listed whole, listed cut, and one too many refused."""
    with RawPeer(at.path) as lister:
        lister.join(say.register("lister", ext=1))
        total = count + at.pair.size + 1
        _judge_streamed(at, lister, total)
        _judge_cut(at, lister, total)
        if total == Limits().max_sessions:
            with RawPeer(at.path) as late:
                late.say(say.register("late", ext=1))
                answer = late.hear()
                at.report.expect(answer.get("code") == "too_many_sessions", f"one too many was told {answer}")
                at.report.expect(late.hears_end(), "one too many stays connected")
    dice = random.Random(count)
    for peer in dice.sample(list(peers), min(len(peers), 1_000)):
        peer.say(say.presence(status="thinking"))
    peers.turn_until(lambda: not any(peer.is_writing for peer in peers), "presence to be written")


def _judge_streamed(at: Stage, lister: RawPeer, total: int) -> None:
    began_s, rows, sizes = time.monotonic(), [], []
    lister.say(say.list_sessions("whole", stream=True))
    while True:
        payload = lister.hear_payload()
        value = decode_json(payload)
        rows += value["sessions"]
        sizes.append(len(payload))
        if not value.get("more"):
            break
    took_ms = (time.monotonic() - began_s) * 1000
    told = f"{len(sizes)} frames, {sum(sizes) / MIB:.1f} MiB, {took_ms:.0f} ms"
    at.report.say(f"a list of {len(rows):,} sessions in {told}")
    at.report.expect(len(rows) == len({row["id"] for row in rows}) == total, f"{len(rows):,} rows of {total:,}")
    at.report.expect(max(sizes) <= MAX_FRAME_BYTES, f"a frame of {max(sizes):,} bytes")
    order = [(row.get("projectId", "~"), row.get("name", "").lower(), row["id"]) for row in rows]
    at.report.expect(order == sorted(order), "the list is out of order")


def _judge_cut(at: Stage, lister: RawPeer, total: int) -> None:
    lister.say(say.list_sessions("cut"))
    value = lister.hear_type("sessions")
    shown, omitted = len(value["sessions"]), value.get("omitted", 0)
    at.report.say(f"the same cut to one frame: {shown:,} rows, {omitted:,} omitted")
    at.report.expect(shown + omitted == total, f"{shown:,} shown and {omitted:,} omitted of {total:,}")
    at.report.expect(len(encode_json(value)) <= MAX_FRAME_BYTES, "the cut list is over the frame limit")
    at.report.expect(not omitted or shown > 1_000, f"only {shown} rows fit")


def _leave(peers: Peers, load: Load) -> None:
    load.has_begun.set()
    for peer in peers:
        peers.drop(peer)


def _judge_longest(report: Report, latency: Latency, count: int) -> None:
    """They are so quick that a p99 is made of few messages: the longest that anybody else waited counts too."""
    longest_ms = latency.most / 1_000
    report.time(f"its longest wait while {count:,} leave at once", longest_ms, "ms", bar=_WAIT_MS, margin=10.0)


def _worst(found: list[Latency]) -> Latency:
    return max(found, key=lambda one: one.p99)


def _judge_nothing_left(at: Stage, descriptors: int) -> None:
    at.judge_settled(descriptors)
    at.judge_balance()
    at.judge_log()
