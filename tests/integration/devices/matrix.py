"""The cut matrix: whatever happens to the connection, and whenever, what is said of a message is true.

Owns one trial (a command, a step, a way) and its judgement by the recipient's ledger. Does not own the faults
themselves (``faults``).
"""

from __future__ import annotations

import contextlib
import itertools
import signal
import subprocess
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from unittest import mock

from libintercom.devices import conversation
from libintercom.devices.naming import DeviceTarget
from libintercom.identity import make_uuid
from libintercom.outcomes import NOT_SENT, REFUSED, UNKNOWN
from tests.integration.devices.faults import CUT, STEPS, WAYS, Fault
from tests.support.ctl import PROGRAM
from tests.support.fleet import wait_gone
from tests.support.waiting import NotSeen, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.support.fleet import Fleet, Recipient

LIST, SEND, ASK = "list", "send", "ask"
COMMANDS = (LIST, SEND, ASK)
DEVICE = "laptop"
# Asked for replies that come, and for replies that never do.
ANSWERING, SILENT = "api-fix", "silent"
# More than ssh's window and several chunks, so that a part of it arrives.
_LONG = "x" * 600_000
# bars.md section 3: from the caller's end to the question's retirement.
RETIRED_S = 3.0
# Short waits in the place of 20 and 30 s: what is tried is their order, not their length.
_PATIENCE = {"MARKER_TIMEOUT_S": 2.0, "ANSWER_TIMEOUT_S": 2.0, "REPLY_MARGIN_S": 0.5}
_ASK_TIMEOUT_S = 4.0
# Before the marker nothing was written, and "not sent" is the only truth. Behind it ssh may hold what it was given.
_CERTAIN = ("login", "noise")


@dataclass
class Tally:
    """What was tried and what was said."""

    trials: int = 0
    words: dict[str, int] = field(default_factory=dict)
    slowest_retirement_s: float = 0.0
    violations: list[str] = field(default_factory=list)

    def count(self, word: str) -> None:
        self.trials += 1
        self.words[word] = self.words.get(word, 0) + 1


def cells(commands: tuple[str, ...] = COMMANDS, ways: tuple[str, ...] = WAYS) -> list[tuple[str, str, str]]:
    """Every command, step and way that exists: a list has no parts and no receipt, a send no reply."""
    return [cell for cell in itertools.product(commands, STEPS, ways) if _exists(*cell[:2])]


def _exists(command: str, step: str) -> bool:
    if command == LIST:
        return step not in {"half", "answered", "reply"}
    return not (command == SEND and step in {"answered", "reply"})


@contextlib.contextmanager
def impatient() -> Iterator[None]:
    """Deadlines short enough for a test."""
    with mock.patch.multiple(conversation, **_PATIENCE):
        yield


def try_cell(fleet: Fleet, recipients: dict[str, Recipient], cell: tuple[str, str, str], tally: Tally) -> None:
    """One trial, judged."""
    command, step, way = cell
    fault = Fault(step, way)
    fleet.script(DEVICE, fault)
    name = f"{command}: {fault}"
    try:
        with impatient():
            if command == LIST:
                listing = fleet.reach.list_sessions((DEVICE,))[0]
                tally.count(listing.code or "listed")
                if listing.is_listed:
                    tally.violations.append(f"{name}: listed all the same")
            else:
                _try_message(fleet, recipients, cell, tally)
        if not fault.is_reached:
            tally.violations.append(f"{name}: never came to that step")
        wait_gone("ssh")
    except NotSeen as unseen:
        tally.violations.append(f"{name}: {unseen}")
    finally:
        fleet.server.scripts.clear()
    _let_go(tally, name)


