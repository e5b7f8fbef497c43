"""A record that says the truth about us in a file that is not ours: copied, restored from a backup, or long dead."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from intercomd.edges.ownership.selfcheck import OTHER, OURS, Sight
from libintercom.ownership.directory import open_directory
from libintercom.ownership.inspection import inspect
from libintercom.ownership.readings import read_ours
from libintercom.ownership.verdict import LIVE

if TYPE_CHECKING:
    from collections.abc import Callable

    from intercomd.edges.ownership.holding import Ownership
    from libintercom.paths import Places

IN_PLACE = Sight(is_directory_current=True, socket=OURS, record=OURS)


def is_on_record(places: Places) -> bool:
    with open_directory(places.runtime_dir) as directory:
        return inspect(directory, "broker.pid", read_ours(), "absent").kind == LIVE


def test_a_copy_of_our_record_is_replaced(places: Places, own: Callable[[], Ownership]) -> None:
    """Whoever reads the copy finds no lock on it, and could later only judge by the pid."""
    ownership = own()
    shutil.copy(places.record, f"{places.record}~")
    os.rename(f"{places.record}~", places.record)
    assert ownership.check().record == OTHER
    assert not is_on_record(places)
    assert ownership.restore_record()
    assert ownership.check() == IN_PLACE
    assert is_on_record(places)


def test_a_copy_of_our_directory_is_published_in(places: Places, own: Callable[[], Ownership]) -> None:
    ownership = own()
    former = ownership.listening
    os.rename(places.runtime_dir, f"{places.runtime_dir}-aside")
    subprocess.run(["cp", "-a", f"{places.runtime_dir}-aside", places.runtime_dir], check=True)
    assert not ownership.check().is_directory_current
    assert ownership.republish() is None
    former.close()
    assert ownership.check() == IN_PLACE
    assert is_on_record(places)


@pytest.mark.skipif(not read_ours().is_initial_pid_ns, reason="elsewhere a bare pid that is gone proves nothing")
def test_a_dead_programs_record_is_replaced_while_we_serve(places: Places, own: Callable[[], Ownership]) -> None:
    """The path leads to us, so nobody else listens there; that is what the proof for a bare pid asks for."""
    ownership = own()
    code = "import os; print(os.getpid())"
    ended = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, check=True)
    os.unlink(places.record)
    with open(places.record, "wb") as record:
        record.write(ended.stdout)
    assert ownership.restore_record()
    assert ownership.check() == IN_PLACE
    assert is_on_record(places)
