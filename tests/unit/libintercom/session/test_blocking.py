"""The blocking twin: the same names, a loop in a thread, interruptions, forks and forgotten sessions."""

from __future__ import annotations

import asyncio
import inspect
import os
import signal
import subprocess
import sys
import threading
from typing import Any

import pytest

from libintercom.session.aio import AsyncSession
from libintercom.session.blocking import Session
from libintercom.session.errors import Forked, NotLive
from libintercom.session.looping import LoopThread
from tests.support.daemon import ROOT
from tests.support.waiting import wait_until


def public(kind: type) -> dict[str, Any]:
    return {name: inspect.getattr_static(kind, name) for name in dir(kind) if not name.startswith("_")}


def test_both_twins_have_the_same_names_and_parameters() -> None:
    blocking, awaiting = public(Session), public(AsyncSession)
    instance = {"native_id", "host"}
    assert blocking.keys() - instance == awaiting.keys()
    for name, member in awaiting.items():
        if not isinstance(member, (property, classmethod)):
            ours, theirs = inspect.signature(blocking[name]), inspect.signature(member)
            assert list(ours.parameters.values()) == list(theirs.parameters.values()), name


@pytest.fixture
def thread() -> Any:
    made = LoopThread(lambda: None)
    yield made
    if made.is_running:
        made.stop()
        wait_until(lambda: not made.is_running, "the thread to end")


async def give(value: object) -> object:
    return value


async def never() -> None:
    await asyncio.get_running_loop().create_future()


class TestLoopThread:
    def test_a_call_gives_its_result_or_raises(self, thread: LoopThread) -> None:
        async def fail() -> None:
            raise ValueError("no")

        assert thread.call(give(1)) == 1
        with pytest.raises(ValueError, match="no"):
            thread.call(fail())

    def test_an_interrupted_wait_cancels_the_call(self, thread: LoopThread) -> None:
        ended = threading.Event()

        async def wait() -> None:
            # The main thread waits for this call by now.
            os.kill(os.getpid(), signal.SIGINT)
            try:
                await never()
            finally:
                ended.set()

        with pytest.raises(KeyboardInterrupt):
            thread.call(wait())
        assert ended.wait(10)
        assert thread.call(give(2)) == 2

    def test_a_call_from_its_own_callback_is_refused(self, thread: LoopThread) -> None:
        async def call_back() -> None:
            thread.call(give(3))

        with pytest.raises(RuntimeError, match="own callback"):
            thread.call(call_back())

    def test_finishing_runs_to_its_end_and_stops(self, thread: LoopThread) -> None:
        ran: list[int] = []

        async def last() -> None:
            ran.append(1)

        thread.finish(last())
        assert (ran, thread.is_running) == ([1], False)
        with pytest.raises(NotLive):
            thread.call(give(4))

    def test_a_forked_program_is_refused(self, thread: LoopThread, monkeypatch: pytest.MonkeyPatch) -> None:
        parent = os.getpid()
        monkeypatch.setattr(os, "getpid", lambda: parent + 1)
        with pytest.raises(Forked, match=f"belongs to process {parent}"):
            thread.call(give(5))

    def test_what_still_waits_at_the_end_is_cancelled(self) -> None:
        thread = LoopThread(lambda: None)
        waiting = asyncio.run_coroutine_threadsafe(never(), thread._loop)
        thread.stop()
        wait_until(lambda: not thread.is_running, "the thread to end")
        assert waiting.cancelled()


FORGETFUL = """
import asyncio, sys
from libintercom.session.looping import LoopThread
def leave():
    print("abandoned", flush=True)
    asyncio.get_running_loop().stop()
LoopThread(leave)
print("main ends", flush=True)
"""


def test_a_program_that_forgets_its_session_still_ends() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", FORGETFUL], cwd=ROOT, capture_output=True, text=True, timeout=20, check=False
    )
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "main ends\nabandoned\n", "")


def test_loops_that_ended_leave_no_thread_behind() -> None:
    for _ in range(5):
        thread = LoopThread(lambda: None)
        thread.finish(give(None))
    named = [one.name for one in threading.enumerate() if one.name.startswith("intercom-session")]
    assert named in (["intercom-session-watch"], [])
