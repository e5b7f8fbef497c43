"""Where a broker may be killed between taking an item and saying that it is kept: names for tests to stop at.

Owns the names and the one hook. In ordinary use ``reach`` looks at a variable and returns.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

# In the order in which the writer passes them.
POINTS = (
    "batch taken",
    "transaction begun",
    "item written",
    "before commit",
    "committed",
    "before report",
    "reported",
)

# Called with the name of each point that is reached; set by tests alone.
hook: Callable[[str], None] | None = None


def reach(point: str) -> None:
    """The writer is at this point."""
    if hook is not None:
        hook(point)
