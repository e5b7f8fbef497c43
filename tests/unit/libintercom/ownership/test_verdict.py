"""The verdict as a table: each line of the rules, and for each "dead" what would make it "uncertain"."""

from __future__ import annotations

from typing import Any

import pytest

from libintercom.ownership.records import Identity, OwnerRecord
from libintercom.ownership.verdict import (
    ABSENT,
    DEAD,
    EXISTS,
    FORBIDDEN,
    FREE,
    HELD,
    LIVE,
    MISSING,
    UNCERTAIN,
    UNKNOWN,
    Ours,
    judge,
)
from libintercom.platforms import ANDROID, LINUX, MACOS
from tests.support.owners import (
    BOOTTIME_MS,
    IDENTITIES,
    MARK,
    MTIME_US,
    PID,
    TICKS,
    make_legacy,
    make_ours,
    make_publication,
    make_readings,
    make_record,
)

LOCKED = make_record(publication=make_publication(flock=True))
OTHER_FILE = MARK.replace(ino=7)
NATIVE_ONLY = make_record(publication=None)


def verdict_of(record: OwnerRecord | None, ours: Ours | None = None, **readings: Any) -> tuple[str, str]:
    found = judge(record, ours or make_ours(), make_readings(**readings))
    assert found.reason
    return found.kind, found.reason


def kind_of(record: OwnerRecord | None, ours: Ours | None = None, **readings: Any) -> str:
    return verdict_of(record, ours, **readings)[0]


def with_identity(record: OwnerRecord, **changes: Any) -> OwnerRecord:
    """The same record with another identity in all its lines."""
    assert record.publication is not None
    identity = record.publication.identity.replace(**changes)
    native = identity if record.native else None
    return record.replace(native=native, publication=record.publication.replace(identity=identity))


def test_no_record_is_absent() -> None:
    assert kind_of(None) == ABSENT


# ---------------------------------------------------------------- records that keep a lock


@pytest.mark.parametrize("signal", [EXISTS, MISSING, FORBIDDEN, UNKNOWN])
@pytest.mark.parametrize(("state", "ticks"), [("S", TICKS), ("S", TICKS + 1), ("Z", TICKS), (None, None)])
def test_the_lock_alone_decides_about_our_own_record(signal: str, state: str | None, ticks: int | None) -> None:
    """That covers reused pids with equal ticks, hidden pids, foreign users and other pid namespaces."""
    seen = {"signal": signal, "state": state, "start_ticks": ticks}
    assert kind_of(LOCKED, lock=HELD, **seen) == LIVE
    assert kind_of(LOCKED, lock=FREE, **seen) == DEAD


def test_the_lock_decides_across_namespaces_and_machines() -> None:
    elsewhere = make_ours(machine="f" * 32, identity=Identity(pid_ns="pid:[1]"), is_initial_pid_ns=False)
    assert kind_of(LOCKED, elsewhere, lock=HELD) == LIVE
    assert kind_of(LOCKED, elsewhere, lock=FREE) == DEAD


def test_a_copy_of_our_record_is_judged_as_a_foreign_one() -> None:
    assert kind_of(LOCKED, lock=FREE, mark=OTHER_FILE) == UNCERTAIN
    assert kind_of(LOCKED, lock=FREE, mark=OTHER_FILE, signal=MISSING) == DEAD


def test_without_locks_our_record_is_judged_as_a_foreign_one() -> None:
    assert kind_of(LOCKED, lock=UNKNOWN) == UNCERTAIN
    assert kind_of(LOCKED, lock=UNKNOWN, signal=MISSING) == DEAD


@pytest.mark.parametrize("record", [NATIVE_ONLY, make_legacy(), make_legacy(pid=0, problem="it is empty")])
def test_a_lock_on_a_foreign_record_is_never_dead(record: OwnerRecord) -> None:
    assert kind_of(record, lock=HELD, signal=MISSING) == UNCERTAIN


# ---------------------------------------------------------------- the endpoint


