"""Fair turns of the real listener: whoever says much at once keeps nobody waiting, also when it leaves unheard."""

from __future__ import annotations

import asyncio
import itertools
import socket
from typing import TYPE_CHECKING, Any

import pytest

from intercomd.core import effects
from intercomd.core.events import ConnectionClosed, ConnectionsLost, FrameReceived, FrameRejected
from intercomd.edges.listener.connection import FRAMES_PER_TURN
from intercomd.edges.listener.departures import ENDS_PER_TURN
from intercomd.edges.listener.polling import EpollPoller
from libintercom.endpoint import PROBE_NONCE_BYTES, PROBE_PREAMBLE
from libintercom.wire.answers import Delivered
from libintercom.wire.frames import encode_json, frame
from tests.integration.listener.rigs import RealRig

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

# More than a hundred turns' worth, in less than one read.
COUNT = 1_700
# In the middle of them.
SPEAKS_AFTER = 20


def health(request_id: str) -> bytes:
    return frame(encode_json({"type": "health", "requestId": request_id}))


def flood(real: RealRig, conn: int, count: int = COUNT) -> None:
    """So many frames are there before the listener looks."""
    raw = b"".join(health("x") for _ in range(count))
    assert real.peers[conn].theirs.send(raw) == len(raw)


def sizes_of_reports(real: RealRig, between: Callable[[int], None] = lambda _count: None) -> list[list[int]]:
    """From now on, the connections of each report's frames; ``between`` is called after each with their number."""
    reports: list[list[int]] = []

    def note(events: Iterable[Any]) -> None:
        events = list(events)
        real.observed.extend(events)
        reports.append([event.conn for event in events if isinstance(event, FrameReceived)])
        between(len(reports))

    real.listener._report = note
    return reports


def count_frames(real: RealRig, conn: int) -> int:
    return sum(isinstance(event, FrameReceived) and event.conn == conn for event in real.observed)


def test_a_frame_waits_for_one_turn_of_whoever_says_much(real: RealRig) -> None:
    greedy, modest = real.connect(), real.connect()

    def speak(count: int) -> None:
        if count == SPEAKS_AFTER:
            real.peers[modest].theirs.send(health("m"))

    reports = sizes_of_reports(real, speak)
    flood(real, greedy)
    real.run_until(lambda: count_frames(real, greedy) == COUNT, "everything to be heard")
    assert max(map(len, reports)) <= FRAMES_PER_TURN
    at = next(number for number, conns in enumerate(reports) if modest in conns)
    # The turn that has begun, and on some loops the next one, which is scheduled already.
    assert SPEAKS_AFTER <= at <= SPEAKS_AFTER + 1


def test_those_who_say_much_take_turns(real: RealRig) -> None:
    conns = [real.connect() for _ in range(3)]
    reports = sizes_of_reports(real)
    for conn in conns:
        flood(real, conn)
    real.run_until(lambda: all(count_frames(real, conn) == COUNT for conn in conns), "everything to be heard")
    speakers = [report[0] for report in reports if report]
    # Nobody is ever more than one turn ahead.
    for end in range(len(speakers) - 3):
        counts = [speakers[:end].count(conn) for conn in conns]
        assert max(counts) - min(counts) <= 1, f"after {end} turns: {counts}"


def test_a_paused_one_does_not_go_on_until_it_is_resumed(real: RealRig) -> None:
    greedy, modest = real.connect(), real.connect()
    flood(real, greedy)
    real.run_until(lambda: real.observed, "a first turn")
    real.listener.apply(effects.PauseReading(greedy))
    seen = count_frames(real, greedy)
    for number in range(5):
        real.peers[modest].theirs.send(health("m"))
        real.run_until(lambda number=number: count_frames(real, modest) > number, "the modest one")
    assert count_frames(real, greedy) == seen
    real.listener.apply(effects.ResumeReading(greedy))
    real.run_until(lambda: count_frames(real, greedy) == COUNT, "the rest")


def test_a_closed_one_does_not_go_on(real: RealRig) -> None:
    greedy, modest = real.connect(), real.connect()
    flood(real, greedy)
    real.run_until(lambda: real.observed, "a first turn")
    real.listener.apply(effects.Close(greedy, "x"))
    assert real.listener.flush() == [ConnectionClosed(greedy, "x")]
    seen = count_frames(real, greedy)
    real.peers[modest].theirs.send(health("m"))
    real.run_until(lambda: count_frames(real, modest), "the modest one")
    assert count_frames(real, greedy) == seen


