"""The starter's loop with made-up candidates and a made-up endpoint: policies, reports, deadlines, settings files."""

from __future__ import annotations

import errno
import json
import os
import shutil
from typing import TYPE_CHECKING, Any

import pytest

from libintercom import starting
from libintercom.endpoint import Attempt, _failed
from libintercom.errors import (
    Busy,
    ForeignOwner,
    IntercomError,
    InvalidConfiguration,
    NotPermitted,
    NotRunning,
    NotStarted,
    UncertainOwner,
    UnsafeDirectory,
)
from libintercom.launching import Report
from libintercom.ownership.directory import open_directory
from libintercom.ownership.locks import try_lock
from libintercom.paths import Places, find_places
from libintercom.starting import ensure_broker, read_start_settings

if TYPE_CHECKING:
    from pathlib import Path

    from libintercom.ownership.directory import RuntimeDirectory

NOBODY = "nobody"
SOMEBODY = "somebody"


class World:
    """A namespace whose endpoint, candidates and clock are made up."""

    def __init__(self, places: Places, monkeypatch: pytest.MonkeyPatch) -> None:
        self.places, self.now = places, 50.0
        self.endpoint = NOBODY
        # What each launched candidate reports; the last answer repeats.
        self.answers: list[Report] = []
        self.launches: list[tuple[str, float]] = []
        self.naps: list[float] = []
        self.on_nap: list[Any] = []
        monkeypatch.setattr(starting, "_look", self.look)

    def look(self, places: Places) -> Attempt:
        assert places is self.places
        if self.endpoint == SOMEBODY:
            return Attempt(outcome="connected", found="", path=places.socket)
        if self.endpoint == "foreign":
            return Attempt(outcome="foreign", found="uid 7", path=places.socket)
        number = errno.ENOENT if self.endpoint == NOBODY else getattr(errno, self.endpoint)
        return _failed(places.socket, OSError(number, os.strerror(number)))

    def launch(self, _places: Places, directory: RuntimeDirectory, executable: str, deadline_s: float) -> Report:
        assert try_lock(directory, ".gate") is None, "candidates are launched under the gate"
        self.launches.append((executable, deadline_s))
        self.now += 0.1
        report = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if report.result == "ready":
            self.endpoint = SOMEBODY
        return report

    def nap(self, seconds: float) -> None:
        self.now += seconds
        self.naps.append(seconds)
        if self.on_nap:
            self.on_nap.pop(0)()

    def ensure(self, policy: str = "spawn", **options: Any) -> None:
        ensure_broker(self.places, policy, launch=self.launch, clock=lambda: self.now, sleep=self.nap, **options)


def report(result: str, reason: str = "", is_doubtful: bool = False) -> Report:
    return Report(result=result, reason=reason, is_doubtful=is_doubtful)


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    runtime = tmp_path / "run"
    runtime.mkdir(mode=0o700)
    monkeypatch.setattr(
        starting, "read_start_settings", lambda _places: starting.StartSettings(policy="spawn", executable="/x")
    )
    return World(find_places({"PI_INTERCOM_RUNTIME_DIR": str(runtime), "HOME": str(tmp_path)}), monkeypatch)


@pytest.mark.parametrize("policy", ["spawn", "supervisor", "never", ""])
@pytest.mark.parametrize("endpoint", [SOMEBODY, "EAGAIN"])
def test_a_running_broker_is_left_alone(world: World, policy: str, endpoint: str) -> None:
    world.endpoint = endpoint
    world.ensure(policy)
    assert (world.launches, world.naps) == ([], [])
    assert os.listdir(world.places.runtime_dir) == []


@pytest.mark.parametrize("policy", ["supervisor", "never"])
@pytest.mark.parametrize("endpoint", [NOBODY, "ECONNREFUSED"])
def test_other_policies_never_spawn(world: World, policy: str, endpoint: str) -> None:
    world.endpoint = endpoint
    with pytest.raises(NotRunning) as refused:
        world.ensure(policy)
    assert world.launches == []
    assert ("start it there" if policy == "supervisor" else "broker start") in str(refused.value)


