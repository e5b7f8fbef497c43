"""The record of an owner: every form written, every older form and every prefix read, everything else a problem."""

from __future__ import annotations

import json

import pytest

from libintercom.ownership.records import (
    RECORD_LIMIT_BYTES,
    Identity,
    OwnerRecord,
    dump_owner,
    native_line,
    read_owner,
)
from libintercom.platforms import ANDROID, LINUX, MACOS
from libintercom.wire.record import dump_record
from tests.support.owners import BOOT, IDENTITIES, MARK, PID, TICKS, make_publication

NATIVE = f"linux-v1 {BOOT} pid:[4026531836] time:[4026531834] {TICKS}"
JSON = json.dumps(dump_record(make_publication()))


def read_lines(*lines: str, end: str = "\n") -> OwnerRecord:
    return read_owner(("\n".join(lines) + end).encode())


def problem_of(raw: bytes) -> str:
    record = read_owner(raw)
    assert record.pid == 0
    return record.problem


@pytest.mark.parametrize("platform", [LINUX, MACOS, ANDROID])
@pytest.mark.parametrize("claimed_at_ms", [None, 1_800_000_000_123])
def test_what_is_written_is_read(platform: str, claimed_at_ms: int | None) -> None:
    publication = make_publication(platform, flock=True)
    record = read_owner(dump_owner(PID, publication, claimed_at_ms))
    assert (record.pid, record.problem, record.claimed_at_ms) == (PID, "", claimed_at_ms)
    assert record.publication == publication
    assert record.native == (IDENTITIES[LINUX] if platform == LINUX else None)
    assert record.identity == IDENTITIES[platform]


def test_the_first_two_lines_are_those_of_the_lineage() -> None:
    lines = dump_owner(PID, make_publication()).decode().split("\n")
    assert lines[:2] == [str(PID), NATIVE]
    assert json.loads(lines[2])["file"] == {"dev": MARK.dev, "ino": MARK.ino}
    assert lines[3:] == [""]
    claim = dump_owner(PID, make_publication(role="claim"), 1_800_000_000_123).decode().split("\n")
    assert claim[:3] == [str(PID), "1800000000123", NATIVE]


@pytest.mark.parametrize("end", ["\n", ""])
def test_a_bare_pid_is_a_legacy_record(end: str) -> None:
    assert read_lines("4711", end=end) == OwnerRecord(pid=4711, problem="")


def test_every_prefix_by_lines_is_read() -> None:
    assert read_lines("4711", NATIVE).identity == IDENTITIES[LINUX]
    assert read_lines("4711", "1800000000123").claimed_at_ms == 1_800_000_000_123
    assert read_lines("4711", "1800000000123").identity is None
    assert read_lines("4711", "1800000000123", NATIVE).identity == IDENTITIES[LINUX]
    assert read_lines("4711", NATIVE, JSON).publication == make_publication()


def test_no_prefix_by_bytes_passes_for_another_record() -> None:
    """Half a tick count is another tick count, and would prove a living owner dead."""
    raw = dump_owner(PID, make_publication(), 1_800_000_000_123)
    whole_lines = {len(b"\n".join(raw.split(b"\n")[:n]) + b"\n") for n in range(1, 4)} | {len(raw)}
    for size in range(len(raw)):
        record = read_owner(raw[:size])
        is_bare_pid = 0 < size <= len(str(PID))
        assert is_bare_pid or size in whole_lines or record.problem, raw[:size]


@pytest.mark.parametrize(
    ("raw", "problem"),
    [
        (b"", "it is empty"),
        (b" \n\n", "it is empty"),
        (b"x" * (RECORD_LIMIT_BYTES + 1), "it is longer than 4096 bytes"),
        (b"47\xff11\n", "it is not text"),
        (b"pid 4711\n", "its first line is not a pid"),
        (b"0\n", "its first line is not a pid"),
        (b"-4711\n", "its first line is not a pid"),
        (b"4711 \n", "its first line is not a pid"),
        (b"2147483648\n", "its first line is not a pid"),
        (b"\n4711\n", "its first line is not a pid"),
        ("٤٧١١\n".encode(), "its first line is not a pid"),
        (b"4711\nlinux-v2 new things\n", "it has a line of an unknown form or version"),
        (b"4711\nlinux-v1 boot pid:[1] time:[2]\n", "it has a line of an unknown form or version"),
        (b"4711\nnonce 5f3a\n", "it has a line of an unknown form or version"),
        (f"4711\n{NATIVE}".encode(), "its last line is cut off"),
        (f"4711\n{NATIVE}\n{NATIVE}\n".encode(), "it repeats a line"),
        (f"4711\n{NATIVE}7\n{JSON}\n".encode(), "its lines contradict each other"),
        (b"4711\n{not json}\n", "its JSON line cannot be read"),
        (b"4711\n" + b'{"v":1,' + b"[" * 4000 + b"\n", "its JSON line cannot be read"),
        (b'4711\n{"v":2}\n', "its JSON line has version 2; this program knows 1"),
        (b"4711\n{}\n", "its JSON line has version None; this program knows 1"),
        (b'4711\n{"v":1}\n', "its JSON line is not valid: role is missing"),
    ],
)
def test_what_cannot_be_judged_says_why(raw: bytes, problem: str) -> None:
    assert problem_of(raw) == problem


def test_members_of_a_later_program_are_ignored() -> None:
    raw = f'4711\n{NATIVE}\n{JSON[:-1]},"color":"blue"}}\n'.encode()
    assert read_owner(raw).publication == make_publication()


@pytest.mark.parametrize("missing", ["boot_id", "pid_ns", "time_ns", "start_ticks"])
def test_a_native_line_is_whole_or_not_there(missing: str) -> None:
    parts = {name: getattr(IDENTITIES[LINUX], name) for name in ("boot_id", "pid_ns", "time_ns", "start_ticks")}
    assert native_line(Identity(**parts)) == NATIVE
    assert native_line(Identity(**{**parts, missing: None})) == ""


def test_only_the_very_file_keeps_the_lock() -> None:
    locked = OwnerRecord(pid=PID, problem="", publication=make_publication(flock=True))
    assert locked.is_locked_form(MARK)
    assert not locked.is_locked_form(MARK.replace(ino=100))
    assert not locked.is_locked_form(None)
    assert not OwnerRecord(pid=PID, problem="", publication=make_publication(flock=False)).is_locked_form(MARK)
    assert not OwnerRecord(pid=PID, problem="").is_locked_form(MARK)
