"""One scene without room, played inside its mounts: ``python -m tests.trials.crash.room_player PLACE SCENE PLANTED``.

Owns the play and its judgement; prints one line of JSON. Does not own the mounts (``room``).
"""

from __future__ import annotations

import asyncio
import json
import random
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from libintercom.session.host import HostRefused
from libintercom.session.journal import export
from libintercom.session.journal.folder import SUFFIX, stem_of
from tests.support.sessions import Site
from tests.support.waiting import NotSeen, wait_until_async
from tests.trials.crash.native import AT_ONCE, KNOWS, FileHost, History, read_history
from tests.trials.crash.planted import plant
from tests.trials.crash.room import FULL, READ_ONLY

if TYPE_CHECKING:
    from collections.abc import Sequence

    from libintercom.session.host import HostInput, Placement

NATIVE = "native-b"
# Each message takes about two pages; the disk has 160.
_TEXT = "x" * 6_000
_MOST = 200
_AFTER = 5
_BALLAST_BYTES = 128 * 1024
# What cannot be written is known at once.
_WORD_S = 3.0
_ORDER: dict[str, Any] = {"steer": True, "moods": False, "confirms": AT_ONCE, "finds": KNOWS}


class Unwilling(FileHost):
    """Takes nothing, so that what was admitted stays in the journal."""

    def place(self, batch: Sequence[HostInput]) -> Placement:
        raise HostRefused("not now")


class Play:
    """``history`` stands where there is room; ``failures`` is what was said in the background."""

    def __init__(self, place: str, scene: str) -> None:
        self._state, self._scene = f"{place}/state", scene
        self._site = Site(f"{place}/run", self._state)
        self._history = f"{place}/history"
        self._sent: list[str] = []
        self.violations: list[str] = []
        self.seen: dict[str, Any] = {}

    async def run(self) -> None:
        daemon = self._site.start_broker("--limits", "bench")
        try:
            await {FULL: self._fill, READ_ONLY: self._start_again_without}.get(self._scene, self._begin_without)()
        finally:
            daemon.kill()

    # ------------------------------------------------------------------ scenes

    async def _fill(self) -> None:
        """Room ends while messages come; afterwards everything that was stored is there, and is offered once."""
        ballast = Path(self._state) / "ballast"
        ballast.write_bytes(bytes(_BALLAST_BYTES))
        async with await self._site.join("a", journal=False) as a:
            async with await self._site.join("b", host=self._host(0)) as b:
                await self._send(a, _AFTER)
                await wait_until_async(lambda: len(read_history(self._history)) == _AFTER, "the first to be placed")
                await self._send_until_it_is_said(a)
                self._require_word(" ".join(self._site.failures), "said in the background")
                self.seen["journal_note"] = b.journal_note
            self._judge_offers()
            ballast.unlink()
            async with await self._site.join("b", host=self._host(1)) as again:
                if again.journal_note:
                    self.violations.append(f"with room again: {again.journal_note}")
                await self._send(a, _AFTER)
                await wait_until_async(lambda: self._unplaced() == [], "everything stored to be placed")
                self._judge_offers()
                self._judge_once()

    async def _start_again_without(self) -> None:
        """What an earlier run stored is neither offered nor lost while the journal cannot be had."""
        async with await self._site.join("a", journal=False) as a:
            async with await self._site.join("b", host=Unwilling(History(self._history, 0), _ORDER, random.Random(0))):
                await self._send(a, _AFTER)
            self._remount("ro")
            async with await self._site.join("b", host=self._host(1)) as b:
                self._require_word(b.journal_note, "noted")
                await self._send(a, 1)
                await wait_until_async(lambda: len(read_history(self._history)) == 1, "the one that came now")
            self._remount("rw")
            async with await self._site.join("b", host=self._host(2)):
                await wait_until_async(lambda: self._unplaced() == [], "everything stored to be placed")
        placed = [line["id"] for line in read_history(self._history)]
        if placed != [self._sent[-1], *self._sent[:-1]]:
            self.violations.append(f"placed {placed}, sent {self._sent}")
        self.seen["placed"] = len(placed)

    async def _begin_without(self) -> None:
        """There is no journal from the beginning: it runs, and says so."""
        self._remount("ro")
        async with (
            await self._site.join("a", journal=False) as a,
            await self._site.join("b", host=self._host(0)) as b,
        ):
            self._require_word(b.journal_note, "noted")
            await self._send(a, _AFTER)
            await wait_until_async(lambda: len(read_history(self._history)) == _AFTER, "messages to be placed")
            self._judge_once()

    # ------------------------------------------------------------------ parts

    def _host(self, life: int) -> FileHost:
        return FileHost(History(self._history, life), _ORDER, random.Random(life))

    async def _send(self, a: Any, count: int) -> None:
        for _message in range(count):
            outcome = await a.send("b", _TEXT, delivery="queue")
            self._sent.append(outcome.message_id)

    async def _send_until_it_is_said(self, a: Any) -> None:
        for _message in range(_MOST):
            if self._site.failures:
                return
            await self._send(a, 1)
        try:
            await wait_until_async(lambda: self._site.failures, "a word about the journal", _WORD_S)
        except NotSeen as error:
            self.violations.append(str(error))

    def _remount(self, how: str) -> None:
        subprocess.run(["mount", "-o", f"remount,{how}", self._state], check=True)

    def _require_word(self, said: str, how: str) -> None:
        self.seen[how] = said
        is_clear = any(word in said.lower() for word in ("full", "read-only", "room", "space"))
        if "journal" not in said.lower() or not is_clear:
            self.violations.append(f"what is {how} tells neither the journal nor why: {said!r}")

    # ------------------------------------------------------------------ judgement

    def _stored(self) -> dict[str, set[str]]:
        """Message ID to the kinds of its entries on disk."""
        kinds: dict[str, set[str]] = {}
        for row in export(f"{self._site.places.journals}/{stem_of(NATIVE)}{SUFFIX}"):
            if "kind" in row:
                kinds.setdefault(row["messageId"], set()).add(row["kind"])
        return kinds

    def _judge_offers(self) -> None:
        stored = self._stored()
        self.seen["stored"], self.seen["sent"] = len(stored), len(self._sent)
        for line in read_history(self._history):
            if not {"admitted", "handed"} <= stored.get(line["id"], set()):
                self.violations.append(f"{line['id']} was offered and is not stored")

    def _judge_once(self) -> None:
        ids = [line["id"] for line in read_history(self._history)]
        self.seen["placed"] = len(ids)
        twice = {one for one in ids if ids.count(one) > 1}
        self.violations += [f"{one} was placed twice" for one in twice]

    def _unplaced(self) -> list[str]:
        placed = {line["id"] for line in read_history(self._history)}
        return [message_id for message_id in self._stored() if message_id not in placed]


def main(place: str, scene: str, planted: str) -> None:
    plant(planted)
    play = Play(place, scene)
    asyncio.run(play.run())
    print(json.dumps({**play.seen, "violations": play.violations}))


if __name__ == "__main__":
    main(*sys.argv[1:])
