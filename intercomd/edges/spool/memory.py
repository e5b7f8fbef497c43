"""Dead letters kept in this process: the store that cannot fail and that no restart survives.

Owns keeping a letter. Does not own how many there may be nor for how long: the core says so and asks for nothing back.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from intercomd.core.events import LetterStored

if TYPE_CHECKING:
    from intercomd.core.effects import StoreLetter
    from intercomd.core.events import Event


class MemorySpool:
    """The edge behind ``intercomd.ports.Spool`` today. The core holds its letters itself, so storing is agreeing."""

    def store(self, effect: StoreLetter) -> Event:
        """Say that the letter is stored, which is true for as long as this process lives."""
        return LetterStored(effect.letter.id)
