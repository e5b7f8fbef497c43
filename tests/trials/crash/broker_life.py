"""A broker's life that ends by SIGKILL: the real program, forked from an interpreter that has loaded it.

Owns starting it, where it dies, and the faults that the judgement must see. Does not own what is said to it
(``broker_story``).
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from typing import TYPE_CHECKING, Any

# Loaded before a fork rather than after each: a life costs a tenth of a start.
import intercomd.candidate
import intercomd.edges.spool.database
import intercomd.serving  # noqa: F401
from intercomd.__main__ import main
from intercomd.core import farewells
from intercomd.core.effects import Store
from intercomd.core.events import Stored
from intercomd.edges.spool import faults
from intercomd.edges.spool.database import Database
from intercomd.edges.spool.durable import DurableSpool
from libintercom.wire.answers import Unparked

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable

_IDLE_EXIT_S = "60"


def live(order: dict[str, Any], channel: socket.socket) -> None:
    """``order``: environment, point, nth, lingers_s, plant and the file for its output."""
    os.environ.update(order["environment"])
    output = os.open(order["output"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.dup2(output, 1)
    os.dup2(output, 2)
    if order["plant"]:
        PLANTS[order["plant"]]()
    faults.hook = Death(order["point"], order["nth"], order["lingers_s"]).reach
    asyncio.set_event_loop(None)
    report = ["--report-fd", str(os.dup(channel.fileno()))]
    sys.argv = ["intercomd", "serve", "--idle-exit-s", _IDLE_EXIT_S, "--limits", "bench", *report]
    os._exit(main())


class Death:
    """Ends this process at the n-th reach of a point, maybe after the rest of it went on for a moment."""

    def __init__(self, point: str, nth: int, lingers_s: float) -> None:
        self._point, self._left, self._lingers_s = point, nth, lingers_s

    def reach(self, name: str) -> None:
        self._left -= name == self._point
        if name == self._point and not self._left:
            time.sleep(self._lingers_s)
            os.kill(os.getpid(), signal.SIGKILL)


# ---------------------------------------------------------------- faults that must be seen


def _answer_before_storing() -> None:
    write = DurableSpool._write

    def write_late(self: Any, batch: Any) -> Any:
        stored = [Stored(effect.item.key) for effect in batch if isinstance(effect, Store)]
        self._call_soon(lambda: self._tell(stored))
        time.sleep(0.005)
        return [one for one in write(self, batch) if not isinstance(one, Stored)]

    DurableSpool._write = write_late


def _say_dropped_at_once() -> None:
    farewells.Farewells.begin = lambda self, conn, child, _keys: self._state.turn.write(
        conn, Unparked(child_id=child.child_id, dropped=len(child.inputs))
    )


def _divide_turns() -> None:
    apply = DurableSpool.apply

    def apply_at_once(self: Any, effect: Any) -> None:
        apply(self, effect)
        self._hand_over()
        time.sleep(0.0005)

    DurableSpool.apply = apply_at_once


def _never_forget() -> None:
    write = Database.write

    def write_stores(self: Any, batch: Any) -> None:
        write(self, [effect for effect in batch if isinstance(effect, Store)])

    Database.write = write_stores


def _load_backwards() -> None:
    load = Database.load

    def load_backwards(self: Any) -> Any:
        items = load(self)
        inputs = [item for item in items if item.kind == "input"][::-1]
        return tuple(inputs.pop(0) if item.kind == "input" else item for item in items)

    Database.load = load_backwards


def _load_without(kind: str) -> Callable[[], None]:
    def plant() -> None:
        load = Database.load
        Database.load = lambda self: tuple(item for item in load(self) if item.kind != kind)

    return plant


# Name -> the fault; beside it a word of the violation that must be found.
PLANTS: dict[str, Callable[[], None]] = {
    "answer before storing": _answer_before_storing,
    "say dropped at once": _say_dropped_at_once,
    "divide turns": _divide_turns,
    "never forget": _never_forget,
    "load backwards": _load_backwards,
    "load no input": _load_without("input"),
    "load no reply": _load_without("reply"),
    "load no letter": _load_without("letter"),
    "load no child": _load_without("child"),
}
SEEN_AS = {
    "answer before storing": "was promised",
    "say dropped at once": "told to be dropped and came",
    "divide turns": "no letter says",
    "never forget": "again",
    "load backwards": "came behind",
    "load no input": "was promised",
    "load no reply": "was kept",
    "load no letter": "letter",
    "load no child": "was parked",
}
