"""The record of an owner: what ``broker.pid`` and ``broker.spawn.lock`` say (ownership.md section 2).

Owns the forms, the writer and a reader that accepts every older form. Pure: bytes in, values out; who is alive is
``verdict``, what a machine says is ``readings``.

Form of ``broker.pid``: the decimal pid; on Linux ``linux-v1 <boot id> pid:[n] time:[n] <start ticks>``, which newer
programs of the lineage read; one line of JSON, which is ours. ``broker.spawn.lock`` has the Unix milliseconds of the
claim as its second line. A file may end after any line. Whatever else is found is kept as ``problem`` and means that
nothing can be judged.
"""

from __future__ import annotations

import json
import re

from libintercom.errors import InvalidFrame
from libintercom.wire.record import Record, dump_record, optional, parse_record, required
from libintercom.wire.values import BOOL, COUNT, LABEL, NUMBER, STRING, TEXT, Rule

TYPE_CHECKING = False

# A record of ours takes some 500 bytes; what is longer is no record, and is not read into memory.
RECORD_LIMIT_BYTES = 4096

BROKER = "broker"
CLAIM = "claim"

# The version of the JSON line that this reader knows.
_VERSION = 1
# Linux's largest pid is 2^22, macOS's 99999; a larger number would overflow pid_t in kill().
_PID_LIMIT = 2**31 - 1
_NUMBER = re.compile("[0-9]{1,19}")
_NATIVE = re.compile(r"linux-v1 ([0-9a-zA-Z-]{1,64}) (pid:\[[0-9]{1,20}\]) (time:\[[0-9]{1,20}\]) ([0-9]{1,20})")


class Mark(Record):
    """Which file: device and inode. A path says where something is, a mark says what it is."""

    dev: int = required(COUNT)
    ino: int = required(COUNT)


class Identity(Record):
    """What tells one running program from another with the same pid; each platform fills its own members.

    Linux: boot id, namespaces, start in ticks since boot. macOS: birth in Unix microseconds, boot session.
    Android: milliseconds of the boot clock at publication (nothing else can be read there).
    """

    boot_id: str | None = optional(STRING, default=None)
    pid_ns: str | None = optional(STRING, default=None)
    time_ns: str | None = optional(STRING, default=None)
    start_ticks: int | None = optional(COUNT, default=None)
    birth_us: int | None = optional(COUNT, default=None)
    boottime_ms: float | None = optional(NUMBER, default=None)


_IDENTITY = Rule("an identity", "record", lambda value: isinstance(value, Identity), record=Identity)
_MARK = Rule("a file mark", "record", lambda value: isinstance(value, Mark), record=Mark)


class Publication(Record):
    """The JSON line: who published the record, where, and which file it was written to."""

    v: int = required(COUNT)
    role: str = required(LABEL)
    platform: str = required(LABEL)
    machine: str | None = optional(STRING, default=None)
    identity: Identity = required(_IDENTITY)
    file: Mark = required(_MARK)
    published_at_ms: float = required(NUMBER)
    program: str = required(LABEL)
    version: str = required(LABEL)
    flock: bool = required(BOOL)


class OwnerRecord(Record):
    """A record as read. ``problem`` is not empty when nothing may be concluded from it; ``pid`` is then 0 or a hint.

    ``native`` is the ``linux-v1`` line. A record with neither ``native`` nor ``publication`` is a legacy bare pid.
    """

    pid: int = required(COUNT)
    problem: str = required(TEXT)
    claimed_at_ms: int | None = optional(COUNT, default=None)
    native: Identity | None = optional(_IDENTITY, default=None)
    publication: Publication | None = optional(
        Rule("a publication", "record", lambda value: isinstance(value, Publication), record=Publication),
        default=None,
    )

    @property
    def identity(self) -> Identity | None:
        return self.publication.identity if self.publication else self.native

    def is_locked_form(self, mark: Mark | None) -> bool:
        """Whether the writer keeps a lock on exactly the file ``mark``, so that the lock alone decides."""
        publication = self.publication
        return publication is not None and publication.flock and mark is not None and publication.file == mark


