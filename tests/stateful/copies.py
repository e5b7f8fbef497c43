"""Copies of a whole play, made quickly: what never changes is shared, everything else is copied.

Owns which types never change. Copying is by pickle because it is many times faster than a walk in Python.
"""

from __future__ import annotations

import io
import pickle
from typing import Any, TypeVar

from intercomd.core.limits import Limits
from libintercom.wire.record import Absent, Record, Unusable
from tests.stateful.cast import Part

Copied = TypeVar("Copied")

# Frozen, so that any number of copies may hold the same one.
_FROZEN = (Record, Absent, Unusable, Limits, Part)


class _Copier(pickle.Pickler):
    def __init__(self, into: io.BytesIO) -> None:
        super().__init__(into, pickle.HIGHEST_PROTOCOL)
        self.shared: list[Any] = []

    def persistent_id(self, found: Any) -> int | None:
        """Leave frozen things out; their place says which one it was."""
        if not isinstance(found, _FROZEN):
            return None
        self.shared.append(found)
        return len(self.shared) - 1


class _Restorer(pickle.Unpickler):
    def __init__(self, copied: bytes, shared: list[Any]) -> None:
        super().__init__(io.BytesIO(copied))
        # Looked up by the decoder itself: a list's own method is the quickest there is.
        self.persistent_load = shared.__getitem__  # type: ignore[method-assign]


class Copy:
    """Something as it was at one moment."""

    def __init__(self, original: Any) -> None:
        into = io.BytesIO()
        copier = _Copier(into)
        copier.dump(original)
        self._copied, self._shared = into.getvalue(), copier.shared

    def restore(self) -> Any:
        """It, once more, independent of every other copy."""
        return _Restorer(self._copied, self._shared).load()