@pytest.mark.parametrize("policy", ["supervisor", "never"])
def test_the_settings_policy_counts_unless_one_is_given(
    world: World, policy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    chosen = starting.StartSettings(policy=policy, executable="")
    monkeypatch.setattr(starting, "read_start_settings", lambda _places: chosen)
    with pytest.raises(NotRunning):
        world.ensure("")
    world.answers = [report("ready")]
    world.ensure("spawn")
    assert len(world.launches) == 1


@pytest.mark.parametrize(
    ("endpoint", "kind"),
    [("EPERM", NotPermitted), ("EACCES", NotPermitted), ("foreign", ForeignOwner), ("ENOTDIR", IntercomError)],
)
@pytest.mark.parametrize("policy", ["spawn", "supervisor", "never"])
def test_what_is_not_absence_is_no_reason_to_spawn(
    world: World, endpoint: str, kind: type[IntercomError], policy: str
) -> None:
    world.endpoint = endpoint
    with pytest.raises(kind) as refused:
        world.ensure(policy)
    assert not isinstance(refused.value, (NotRunning, Busy))
    assert world.launches == []


def test_a_candidate_that_is_ready_ends_the_wait(world: World) -> None:
    world.answers = [report("ready")]
    world.ensure()
    assert (len(world.launches), world.naps) == (1, [])
    executable, deadline_s = world.launches[0]
    assert executable == "/x"
    assert deadline_s == pytest.approx(5.0)


def test_the_gate_is_free_afterwards(world: World) -> None:
    world.answers = [report("ready")]
    world.ensure()
    with open_directory(world.places.runtime_dir) as directory, try_lock(directory, ".gate") as gate:
        assert gate is not None


@pytest.mark.parametrize("is_made_again", [True, False])
def test_a_directory_that_vanishes_during_the_start_is_opened_again(world: World, is_made_again: bool) -> None:
    """A cleaner of temporary files may take it until a broker keeps it."""
    world.answers = [report("ready")]
    launch, runtime = world.launch, world.places.runtime_dir

    def lose(places: Places, directory: RuntimeDirectory, executable: str, deadline_s: float) -> Report:
        world.launch = launch  # type: ignore[method-assign]
        os.rename(runtime, f"{runtime}-aside")
        if is_made_again:
            os.mkdir(runtime, 0o700)
        raise NotStarted(places.socket, "its log cannot be opened (No such file or directory)")

    def launch_later(*arguments: Any) -> Report:
        return world.launch(*arguments)

    world.launch = lose  # type: ignore[method-assign]
    ensure_broker(world.places, "spawn", launch=launch_later, clock=lambda: world.now, sleep=world.nap)
    assert (len(world.launches), len(world.naps)) == (1, 1)
    assert os.path.isdir(runtime)


def test_a_directory_that_vanishes_again_and_again_is_told(world: World) -> None:
    def lose(places: Places, *_rest: object) -> Report:
        shutil.rmtree(places.runtime_dir)
        raise NotStarted(places.socket, "its log cannot be opened (No such file or directory)")

    world.launch = lose  # type: ignore[method-assign,assignment]
    with pytest.raises(NotStarted, match=r"within 5 s; .*run was removed or replaced during the start"):
        world.ensure()


def test_a_launch_that_the_system_refuses_is_told(world: World) -> None:
    def refuse(*_arguments: object) -> Report:
        raise OSError(24, "Too many open files")

    world.launch = refuse  # type: ignore[method-assign,assignment]
    with pytest.raises(NotStarted, match=r"cannot be launched \(Too many open files\)"):
        world.ensure()


def test_a_crash_is_answered_by_launching_again(world: World) -> None:
    world.answers = [report("crashed", "ImportError"), report("crashed", "ImportError"), report("ready")]
    world.ensure()
    assert len(world.launches) == 3
    assert world.naps == pytest.approx([0.02, 0.03])


def test_crashing_until_the_deadline_tells_the_last_words(world: World) -> None:
    world.answers = [report("crashed", "a candidate ended without a report; it said last: ImportError")]
    with pytest.raises(NotStarted, match=r"no broker came up within 5 s; .*ImportError"):
        world.ensure()
    assert 10 < len(world.launches) < 60
    assert world.now == pytest.approx(55.0, abs=0.5)


def test_a_claimed_start_is_waited_for_without_a_lock(world: World) -> None:
    def look_at_the_gate() -> None:
        with open_directory(world.places.runtime_dir) as directory, try_lock(directory, ".gate") as gate:
            assert gate is not None
        world.endpoint = SOMEBODY

    world.answers = [report("claimed", "pid 7")]
    world.on_nap = [look_at_the_gate]
    world.ensure()
    assert len(world.launches) == 1


def test_a_claim_that_stays_is_told_at_the_deadline(world: World) -> None:
    world.answers = [report("claimed", "broker.spawn.lock: pid 7 holds the lock on its record")]
    with pytest.raises(NotStarted, match="pid 7 holds the lock"):
        world.ensure(deadline_s=1.0)


def test_a_doubtful_claim_is_waited_for_and_then_uncertain(world: World) -> None:
    world.answers = [report("claimed", "pid 7 exists and may be the owner", is_doubtful=True)]
    with pytest.raises(UncertainOwner, match="pid 7 exists"):
        world.ensure(deadline_s=1.0)
    assert len(world.launches) > 1


@pytest.mark.parametrize(("result", "kind"), [("uncertain", UncertainOwner), ("error", NotStarted)])
def test_uncertain_and_error_end_at_once(world: World, result: str, kind: type[IntercomError]) -> None:
    world.answers = [report(result, "broker.pid: it is empty")]
    with pytest.raises(kind, match="it is empty"):
        world.ensure()
    assert (len(world.launches), world.naps) == (1, [])


def test_already_without_a_listener_is_looked_at_again(world: World) -> None:
    world.answers = [report("already"), report("already"), report("ready")]
    world.ensure()
    assert len(world.launches) == 3


def test_already_for_ever_says_so(world: World) -> None:
    world.answers = [report("already")]
    with pytest.raises(NotStarted, match="reported already, and then nobody listened"):
        world.ensure(deadline_s=0.5)


def test_another_starter_is_waited_for(world: World) -> None:
    world.answers = [report("ready")]
    with open_directory(world.places.runtime_dir) as directory:
        gate = try_lock(directory, ".gate")
        assert gate is not None
        world.on_nap = [lambda: None, lambda: setattr(world, "endpoint", SOMEBODY)]
        world.ensure()
        assert world.launches == []
        world.endpoint = NOBODY
        with pytest.raises(NotStarted, match="another starter"):
            world.ensure(deadline_s=0.3)
        world.on_nap = [gate.release]
        world.ensure()
    assert len(world.launches) == 1


def test_pauses_grow_to_a_bound(world: World) -> None:
    world.answers = [report("claimed", "x")]
    with pytest.raises(NotStarted):
        world.ensure()
    assert world.naps[:3] == pytest.approx([0.02, 0.03, 0.045])
    assert max(world.naps) == pytest.approx(0.2)


def test_an_unsafe_directory_is_told(world: World) -> None:
    os.chmod(world.places.runtime_dir, 0o755)
    with pytest.raises(UnsafeDirectory, match="0755"):
        world.ensure()


def test_a_gate_that_cannot_be_made_is_told(world: World) -> None:
    os.mkdir(world.places.gate)
    with pytest.raises(NotStarted, match=r"\.gate cannot be locked"):
        world.ensure()


# ---------------------------------------------------------------- settings


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path, Places]:
    system, own = tmp_path / "system.json", tmp_path / "own.json"
    monkeypatch.setattr(Places, "settings_files", property(lambda _self: (str(system), str(own))))
    return system, own, find_places({"PI_INTERCOM_RUNTIME_DIR": "/r"})


