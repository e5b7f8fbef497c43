"""Where the exploring of an inbox begins, with which steps, and how deep.

Owns the alphabets: each small enough that every sequence of it is walked.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from libintercom.wire.messages import Host
from tests.stateful.session.world import World


@dataclass(frozen=True)
class Action:
    """One step: a method of the world."""

    label: str
    method: str
    arguments: tuple[Any, ...] = ()


def arrives(shape: str) -> Action:
    return Action(f"{shape} arrives", "arrive", (shape,))


def again(number: int) -> Action:
    return Action(f"message {number} arrives again", "arrive_again", (number,))


STORED = Action("stored", "store")
NOT_STORED = Action("not stored", "fail_to_store")
TAKEN = Action("the host takes", "take")
REFUSED = Action("the host refuses", "refuse")
BROKEN_OFF = Action("the host breaks off and has it", "break_off", (True,))
BROKEN_OFF_EMPTY = Action("the host breaks off and has it not", "break_off", (False,))
FOUND = Action("the host looks", "find")
TURN = Action("a turn starts", "start_turn")
TURN_ENDS = Action("the turn ends", "end_turn", (True,))
TURN_FAILS = Action("the turn fails", "end_turn", (False,))
READ = Action("the host reads", "consume")
RETRY = Action("time to retry", "retry")
TIMEOUT = Action("an ask times out", "end_ask", ("timeout",))
REPLY = Action("a bare reply", "begin_reply")
NAMED_REPLY = Action("a reply by id", "begin_named_reply")
REPLY_TAKEN = Action("the reply is taken", "end_reply", (True,))
REPLY_REFUSED = Action("the reply is refused", "end_reply", (False,))
REPLY_UNKNOWN = Action("nobody knows of the reply", "end_reply", (None,))
REPLY_COMES = Action("a reply to us comes", "reply_arrives")
PLACE_CHOSEN = Action("place it", "choose", (True,))
DISCARD_CHOSEN = Action("discard it", "choose", (False,))
DISCARD_STAGED = Action("discard a staged one", "discard_staged")
CRASH = Action("crash", "crash", (False,))
CRASH_HELD = Action("crash after the host took it", "crash", (True,))
SHUTDOWN = Action("shutdown", "shut_down")
REOPEN = Action("start again", "reopen")
REPLACED = Action("the context is replaced", "replace_context")
LATE = Action("a late callback", "call_back_late")


@dataclass(frozen=True)
class Scenario:
    """``opening`` first, then every sequence of ``alphabet`` up to ``depth`` steps; up to ``quick`` in the test run."""

    name: str
    alphabet: tuple[Action, ...]
    depth: int
    quick: int
    opening: tuple[Action, ...] = ()
    abilities: Host = field(default_factory=lambda: Host(steer=True, wake=True, turn_end=True))
    can_tell: bool = True

    def begin(self) -> World:
        world = World(self.abilities, can_tell=self.can_tell)
        for action in self.opening:
            assert world.perform(action), f"{self.name}: {action.label} cannot be done"
        return world


PLACED_ASK = (arrives("ask"), STORED, TAKEN, STORED)

SCENARIOS = (
    Scenario(
        "everything",
        (
            arrives("ask"),
            arrives("queue"),
            arrives("passive"),
            arrives("update"),
            again(1),
            STORED,
            NOT_STORED,
            TAKEN,
            REFUSED,
            BROKEN_OFF,
            BROKEN_OFF_EMPTY,
            FOUND,
            TURN,
            TURN_ENDS,
            TURN_FAILS,
            READ,
            RETRY,
            TIMEOUT,
            REPLY,
            REPLY_TAKEN,
            REPLY_COMES,
            DISCARD_STAGED,
            CRASH,
            CRASH_HELD,
            SHUTDOWN,
            REOPEN,
            REPLACED,
            LATE,
        ),
        4,
        3,
    ),
    Scenario(
        "handing over",
        (arrives("steer"), arrives("queue"), STORED, TAKEN, REFUSED, BROKEN_OFF, FOUND, TURN, TURN_ENDS, CRASH_HELD),
        6,
        5,
    ),
    Scenario(
        "recovery",
        (TURN_ENDS, STORED, TAKEN, FOUND, TURN, arrives("steer"), CRASH, CRASH_HELD, SHUTDOWN, REOPEN),
        6,
        4,
        (TURN, arrives("passive"), arrives("queue"), arrives("later ask"), STORED, STORED, STORED),
    ),
    Scenario(
        "doubt",
        (
            arrives("steer"),
            STORED,
            TAKEN,
            BROKEN_OFF,
            BROKEN_OFF_EMPTY,
            FOUND,
            READ,
            TURN,
            PLACE_CHOSEN,
            DISCARD_CHOSEN,
            CRASH_HELD,
        ),
        6,
        6,
        can_tell=False,
    ),
    Scenario(
        "replacing",
        (arrives("update"), again(1), STORED, NOT_STORED, TURN_ENDS, TAKEN, DISCARD_STAGED, CRASH, RETRY),
        6,
        4,
        (TURN, arrives("update")),
    ),
    Scenario(
        "questions",
        (
            REPLY,
            NAMED_REPLY,
            REPLY_TAKEN,
            REPLY_REFUSED,
            REPLY_UNKNOWN,
            STORED,
            NOT_STORED,
            TIMEOUT,
            CRASH,
            again(1),
            SHUTDOWN,
        ),
        5,
        5,
        PLACED_ASK,
    ),
    Scenario("early ends", (arrives("ask"), again(1), TIMEOUT, STORED, NOT_STORED, TAKEN, CRASH), 7, 5),
    Scenario(
        "turns",
        (arrives("ask"), arrives("later ask"), STORED, TAKEN, TURN, READ, TURN_ENDS, TURN_FAILS, TIMEOUT, REPLY),
        5,
        4,
        (*PLACED_ASK, arrives("ask"), STORED),
    ),
    Scenario(
        "contexts",
        (arrives("steer"), STORED, TAKEN, REPLY_COMES, again(1), SHUTDOWN, REOPEN, REPLACED, LATE),
        6,
        5,
    ),
    Scenario(
        "prompts only",
        (arrives("steer"), arrives("queue"), arrives("passive"), STORED, TAKEN, REFUSED, TURN, TURN_ENDS, CRASH),
        6,
        4,
        abilities=Host(prompt_only=True, turn_end=True),
    ),
    Scenario(
        "no steering",
        (arrives("steer"), arrives("queue"), STORED, TAKEN, TURN, TURN_ENDS, READ, CRASH_HELD, FOUND),
        6,
        5,
        abilities=Host(wake=True, turn_end=True),
    ),
)
BY_NAME = {scenario.name: scenario for scenario in SCENARIOS}
ALPHABET = {action.label: action for scenario in SCENARIOS for action in scenario.alphabet}
