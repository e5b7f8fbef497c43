"""The asyncio client behind the blocking client's face, so that one test class runs on both.

Owns a loop that turns only while a call waits, as the blocking client reads only then.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
from typing import TYPE_CHECKING, Any, Self

from libintercom.aio import AsyncClient
from libintercom.profile import Profile

if TYPE_CHECKING:
    from collections.abc import Iterator

    from libintercom.wire.record import Record


class DrivenClient:
    """An ``AsyncClient`` whose awaited methods block."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        self.loop = asyncio.new_event_loop()
        self.client = AsyncClient(*arguments, **options)

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.client, name)
        if not inspect.iscoroutinefunction(found):
            return found
        return lambda *arguments, **options: self.loop.run_until_complete(found(*arguments, **options))

    def events(self, timeout_s: float | None = None) -> Iterator[Record]:
        stream = self.client.events(timeout_s)
        try:
            while True:
                try:
                    yield self.loop.run_until_complete(anext(stream))
                except StopAsyncIteration:
                    return
        finally:
            self.loop.run_until_complete(stream.aclose())  # type: ignore[attr-defined]

    def __enter__(self) -> Self:
        self.connect()
        return self

    def __exit__(self, *_raised: object) -> None:
        self.close()

    def close(self) -> None:
        """Leave and close the loop."""
        if not self.loop.is_closed():
            self.disconnect()
            self.loop.run_until_complete(self.loop.shutdown_asyncgens())
            self.loop.close()


@contextlib.contextmanager
def connected(kind: Any, path: str, **options: Any) -> Iterator[Any]:
    """A client of either kind, joined at ``path`` as ``me``; it leaves afterwards."""
    with kind(Profile(cwd="/work", model="model-a", name="me"), path=path, **options) as client:
        yield client
