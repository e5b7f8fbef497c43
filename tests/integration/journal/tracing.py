"""What a machine that loses its power would still have, told from a trace of the calls a program made.

Owns reading strace's output and keeping, for every file below a folder, what was written and what of it was
synchronised; names count once their folder was synchronised. Mapped memory (SQLite's -shm) is not seen and not needed:
it is made anew.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from typing import TYPE_CHECKING

from tests.support.executables import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator

_CALLS = "openat,pwrite64,write,fdatasync,fsync,ftruncate,unlink"
# Longer than any page and any log header.
_LONGEST_TEXT = 100_000
_LINE = re.compile(r"^(\d+) +(.*)$")
# call(3<path>, "text", …) = result
_CALL = re.compile(r'^(\w+)\((?:(\d+|AT_FDCWD)<([^>]*)>)?(?:, )?(?:"([^"]*)")?(.*)\) += (-?\d+)(?:<([^>]*)>)?')


def trace(folder: str, output: str, *arguments: str) -> str:
    """Run the appender under strace; its standard output. The trace goes to ``output``."""
    command = ["strace", "-f", "-y", "-xx", "-s", str(_LONGEST_TEXT), "-e", f"trace={_CALLS}", "-o", output]
    program = [sys.executable, "-m", "tests.integration.journal.appender", folder, *arguments]
    ended = subprocess.run([*command, *program], cwd=ROOT, capture_output=True, text=True, check=True)
    return ended.stdout


def moments(path: str, folder: str) -> Iterator[tuple[int, Disk]]:
    """At each ``settled N`` of the trace: N, and the disk as it was when the program began to say so."""
    disk = Disk(folder)
    for call in _calls(path):
        if call.settled >= 0:
            yield call.settled, disk
        else:
            disk.apply(call)


def waits(path: str, folder: str) -> Iterator[tuple[int, Disk]]:
    """Before each synchronisation, when most can be lost: the last that was settled (-1: none), and the disk."""
    disk, settled = Disk(folder), -1
    for call in _calls(path):
        settled = max(settled, call.settled)
        if call.name in ("fsync", "fdatasync") and disk.loose:
            yield settled, disk
        disk.apply(call)


class Call:
    """One call that succeeded. ``path``: the file that it opened or is about; ``settled``: N, else -1."""

    def __init__(self, parts: tuple[str, ...]) -> None:
        self.name, fd, about, text, self.rest, result, opened = parts
        self.is_successful = int(result) >= 0
        self.path, self.text = _text(opened or about), _bytes(text)
        is_word = self.name == "write" and fd == "1" and self.text.startswith(b"settled")
        self.settled = int(self.text.split()[1]) if is_word else -1


def _calls(path: str) -> Iterator[Call]:
    """Complete calls, each where it ended; a call that was interrupted by another thread's is put together."""
    begun: dict[str, str] = {}
    with open(path, encoding="ascii") as lines:
        for line in lines:
            whole = _LINE.match(line)
            if whole is None:
                continue
            pid, said = whole.groups()
            if said.endswith("<unfinished ...>"):
                begun[pid] = said[: -len("<unfinished ...>")].rstrip()
                continue
            if said.startswith("<... "):
                said = begun.pop(pid) + said.partition("resumed>")[2]
            parts = _CALL.match(said)
            call = Call(tuple(part or "" for part in parts.groups())) if parts else None
            if call is not None and call.is_successful:
                yield call


def _bytes(text: str) -> bytes:
    return bytes.fromhex(text.replace("\\x", ""))


def _text(hexadecimal: str) -> str:
    return os.fsdecode(_bytes(hexadecimal)) if hexadecimal else ""


class Disk:
    """``synced``: file name -> content that no loss of power can take; ``loose``: writes since, in order."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self.synced: dict[str, bytes] = {}
        self.loose: dict[str, list[tuple[int, bytes]]] = {}
        self._written: dict[str, bytearray] = {}
        self._named: set[str] = set()

    def apply(self, call: Call) -> None:
        path = os.fsdecode(call.text) if call.name == "unlink" else call.path
        if path == self.folder:
            if call.name in ("fsync", "fdatasync"):
                self._sync_names()
        elif os.path.dirname(path) == self.folder:
            self._apply_to_file(call.name, os.path.basename(path), call.text, call.rest)

    def _apply_to_file(self, call: str, name: str, text: bytes, rest: str) -> None:
        if call == "openat":
            self._written.setdefault(name, bytearray())
        elif call == "unlink":
            self._written.pop(name, None)
            self.loose.pop(name, None)
        elif call == "ftruncate":
            del self._written[name][_last_number(rest) :]
        elif call == "pwrite64":
            offset = _last_number(rest)
            _put(self._written[name], offset, text)
            self.loose.setdefault(name, []).append((offset, text))
        elif call in ("fsync", "fdatasync"):
            self.loose.pop(name, None)
            if name in self._named:
                self.synced[name] = bytes(self._written[name])

    def _sync_names(self) -> None:
        """What was synchronised before its name was counts from now on; what was removed is gone."""
        self._named = set(self._written)
        for name in list(self.synced):
            if name not in self._named:
                del self.synced[name]
        for name in self._named - set(self.synced):
            if name not in self.loose:
                self.synced[name] = bytes(self._written[name])

    def lay_out(self, folder: str, loose: dict[str, list[tuple[int, bytes]]]) -> None:
        """Write what is synchronised, and these writes beyond it, into a folder as its owner would find it."""
        os.mkdir(folder, 0o700)
        for name, content in self.synced.items():
            if name.endswith("-shm"):
                continue
            whole = bytearray(content)
            for offset, text in loose.get(name, []):
                _put(whole, offset, text)
            with open(os.open(f"{folder}/{name}", os.O_CREAT | os.O_WRONLY, 0o600), "wb") as file:
                file.write(whole)


def _last_number(arguments: str) -> int:
    return int(arguments.rpartition(",")[2])


def _put(content: bytearray, offset: int, text: bytes) -> None:
    if len(content) < offset:
        content.extend(bytes(offset - len(content)))
    content[offset : offset + len(text)] = text
