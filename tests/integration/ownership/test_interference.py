"""A foreign program that takes no start lock interferes at every step of a start; and Android, without hard links."""

from __future__ import annotations

import json
import os
import socket
from typing import TYPE_CHECKING, Any

import pytest

from intercomd.edges.listener.binding import BoundSocket, bind_socket
from intercomd.edges.ownership import acquisition, claim, publishing
from intercomd.edges.ownership.acquisition import acquire
from intercomd.edges.ownership.outcomes import ALREADY, CLAIMED, ERROR, UNCERTAIN, Outcome
from libintercom.endpoint import dial
from libintercom.ownership.directory import RuntimeDirectory, open_directory
from libintercom.ownership.readings import read_ours
from libintercom.ownership.verdict import LIVE
from libintercom.platforms import ANDROID
from tests.support.losing import KEPT, lose, names, read, write

if TYPE_CHECKING:
    from collections.abc import Callable

    from intercomd.edges.ownership.holding import Ownership
    from libintercom.paths import Places

STEPS = ["inspect", "publish_claim", "begin_life", "prepare"]


@pytest.fixture
def before(monkeypatch: pytest.MonkeyPatch) -> Callable[[str, Callable[[], None]], None]:
    """Let a foreign program act just before a step is taken for the first time."""

    def plant(step: str, act: Callable[[], None]) -> None:
        if step == "prepare":
            return
        taken, acts = getattr(publishing, step), iter([act])

        def interfere(*arguments: Any) -> Any:
            next(acts, lambda: None)()
            return taken(*arguments)

        monkeypatch.setattr(publishing, step, interfere)

    return plant


def attempt_with(places: Places, step: str, act: Callable[[], None]) -> Ownership | Outcome:
    acts = iter([act] if step == "prepare" else [])

    def prepare(directory: RuntimeDirectory) -> BoundSocket:
        next(acts, lambda: None)()
        return bind_socket(directory)

    return acquire(places, prepare, deadline_s=0.03)


