"""Staying the owner: what is noticed, what is healed, and that only one's own files are ever taken away."""

from __future__ import annotations

import errno
import os
import shutil
import socket
import subprocess
from typing import TYPE_CHECKING

import pytest

from intercomd.edges.listener.binding import bind_socket
from intercomd.edges.ownership import claim
from intercomd.edges.ownership.acquisition import acquire
from intercomd.edges.ownership.outcomes import ALREADY, CLAIMED, ERROR, Outcome
from intercomd.edges.ownership.selfcheck import MISSING, OTHER, OURS, Sight
from libintercom.endpoint import ABSENT, CONNECTED, attempt, probe
from libintercom.ownership import directory as directory_module
from libintercom.ownership.directory import open_directory
from libintercom.ownership.inspection import inspect
from libintercom.ownership.locks import probe_lock, try_lock
from libintercom.ownership.readings import read_ours
from libintercom.ownership.verdict import HELD, LIVE
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from intercomd.edges.ownership.holding import Ownership
    from libintercom.paths import Places

IN_PLACE = Sight(is_directory_current=True, socket=OURS, record=OURS)


def is_served_by_us(places: Places, listening: socket.socket) -> bool:
    """The path leads to this very listener, and the record says live."""
    while True:
        try:
            listening.accept()[0].close()
        except BlockingIOError:
            break
    nonce = os.urandom(16)
    if probe(places.socket, nonce).outcome != CONNECTED:
        return False
    with listening.accept()[0] as arrived:
        is_ours = arrived.recv(100).endswith(nonce)
    with open_directory(places.runtime_dir) as directory:
        found = inspect(directory, "broker.pid", read_ours(), "absent")
    return is_ours and found.kind == LIVE and os.listdir(places.runtime_dir).count("broker.spawn.lock") == 0


def loses(places: Places) -> Outcome:
    lost = acquire(places, bind_socket, deadline_s=0.03)
    assert isinstance(lost, Outcome)
    return lost


def test_everything_in_its_place(places: Places, own: Callable[[], Ownership]) -> None:
    ownership = own()
    assert ownership.check() == IN_PLACE
    assert is_served_by_us(places, ownership.listening)
    assert ownership.start_identity["startTicks"] > 0  # type: ignore[operator]


@pytest.mark.parametrize("kind", ["socket", "record", "both"])
def test_removed_files_are_published_again(places: Places, own: Callable[[], Ownership], kind: str) -> None:
    ownership = own()
    former = ownership.listening
    if kind in ("socket", "both"):
        os.unlink(places.socket)
    if kind in ("record", "both"):
        os.unlink(places.record)
    seen = ownership.check()
    assert seen.socket == (OURS if kind == "record" else MISSING)
    assert seen.record == (OURS if kind == "socket" else MISSING)
    if kind == "record":
        assert ownership.restore_record()
        assert ownership.listening is former
    else:
        assert ownership.republish() is None
        assert ownership.listening is not former
        former.close()
    assert ownership.check() == IN_PLACE
    assert is_served_by_us(places, ownership.listening)
    assert loses(places).kind == ALREADY


def test_a_client_that_waits_in_the_old_backlog_is_not_lost(places: Places, own: Callable[[], Ownership]) -> None:
    ownership = own()
    former, waiting = ownership.listening, attempt(places.socket).require()
    os.unlink(places.socket)
    assert ownership.republish() is None
    with former, former.accept()[0] as accepted, waiting:
        waiting.send(b"x")
        assert accepted.recv(1) == b"x"


@pytest.mark.parametrize("how", ["moved", "removed", "replaced"])
def test_a_directory_that_is_gone_is_made_again(places: Places, own: Callable[[], Ownership], how: str) -> None:
    ownership = own()
    former = ownership.listening
    if how == "removed":
        shutil.rmtree(places.runtime_dir)
    else:
        os.rename(places.runtime_dir, f"{places.runtime_dir}-aside")
    if how == "replaced":
        os.mkdir(places.runtime_dir, 0o700)
    assert ownership.check() == Sight(is_directory_current=False, socket=MISSING, record=MISSING)
    assert attempt(places.socket).outcome == ABSENT
    assert ownership.republish() is None
    former.close()
    assert ownership.check() == IN_PLACE
    assert is_served_by_us(places, ownership.listening)
    assert loses(places).kind == ALREADY


