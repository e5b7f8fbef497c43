"""Records, identities and readings for the tests of ownership: one plain value of each, changed by keyword.

Owns builders only. The plain record is that of a living broker on this very Linux machine, with a record of the form
that keeps no lock, so that every rule of the verdict can be reached by changing one thing.
"""

from __future__ import annotations

from typing import Any

from libintercom.ownership import verdict
from libintercom.ownership.records import Identity, Mark, OwnerRecord, Publication
from libintercom.ownership.verdict import Ours, Readings
from libintercom.platforms import ANDROID, LINUX, MACOS

PID, OUR_PID = 4711, 4712
MACHINE = "3d1219c7c4c5404aaa1f6d2a48adfda4"
BOOT = "473d872b-f723-4d00-9fc2-8e6e4ca0033e"
PID_NS, TIME_NS = "pid:[4026531836]", "time:[4026531834]"
TICKS = 197_720
MARK = Mark(dev=65024, ino=99)
# When the record was published: milliseconds of the boot clock (Android), microseconds of the wall clock (macOS).
BOOTTIME_MS = 500_000.0
MTIME_US = 1_800_000_000_000_000

IDENTITIES = {
    LINUX: Identity(boot_id=BOOT, pid_ns=PID_NS, time_ns=TIME_NS, start_ticks=TICKS),
    MACOS: Identity(boot_id=BOOT, birth_us=MTIME_US - 1_000_000),
    ANDROID: Identity(boottime_ms=BOOTTIME_MS),
}


def make_publication(platform: str = LINUX, **changes: Any) -> Publication:
    """A JSON line of ``platform``; ``flock`` is false unless said."""
    plain: dict[str, Any] = {
        "v": 1,
        "role": "broker",
        "platform": platform,
        "machine": None if platform == ANDROID else MACHINE,
        "identity": IDENTITIES[platform],
        "file": MARK,
        "published_at_ms": MTIME_US / 1000,
        "program": "intercomd",
        "version": "0.1.0",
        "flock": False,
    }
    return Publication(**{**plain, **changes})


def make_record(platform: str = LINUX, **changes: Any) -> OwnerRecord:
    """A complete record of ``platform``."""
    native = IDENTITIES[platform] if platform == LINUX else None
    plain = {"pid": PID, "problem": "", "native": native, "publication": make_publication(platform)}
    return OwnerRecord(**{**plain, **changes})


def make_legacy(**changes: Any) -> OwnerRecord:
    """A bare pid."""
    return OwnerRecord(**{"pid": PID, "problem": "", **changes})


def make_ours(platform: str = LINUX, **changes: Any) -> Ours:
    """This program, on the machine and in the boot of the plain record; on Android ten minutes later."""
    identity = Identity(boottime_ms=BOOTTIME_MS + 600_000.0) if platform == ANDROID else IDENTITIES[platform]
    plain: dict[str, Any] = {
        "platform": platform,
        "pid": OUR_PID,
        "machine": None if platform == ANDROID else MACHINE,
        "identity": identity,
        "is_initial_pid_ns": True,
        "tick_ms": 10.0,
    }
    return Ours(**{**plain, **changes})


def make_readings(**changes: Any) -> Readings:
    """The recorded program runs, its start is the recorded one, and nobody listens at the socket."""
    plain: dict[str, Any] = {
        "mark": MARK,
        "mtime_us": MTIME_US,
        "lock": verdict.FREE,
        "signal": verdict.EXISTS,
        "state": "S",
        "start_ticks": TICKS,
        "endpoint": "refused",
    }
    return Readings(**{**plain, **changes})