@pytest.mark.parametrize("step", STEPS)
def test_a_foreign_claim_at_any_step_wins(
    places: Places, runtime: str, before: Callable[[str, Callable[[], None]], None], step: str
) -> None:
    """O_EXCL as the lineage does it; where our claim stands already, theirs fails, unless they judged ours dead."""

    def publish_theirs() -> None:
        if os.path.lexists(places.claim):
            os.unlink(places.claim)
        fd = os.open(places.claim, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        os.write(fd, f"{os.getppid()}\n1800000000000\n".encode())
        os.close(fd)

    before(step, publish_theirs)
    lost = attempt_with(places, step, publish_theirs)
    assert isinstance(lost, Outcome)
    assert lost.kind == CLAIMED
    assert read(places.claim) == f"{os.getppid()}\n1800000000000\n"
    assert names(places) == {"broker.spawn.lock", *KEPT}


def test_a_foreign_program_cannot_claim_over_our_claim(
    places: Places, runtime: str, before: Callable[[str, Callable[[], None]], None], own: Callable[[], Ownership]
) -> None:
    def try_theirs() -> None:
        with pytest.raises(FileExistsError):
            os.open(places.claim, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        # What they read: a living pid, the time, and our identity.
        lines = read(places.claim).split("\n")
        assert (lines[0], lines[1].isdigit(), lines[2].split()[0]) == (str(os.getpid()), True, "linux-v1")
        with open_directory(runtime) as directory:
            found = publishing.inspect(directory, "broker.spawn.lock", read_ours(), "absent")
        assert found.kind == LIVE

    before("begin_life", try_theirs)
    own()
    assert not os.path.lexists(places.claim)


def test_whoever_can_connect_finds_the_owners_lock_held(
    places: Places, own: Callable[[], Ownership], monkeypatch: pytest.MonkeyPatch
) -> None:
    publish, seen = BoundSocket.publish, []

    def look_first(bound: BoundSocket) -> None:
        with open_directory(places.runtime_dir) as directory:
            seen.append(publishing.inspect(directory, "broker.pid", read_ours(), "absent").kind)
        publish(bound)

    monkeypatch.setattr(BoundSocket, "publish", look_first)
    own()
    assert seen == [LIVE]


@pytest.mark.parametrize("step", STEPS)
def test_a_foreign_record_at_any_step_wins(
    places: Places, runtime: str, before: Callable[[str, Callable[[], None]], None], step: str
) -> None:
    def publish_theirs() -> None:
        write(places.record, f"{os.getppid()}\n")

    before(step, publish_theirs)
    lost = attempt_with(places, step, publish_theirs)
    assert isinstance(lost, Outcome)
    assert lost.kind in (UNCERTAIN, CLAIMED)
    assert read(places.record) == f"{os.getppid()}\n"
    assert names(places) == {"broker.pid", *KEPT}


@pytest.mark.parametrize("step", STEPS)
def test_a_foreign_socket_at_any_step_wins(
    places: Places, runtime: str, before: Callable[[str, Callable[[], None]], None], step: str
) -> None:
    theirs = socket.socket(socket.AF_UNIX)

    def publish_theirs() -> None:
        theirs.bind(places.socket)
        theirs.listen(5)

    with theirs:
        before(step, publish_theirs)
        lost = attempt_with(places, step, publish_theirs)
        assert isinstance(lost, Outcome)
        assert lost.kind in (ALREADY, CLAIMED)
        assert names(places) == {"broker.sock", *KEPT}
        with dial(places.socket):
            theirs.accept()[0].close()


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("is_made_again", [True, False])
def test_a_directory_replaced_at_any_step_is_no_place_to_serve(
    places: Places,
    runtime: str,
    before: Callable[[str, Callable[[], None]], None],
    step: str,
    is_made_again: bool,
) -> None:
    def replace() -> None:
        os.rename(runtime, f"{runtime}-aside")
        if is_made_again:
            os.mkdir(runtime, 0o700)

    before(step, replace)
    lost = attempt_with(places, step, replace)
    assert isinstance(lost, Outcome)
    # Looked at again by whoever started it, where the path leads now.
    assert lost.kind == CLAIMED
    assert set(os.listdir(f"{runtime}-aside")) == KEPT
    assert not is_made_again or os.listdir(runtime) == []


@pytest.mark.parametrize("step", STEPS)
def test_a_start_lock_deleted_at_any_step_is_none(
    places: Places, runtime: str, before: Callable[[str, Callable[[], None]], None], step: str
) -> None:
    """Somebody else may hold the lock on the new file, and be publishing."""

    def delete() -> None:
        os.unlink(places.guard)

    before(step, delete)
    lost = attempt_with(places, step, delete)
    assert isinstance(lost, Outcome)
    assert lost.kind == CLAIMED
    assert names(places) <= KEPT


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), OSError(24, "Too many open files")])
def test_a_failure_while_binding_leaves_nothing(places: Places, runtime: str, error: OSError) -> None:
    def prepare(_directory: RuntimeDirectory) -> BoundSocket:
        raise error

    lost = acquire(places, prepare)
    assert isinstance(lost, Outcome)
    assert lost.kind == ERROR
    assert str(error.strerror) in lost.reason
    assert names(places) == KEPT


def test_a_failure_while_naming_the_socket_leaves_nothing(
    places: Places, runtime: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_self: BoundSocket) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(BoundSocket, "publish", refuse)
    assert lose(places).kind == ERROR
    assert names(places) == KEPT


# ---------------------------------------------------------------- Android: no hard links


@pytest.fixture
def android(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(acquisition, "read_ours", lambda: read_ours(ANDROID))

    def refuse(_self: RuntimeDirectory, _old: str, _new: str) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(RuntimeDirectory, "link", refuse)


def test_android_claims_without_links(places: Places, android: None, own: Callable[[], Ownership]) -> None:
    ownership = own()
    assert names(places) == {"broker.sock", "broker.pid", *KEPT}
    lines = read(places.record).split("\n")
    assert lines[0] == str(os.getpid())
    assert json.loads(lines[1])["platform"] == "android"
    assert ownership.start_identity["boottimeMs"] > 0  # type: ignore[operator]


def test_android_loses_to_a_taken_name(
    places: Places, runtime: str, android: None, before: Callable[[str, Callable[[], None]], None]
) -> None:
    before("publish_claim", lambda: write(places.claim, f"{os.getppid()}\n"))
    assert lose(places).kind == CLAIMED
    assert names(places) == {"broker.spawn.lock", *KEPT}


def test_android_takes_a_half_made_claim_away(
    places: Places, runtime: str, android: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_arguments: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(claim, "write_owner", refuse)
    assert lose(places).kind == ERROR
    assert names(places) == KEPT
