"""What the parts of an inbox share: the steps they ask for and the checkpoints that are under way. Pure.

Owns making entries and remembering what follows each checkpoint. Does not own any decision.
"""

from __future__ import annotations

from libintercom.session.entries import Entry
from libintercom.session.steps import Checkpoint

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from libintercom.session.states import Live
    from libintercom.wire.record import Record


class Desk:
    """``new_id`` makes entry IDs (uuid4 in a real session); ``origin`` is the context that all of this is for."""

    def __init__(self, new_id: Callable[[], str], origin: Live) -> None:
        self._new_id, self.origin = new_id, origin
        self.now_ms = 0
        self._steps: list[Record] = []
        self._under_way: dict[tuple[str, ...], tuple[Callable[[], None], Callable[[str], None]]] = {}

    @property
    def is_clear(self) -> bool:
        """Whether no checkpoint is under way."""
        return not self._under_way

    def ask(self, step: Record) -> None:
        self._steps.append(step)

    def take_steps(self) -> list[Record]:
        """What was asked for since the last time."""
        steps, self._steps = self._steps, []
        return steps

    def entry(self, message_id: str, kind: str, **body: object) -> Entry:
        return Entry(entry_id=self._new_id(), message_id=message_id, kind=kind, at_ms=self.now_ms, body=body)

    def checkpoint(self, entries: Sequence[Entry], stored: Callable[[], None], failed: Callable[[str], None]) -> None:
        """Ask for entries to be stored, and remember what follows when they are and when they are not."""
        step = Checkpoint(entries=tuple(entries))
        self._under_way[step.entry_ids] = stored, failed
        self.ask(step)

    def settle(self, entry_ids: tuple[str, ...], reason: str | None) -> None:
        """A checkpoint ended, ``reason``: why not as wished. One that is not under way is nobody's."""
        ends = self._under_way.pop(tuple(entry_ids), None)
        if ends is None:
            return
        stored, failed = ends
        if reason is None:
            stored()
        else:
            failed(reason)