def write(path: Path, value: object) -> None:
    path.write_text(value if isinstance(value, str) else json.dumps(value))
    path.chmod(0o644)


def test_no_files_no_settings(files: tuple[Path, Path, Places]) -> None:
    found = read_start_settings(files[2], {})
    assert (found.policy, found.executable) == ("spawn", "")


def test_later_sources_overrule_earlier_ones_key_by_key(files: tuple[Path, Path, Places]) -> None:
    system, own, places = files
    write(system, {"startPolicy": "never", "executable": "/a", "logLevel": "debug"})
    write(own, {"startPolicy": "supervisor", "idleExitS": 9})
    assert read_start_settings(places, {}) == starting.StartSettings(policy="supervisor", executable="/a")
    environ = {"PI_INTERCOM_START_POLICY": "spawn", "PI_INTERCOM_EXECUTABLE": "/b"}
    assert read_start_settings(places, environ) == starting.StartSettings(policy="spawn", executable="/b")


@pytest.mark.parametrize(
    ("text", "key", "reason"),
    [
        ("{", "the file", "it is not JSON"),
        ("", "the file", "it is not JSON"),
        ("[" * 100_000, "the file", "it is not JSON"),
        ("[]", "the file", "it is not a JSON object"),
        ('{"startPolicy": "sometimes"}', "startPolicy", "'sometimes' is not one of spawn, supervisor, never"),
        ('{"startPolicy": null}', "startPolicy", "None is not one of"),
        ('{"executable": "intercomd"}', "executable", "'intercomd' is not an absolute path"),
        ('{"executable": ["/a"]}', "executable", "is not an absolute path"),
    ],
)
def test_a_malformed_file_never_becomes_a_default(
    files: tuple[Path, Path, Places], text: str, key: str, reason: str
) -> None:
    write(files[1], text)
    with pytest.raises(InvalidConfiguration) as refused:
        read_start_settings(files[2], {})
    assert (refused.value.source, refused.value.key) == (str(files[1]), key)
    assert reason in refused.value.reason


def test_a_malformed_variable_is_named(files: tuple[Path, Path, Places]) -> None:
    with pytest.raises(InvalidConfiguration, match="PI_INTERCOM_START_POLICY"):
        read_start_settings(files[2], {"PI_INTERCOM_START_POLICY": ""})


def test_a_file_that_others_may_write_is_refused(files: tuple[Path, Path, Places]) -> None:
    write(files[1], {"executable": "/evil"})
    files[1].chmod(0o646)
    with pytest.raises(InvalidConfiguration, match="everybody may write"):
        read_start_settings(files[2], {})


def test_a_file_of_somebody_else_is_refused(files: tuple[Path, Path, Places], monkeypatch: pytest.MonkeyPatch) -> None:
    write(files[1], {"executable": "/evil"})
    monkeypatch.setattr(starting, "trusted_owners", lambda _uid: frozenset((4242,)))
    with pytest.raises(InvalidConfiguration, match="neither to you nor to root"):
        read_start_settings(files[2], {})


def test_a_file_that_cannot_be_read_is_refused(files: tuple[Path, Path, Places]) -> None:
    files[1].mkdir()
    with pytest.raises(InvalidConfiguration, match="cannot be read"):
        read_start_settings(files[2], {})
