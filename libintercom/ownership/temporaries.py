"""Temporary names in the runtime directory, and taking a file away only if it is the one that is meant.

Owns names that only exist under the start lock: whoever holds it may sweep what a killed candidate left. Does not own
what the files hold. Names are no longer than ``broker.sock``, so that a socket can be bound at one.
"""

from __future__ import annotations

import os
import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from libintercom.ownership.directory import RuntimeDirectory
    from libintercom.ownership.records import Mark

_NAME = re.compile(r"\.t-[0-9a-f]{8}")


def temporary_name() -> str:
    return f".t-{os.urandom(4).hex()}"


def make_temporary(directory: RuntimeDirectory) -> tuple[str, int]:
    """A new empty file of mode 0600: its name and an open descriptor. Raises OSError where none can be made."""
    name = temporary_name()
    return name, directory.open(name, os.O_RDWR | os.O_CREAT | os.O_EXCL)


def sweep(directory: RuntimeDirectory) -> list[str]:
    """Remove every temporary name and return them; only under the start lock, where none can be in use."""
    found = [name for name in directory.names() if _NAME.fullmatch(name)]
    for name in found:
        discard(directory, name)
    return found


def discard(directory: RuntimeDirectory, name: str) -> None:
    """Unlink a name of our own making; gone already is fine, and one that stays is swept at the next start."""
    try:
        directory.unlink(name)
    except OSError:
        # It means nothing under this name, while an error here would cost whoever holds a lock on the file more.
        pass


def remove_if_same(directory: RuntimeDirectory, name: str, mark: Mark) -> bool:
    """Unlink ``name`` if it is the file ``mark``; a successor's file stays, also one that comes in between.

    The start lock keeps our own programs apart. Others do not take it, so the file is moved aside, looked at again and
    only then unlinked; a wrong one gets its name back.
    """
    if directory.mark(name) != mark:
        return False
    aside = temporary_name()
    try:
        directory.rename(name, aside)
    except FileNotFoundError:
        return False
    if directory.mark(aside) == mark:
        discard(directory, aside)
        return True
    _give_back(directory, aside, name)
    return False


def _give_back(directory: RuntimeDirectory, aside: str, name: str) -> None:
    try:
        directory.link(aside, name)
    except FileExistsError:
        pass
    except OSError:
        # Android allows no hard links; the name was free a moment ago.
        directory.rename(aside, name)
        return
    discard(directory, aside)