def test_a_directory_that_somebody_made_unsafe_is_told(places: Places, own: Callable[[], Ownership]) -> None:
    ownership = own()
    os.rename(places.runtime_dir, f"{places.runtime_dir}-aside")
    os.mkdir(places.runtime_dir, 0o755)
    outcome = ownership.republish()
    assert outcome is not None
    assert (outcome.kind, "0755" in outcome.reason) == (ERROR, True)


def test_nobody_publishes_over_a_successor(places: Places, own: Callable[[], Ownership]) -> None:
    """Files removed, a second broker came up before the first one looked."""
    first = own()
    os.unlink(places.socket)
    os.unlink(places.record)
    second = own()
    assert (first.check().socket, first.check().record) == (OTHER, OTHER)
    outcome = first.republish()
    assert outcome is not None
    assert outcome.kind == ALREADY
    assert first.withdraw()
    first.listening.close()
    first.release()
    assert second.check() == IN_PLACE
    assert is_served_by_us(places, second.listening)


def test_a_successor_in_a_new_directory_is_left_alone(places: Places, own: Callable[[], Ownership]) -> None:
    first = own()
    os.rename(places.runtime_dir, f"{places.runtime_dir}-aside")
    second = own()
    outcome = first.republish()
    assert outcome is not None
    assert outcome.kind == ALREADY
    assert first.withdraw()
    assert set(os.listdir(f"{places.runtime_dir}-aside")) == {".guard"}
    assert second.check() == IN_PLACE


def test_a_living_successors_record_is_not_written_over(places: Places, own: Callable[[], Ownership]) -> None:
    ownership = own()
    os.unlink(places.record)
    with open(places.record, "w", encoding="ascii") as record:
        record.write(f"{os.getppid()}\n")
    assert ownership.check().record == OTHER
    assert not ownership.restore_record()
    with open(places.record, encoding="ascii") as record:
        assert record.read() == f"{os.getppid()}\n"


def test_a_record_is_not_written_into_somebodys_start(places: Places, own: Callable[[], Ownership]) -> None:
    ownership = own()
    os.unlink(places.record)
    with open(places.claim, "w", encoding="ascii") as claim:
        claim.write(f"{os.getppid()}\n")
    assert not ownership.restore_record()
    os.unlink(places.claim)
    assert ownership.restore_record()
    assert ownership.restore_record()


def test_nothing_waits_for_the_start_lock(places: Places, own: Callable[[], Ownership]) -> None:
    ownership = own()
    os.unlink(places.record)
    with open_directory(places.runtime_dir) as directory, try_lock(directory, ".guard"):
        assert not ownership.restore_record()
        assert not ownership.withdraw()
        os.unlink(places.socket)
        outcome = ownership.republish()
        assert outcome is not None
        assert outcome.kind == CLAIMED
        assert not ownership.leave(0.0)


def test_files_that_could_not_be_removed_belong_to_a_dead_owner(places: Places, own: Callable[[], Ownership]) -> None:
    ownership = own()
    with open_directory(places.runtime_dir) as directory, try_lock(directory, ".guard"):
        assert not ownership.leave(0.02)
    assert {"broker.sock", "broker.pid"} <= set(os.listdir(places.runtime_dir))
    assert own().check() == IN_PLACE


def test_withdrawing_takes_our_own_files_and_keeps_life(places: Places, own: Callable[[], Ownership]) -> None:
    ownership = own()
    waiting = attempt(places.socket).require()
    with open(places.record, "rb") as record:
        assert ownership.withdraw()
        assert os.listdir(places.runtime_dir) == [".guard"]
        assert probe_lock(record.fileno()) == HELD
    with waiting, ownership.listening.accept()[0]:
        pass
    ownership.listening.close()
    ownership.release()
    ownership.release()
    assert ownership.withdraw()


def test_a_lookalike_of_our_socket_stays(places: Places, own: Callable[[], Ownership]) -> None:
    ownership = own()
    os.unlink(places.socket)
    with socket.socket(socket.AF_UNIX) as other:
        other.bind(places.socket)
        assert ownership.check().socket == OTHER
        assert ownership.withdraw()
        assert set(os.listdir(places.runtime_dir)) == {"broker.sock", ".guard"}


