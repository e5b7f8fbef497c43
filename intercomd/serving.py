"""From a won namespace to a broker that serves: the edges are built here and handed to the shell.

Owns the composition, the signals and the way out. Does not own winning (``candidate``) nor anything the parts do.
Imported only by a winner, since the event loop and the codec take longer to load than a loser takes to end.
"""

from __future__ import annotations

import asyncio
import gc
import os
import signal
from typing import TYPE_CHECKING, Any

from intercomd import settings, settling
from intercomd.core.events import StopRequested
from intercomd.core.router import Router
from intercomd.edges.clock import LoopClock, wall_ms
from intercomd.edges.ids import make_id, make_ids
from intercomd.edges.listener.accepting import Acceptor
from intercomd.edges.listener.listener import SocketListener
from intercomd.edges.listener.polling import make_poller
from intercomd.edges.log import BrokerLog
from intercomd.edges.spool.durable import DurableSpool
from intercomd.shell import Shell
from intercomd.streams import complain, show
from intercomd.upkeep import Upkeep
from libintercom.errors import EXIT_UNREACHABLE, IntercomError
from libintercom.version import __version__
from libintercom.wire.messages import BrokerHello

if TYPE_CHECKING:
    from collections.abc import Callable

    from intercomd.candidate import Won
    from intercomd.settings import Settings

PROGRAM = "intercomd"
# What other programs' tests wait for on stdout, to the letter (wire.md 5.5).
START_LINE = "Intercom broker started (pid: {pid})"
# structlog is loaded when the first clients had time to register; loading it stops the loop for a moment.
_LOG_LOAD_S = 0.5
# Allocations between two collections: the hot path makes no cycles, and each collection of a full roster costs.
_GC_THRESHOLD = 50_000


def serve(won: Won) -> int:
    """Serve until told to stop or until nobody needs a broker any more; the exit status."""
    try:
        chosen = settings.load(won.places, idle_exit_s=won.options.idle_exit_s, limits=won.options.limits)
    except IntercomError as error:
        return _fail(won, str(error), error.exit_status)
    log = BrokerLog(won.places.log, max_bytes=chosen.log_bytes, level=chosen.log_level)
    try:
        loop = _make_loop(chosen.loop, log)
        broker = _Broker(won, chosen, log, loop)
    except OSError as error:
        return _fail(won, f"an event loop cannot be made: {error}", EXIT_UNREACHABLE)
    try:
        return loop.run_until_complete(broker.run())
    finally:
        # The loop's handlers end with it; what is signalled now must not make an orderly end look like another.
        settling.hold_signals()
        log.close()
        loop.close()
        won.ownership.release()


def _fail(won: Won, reason: str, exit_status: int) -> int:
    won.fail(reason)
    complain(f"intercomd: {reason}\n")
    return exit_status


class _Broker:
    """One broker's parts, joined."""

    def __init__(self, won: Won, chosen: Settings, log: BrokerLog, loop: asyncio.AbstractEventLoop) -> None:
        self._won, self._settings, self._log, self._loop = won, chosen, log, loop
        acceptor = Acceptor(won.listening, loop, log, self._withdraw, won.places.uid)
        self._listener = SocketListener(acceptor, make_poller(), loop, wall_ms, make_ids)
        router = Router(chosen.limits, _hello(won), wall_ms(), loop.time())
        self._shell = Shell(router, self._listener, self._make_spool(), log, LoopClock(loop))
        self._upkeep = Upkeep(won.ownership, self._listener, loop, log, self._stop)

    def _make_spool(self) -> DurableSpool:
        """The spool of this namespace; only who holds its life lock gets here."""
        path, refusal = self._settings.spool, ""
        if not path:
            try:
                path = self._won.places.spool
            except IntercomError as error:
                refusal = str(error)
                self._log.write("error", "no spool", {"reason": refusal})
        return DurableSpool(path, self._log, self._loop.call_soon_threadsafe, refusal)

    async def run(self) -> int:
        """Serve; the exit status."""
        self._watch_signals()
        self._upkeep.start()
        self._loop.call_soon(self._announce)
        gc.collect()
        gc.freeze()
        gc.set_threshold(_GC_THRESHOLD)
        return await self._shell.run()

    def _announce(self) -> None:
        """Say that registrations are accepted, to whoever waits for it."""
        # Where whoever started us closed it, nobody reads the line.
        show(START_LINE.format(pid=os.getpid()) + "\n")
        self._won.reporter.ready()
        loop = type(self._loop).__module__.split(".")[0]
        self._log.write("info", "serving", {"pid": os.getpid(), "version": __version__, "loop": loop})
        self._loop.call_later(_LOG_LOAD_S, self._log.load)

    def _withdraw(self, done: Callable[[], None]) -> None:
        self._upkeep.withdraw(done)

    def _stop(self, reason: str) -> None:
        self._shell.push([StopRequested(reason)])

    def _watch_signals(self) -> None:
        for number in (signal.SIGTERM, signal.SIGINT):
            self._loop.add_signal_handler(number, self._stop, signal.Signals(number).name)
        self._loop.add_signal_handler(signal.SIGUSR1, self._upkeep.look)
        self._loop.add_signal_handler(signal.SIGHUP, self._reload)
        settling.take_signals()

    def _reload(self) -> None:
        """Take over the settings that can change while running, and say which cannot."""
        options = self._won.options
        try:
            chosen = settings.load(self._won.places, idle_exit_s=options.idle_exit_s, limits=options.limits)
        except IntercomError as error:
            self._log.write("error", "settings not reloaded", {"reason": str(error)})
            return
        applied, waiting = settings.compare(self._settings, chosen)
        self._settings = settings.take_over(self._settings, chosen)
        self._log.set_level(chosen.log_level)
        self._log.write("info", "settings reloaded", {"applied": applied, "after_restart": waiting})


def _hello(won: Won) -> BrokerHello:
    return BrokerHello(
        program=PROGRAM,
        version=__version__,
        pid=os.getpid(),
        start_identity=won.ownership.start_identity,
        starter="client" if won.options.is_detached else "command line",
        incarnation=make_id(),
    )


def _make_loop(name: str, log: BrokerLog) -> asyncio.AbstractEventLoop:
    """A loop of the wanted kind; ``auto`` is uvloop where it is installed."""
    loop = _uvloop() if name != "asyncio" else None
    if loop is None:
        if name == "uvloop":
            log.write("warning", "uvloop is not installed", {"loop": "asyncio"})
        loop = asyncio.SelectorEventLoop()
    asyncio.set_event_loop(loop)

    def report(_loop: asyncio.AbstractEventLoop, trouble: dict[str, Any]) -> None:
        error = trouble.get("exception")
        log.report_bug(error if isinstance(error, BaseException) else RuntimeError(trouble["message"]), None)

    loop.set_exception_handler(report)
    return loop


def _uvloop() -> asyncio.AbstractEventLoop | None:
    try:
        import uvloop  # imported here: it is optional
    except ImportError:
        return None
    return uvloop.new_event_loop()