def test_nothing_behind_a_bad_frame_of_a_later_turn_is_heard(real: RealRig) -> None:
    greedy = real.connect()
    raw = health("x") * (2 * FRAMES_PER_TURN + 3)
    real.peers[greedy].theirs.send(raw + frame(b"[]") + health("y"))
    real.run_until(lambda: any(isinstance(event, FrameRejected) for event in real.observed), "the bad frame")
    assert isinstance(real.observed[-1], FrameRejected)
    assert count_frames(real, greedy) == 2 * FRAMES_PER_TURN + 3


@pytest.mark.parametrize("count", [1, FRAMES_PER_TURN - 1, FRAMES_PER_TURN, FRAMES_PER_TURN + 1, COUNT])
def test_whoever_leaves_unheard_is_heard_in_turns_and_then_ended(real: RealRig, count: int) -> None:
    greedy, modest = real.connect(), real.connect()
    real.listener.apply(effects.PauseReading(greedy))
    flood(real, greedy, count)
    real.peers[greedy].theirs.close()
    reports = sizes_of_reports(real)
    real.listener.apply(effects.Write(greedy, Delivered(message_id="m")))
    # Writing finds that the peer is gone; no more is heard at once than in an ordinary turn.
    first = real.listener.flush()
    assert sum(isinstance(event, FrameReceived) for event in first) == min(count, FRAMES_PER_TURN)
    real.observed[:0] = first
    real.peers[modest].theirs.send(health("m"))
    real.run_until(lambda: count_frames(real, modest), "the modest one")
    at = next(number for number, conns in enumerate(reports) if modest in conns)
    assert at <= 2
    real.run_until(lambda: any(isinstance(event, ConnectionClosed) for event in real.observed), "the end")
    assert count_frames(real, greedy) == count
    of_greedy = [event for event in real.observed if event.conn == greedy]
    assert isinstance(of_greedy[-1], ConnectionClosed)


def test_whoever_left_is_ended_also_when_it_is_paused_or_closed_meanwhile(real: RealRig) -> None:
    for effect in (effects.PauseReading, lambda conn: effects.Close(conn, "x")):
        greedy = real.connect()
        real.listener.apply(effects.PauseReading(greedy))
        flood(real, greedy)
        real.peers[greedy].theirs.close()
        real.listener.apply(effects.Write(greedy, Delivered(message_id="m")))
        real.observed += real.listener.flush()
        real.listener.apply(effect(greedy))
        real.observed += real.listener.flush()
        real.run_until(
            lambda greedy=greedy: any(isinstance(e, ConnectionClosed) and e.conn == greedy for e in real.observed),
            "the end",
        )


def test_of_many_that_are_gone_at_once_a_few_end_in_a_turn(real: RealRig) -> None:
    conns, modest = [real.connect() for _ in range(100)], real.connect()
    for conn in conns:
        real.listener.apply(effects.PauseReading(conn))
        flood(real, conn, 1)
        real.peers[conn].theirs.close()
    ends: list[int] = []
    reports = sizes_of_reports(real, lambda _count: ends.append(count_ends(real)))
    for conn in conns:
        real.listener.apply(effects.Write(conn, Delivered(message_id="m")))
    first = real.listener.flush()
    # The core hears at once who is gone; so it tells none of them about the others.
    assert first[0] == ConnectionsLost(tuple(conns))
    real.observed[:0] = first
    at_once = count_ends(real)
    assert 0 < at_once < 20
    for conn in conns:
        real.listener.apply(effects.Write(conn, Delivered(message_id="m")))
    assert real.listener.flush() == []
    real.peers[modest].theirs.send(health("m"))
    real.run_until(lambda: count_ends(real) == len(conns), "every end")
    assert all(later - earlier <= 1 for earlier, later in itertools.pairwise([at_once, *ends]))
    assert next(number for number, conns in enumerate(reports) if modest in conns) <= 2
    assert [count_frames(real, conn) for conn in conns] == [1] * len(conns)


def leave_at_once(real: RealRig, conns: list[int]) -> None:
    for conn in conns:
        real.peers[conn].theirs.close()


