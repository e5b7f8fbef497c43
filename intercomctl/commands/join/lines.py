"""Lines of standard input on an event loop, whatever it is: a terminal, a pipe or a file.

Owns reading without blocking the loop, and the bounds on a line and on lines that wait. Does not own what they say.
"""

from __future__ import annotations

import asyncio
import os
import threading

# A frame holds 1 MiB of JSON; a line that could fit one takes at most 6 times that when everything is escaped.
MAX_LINE_BYTES = 6 * 1_048_576
# Lines read ahead of what is carried out; then the sender of the lines waits.
MAX_WAITING = 100
_READ_BYTES = 65_536


class Lines:
    """``async for line in Lines(fd)``: text without its line end; None for a line over ``MAX_LINE_BYTES``.

    A thread reads, since a loop cannot watch an ordinary file. It ends with the program.
    """

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._loop = asyncio.get_running_loop()
        self._waiting: asyncio.Queue[list[str | None]] = asyncio.Queue()
        self._room = threading.Semaphore(MAX_WAITING)
        threading.Thread(target=self._read, daemon=True).start()

    def __aiter__(self) -> Lines:
        return self

    async def __anext__(self) -> str | None:
        waiting = await self._waiting.get()
        self._room.release()
        if not waiting:
            raise StopAsyncIteration
        return waiting[0]

    def _read(self) -> None:
        cutter = LineCutter()
        try:
            while received := self._read_some():
                for line in cutter.feed(received):
                    self._hand_over([line])
            for line in cutter.end():
                self._hand_over([line])
            self._hand_over([])
        except RuntimeError:
            # The loop is closed: the program is ending and nobody wants the rest.
            return

    def _read_some(self) -> bytes:
        try:
            return os.read(self._fd, _READ_BYTES)
        except OSError:
            # A terminal that hung up is the end of the input as well.
            return b""

    def _hand_over(self, waiting: list[str | None]) -> None:
        self._room.acquire()
        self._loop.call_soon_threadsafe(self._waiting.put_nowait, waiting)


class LineCutter:
    """Cut bytes into lines, whatever the split; what is no UTF-8 is replaced."""

    def __init__(self) -> None:
        self._kept = bytearray()
        self._is_too_long = False

    def feed(self, received: bytes) -> list[str | None]:
        """The lines that these bytes complete."""
        *ended, rest = received.split(b"\n")
        lines = [self._end_line(part) for part in ended]
        self._keep(rest)
        return lines

    def end(self) -> list[str | None]:
        """The last line, when it has no line end."""
        return [self._end_line(b"")] if self._kept or self._is_too_long else []

    def _keep(self, part: bytes) -> None:
        if len(self._kept) + len(part) > MAX_LINE_BYTES:
            self._is_too_long = True
            self._kept.clear()
        if not self._is_too_long:
            self._kept += part

    def _end_line(self, part: bytes) -> str | None:
        self._keep(part)
        line = None if self._is_too_long else self._kept.removesuffix(b"\r").decode("utf-8", "replace")
        self._kept.clear()
        self._is_too_long = False
        return line
