"""Where everything is, on each platform, and which settings of the runtime directory are refused."""

from __future__ import annotations

import hashlib
import os
import pwd
from typing import TYPE_CHECKING

import pytest

from libintercom.errors import InvalidConfiguration
from libintercom.paths import SOCKET_PATH_LIMIT_BYTES, Places, find_places, passwd_home
from libintercom.platforms import ANDROID, LINUX, MACOS

if TYPE_CHECKING:
    from pathlib import Path

TERMUX = "/data/data/com.termux/files/usr"
HOME = pwd.getpwuid(os.getuid()).pw_dir.rstrip("/")


def places(environ: dict[str, str] | None = None, platform: str = LINUX, uid: int = 1000) -> Places:
    return find_places({"HOME": "/home/x", **(environ or {})}, platform=platform, uid=uid)


def refusal(environ: dict[str, str], platform: str = LINUX) -> InvalidConfiguration:
    with pytest.raises(InvalidConfiguration) as refused:
        places(environ, platform)
    return refused.value


@pytest.mark.parametrize("platform", [LINUX, MACOS])
def test_the_shared_namespace(platform: str) -> None:
    found = places(platform=platform)
    assert found.runtime_dir == "/tmp/pi-intercom-1000"
    assert not found.is_override
    assert [found.socket, found.record, found.claim, found.guard, found.gate, found.log] == [
        "/tmp/pi-intercom-1000/broker.sock",
        "/tmp/pi-intercom-1000/broker.pid",
        "/tmp/pi-intercom-1000/broker.spawn.lock",
        "/tmp/pi-intercom-1000/.guard",
        "/tmp/pi-intercom-1000/.gate",
        "/tmp/pi-intercom-1000/broker.log",
    ]


@pytest.mark.parametrize("name", ["HOME", "TMPDIR", "TMP", "XDG_RUNTIME_DIR", "XDG_STATE_HOME", "PI_CODING_AGENT_DIR"])
def test_what_sessions_must_agree_on_depends_on_the_user_alone(name: str) -> None:
    mine, other = places(uid=os.getuid()), places({name: "/somewhere/else"}, uid=os.getuid())
    for agreed in ("runtime_dir", "socket", "spool", "settings_files"):
        assert getattr(mine, agreed) == getattr(other, agreed)


def test_the_broker_state_is_in_the_password_databases_home() -> None:
    found = places({"HOME": "/elsewhere"}, uid=os.getuid())
    digest = hashlib.sha256(os.path.realpath(found.runtime_dir).encode()).hexdigest()[:16]
    assert found.spool == f"{HOME}/.local/state/intercom/spool/{digest}.sqlite"
    assert found.settings_files == ("/etc/intercom/config.json", f"{HOME}/.config/intercom/config.json")


