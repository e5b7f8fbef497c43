"""The verdict: is the owner that a record names absent, live, dead, or can it not be told? (ownership.md section 3).

Owns the rules, as pure functions over what was read. Reads nothing itself (``readings``, ``inspection``).

Dead only when proven, since a wrong "dead" makes two brokers. Everything that cannot be compared is ``uncertain``,
which blocks a start and says what an operator can look at. Equal start ticks prove nothing: a reused pid often gets
the same ones. Nothing is ever killed on a verdict.
"""

from __future__ import annotations

from libintercom.ownership.records import Identity, Mark, OwnerRecord
from libintercom.platforms import ANDROID, LINUX, MACOS
from libintercom.wire.record import Record, optional, required
from libintercom.wire.values import BOOL, COUNT, NUMBER, STRING, TEXT, Rule, one_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Callable

ABSENT = "absent"
LIVE = "live"
DEAD = "dead"
UNCERTAIN = "uncertain"

# What a shared lock attempt on the record file said.
HELD = "held"
FREE = "free"
# What kill(pid, 0) said: 0, ESRCH, EPERM.
EXISTS = "exists"
MISSING = "missing"
FORBIDDEN = "forbidden"
# For any reading that could not be had.
UNKNOWN = "unknown"

# Of /proc/<pid>/stat: zombie and dead. Such a program runs no code and holds nothing.
_ENDED_STATES = ("Z", "X", "x")
# Android: between reading the boot clock and writing the record a loaded phone may take this long; a birth later
# than that cannot be the writer's.
_PUBLICATION_MARGIN_MS = 1000.0
# connect() outcomes that say nobody listens; the names are those of ``libintercom.endpoint``.
_NOBODY = ("absent", "refused")
_SOMEBODY = ("connected", "busy")

_MARK = Rule("a file mark", "record", lambda value: isinstance(value, Mark), record=Mark)


class Ours(Record):
    """What this program knows of itself and its machine, to compare a record with."""

    platform: str = required(STRING)
    pid: int = required(COUNT)
    machine: str | None = optional(STRING, default=None)
    identity: Identity = required(Rule("an identity", "record", lambda v: isinstance(v, Identity), record=Identity))
    is_initial_pid_ns: bool = required(BOOL)
    tick_ms: float = required(NUMBER)


class Readings(Record):
    """What was observed about a record's file, its pid and the endpoint, all at one time.

    ``state``, ``start_ticks`` (Linux, Android) and ``birth_us`` (macOS) describe the program that has the pid now and
    are absent when they cannot be read. ``endpoint`` is an outcome of ``libintercom.endpoint``.
    """

    mark: Mark | None = optional(_MARK, default=None)
    mtime_us: int | None = optional(COUNT, default=None)
    lock: str = required(one_of(HELD, FREE, UNKNOWN))
    signal: str = required(one_of(EXISTS, MISSING, FORBIDDEN, UNKNOWN))
    state: str | None = optional(STRING, default=None)
    start_ticks: int | None = optional(COUNT, default=None)
    birth_us: int | None = optional(COUNT, default=None)
    endpoint: str = required(STRING)


class Verdict(Record):
    """``kind`` is ``absent``, ``live``, ``dead`` or ``uncertain``; ``reason`` continues "… because " for a person."""

    kind: str = required(one_of(ABSENT, LIVE, DEAD, UNCERTAIN))
    reason: str = required(TEXT)


def judge(record: OwnerRecord | None, ours: Ours, readings: Readings) -> Verdict:
    """Decide about the owner named by ``record`` (None: there is no file)."""
    if record is None:
        return Verdict(kind=ABSENT, reason="there is no record")
    for rule in _RULES:
        found = rule(record, ours, readings)
        if found is not None:
            return found
    return _judge_pid(record, ours, readings)


def _live(reason: str) -> Verdict:
    return Verdict(kind=LIVE, reason=reason)


def _dead(reason: str) -> Verdict:
    return Verdict(kind=DEAD, reason=reason)


def _uncertain(reason: str) -> Verdict:
    return Verdict(kind=UNCERTAIN, reason=reason)


def _judge_lock(record: OwnerRecord, _ours: Ours, readings: Readings) -> Verdict | None:
    """Our own records: the kernel drops the lock with the program, whatever happened to its pid."""
    if record.is_locked_form(readings.mark):
        if readings.lock == HELD:
            return _live(f"pid {record.pid} holds the lock on its record")
        if readings.lock == FREE:
            return _dead(f"pid {record.pid} no longer holds the lock on its record")
    if readings.lock == HELD:
        return _uncertain("a running program holds a lock on the record, and the record does not say which")
    return None


def _judge_endpoint(_record: OwnerRecord, _ours: Ours, readings: Readings) -> Verdict | None:
    return _live("a broker listens at the socket") if readings.endpoint in _SOMEBODY else None


def _judge_form(record: OwnerRecord, _ours: Ours, _readings: Readings) -> Verdict | None:
    return _uncertain(f"the record cannot be judged: {record.problem}") if record.problem else None


def _judge_machine(record: OwnerRecord, ours: Ours, _readings: Readings) -> Verdict | None:
    publication = record.publication
    platform = publication.platform if publication else LINUX if record.native else ours.platform
    if platform != ours.platform:
        return _uncertain(f"the record was written on {platform}, this is {ours.platform}")
    machine = publication.machine if publication else None
    if machine and ours.machine and machine != ours.machine:
        return _uncertain(f"the record was written on another machine ({machine}); this is {ours.machine}")
    return None


