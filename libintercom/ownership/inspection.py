"""Looking at one record in the runtime directory: what it says, what is observed, and the verdict.

Owns bringing record, readings and rules together at one moment. Changes nothing, kills nothing; who acts on a finding
must hold the start lock.
"""

from __future__ import annotations

import errno
import os
import stat

from libintercom.ownership.directory import mark_of
from libintercom.ownership.locks import probe_lock
from libintercom.ownership.readings import read_birth_us, read_signal, read_stat
from libintercom.ownership.records import RECORD_LIMIT_BYTES, Mark, OwnerRecord, read_owner
from libintercom.ownership.verdict import ABSENT, UNCERTAIN, UNKNOWN, Ours, Readings, Verdict, judge
from libintercom.wire.record import Record, optional, required
from libintercom.wire.values import ANYTHING, STRING, Rule

TYPE_CHECKING = False
if TYPE_CHECKING:
    from libintercom.ownership.directory import RuntimeDirectory

# A record that is replaced while it is read is read again; more often than this its writer is not a broker.
_READ_LIMIT = 5

_RECORD = Rule("an owner record", "record", lambda value: isinstance(value, OwnerRecord), record=OwnerRecord)
_MARK = Rule("a file mark", "record", lambda value: isinstance(value, Mark), record=Mark)


class Finding(Record):
    """What stands under one name: ``mark`` is absent when nothing does. ``verdict`` is always there."""

    name: str = required(STRING)
    verdict: Verdict = required(ANYTHING)
    mark: Mark | None = optional(_MARK, default=None)
    record: OwnerRecord | None = optional(_RECORD, default=None)

    @property
    def kind(self) -> str:
        return self.verdict.kind

    @property
    def reason(self) -> str:
        """The verdict's reason, with the file it is about."""
        return f"{self.name}: {self.verdict.reason}"


def inspect(directory: RuntimeDirectory, name: str, ours: Ours, endpoint: str) -> Finding:
    """Judge the record ``name``; ``endpoint`` is what connecting to the socket just said (``libintercom.endpoint``)."""
    for _attempt in range(_READ_LIMIT):
        try:
            fd = directory.open(name, os.O_RDONLY)
        except FileNotFoundError:
            return Finding(name=name, verdict=Verdict(kind=ABSENT, reason="there is no record"))
        except OSError as error:
            return _cannot_tell(name, _describe(error))
        try:
            found = _inspect_open(directory, name, fd, ours, endpoint)
        finally:
            os.close(fd)
        if directory.mark(name) == found.mark:
            return found
    return _cannot_tell(name, "it is replaced faster than it can be read")


def _inspect_open(directory: RuntimeDirectory, name: str, fd: int, ours: Ours, endpoint: str) -> Finding:
    seen = os.fstat(fd)
    mark = mark_of(seen)
    if not stat.S_ISREG(seen.st_mode) or seen.st_uid != directory.uid:
        return _cannot_tell(name, "it is not an ordinary file of yours", mark)
    try:
        record = read_owner(os.read(fd, RECORD_LIMIT_BYTES + 1))
    except OSError as error:
        return _cannot_tell(name, _describe(error), mark)
    verdict = judge(record, ours, _observe(fd, seen, record, ours, endpoint))
    return Finding(name=name, verdict=verdict, mark=mark, record=record)


def _observe(fd: int, seen: os.stat_result, record: OwnerRecord, ours: Ours, endpoint: str) -> Readings:
    # Before the pid: an owner that ends in between is then seen as held and looked at again, never the other way.
    lock = probe_lock(fd)
    state, ticks = read_stat(record.pid) if record.pid else (None, None)
    return Readings(
        mark=mark_of(seen),
        mtime_us=seen.st_mtime_ns // 1000,
        lock=lock,
        signal=read_signal(record.pid) if record.pid else UNKNOWN,
        state=state,
        start_ticks=ticks,
        birth_us=read_birth_us(record.pid, ours.platform) if record.pid else None,
        endpoint=endpoint,
    )


def _cannot_tell(name: str, reason: str, mark: Mark | None = None) -> Finding:
    return Finding(name=name, verdict=Verdict(kind=UNCERTAIN, reason=reason), mark=mark)


def _describe(error: OSError) -> str:
    if error.errno == errno.ELOOP:
        return "it is a symbolic link"
    return f"it cannot be read ({error.strerror})"