def _try_message(fleet: Fleet, recipients: dict[str, Recipient], cell: tuple[str, str, str], tally: Tally) -> None:
    command, step, way = cell
    recipient = recipients[ANSWERING if step == "reply" else SILENT]
    message_id, name = make_uuid(), f"{command}: {way} at {step}"
    options: Any = {"message_id": message_id}
    target = DeviceTarget(recipient.name, DEVICE)
    text = _LONG if step == "half" else f"{command} {step} {way}"
    if command == SEND:
        result = fleet.reach.send(target, fleet.sender, text, options)
    else:
        result = fleet.reach.ask(target, fleet.sender, text, options, _ASK_TIMEOUT_S)
    ended_at = time.monotonic()
    tally.count(result.outcome.outcome + (f"/{result.ended_by}" if result.ended_by else ""))
    _let_go(tally, name)
    judge(tally, name, step, result, recipient.count(message_id))
    if command == ASK and recipient.has(message_id) and step != "reply":
        _await_retirement(tally, name, recipient, message_id, ended_at)


def judge(tally: Tally, name: str, step: str, result: Any, arrived: int) -> None:
    """Compare what is claimed with the recipient's ledger."""
    outcome = result.outcome
    is_denied = outcome.outcome in {NOT_SENT, REFUSED}
    if is_denied and arrived:
        tally.violations.append(f"{name}: said to be {outcome.outcome}, and it arrived")
    if outcome.is_accepted and arrived != 1:
        tally.violations.append(f"{name}: said to be accepted, and it arrived {arrived} times")
    if step in _CERTAIN and not is_denied:
        tally.violations.append(f"{name}: nothing was handed over, and it is said to be {outcome.outcome}")
    expected = {"answered": True, "reply": True}.get(step, False)
    if outcome.is_accepted is not expected:
        tally.violations.append(f"{name}: accepted is {outcome.is_accepted}, a receipt came is {expected}")
    if step in {"forwarded", "answer"} and outcome.outcome != UNKNOWN:
        tally.violations.append(f"{name}: nobody can know, and it is said to be {outcome.outcome}")
    if result.exit_status != {True: 5, False: 3 if outcome.outcome == UNKNOWN else 4}[outcome.is_accepted is True]:
        tally.violations.append(f"{name}: exit status {result.exit_status}")


def _let_go(tally: Tally, name: str) -> None:
    """The remote command notices within its beat that its caller has gone, and leaves."""
    try:
        wait_gone("remote_cli")
    except NotSeen:
        tally.violations.append(f"{name}: the remote command stays")


def _await_retirement(tally: Tally, name: str, recipient: Recipient, message_id: str, ended_at: float) -> None:
    try:
        wait_until(lambda: recipient.is_retired(message_id), "the question to be retired", RETIRED_S)
    except NotSeen:
        tally.violations.append(f"{name}: the question was not retired within {RETIRED_S:g} s")
    tally.slowest_retirement_s = max(tally.slowest_retirement_s, time.monotonic() - ended_at)


def kill_caller(fleet: Fleet, recipient: Recipient, number: signal.Signals, tally: Tally) -> None:
    """A caller that is killed while its question waits: the question is retired, no ssh child stays."""
    message_id, name = make_uuid(), f"ask: caller ended by {number.name}"
    ctl = fleet.ctl()
    words = [PROGRAM, "ask", f"{recipient.name}@{DEVICE}", "are you there?", "--message-id", message_id, "--json"]
    caller = subprocess.Popen(words, env=ctl.environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        wait_until(lambda: recipient.has(message_id), "the question to arrive")
        caller.send_signal(number)
        ended_at = time.monotonic()
        out, _ = caller.communicate(timeout=10)
    finally:
        caller.kill()
        caller.wait()
    tally.count(number.name)
    expected = 130 if number == signal.SIGINT else -number
    if caller.returncode != expected:
        tally.violations.append(f"{name}: exit status {caller.returncode}")
    if number == signal.SIGINT and '"endedBy": "cancelled"' not in out:
        tally.violations.append(f"{name}: it said {out!r:.300}")
    _await_retirement(tally, name, recipient, message_id, ended_at)
    _let_go(tally, name)


CALLER_ENDS = (signal.SIGINT, signal.SIGTERM, signal.SIGKILL)
__all__ = ["CALLER_ENDS", "CUT", "Tally", "cells", "judge", "kill_caller", "try_cell"]