def test_touching_makes_everything_look_used(places: Places, own: Callable[[], Ownership]) -> None:
    ownership = own()
    old = (1_000_000_000, 1_000_000_000)
    paths = (places.socket, places.record, places.runtime_dir)
    for path in paths:
        os.utime(path, old)
    ownership.touch()
    assert all(os.stat(path).st_mtime > old[0] for path in paths)
    os.unlink(places.socket)
    os.unlink(places.record)
    ownership.touch()
    assert os.listdir(places.runtime_dir) == [".guard"]


def test_republishing_over_a_dead_socket(places: Places, own: Callable[[], Ownership]) -> None:
    """A program that binds blindly took our path and ended."""
    ownership = own()
    former = ownership.listening
    os.unlink(places.socket)
    with socket.socket(socket.AF_UNIX) as other:
        other.bind(places.socket)
        other.listen(1)
    assert ownership.check().socket == OTHER
    assert ownership.republish() is None
    former.close()
    assert is_served_by_us(places, ownership.listening)


@pytest.mark.skipif(not shutil.which("systemd-tmpfiles"), reason="needs systemd-tmpfiles, the cleaner itself")
def test_the_cleaner_of_temporary_files_leaves_a_living_broker_alone(
    places: Places, own: Callable[[], Ownership], tmp_path: Path
) -> None:
    ownership = own()
    parent = os.path.dirname(places.runtime_dir)
    rules = tmp_path / "rules.conf"
    rules.write_text(f"d {parent} 0700 - - 1ms\n")
    with open(f"{parent}/old", "w", encoding="ascii"):
        pass

    def clean() -> bool:
        subprocess.run(["systemd-tmpfiles", "--clean", str(rules)], check=True)
        return not os.path.exists(f"{parent}/old")

    wait_until(clean, "the cleaner to remove an old file")
    assert ownership.check() == IN_PLACE
    assert is_served_by_us(places, ownership.listening)
    # The same directory without a living broker is cleaned: it was the lock that kept it.
    ownership.listening.close()
    ownership.release()
    clean()
    assert not os.path.exists(places.record)


def refuse(*_arguments: object, **_names: object) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


def count_fds() -> int:
    return len(os.listdir("/proc/self/fd"))


def test_a_record_that_cannot_be_renamed_is_put_off_and_nothing_leaks(
    places: Places, own: Callable[[], Ownership], monkeypatch: pytest.MonkeyPatch
) -> None:
    ownership = own()
    os.unlink(places.record)
    before = count_fds()
    with monkeypatch.context() as patch:
        patch.setattr(os, "rename", refuse)
        assert not ownership.restore_record()
    assert count_fds() == before
    assert ownership.restore_record()
    assert ownership.check() == IN_PLACE


def test_a_claim_that_cannot_be_taken_away_is_unlocked(
    places: Places, own: Callable[[], Ownership], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was published by then is served; a lock that stayed held would keep this very broker from a next time."""
    ownership = own()
    for _ in range(2):
        os.unlink(places.socket)
        ownership.listening.close()
        before = count_fds()
        with monkeypatch.context() as patch:
            patch.setattr(claim, "remove_if_same", refuse)
            assert ownership.republish() is None
        assert count_fds() == before + 1
        assert os.path.lexists(places.claim)
    os.unlink(places.socket)
    ownership.listening.close()
    assert ownership.republish() is None
    assert is_served_by_us(places, ownership.listening)


def test_leaving_a_directory_that_takes_no_change_leaves_the_files(
    places: Places, own: Callable[[], Ownership], monkeypatch: pytest.MonkeyPatch
) -> None:
    ownership = own()
    with monkeypatch.context() as patch:
        patch.setattr(os, "rename", refuse)
        assert not ownership.leave()
    assert os.path.lexists(places.socket)
    assert isinstance(own(), object)


@pytest.mark.parametrize("is_owned", [False, True])
def test_a_directory_that_changes_while_it_is_judged_is_an_outcome(
    places: Places, own: Callable[[], Ownership], monkeypatch: pytest.MonkeyPatch, *, is_owned: bool
) -> None:
    ownership = own() if is_owned else None
    shutil.rmtree(places.runtime_dir, ignore_errors=True)
    with monkeypatch.context() as patch:
        patch.setattr(directory_module, "_check_ancestors", refuse)
        outcome = ownership.republish() if ownership else acquire(places, bind_socket)
    assert isinstance(outcome, Outcome)
    assert outcome.kind == ERROR
    assert "No space left" in outcome.reason
