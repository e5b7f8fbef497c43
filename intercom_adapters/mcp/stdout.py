"""The protocol's end of standard output: it knows which answers were written.

Owns a private copy of descriptor 1 (descriptor 1 itself leads to stderr from then on, so that no stray print ever
breaks the protocol) and telling when the answer to a request has left this program. Does not own the frames.
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

import anyio.to_thread

if TYPE_CHECKING:
    from collections.abc import Callable

    Written = Callable[[], object]
    RequestId = str | int

_STDOUT, _STDERR = 1, 2


class Stdout:
    """Stands where the protocol's package expects an asynchronous text file: ``write`` a line, then ``flush``."""

    def __init__(self) -> None:
        self._descriptor = os.dup(_STDOUT)
        os.set_inheritable(self._descriptor, False)
        os.dup2(_STDERR, _STDOUT)
        self._unwritten: list[str] = []
        self._waiting: dict[RequestId, Written] = {}

    def tell_written(self, request_id: RequestId, tell: Written) -> None:
        """Call ``tell`` once the answer to this request was written whole."""
        self._waiting[request_id] = tell

    async def write(self, text: str) -> None:
        self._unwritten.append(text)

    async def flush(self) -> None:
        lines, self._unwritten = self._unwritten, []
        for line in lines:
            # The reader may be slow, and every other call goes on meanwhile.
            await anyio.to_thread.run_sync(self._write, line.encode())
            self._tell(line)

    def _write(self, raw: bytes) -> None:
        rest = memoryview(raw)
        while rest:
            rest = rest[os.write(self._descriptor, rest) :]

    def _tell(self, line: str) -> None:
        if not self._waiting:
            return
        answer = json.loads(line)
        tell = self._waiting.pop(answer["id"], None) if "method" not in answer and "id" in answer else None
        if tell is not None:
            tell()