def dump_owner(pid: int, publication: Publication, claimed_at_ms: int | None = None) -> bytes:
    """The bytes of a record; ``claimed_at_ms`` (Unix milliseconds) makes it a claim."""
    lines = [str(pid)]
    if claimed_at_ms is not None:
        lines.append(str(claimed_at_ms))
    native = native_line(publication.identity)
    if native:
        lines.append(native)
    lines.append(json.dumps(dump_record(publication), separators=(",", ":")))
    return ("\n".join(lines) + "\n").encode("ascii")


def native_line(identity: Identity) -> str:
    """The line that other programs of the lineage read, or ``""`` where Linux does not say all of it."""
    if None in (identity.boot_id, identity.pid_ns, identity.time_ns, identity.start_ticks):
        return ""
    return f"linux-v1 {identity.boot_id} {identity.pid_ns} {identity.time_ns} {identity.start_ticks}"


def read_owner(raw: bytes) -> OwnerRecord:
    """Read a record of any known form; never raises."""
    try:
        return _read(raw)
    except _Broken as broken:
        return OwnerRecord(pid=0, problem=str(broken))


class _Broken(Exception):
    """Why the bytes are no record."""


def _read(raw: bytes) -> OwnerRecord:
    first, *rest = _lines(raw)
    claimed_at_ms: int | None = None
    if rest and _NUMBER.fullmatch(rest[0]):
        claimed_at_ms = int(rest.pop(0))
    parts = [_read_line(line) for line in rest]
    native = next((part for part in parts if isinstance(part, Identity)), None)
    publication = next((part for part in parts if isinstance(part, Publication)), None)
    if len(parts) > (native is not None) + (publication is not None):
        raise _Broken("it repeats a line")
    if native and publication and native_line(publication.identity) != native_line(native):
        raise _Broken("its lines contradict each other")
    return OwnerRecord(
        pid=_read_pid(first), problem="", claimed_at_ms=claimed_at_ms, native=native, publication=publication
    )


def _lines(raw: bytes) -> list[str]:
    if not raw.strip():
        raise _Broken("it is empty")
    if len(raw) > RECORD_LIMIT_BYTES:
        raise _Broken(f"it is longer than {RECORD_LIMIT_BYTES} bytes")
    try:
        lines = raw.decode("utf-8").split("\n")
    except UnicodeDecodeError:
        raise _Broken("it is not text") from None
    # The oldest form has no newline after the pid. Every longer form ends in one, so without it the end is missing,
    # and half a number could pass for another one.
    if len(lines) > 1 and lines[-1]:
        raise _Broken("its last line is cut off")
    return lines[:1] + [line for line in lines[1:] if line]


def _read_pid(line: str) -> int:
    if not _NUMBER.fullmatch(line) or not 0 < int(line) <= _PID_LIMIT:
        raise _Broken("its first line is not a pid")
    return int(line)


def _read_line(line: str) -> Identity | Publication:
    native = _NATIVE.fullmatch(line)
    if native:
        boot_id, pid_ns, time_ns, ticks = native.groups()
        return Identity(boot_id=boot_id, pid_ns=pid_ns, time_ns=time_ns, start_ticks=int(ticks))
    if line.startswith("{"):
        return _read_publication(line)
    raise _Broken("it has a line of an unknown form or version")


def _read_publication(line: str) -> Publication:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        raise _Broken("its JSON line cannot be read") from None
    version = value.get("v")
    if version != _VERSION:
        raise _Broken(f"its JSON line has version {version!r:.20}; this program knows {_VERSION}")
    try:
        return parse_record(Publication, value)
    except InvalidFrame as wrong:
        raise _Broken(f"its JSON line is not valid: {wrong.reason}") from None
