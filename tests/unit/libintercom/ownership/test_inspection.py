"""Looking at one record in a real directory: this program's own, dead ones, and files that are none."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from libintercom.ownership import inspection
from libintercom.ownership.directory import RuntimeDirectory, mark_of, open_directory
from libintercom.ownership.inspection import inspect
from libintercom.ownership.locks import lock_exclusively
from libintercom.ownership.readings import read_ours
from libintercom.ownership.records import dump_owner
from libintercom.ownership.verdict import ABSENT, DEAD, LIVE, UNCERTAIN
from tests.support.owners import make_publication

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

NAME = "broker.pid"


@pytest.fixture
def directory(tmp_path: Path) -> Iterator[RuntimeDirectory]:
    with open_directory(str(tmp_path / "run")) as opened:
        yield opened


def look(directory: RuntimeDirectory, endpoint: str = "absent") -> inspection.Finding:
    return inspect(directory, NAME, read_ours(), endpoint)


def publish(directory: RuntimeDirectory, pid: int = 0) -> int:
    """A record of ours in place; returns its descriptor, which is not locked."""
    ours, fd = read_ours(), directory.open(NAME, os.O_CREAT | os.O_RDWR)
    publication = make_publication(machine=ours.machine, identity=ours.identity, file=mark_of(os.fstat(fd)), flock=True)
    os.write(fd, dump_owner(pid or os.getpid(), publication))
    return fd


def test_nothing_there(directory: RuntimeDirectory) -> None:
    found = look(directory)
    assert (found.kind, found.mark, found.record) == (ABSENT, None, None)


def test_our_record_lives_as_long_as_its_lock(directory: RuntimeDirectory) -> None:
    fd = publish(directory)
    assert lock_exclusively(fd)
    found = look(directory)
    assert (found.kind, found.mark) == (LIVE, mark_of(os.fstat(fd)))
    assert found.reason == f"broker.pid: pid {os.getpid()} holds the lock on its record"
    os.close(fd)
    assert look(directory).kind == DEAD


def test_the_lock_survives_a_rename(directory: RuntimeDirectory) -> None:
    fd = publish(directory)
    assert lock_exclusively(fd)
    directory.rename(NAME, "elsewhere")
    directory.rename("elsewhere", NAME)
    assert look(directory).kind == LIVE
    os.close(fd)


def test_a_living_pid_without_a_lock_is_no_owner_of_ours(directory: RuntimeDirectory) -> None:
    """The pid was reused: that it exists, even with equal ticks, proves nothing against a free lock."""
    os.close(publish(directory, os.getpid()))
    assert look(directory).kind == DEAD


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir, lambda path: os.symlink("/etc/passwd", path)])
def test_what_is_no_file_is_uncertain_and_left_alone(directory: RuntimeDirectory, make: object) -> None:
    make(f"{directory.path}/{NAME}")  # type: ignore[operator]
    assert look(directory).kind == UNCERTAIN
    assert directory.names() == [NAME]


def test_an_empty_record_is_uncertain(directory: RuntimeDirectory) -> None:
    os.close(directory.open(NAME, os.O_CREAT | os.O_RDWR))
    found = look(directory)
    assert (found.kind, found.verdict.reason) == (UNCERTAIN, "the record cannot be judged: it is empty")


def test_a_huge_record_is_not_read_into_memory(directory: RuntimeDirectory) -> None:
    fd = directory.open(NAME, os.O_CREAT | os.O_RDWR)
    os.truncate(fd, 1 << 40)
    os.close(fd)
    assert "longer than 4096 bytes" in look(directory).reason


def test_a_record_that_is_replaced_meanwhile_is_read_again(
    directory: RuntimeDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.close(publish(directory))
    judge, replacements = inspection.judge, iter([True])

    def replace_once(*arguments: object) -> object:
        if next(replacements, False):
            directory.unlink(NAME)
        return judge(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(inspection, "judge", replace_once)
    assert look(directory).kind == ABSENT


def test_a_record_that_never_stands_still_is_uncertain(
    directory: RuntimeDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.close(publish(directory))
    monkeypatch.setattr(directory, "mark", lambda _name: None)
    assert "faster than it can be read" in look(directory).reason


def test_who_listens_is_alive(directory: RuntimeDirectory) -> None:
    fd = directory.open(NAME, os.O_CREAT | os.O_RDWR)
    os.write(fd, b"1\n")
    os.close(fd)
    assert look(directory, "connected").kind == LIVE
    assert look(directory, "absent").kind == UNCERTAIN