@pytest.mark.parametrize("endpoint", ["connected", "busy"])
def test_somebody_who_listens_is_alive(endpoint: str) -> None:
    assert kind_of(make_legacy(), signal=MISSING, endpoint=endpoint) == LIVE
    assert kind_of(NATIVE_ONLY, signal=MISSING, endpoint=endpoint) == LIVE


# ---------------------------------------------------------------- what cannot be judged


@pytest.mark.parametrize("problem", ["it is empty", "its first line is not a pid", "its JSON line has version 2"])
def test_a_bad_record_is_uncertain_and_says_why(problem: str) -> None:
    kind, reason = verdict_of(make_legacy(pid=0, problem=problem), signal=MISSING)
    assert kind == UNCERTAIN
    assert problem in reason


@pytest.mark.parametrize("here", [LINUX, MACOS, ANDROID])
@pytest.mark.parametrize("there", [LINUX, MACOS, ANDROID])
def test_another_platform_cannot_be_compared(here: str, there: str) -> None:
    kind = kind_of(make_record(there), make_ours(here), signal=MISSING)
    assert kind == (DEAD if here == there else UNCERTAIN)


def test_a_native_line_is_a_linux_record() -> None:
    assert kind_of(NATIVE_ONLY, make_ours(MACOS), signal=MISSING) == UNCERTAIN


def test_another_machine_is_uncertain_even_in_an_equal_boot() -> None:
    kind, reason = verdict_of(make_record(), make_ours(machine="f" * 32), signal=MISSING)
    assert kind == UNCERTAIN
    assert "f" * 32 in reason


def test_an_unknown_machine_is_no_obstacle_in_an_equal_boot() -> None:
    assert kind_of(make_record(), make_ours(machine=None), signal=MISSING) == DEAD
    assert kind_of(NATIVE_ONLY, make_ours(), signal=MISSING) == DEAD


# ---------------------------------------------------------------- Linux


OTHER_BOOT = "00000000-0000-4000-8000-000000000000"


def test_another_boot_of_the_same_machine_is_dead() -> None:
    """Whatever has that pid now was started in this boot."""
    assert kind_of(with_identity(make_record(), boot_id=OTHER_BOOT)) == DEAD


def test_another_boot_without_a_machine_proves_nothing() -> None:
    """It may be another machine's: two that share a directory differ in their boots all the time."""
    record = make_record(publication=None, native=IDENTITIES[LINUX].replace(boot_id=OTHER_BOOT))
    assert kind_of(record, signal=MISSING) == UNCERTAIN
    nameless = with_identity(make_record(publication=make_publication(machine=None)), boot_id=OTHER_BOOT)
    assert kind_of(nameless, make_ours(machine=None), signal=MISSING) == UNCERTAIN


def test_an_unreadable_boot_proves_nothing() -> None:
    assert kind_of(make_record(), make_ours(identity=Identity()), signal=MISSING) == UNCERTAIN
    assert kind_of(with_identity(make_record(native=None), boot_id=None), signal=MISSING) == UNCERTAIN


@pytest.mark.parametrize("namespace", ["pid_ns", "time_ns"])
def test_another_namespace_is_uncertain(namespace: str) -> None:
    record = with_identity(make_record(), **{namespace: "pid:[1]"})
    assert kind_of(record, signal=MISSING) == UNCERTAIN
    assert kind_of(record, state="Z") == UNCERTAIN


def test_an_unreadable_pid_namespace_is_uncertain_on_either_side() -> None:
    blind = make_ours(identity=IDENTITIES[LINUX].replace(pid_ns=None))
    assert kind_of(make_record(), blind, signal=MISSING) == UNCERTAIN
    assert kind_of(with_identity(make_record(native=None), pid_ns=None), blind, signal=MISSING) == UNCERTAIN


def test_kernels_without_time_namespaces_are_compared() -> None:
    old = IDENTITIES[LINUX].replace(time_ns=None)
    assert kind_of(with_identity(make_record(), time_ns=None), make_ours(identity=old), signal=MISSING) == DEAD