def _judge_birth(record: OwnerRecord, ours: Ours, readings: Readings) -> Verdict | None:
    """macOS: an owner is born before it writes or touches its record, so a later birth is another program's."""
    if ours.platform != MACOS or readings.birth_us is None or readings.mtime_us is None:
        return None
    if readings.birth_us > readings.mtime_us:
        return _dead(f"pid {record.pid} was started after the record was written")
    return None


def _judge_legacy(record: OwnerRecord, ours: Ours, readings: Readings) -> Verdict | None:
    """A bare pid says too little: it counts as dead only where no pid can hide and nobody listens."""
    if record.identity is not None:
        return None
    if readings.signal != MISSING:
        return _uncertain(f"the record holds only a pid, and pid {record.pid} {_presence(readings)}")
    if not ours.is_initial_pid_ns:
        return _uncertain(f"the record holds only pid {record.pid}, which may be hidden from this pid namespace")
    if readings.endpoint not in _NOBODY:
        return _uncertain(f"pid {record.pid} is gone, but connecting to the socket said {readings.endpoint}")
    return _dead(f"pid {record.pid} does not exist and nobody listens at the socket")


def _presence(readings: Readings) -> str:
    return {EXISTS: "exists", FORBIDDEN: "belongs to another user"}.get(readings.signal, "could not be examined")


def _judge_boot(record: OwnerRecord, ours: Ours, _readings: Readings) -> Verdict | None:
    """Another boot of the same machine ended every program of the former one."""
    theirs, mine = record.identity, ours.identity
    if ours.platform == ANDROID or theirs is None:
        return None
    if theirs.boot_id is None or mine.boot_id is None:
        return _uncertain("the boot in which the record was written cannot be compared with this one")
    if theirs.boot_id == mine.boot_id:
        return None
    machine = record.publication.machine if record.publication else None
    if machine and machine == ours.machine:
        return _dead("the machine was started anew since the record was written")
    return _uncertain("the record names another boot, and nothing proves that it was this machine's")


def _judge_namespaces(record: OwnerRecord, ours: Ours, _readings: Readings) -> Verdict | None:
    theirs, mine = record.identity, ours.identity
    if ours.platform != LINUX or theirs is None:
        return None
    if mine.pid_ns is None or theirs.pid_ns != mine.pid_ns:
        return _uncertain(f"the record was written in the pid namespace {theirs.pid_ns}; this is {mine.pid_ns}")
    if theirs.time_ns != mine.time_ns:
        return _uncertain(f"the record was written in the time namespace {theirs.time_ns}; this is {mine.time_ns}")
    return None


def _judge_boottime(record: OwnerRecord, ours: Ours, readings: Readings) -> Verdict | None:
    """Android hides the boot id; its boot clock only moves forward within one boot."""
    theirs, mine = record.identity, ours.identity
    if ours.platform != ANDROID or theirs is None:
        return None
    if theirs.boottime_ms is None or mine.boottime_ms is None:
        return _uncertain("the record holds no reading of the boot clock")
    if mine.boottime_ms < theirs.boottime_ms:
        return _dead("the device was started anew since the record was written")
    if readings.start_ticks is not None:
        born_ms = readings.start_ticks * ours.tick_ms
        if born_ms > theirs.boottime_ms + ours.tick_ms + _PUBLICATION_MARGIN_MS:
            return _dead(f"pid {record.pid} was started after the record was written")
    return None


def _judge_pid(record: OwnerRecord, ours: Ours, readings: Readings) -> Verdict:
    """Same machine, same boot, same namespaces: the pid means the same thing to both sides."""
    if readings.signal == MISSING:
        return _dead(f"pid {record.pid} does not exist")
    if record.pid == ours.pid:
        # A copy of our own record, or one of a former owner of our pid: nobody else can be its writer.
        return _dead(f"pid {record.pid} is this very program")
    if readings.signal != EXISTS:
        return _uncertain(f"pid {record.pid} {_presence(readings)}")
    return _judge_existing(record, ours, readings) or _uncertain(f"pid {record.pid} exists and may be the owner")


def _judge_existing(record: OwnerRecord, ours: Ours, readings: Readings) -> Verdict | None:
    if ours.platform == MACOS:
        return None
    if readings.state is None:
        return _uncertain(f"pid {record.pid} exists, but /proc hides it")
    if readings.state in _ENDED_STATES:
        return _dead(f"pid {record.pid} has ended (state {readings.state})")
    theirs = record.identity
    # Android's record names no start; it was judged by the boot clock.
    if ours.platform == LINUX and theirs is not None and _differ(theirs.start_ticks, readings.start_ticks):
        return _dead(f"pid {record.pid} was reused: it started at another tick than the record says")
    return None


def _differ(recorded: int | None, seen: int | None) -> bool:
    return recorded is not None and seen is not None and recorded != seen


# In the order in which they decide; the first verdict stands.
_RULES: tuple[Callable[[OwnerRecord, Ours, Readings], Verdict | None], ...] = (
    _judge_lock,
    _judge_endpoint,
    _judge_form,
    _judge_machine,
    _judge_birth,
    _judge_legacy,
    _judge_boot,
    _judge_namespaces,
    _judge_boottime,
)
