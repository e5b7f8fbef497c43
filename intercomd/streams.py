"""The standard streams of a program whose starter may have closed them, filled the disk behind them, or gone away.

Owns what is said there, and that no file of ours takes the number of a closed one. Does not own what is said.
"""

from __future__ import annotations

import os
import sys

from libintercom.errors import EXIT_DONE, EXIT_REFUSED

STANDARD_FDS = (0, 1, 2)


def open_streams() -> None:
    """Put the null device where a standard stream is closed.

    Otherwise a lock, a socket or a client's connection would get its number, and hear what is written to the stream.
    """
    try:
        while (fd := os.open(os.devnull, os.O_RDWR)) in STANDARD_FDS:
            pass
        os.close(fd)
    except OSError:
        # Without a descriptor there is none to be taken either.
        return
    # Python has no stream where it found none.
    sys.stdout = sys.stdout or open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115 - lives as long as we do
    sys.stderr = sys.stderr or open(2, "w", encoding="utf-8", closefd=False)  # noqa: SIM115 - the same


def show(text: str) -> int:
    """Write a result to stdout; the exit status: refused, and said so, where nothing takes it."""
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except OSError as error:
        _silence(1)
        complain(f"intercomd: stdout: {error.strerror}\n")
        return EXIT_REFUSED
    return EXIT_DONE


def complain(text: str) -> None:
    """Write to stderr; where nothing takes it, the exit status has to say enough."""
    try:
        sys.stderr.write(text)
        sys.stderr.flush()
    except OSError:
        _silence(2)


def _silence(fd: int) -> None:
    """Let what a stream still holds vanish: Python writes it once more at its end, and would exit with 120 for it."""
    try:
        null_fd = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null_fd, fd)
        os.close(null_fd)
    except OSError:
        # No descriptor is left for it; the exit status is the worse for that.
        return
