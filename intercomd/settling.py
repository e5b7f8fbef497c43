"""Making a started program independent of whoever started it, before it takes part in anything.

Owns what a program inherits besides its environment: parent, directory, signals, umask, limits. Standard library only;
it runs before any lock is taken, since a lock would be shared with a forked child.
"""

from __future__ import annotations

import os
import resource
import signal

UMASK = 0o077

# 10,000 sessions (wire.md 14.6), their successors during a reconnect storm, and the broker's own descriptors. Not the
# hard limit itself, which containers set to a thousand million.
WANTED_FDS = 65_536

# Limits of an agent's shell that would end or cripple a broker which outlives it.
_RAISED_LIMITS = (
    resource.RLIMIT_AS,
    resource.RLIMIT_CPU,
    resource.RLIMIT_DATA,
    resource.RLIMIT_FSIZE,
    resource.RLIMIT_STACK,
)
# Leaving in order, looking after the path, reading the settings again (``serving``).
ANSWERED_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1, signal.SIGHUP)
# Python ignores these two itself, so that writing says what went wrong instead of ending the program.
_KEPT_SIGNALS = frozenset((signal.SIGPIPE, signal.SIGXFSZ))


def detach() -> None:
    """Go on as an orphan in the root directory, with no signal ignored or blocked; the starter's child ends at once.

    An orphan is collected by init when it ends. As the child of a long-lived agent it would stay a zombie, and its pid
    would look alive to everybody who judges a record by it.
    """
    if os.fork() != 0:
        os._exit(0)
    os.chdir("/")
    for number in signal.valid_signals():
        if signal.getsignal(number) == signal.SIG_IGN and number not in _KEPT_SIGNALS:
            signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


def hold_signals() -> None:
    """Let the signals that a serving broker answers wait: while nobody answers them, they would end it in any state."""
    signal.pthread_sigmask(signal.SIG_BLOCK, ANSWERED_SIGNALS)


def take_signals() -> None:
    """Their handlers are there: those that waited come now."""
    signal.pthread_sigmask(signal.SIG_UNBLOCK, ANSWERED_SIGNALS)


def settle() -> None:
    """What every broker wants, however it was started: private files, many descriptors, no core of message bodies."""
    os.umask(UMASK)
    for kind in _RAISED_LIMITS:
        _set_soft_limit(kind, resource.getrlimit(kind)[1])
    _set_soft_limit(resource.RLIMIT_CORE, 0)
    _raise_fds()


def count_free_fds(wanted: int) -> int:
    """How many more descriptors can be opened now, counted up to ``wanted``."""
    opened: list[int] = []
    try:
        while len(opened) < wanted:
            opened.append(os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC))
    except OSError:
        # No more of them: that is the answer.
        pass
    for fd in opened:
        os.close(fd)
    return len(opened)


def _raise_fds() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = WANTED_FDS if hard == resource.RLIM_INFINITY else min(hard, WANTED_FDS)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        _set_soft_limit(resource.RLIMIT_NOFILE, wanted)


def _set_soft_limit(kind: int, soft: int) -> None:
    try:
        resource.setrlimit(kind, (soft, resource.getrlimit(kind)[1]))
    except (OSError, ValueError):
        # macOS refuses an unlimited stack and more descriptors than one kernel setting; what was there then stays.
        pass
