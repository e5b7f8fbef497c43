"""Sessions in a namespace and a state directory of their own, in this process or in one that can be killed.

Owns where they live, reading a journal's word about a message from outside, and the actor process. Does not own what a
session does.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

from libintercom.paths import find_places
from libintercom.profile import profile_from_environment
from libintercom.session.aio import AsyncSession
from libintercom.session.blocking import Session
from tests.support.daemon import ROOT, Daemon, runtime_directory

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from libintercom.paths import Places
    from libintercom.profile import Profile


class Site:
    """One namespace, its state directory, and what was said in the background there."""

    def __init__(self, runtime: str, state: str) -> None:
        self.runtime, self.state = runtime, state
        self.environment = {
            "PI_INTERCOM_RUNTIME_DIR": runtime,
            "XDG_STATE_HOME": state,
            "PI_CODING_AGENT_DIR": f"{state}/agent",
        }
        self.places: Places = find_places(self.environment)
        self.failures: list[str] = []

    def start_broker(self, *arguments: str) -> Daemon:
        return Daemon(self.runtime, "--idle-exit-s", "60", *arguments).wait_ready()

    def options(self, **options: Any) -> dict[str, Any]:
        return {
            "places": self.places,
            "spawn": False,
            "on_background_error": lambda error: self.failures.append(str(error)),
            **options,
        }

    def profile(self, name: str, environ: Mapping[str, str] | None = None) -> Profile:
        return profile_from_environment(name=name, environ=environ or {})

    async def join(self, name: str, native_id: str = "", **options: Any) -> AsyncSession:
        """An asyncio session; its native ID is ``native-NAME`` unless given."""
        chosen = self.options(**options)
        return await AsyncSession.join(self.profile(name), native_id=native_id or f"native-{name}", **chosen)

    def join_blocking(self, name: str, native_id: str = "", **options: Any) -> Session:
        chosen = self.options(**options)
        return Session.join(self.profile(name), native_id=native_id or f"native-{name}", **chosen)

    def broker_pid(self, session: Session) -> int:
        """The process that serves here: the one that a session says it is connected to."""
        assert session.is_connected
        with open(self.places.record, encoding="ascii") as record:
            return int(record.readline())

    @contextlib.contextmanager
    def actor(self, name: str, native_id: str = "", *dying: str) -> Iterator[SessionActor]:
        """A session in a process of its own; ``dying``: at which fault point, and the how manieth time."""
        with contextlib.closing(SessionActor(self, name, native_id or f"native-{name}", *dying)) as actor:
            yield actor


class ActorDied(AssertionError):
    """The actor's process ended before it answered."""


class SessionActor:
    """A process of ``tests.support.session_actor``; ``session_id`` is its peer ID."""

    def __init__(self, site: Site, name: str, native_id: str, *dying: str) -> None:
        kept = {key: os.environ[key] for key in ("PATH", "LANG", "HOME") if key in os.environ}
        # What it wrote to its stderr, once it ended.
        self.errors = ""
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.support.session_actor", name, native_id, *dying],
            cwd=ROOT,
            env={**kept, **site.environment},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            # A pipe, for a file would obey the limits that a test sets.
            stderr=subprocess.PIPE,
            text=True,
        )
        self.session_id: str = self.read()

    @property
    def pid(self) -> int:
        return self._process.pid

    def tell(self, verb: str, *arguments: Any) -> Any:
        """Have it do something; what it answers."""
        self.begin(verb, *arguments)
        return self.read()

    def begin(self, verb: str, *arguments: Any) -> None:
        """Have it do something, and do not wait for it."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps([verb, *arguments]) + "\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            raise ActorDied from None

    def kill(self) -> None:
        """SIGKILL, and wait until it is gone."""
        self._process.kill()
        self.errors += self._process.communicate()[1] or ""

    def close(self) -> None:
        """End it, in order if it still can."""
        try:
            self.errors += self._process.communicate(timeout=20)[1] or ""
        except BrokenPipeError:
            self._process.wait()

    def read(self) -> Any:
        """Its next answer. Raises ActorDied."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise ActorDied(self._process.wait())
        return json.loads(line)


@contextlib.contextmanager
def site() -> Iterator[Site]:
    """A namespace and a state directory, both removed afterwards."""
    with runtime_directory() as runtime, runtime_directory() as state:
        yield Site(runtime, state)
