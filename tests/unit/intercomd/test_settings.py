"""Settings: who wins over whom, where each value came from, and errors that name source, key and reason."""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pytest

from intercomd import settings
from intercomd.core.limits import Limits, raise_rates
from libintercom.errors import InvalidConfiguration

if TYPE_CHECKING:
    from libintercom.paths import Places

ROOT = Path(__file__).resolve().parents[3]


@dataclasses.dataclass
class Files:
    """The two settings files of a user, in a directory of the test; what of ``Places`` the settings look at."""

    directory: Path
    uid: int = dataclasses.field(default_factory=os.getuid)

    @property
    def settings_files(self) -> tuple[str, str]:
        return str(self.directory / "etc.json"), str(self.directory / "home.json")

    def write(self, name: str, content: object) -> None:
        text = content if isinstance(content, str) else json.dumps(content)
        (self.directory / f"{name}.json").write_text(text)

    def load(self, **flags: Any) -> settings.Settings:
        return settings.load(cast("Places", self), **flags)

    def refuses(self, **flags: Any) -> InvalidConfiguration:
        with pytest.raises(InvalidConfiguration) as refused:
            self.load(**flags)
        return refused.value


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path)


# -- precedence --------------------------------------------------------------------------------------


def test_a_variable_in_other_letters_is_another_variable(files: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PI_INTERCOM_LOG_BYTES", "5000")
    monkeypatch.setenv("pi_intercom_log_bytes", "6000")
    monkeypatch.setenv("Pi_Intercom_Max_Sessions", "7")
    loaded = files.load()
    assert (loaded.log_bytes, loaded.limits.max_sessions) == (5000, Limits().max_sessions)


def test_without_anything_every_value_is_the_default(files: Files) -> None:
    loaded = files.load()
    assert loaded.limits == Limits()
    assert set(loaded.origins.values()) == {"default"}
    assert set(loaded.origins) == set(settings.NAMES)


def test_each_source_wins_over_those_before_it(files: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    etc, home = files.settings_files
    expected = []
    for source, give in (
        (etc, lambda: files.write("etc", {"idleExitS": 1, "logBytes": 5000})),
        (home, lambda: files.write("home", {"idleExitS": 2})),
        ("the environment", lambda: monkeypatch.setenv("PI_INTERCOM_IDLE_EXIT_S", "3")),
    ):
        give()
        expected.append(float(len(expected) + 1))
        loaded = files.load()
        assert (loaded.limits.idle_exit_s, loaded.origins["idle_exit_s"]) == (expected[-1], source)
    loaded = files.load(idle_exit_s=4.0)
    assert (loaded.limits.idle_exit_s, loaded.origins["idle_exit_s"]) == (4.0, "the command line")
    assert (loaded.log_bytes, loaded.origins["log_bytes"]) == (5000, etc)


def test_no_other_variable_and_no_dot_env_is_read(
    files: Files, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".env").write_text("PI_INTERCOM_LOG_BYTES=9999\nLOG_BYTES=9999\n")
    monkeypatch.setenv("LOG_BYTES", "9999")
    monkeypatch.setenv("PI_INTERCOM_MAX_SESSIONS", "5")
    loaded = files.load()
    assert (loaded.log_bytes, loaded.limits.max_sessions) == (settings.Settings().log_bytes, 5)


def test_bench_limits_raise_what_is_set(files: Files) -> None:
    files.write("home", {"maxSessions": 7})
    assert files.load(limits="bench").limits == raise_rates(dataclasses.replace(Limits(), max_sessions=7))


def test_an_idle_exit_can_be_switched_off(files: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    files.write("home", {"idleExitS": None})
    assert files.load().limits.idle_exit_s is None
    monkeypatch.setenv("PI_INTERCOM_IDLE_EXIT_S", "none")
    assert files.load().limits.idle_exit_s is None
    assert files.load(idle_exit_s=0.0).limits.idle_exit_s == 0.0


def test_the_keys_of_whoever_starts_a_broker_are_known(files: Files) -> None:
    files.write("home", {"startPolicy": "supervisor", "executable": "/usr/bin/intercomd"})
    loaded = files.load()
    assert (loaded.start_policy, loaded.executable) == ("supervisor", "/usr/bin/intercomd")
    assert loaded.origins["executable"] == files.settings_files[1]


@pytest.mark.parametrize("name", [field.name for field in dataclasses.fields(Limits)])
def test_every_limit_can_be_set_by_file_and_by_variable(
    files: Files, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    files.write("home", {settings.key_of(name): 1234})
    assert getattr(files.load().limits, name) == 1234
    monkeypatch.setenv(settings.variable_of(name), "4321")
    loaded = files.load()
    assert getattr(loaded.limits, name) == 4321
    assert loaded.origins[name] == "the environment"


# -- refusals ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("key", "value", "reason"),
    [
        ("logBytes", "5000", "a number is needed"),
        ("logBytes", True, "a number is needed"),
        ("logBytes", 10, "4096"),
        ("logBytes", 5000.5, "integer"),
        ("maxSessions", 0, "greater than 0"),
        ("maxSessions", None, "a number is needed"),
        ("idleExitS", -1, "greater than or equal to 0"),
        ("sendsPerS", {"a": 1}, "a number is needed"),
        ("loop", "trio", "asyncio"),
        ("logLevel", "loud", "debug"),
        ("startPolicy", "maybe", "spawn"),
        ("executable", "intercomd", "absolute"),
    ],
)
def test_a_bad_value_is_refused_by_file_key_and_reason(files: Files, key: str, value: object, reason: str) -> None:
    files.write("etc", {key: value})
    refused = files.refuses()
    assert (refused.source, refused.key) == (files.settings_files[0], key)
    assert reason in str(refused)
    assert refused.exit_status == 2


def test_a_bad_variable_is_refused_by_its_name(files: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PI_INTERCOM_MAX_SESSIONS", "many")
    refused = files.refuses()
    assert (refused.source, refused.key) == ("the environment", "PI_INTERCOM_MAX_SESSIONS")
    assert "'many'" in refused.reason


@pytest.mark.parametrize("value", ["nan", "inf", "-1"])
def test_a_variable_is_a_finite_number(files: Files, monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv("PI_INTERCOM_IDLE_EXIT_S", value)
    assert files.refuses().key == "PI_INTERCOM_IDLE_EXIT_S"


def test_an_unknown_key_is_refused_with_the_nearest(files: Files) -> None:
    files.write("home", {"maxSession": 5})
    refused = files.refuses()
    assert (refused.key, refused.source) == ("maxSession", files.settings_files[1])
    assert "maxSessions" in str(refused)
    files.write("home", {"zzz": 5})
    assert "intercomd config --json" in str(files.refuses())


@pytest.mark.parametrize("content", ["", "{", "[1]", "nul"])
def test_what_is_no_object_is_refused(files: Files, content: str) -> None:
    files.write("etc", content)
    assert files.refuses().source == files.settings_files[0]


def test_a_file_that_everybody_may_write_is_refused(files: Files) -> None:
    files.write("home", {})
    (files.directory / "home.json").chmod(0o666)
    assert "everybody" in str(files.refuses())


def test_the_first_bad_value_is_named_though_a_later_file_is_good(files: Files) -> None:
    files.write("etc", {"logBytes": -3})
    files.write("home", {"logBytes": 5000})
    assert files.load().log_bytes == 5000
    files.write("home", {"loop": "asyncio"})
    assert files.refuses().source == files.settings_files[0]


# -- what is said about them -------------------------------------------------------------------------


def test_describe_names_every_key_with_its_source(files: Files) -> None:
    files.write("home", {"logBytes": 5000})
    described = json.loads(settings.describe(cast("Places", files)))
    assert described["version"] == 1
    assert described["settings"]["logBytes"] == {"value": 5000, "source": files.settings_files[1]}
    assert described["settings"]["loop"] == {"value": "auto", "source": "default"}
    assert set(described["settings"]) == {settings.key_of(name) for name in settings.NAMES}
    assert described["files"] == [
        {"path": files.settings_files[0], "exists": False},
        {"path": files.settings_files[1], "exists": True},
    ]


def test_a_comparison_says_what_applies_and_what_needs_a_restart() -> None:
    before = settings.Settings()
    after = dataclasses.replace(before, log_level="debug", loop="asyncio", limits=Limits(max_sessions=3))
    assert settings.compare(before, after) == (["log_level"], ["loop", "max_sessions"])
    assert settings.compare(before, before) == ([], [])


def test_the_example_is_valid_and_changes_something(files: Files) -> None:
    example = (ROOT / "config" / "broker.json").read_text()
    files.write("home", example)
    loaded = files.load()
    changed = {settings.key_of(name) for name, origin in loaded.origins.items() if origin != "default"}
    assert changed == set(json.loads(example))
    assert loaded.limits.idle_exit_s == 30


def test_pydantic_is_left_alone_where_nothing_is_set() -> None:
    script = (
        "import sys; from intercomd import settings; from libintercom.paths import Places\n"
        "class Nothing:\n    uid, settings_files = 0, ()\n"
        "settings.load(Nothing, idle_exit_s=1.0, limits='bench')\n"
        "print(sorted({'pydantic', 'pydantic_settings'} & set(sys.modules)))"
    )
    said = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=ROOT)
    assert said.stdout.strip() == "[]"


def test_a_settings_file_that_is_no_file_is_not_waited_for(files: Files) -> None:
    """A serving broker reads its settings again in its one loop."""
    os.mkfifo(files.settings_files[1])
    refused = files.refuses()
    assert (refused.source, refused.key) == (files.settings_files[1], "the file")
    assert "ordinary file" in str(refused)


@pytest.mark.parametrize(
    "content",
    [
        "[" * 100_000,
        "9" * 5000,
        f'{{"maxSessions": {"9" * 5000}}}',
        '{"maxSessions": NaN}',
        '{"maxSessions": 1e999}',
        '{"idleExitS": Infinity}',
        '{"logBytes": 1e300}',
        '{"logLevel": 1}',
        '{"loop": null}',
        '{"\\ud800": 1}',
        "",
        "null",
    ],
)
def test_hostile_settings_are_an_error_that_names_the_file(files: Files, content: str) -> None:
    files.write("home", content)
    assert files.refuses().source == files.settings_files[1]