@pytest.mark.parametrize(
    ("readings", "kind"),
    [
        ({"signal": MISSING, "state": None, "start_ticks": None}, DEAD),
        ({"signal": FORBIDDEN}, UNCERTAIN),
        ({"signal": UNKNOWN}, UNCERTAIN),
        ({"state": None, "start_ticks": None}, UNCERTAIN),
        ({"state": "Z"}, DEAD),
        ({"state": "X"}, DEAD),
        ({"state": "T"}, UNCERTAIN),
        ({"state": "D"}, UNCERTAIN),
        ({"start_ticks": TICKS + 1}, DEAD),
        ({"start_ticks": TICKS - 1}, DEAD),
        ({"start_ticks": TICKS}, UNCERTAIN),
        ({"start_ticks": None}, UNCERTAIN),
    ],
)
def test_the_same_pid_in_the_same_boot_and_namespaces(readings: dict[str, Any], kind: str) -> None:
    assert kind_of(make_record(), **readings) == kind
    assert kind_of(NATIVE_ONLY, **readings) == kind


@pytest.mark.parametrize("platform", [LINUX, MACOS, ANDROID])
def test_a_record_that_names_ourselves_is_nobody_elses(platform: str) -> None:
    """A copy of our own record, or a former program's whose pid, and even start tick, we got."""
    seen = {"start_ticks": TICKS if platform == LINUX else 1}
    assert kind_of(make_record(platform), make_ours(platform, pid=PID), **seen) == DEAD
    assert kind_of(make_record(platform), make_ours(platform), **seen) == UNCERTAIN
    # Where the pid means something else, or may, it proves nothing.
    assert kind_of(make_legacy(), make_ours(platform, pid=PID)) == UNCERTAIN
    if platform == LINUX:
        elsewhere = with_identity(make_record(), pid_ns="pid:[1]")
        assert kind_of(elsewhere, make_ours(pid=PID)) == UNCERTAIN


# ---------------------------------------------------------------- a bare pid


@pytest.mark.parametrize("platform", [LINUX, MACOS, ANDROID])
@pytest.mark.parametrize("endpoint", ["absent", "refused"])
def test_a_bare_pid_is_dead_when_nothing_can_hide_it_and_nobody_listens(platform: str, endpoint: str) -> None:
    assert kind_of(make_legacy(), make_ours(platform), signal=MISSING, endpoint=endpoint) == DEAD


@pytest.mark.parametrize(
    ("ours", "readings"),
    [
        ({}, {"signal": EXISTS}),
        ({}, {"signal": EXISTS, "state": "Z"}),
        ({}, {"signal": EXISTS, "start_ticks": 1}),
        ({}, {"signal": FORBIDDEN}),
        ({}, {"signal": UNKNOWN}),
        ({"is_initial_pid_ns": False}, {"signal": MISSING}),
        ({}, {"signal": MISSING, "endpoint": "not_permitted"}),
        ({}, {"signal": MISSING, "endpoint": "foreign"}),
        ({}, {"signal": MISSING, "endpoint": "failed"}),
        ({}, {"signal": MISSING, "endpoint": "unknown"}),
    ],
)
def test_a_bare_pid_is_uncertain_otherwise(ours: dict[str, Any], readings: dict[str, Any]) -> None:
    assert kind_of(make_legacy(), make_ours(**ours), **readings) == UNCERTAIN


# ---------------------------------------------------------------- macOS


MACOS_SEEN: dict[str, Any] = {"state": None, "start_ticks": None}


@pytest.mark.parametrize("record", [make_record(MACOS), make_legacy()])
def test_macos_a_birth_strictly_after_the_record_is_another_program(record: OwnerRecord) -> None:
    ours = make_ours(MACOS)
    assert kind_of(record, ours, birth_us=MTIME_US + 1, **MACOS_SEEN) == DEAD
    assert kind_of(record, ours, birth_us=MTIME_US, **MACOS_SEEN) == UNCERTAIN
    assert kind_of(record, ours, birth_us=MTIME_US - 1, **MACOS_SEEN) == UNCERTAIN
    assert kind_of(record, ours, birth_us=None, **MACOS_SEEN) == UNCERTAIN


