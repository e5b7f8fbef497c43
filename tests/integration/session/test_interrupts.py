"""Ctrl-C in a blocking program: it interrupts the wait, loses nothing, and leaving still runs to its end."""

from __future__ import annotations

import os
import signal
import threading
from typing import TYPE_CHECKING

import pytest

from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.support.daemon import Daemon
    from tests.support.sessions import Site

TIMEOUT_S = 10.0
ROUNDS = 20


def interrupt_when(is_time: Callable[[], bool]) -> threading.Thread:
    """A thread, to be started, that sends this process a SIGINT, as a terminal does, once it is time."""

    def wait() -> None:
        wait_until(is_time, "the time to interrupt")
        os.kill(os.getpid(), signal.SIGINT)

    return threading.Thread(target=wait)


def test_interrupted_reading_loses_and_repeats_nothing(place: Site, broker: Daemon) -> None:
    with place.join_blocking("a") as a, place.join_blocking("b") as b:
        got: list[str] = []
        for number in range(ROUNDS):
            sending = threading.Thread(target=lambda number=number: a.send("b", f"m{number}"))
            sending.start()
            interrupting = interrupt_when(lambda: True)
            try:
                # At about the moment at which the message arrives: before, while or after it is given.
                interrupting.start()
                arrival = b.next_inbound(TIMEOUT_S)
                while arrival is not None:
                    got.append(arrival.message.content.text)
                    arrival = b.next_inbound(TIMEOUT_S)
            except KeyboardInterrupt:
                pass
            interrupting.join()
            sending.join()
        while (arrival := b.next_inbound(0.5)) is not None:
            got.append(arrival.message.content.text)
        assert list(dict.fromkeys(got)) == [f"m{number}" for number in range(ROUNDS)]
        # What was handed out just as the interrupt came is handed out again: at most one a round, and never unseen.
        assert len(got) <= 2 * ROUNDS


def test_an_interrupted_ask_is_retired(place: Site, broker: Daemon) -> None:
    with place.join_blocking("a") as a, place.join_blocking("b") as b:
        interrupting = interrupt_when(lambda: bool(b.pending()))
        interrupting.start()
        with pytest.raises(KeyboardInterrupt):
            a.ask("b", "?", timeout_s=60)
        interrupting.join()
        wait_until(lambda: not b.pending(), "the question to be retired")
        assert a.send("b", "goes on").outcome == "delivered"


def test_an_interrupted_leaving_still_leaves(place: Site, broker: Daemon) -> None:
    with place.join_blocking("a") as a:
        b = place.join_blocking("b")
        interrupting = interrupt_when(lambda: not b.is_connected)
        interrupting.start()
        try:
            b.leave()
            wait_until(lambda: not interrupting.is_alive(), "the interrupt")
        except KeyboardInterrupt:
            pass
        interrupting.join()
        wait_until(lambda: "b" not in [row.name for row in a.list_sessions().rows], "the session to be gone")
        with place.join_blocking("b") as again:
            assert again.journal_note == ""