def half_close(real: RealRig, conns: list[int]) -> None:
    for conn in conns:
        real.peers[conn].theirs.shutdown(socket.SHUT_WR)


def leave_with_a_word(real: RealRig, conns: list[int]) -> None:
    for conn in conns:
        flood(real, conn, 1)
        real.peers[conn].theirs.close()


def leave_unheard(real: RealRig, conns: list[int]) -> None:
    """Writing to them finds that they are gone."""
    for conn in conns:
        real.listener.apply(effects.PauseReading(conn))
        real.peers[conn].theirs.close()
        real.listener.apply(effects.Write(conn, Delivered(message_id="m")))
    real.listener._report(real.listener.flush())


@pytest.mark.parametrize("leave", [leave_at_once, half_close, leave_with_a_word, leave_unheard])
@pytest.mark.parametrize("count", [2, 10, 300])
def test_whoever_speaks_while_a_crowd_leaves_is_heard_between_two_ends(
    real: RealRig, leave: Callable[[RealRig, list[int]], None], count: int
) -> None:
    conns, modest = [real.connect() for _ in range(count)], real.connect()
    # How many had ended when it spoke each time, and how many ended before it was heard.
    said_after = [0]
    waited: list[int] = []

    def speak(_count: int) -> None:
        """As soon as it was heard, it speaks again."""
        if count_frames(real, modest) == len(said_after):
            waited.append(count_ends(real) - said_after[-1])
            said_after.append(count_ends(real))
            real.peers[modest].theirs.send(health("m"))

    sizes_of_reports(real, speak)
    real.peers[modest].theirs.send(health("m"))
    leave(real, conns)
    real.run_until(lambda: count_ends(real) == count, "every end")
    # The ends of the turn that has begun, and on some loops those of the next one, which is scheduled already.
    assert max(waited, default=0) <= 2 * ENDS_PER_TURN
    said = 1 if leave is leave_with_a_word else 0
    assert [count_frames(real, conn) for conn in conns] == [said] * count


def test_whoever_leaves_alone_ends_in_the_turn_that_finds_it(real: RealRig) -> None:
    """So what is said to it afterwards finds that it is gone."""
    first, modest = real.connect(), real.connect()
    real.peers[first].theirs.close()
    real.peers[modest].theirs.send(health("m"))
    real.listener._poller._dispatch()
    assert [type(event) for event in real.observed] == [ConnectionClosed, FrameReceived]


def test_who_leaves_at_once_is_known_before_the_first_of_a_crowd_ends() -> None:
    """On the system that tells; elsewhere it is found by writing to them."""
    loop = asyncio.SelectorEventLoop()
    real = RealRig(loop, EpollPoller())
    conns = [real.connect() for _ in range(300)]
    leave_at_once(real, conns)
    real.run_until(lambda: count_ends(real) == len(conns), "every end")
    names = [type(event) for event in real.observed]
    known = [conn for event in real.observed if isinstance(event, ConnectionsLost) for conn in event.conns]
    assert sorted(known) == conns
    assert ConnectionsLost not in names[names.index(ConnectionClosed) :]
    real.close()


def test_a_crowd_that_keeps_growing_does_not_keep_its_first_from_ending(real: RealRig) -> None:
    """Somebody leaves all the time."""
    conns = [real.connect() for _ in range(30)]
    leave_at_once(real, conns)

    def is_one_ended() -> bool:
        conn = real.connect()
        conns.append(conn)
        leave_at_once(real, [conn])
        return count_ends(real) > 20

    real.run_until(is_one_ended, "the first ends")
    real.run_until(lambda: count_ends(real) == len(conns), "every end")


def test_a_probe_that_is_gone_at_once_is_recognized_in_a_crowd(real: RealRig) -> None:
    seen: list[bool] = []
    nonce = bytes(range(PROBE_NONCE_BYTES))
    conns = [real.connect() for _ in range(30)]
    real.listener.expect(nonce, lambda: seen.append(True))
    real.peers[conns[20]].theirs.send(PROBE_PREAMBLE + nonce)
    leave_at_once(real, conns)
    real.run_until(lambda: count_ends(real) == len(conns), "every end")
    assert seen == [True]
    assert not any(isinstance(event, (FrameReceived, FrameRejected)) for event in real.observed)


def count_ends(real: RealRig) -> int:
    return sum(isinstance(event, ConnectionClosed) for event in real.observed)