def test_macos_a_birth_says_nothing_elsewhere() -> None:
    assert kind_of(make_record(), birth_us=MTIME_US + 1) == UNCERTAIN


def test_macos_boot_session_and_pid() -> None:
    assert kind_of(make_record(MACOS), make_ours(MACOS), signal=MISSING, **MACOS_SEEN) == DEAD
    assert kind_of(make_record(MACOS), make_ours(MACOS), signal=FORBIDDEN, **MACOS_SEEN) == UNCERTAIN
    assert kind_of(with_identity(make_record(MACOS), boot_id="another"), make_ours(MACOS), **MACOS_SEEN) == DEAD


# ---------------------------------------------------------------- Android


@pytest.mark.parametrize(
    ("boottime_ms", "readings", "kind"),
    [
        # The boot clock stands before the record's: started anew.
        (BOOTTIME_MS - 1, {"start_ticks": None, "state": None}, DEAD),
        (BOOTTIME_MS, {"start_ticks": 1}, UNCERTAIN),
        (BOOTTIME_MS + 1, {"signal": MISSING}, DEAD),
        (BOOTTIME_MS + 1, {"signal": FORBIDDEN, "start_ticks": None}, UNCERTAIN),
        # Born one tick and one second after publication at the latest: may still be the writer.
        (BOOTTIME_MS + 9e6, {"start_ticks": 50_000}, UNCERTAIN),
        (BOOTTIME_MS + 9e6, {"start_ticks": 50_101}, UNCERTAIN),
        (BOOTTIME_MS + 9e6, {"start_ticks": 50_102}, DEAD),
        (BOOTTIME_MS + 9e6, {"start_ticks": 1, "state": "Z"}, DEAD),
        (BOOTTIME_MS + 9e6, {"start_ticks": None, "state": None}, UNCERTAIN),
    ],
)
def test_android_goes_by_the_boot_clock(boottime_ms: float, readings: dict[str, Any], kind: str) -> None:
    ours = make_ours(ANDROID, identity=Identity(boottime_ms=boottime_ms))
    assert kind_of(make_record(ANDROID), ours, **readings) == kind


def test_android_without_a_clock_is_uncertain() -> None:
    record = make_record(ANDROID, publication=make_publication(ANDROID, identity=Identity()))
    assert kind_of(record, make_ours(ANDROID), signal=MISSING) == UNCERTAIN
    assert kind_of(make_record(ANDROID), make_ours(ANDROID, identity=Identity()), signal=MISSING) == UNCERTAIN


# ---------------------------------------------------------------- over the whole table


SIGNALS = (EXISTS, MISSING, FORBIDDEN, UNKNOWN)
LOCKS = (HELD, FREE, UNKNOWN)
ENDPOINTS = ("absent", "refused", "connected", "busy", "not_permitted", "foreign", "failed", "unknown")
STATES = ("S", "Z", None)


@pytest.mark.parametrize("platform", [LINUX, MACOS, ANDROID])
def test_every_combination_has_a_verdict_and_dead_needs_a_proof(platform: str) -> None:
    """A living owner (pid exists, not ended, born when recorded) is never called dead, unless its own lock is free."""
    records = [make_record(platform), make_legacy(), make_legacy(pid=0, problem="it is empty")]
    count = 0
    for record in records:
        for signal in SIGNALS:
            for lock in LOCKS:
                for endpoint in ENDPOINTS:
                    for state in STATES:
                        readings = make_readings(
                            signal=signal,
                            lock=lock,
                            endpoint=endpoint,
                            state=state,
                            start_ticks=TICKS if platform == LINUX else 1,
                            birth_us=MTIME_US - 1,
                        )
                        found = judge(record, make_ours(platform), readings)
                        has_ended = signal == MISSING or (state == "Z" and platform != MACOS)
                        assert found.kind != DEAD or has_ended, readings
                        assert found.kind != ABSENT
                        count += 1
    assert count == len(records) * len(SIGNALS) * len(LOCKS) * len(ENDPOINTS) * len(STATES)
