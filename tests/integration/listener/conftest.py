"""The rigs of these tests: the real listener on both loops and pollers, and the fake for the contract."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
import uvloop

from intercomd.edges.listener.polling import EpollPoller, SelectorPoller
from tests.integration.listener.rigs import FakeRig, RealRig

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.integration.listener.rigs import Rig

LOOPS: dict[str, Callable[[], asyncio.AbstractEventLoop]] = {
    "asyncio": asyncio.SelectorEventLoop,
    "uvloop": uvloop.new_event_loop,
}
# The selector one is what other systems use; here it stands on epoll too.
REAL: dict[str, Callable[[], RealRig]] = {
    "asyncio": lambda: RealRig(asyncio.SelectorEventLoop(), EpollPoller()),
    "uvloop": lambda: RealRig(uvloop.new_event_loop(), EpollPoller()),
    "selector": lambda: RealRig(asyncio.SelectorEventLoop(), SelectorPoller()),
}


@pytest.fixture(params=list(REAL))
def real(request: pytest.FixtureRequest) -> Iterator[RealRig]:
    """The real listener."""
    rig = REAL[request.param]()
    yield rig
    rig.close()


@pytest.fixture(params=[*REAL, "fake"])
def rig(request: pytest.FixtureRequest) -> Iterator[Rig]:
    """Any listener."""
    made = FakeRig() if request.param == "fake" else REAL[request.param]()
    yield made
    made.close()
