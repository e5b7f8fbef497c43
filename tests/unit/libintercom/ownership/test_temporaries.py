"""Temporary names are short and swept; a file is only taken away if it is the one that is meant."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from libintercom.ownership.directory import RuntimeDirectory, open_directory
from libintercom.ownership.records import Mark
from libintercom.ownership.temporaries import discard, make_temporary, remove_if_same, sweep, temporary_name
from libintercom.paths import SOCKET_NAME

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def directory(tmp_path: Path) -> Iterator[RuntimeDirectory]:
    with open_directory(str(tmp_path / "run")) as opened:
        yield opened


def write(directory: RuntimeDirectory, name: str) -> Mark:
    os.close(directory.open(name, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
    mark = directory.mark(name)
    assert mark is not None
    return mark


def test_a_socket_can_be_bound_at_a_temporary_name_wherever_the_socket_itself_fits() -> None:
    assert len(temporary_name()) <= len(SOCKET_NAME)


def test_names_do_not_repeat() -> None:
    assert len({temporary_name() for _ in range(100)}) == 100


def test_only_temporary_names_are_swept(directory: RuntimeDirectory) -> None:
    kept = [".guard", ".gate", "broker.pid", ".t-", ".t-0123456g", ".t-0123456789", "x.t-01234567", ".T-01234567"]
    for name in kept:
        write(directory, name)
    made = [temporary_name() for _ in range(3)]
    for name in made:
        write(directory, name)
    os.mkfifo(".t-0000ffff", dir_fd=directory.fd)
    assert sorted(sweep(directory)) == sorted([*made, ".t-0000ffff"])
    assert sorted(directory.names()) == sorted(kept)


def test_a_new_temporary_file_is_private_and_empty(directory: RuntimeDirectory) -> None:
    name, fd = make_temporary(directory)
    seen = os.fstat(fd)
    os.close(fd)
    assert (seen.st_mode & 0o777, seen.st_size) == (0o600, 0)
    discard(directory, name)
    discard(directory, name)
    assert directory.names() == []


def test_another_file_is_not_even_moved(directory: RuntimeDirectory, monkeypatch: pytest.MonkeyPatch) -> None:
    """A living owner's file must not be without its name for a moment."""
    mark = write(directory, "record")
    monkeypatch.setattr(directory, "rename", None)
    assert not remove_if_same(directory, "record", mark.replace(ino=mark.ino + 1))


def test_only_the_same_file_is_removed(directory: RuntimeDirectory) -> None:
    mark = write(directory, "record")
    assert not remove_if_same(directory, "record", mark.replace(ino=mark.ino + 1))
    assert not remove_if_same(directory, "other", mark)
    assert directory.names() == ["record"]
    assert remove_if_same(directory, "record", mark)
    assert directory.names() == []


@pytest.mark.parametrize("may_link", [True, False])
def test_a_successor_that_comes_in_between_gets_its_name_back(
    directory: RuntimeDirectory, monkeypatch: pytest.MonkeyPatch, may_link: bool
) -> None:
    ours = write(directory, "record")
    successor = write(directory, "successor")
    rename = directory.rename

    def replace_first(old: str, new: str) -> None:
        monkeypatch.setattr(directory, "rename", rename)
        rename("successor", "record")
        rename(old, new)

    def refuse(_old: str, _new: str) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(directory, "rename", replace_first)
    if not may_link:
        monkeypatch.setattr(directory, "link", refuse)
    assert not remove_if_same(directory, "record", ours)
    assert directory.names() == ["record"]
    assert directory.mark("record") == successor


def test_a_second_successor_keeps_its_name(directory: RuntimeDirectory, monkeypatch: pytest.MonkeyPatch) -> None:
    ours = write(directory, "record")
    # What was moved aside turns out to be another file.
    monkeypatch.setattr(directory, "mark", lambda name: ours if name == "record" else Mark(dev=0, ino=0))
    link = directory.link

    def take_the_name_first(old: str, new: str) -> None:
        write(directory, "record")
        link(old, new)

    monkeypatch.setattr(directory, "link", take_the_name_first)
    assert not remove_if_same(directory, "record", ours)
    assert directory.names() == ["record"]
