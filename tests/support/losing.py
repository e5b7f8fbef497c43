"""Trying to become the owner of a namespace, and looking at what is left there.

Owns the few words that the tests of ownership share. Asserts that nothing was won.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from intercomd.edges.listener.binding import bind_socket
from intercomd.edges.ownership.acquisition import acquire
from intercomd.edges.ownership.outcomes import Outcome

if TYPE_CHECKING:
    from libintercom.paths import Places

# Left for good by design, so that two programs never hold locks on two files of one name.
KEPT = {".guard"}


def lose(places: Places, deadline_s: float = 0.03) -> Outcome:
    """Try to become the owner, and be told why not."""
    lost = acquire(places, bind_socket, deadline_s=deadline_s)
    assert isinstance(lost, Outcome), lost
    return lost


def write(path: str, text: str) -> None:
    with open(path, "w", encoding="ascii") as file:
        file.write(text)


def read(path: str) -> str:
    with open(path, encoding="ascii") as file:
        return file.read()


def names(places: Places) -> set[str]:
    return set(os.listdir(places.runtime_dir))