def test_one_spool_for_a_directory_by_whatever_path(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(".")
    direct = places({"PI_INTERCOM_RUNTIME_DIR": f"{tmp_path}/run"}, uid=os.getuid())
    linked = places({"PI_INTERCOM_RUNTIME_DIR": f"{tmp_path}/link/run"}, uid=os.getuid())
    other = places({"PI_INTERCOM_RUNTIME_DIR": f"{tmp_path}/run2"}, uid=os.getuid())
    assert direct.spool == linked.spool != other.spool


def test_a_user_without_a_password_entry() -> None:
    found = places(uid=3_999_999_999)
    assert found.settings_files == ("/etc/intercom/config.json",)
    with pytest.raises(InvalidConfiguration, match="uid 3999999999"):
        _ = found.spool
    assert passwd_home(3_999_999_999) == ""


@pytest.mark.parametrize(
    ("environ", "settings", "state"),
    [
        ({}, "/home/x/.pi/agent/intercom/config.json", "/home/x/.local/state/intercom"),
        ({"PI_CODING_AGENT_DIR": " ~/a "}, "/home/x/a/intercom/config.json", "/home/x/.local/state/intercom"),
        ({"PI_CODING_AGENT_DIR": "~"}, "/home/x/intercom/config.json", "/home/x/.local/state/intercom"),
        ({"PI_CODING_AGENT_DIR": "  "}, "/home/x/.pi/agent/intercom/config.json", "/home/x/.local/state/intercom"),
        ({"PI_CODING_AGENT_DIR": "~other/a"}, f"{os.getcwd()}/~other/a/intercom/config.json", None),
        ({"XDG_STATE_HOME": "/s/"}, "/home/x/.pi/agent/intercom/config.json", "/s/intercom"),
        ({"XDG_STATE_HOME": "relative"}, "/home/x/.pi/agent/intercom/config.json", "/home/x/.local/state/intercom"),
    ],
)
def test_a_sessions_own_places_follow_its_environment(
    environ: dict[str, str], settings: str, state: str | None
) -> None:
    found = places(environ)
    assert found.session_settings == settings
    assert state is None or found.state_dir == state


def test_termux() -> None:
    found = places({"PREFIX": TERMUX, "TMPDIR": "/elsewhere"}, ANDROID, 10123)
    assert found.runtime_dir == f"{TERMUX}/tmp/pi-intercom-10123"
    assert found.spool.startswith(f"{TERMUX}/var/lib/intercom/spool/")
    assert found.settings_files == (f"{TERMUX}/etc/intercom/config.json",)


def test_a_prefix_means_nothing_elsewhere() -> None:
    assert places({"PREFIX": "/usr/local"}).runtime_dir == "/tmp/pi-intercom-1000"


@pytest.mark.parametrize(
    ("environ", "parent"),
    [
        ({}, "/tmp"),
        ({"PREFIX": ""}, "/tmp"),
        ({"TMPDIR": "/a/", "TMP": "/b", "TEMP": "/c"}, "/a"),
        ({"TMPDIR": "", "TMP": "/b", "TEMP": "/c"}, "/b"),
        ({"TEMP": "/c"}, "/c"),
        ({"TMPDIR": "/"}, ""),
    ],
)
def test_android_without_a_prefix_follows_node(environ: dict[str, str], parent: str) -> None:
    assert places(environ, ANDROID, 10123).runtime_dir == f"{parent}/pi-intercom-10123"


@pytest.mark.parametrize(("name", "value"), [("PREFIX", "usr"), ("TMPDIR", "tmp")])
def test_android_refuses_relative_places(name: str, value: str) -> None:
    assert refusal({name: value}, ANDROID).key == name


@pytest.mark.parametrize("platform", [LINUX, MACOS, ANDROID])
def test_an_override_selects_its_namespace(platform: str) -> None:
    found = places({"PI_INTERCOM_RUNTIME_DIR": "/run/user/1000/ic//", "PREFIX": TERMUX}, platform)
    assert (found.runtime_dir, found.is_override) == ("/run/user/1000/ic", True)
    assert found.socket == "/run/user/1000/ic/broker.sock"


@pytest.mark.parametrize("value", ["", "run", "./run", "~/run", " /run", "/run\n", "/a\x1b[31m/b", "/a\x7f"])
def test_an_invalid_override_fails_and_never_falls_back(value: str) -> None:
    refused = refusal({"PI_INTERCOM_RUNTIME_DIR": value})
    assert refused.key == "PI_INTERCOM_RUNTIME_DIR"
    assert refused.exit_status == 2
    assert "\x1b" not in str(refused)
    assert "\n" not in str(refused)


def path_of(size_bytes: int, char: str = "a") -> str:
    """A runtime directory whose socket path has that many UTF-8 bytes."""
    room = size_bytes - len("/r/") - len("/broker.sock")
    count, rest = divmod(room, len(char.encode()))
    return "/r/" + char * count + "b" * rest


@pytest.mark.parametrize("char", ["a", "ä", "字", "🙂"])
def test_the_socket_path_is_measured_in_bytes(char: str) -> None:
    fits = places({"PI_INTERCOM_RUNTIME_DIR": path_of(SOCKET_PATH_LIMIT_BYTES, char)})
    assert len(fits.socket.encode()) == 100
    refused = refusal({"PI_INTERCOM_RUNTIME_DIR": path_of(SOCKET_PATH_LIMIT_BYTES + 1, char)})
    assert "takes 101 bytes; the limit is 100" in str(refused)


def test_a_deep_prefix_is_refused_by_its_name() -> None:
    refused = refusal({"PREFIX": "/d" * 50}, ANDROID)
    assert refused.key == "PREFIX"
    assert "the limit is 100" in str(refused)


def test_the_root_directory_is_a_path_like_another() -> None:
    assert places({"PI_INTERCOM_RUNTIME_DIR": "//"}).socket == "/broker.sock"


def test_defaults_are_this_programs_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PI_INTERCOM_RUNTIME_DIR", "/r/own")
    assert (find_places().runtime_dir, find_places().uid) == ("/r/own", os.getuid())


def test_journals_are_below_the_users_state() -> None:
    assert places().journals == "/home/x/.local/state/intercom/journals"
    assert places({"XDG_STATE_HOME": "/s/"}).journals == "/s/intercom/journals"
