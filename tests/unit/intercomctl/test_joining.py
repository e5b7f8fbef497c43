"""As whom a command joins: names, directory and lineage, whatever the environment holds."""

from __future__ import annotations

import os

import pytest

from intercomctl import joining
from intercomctl.failures import InvalidUsage
from libintercom.errors import InvalidConfiguration, InvalidLineage
from libintercom.identity import NAME_VARIABLE, NATIVE_ID_VARIABLE, PARENT_VARIABLE, ROOT_VARIABLE, peer_id
from libintercom.profile import register_request
from libintercom.wire.values import MAX_LABEL_BYTES


@pytest.fixture(autouse=True)
def environment(monkeypatch):
    for name in (NAME_VARIABLE, NATIVE_ID_VARIABLE, PARENT_VARIABLE, ROOT_VARIABLE):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("USER", "tester")
    return monkeypatch


def test_the_name_is_said_or_in_the_environment_or_the_users(environment):
    assert joining.speaking_profile(None, None).name == "intercomctl-tester"
    environment.setenv(NAME_VARIABLE, "scout")
    assert joining.speaking_profile(None, None).name == "scout"
    assert joining.speaking_profile("carol", None).name == "carol"


@pytest.mark.parametrize("name", ["", "  ", "\ufeff"])
def test_an_empty_name_is_refused(name):
    with pytest.raises(InvalidUsage, match="the name is empty"):
        joining.speaking_profile(name, None)


@pytest.mark.parametrize("user", ["", "a\x1b[31mb", "a\nb"])
def test_any_user_name_becomes_a_label(environment, user):
    environment.setenv("USER", user)
    register_request(joining.speaking_profile(None, None))


def test_a_command_is_a_main_of_its_own_each_time():
    first, second = joining.speaking_profile(None, None), joining.speaking_profile(None, None)
    assert first.parent_session_id is None
    assert first.root_session_id != second.root_session_id
    assert first.requested_id != second.requested_id


def test_the_native_id_is_said_or_in_the_environment(environment):
    assert joining.speaking_profile(None, "mine").requested_id == peer_id("mine")
    environment.setenv(NATIVE_ID_VARIABLE, "theirs")
    profile = joining.speaking_profile(None, None)
    assert (profile.requested_id, profile.root_session_id) == (peer_id("theirs"), "theirs")
    with pytest.raises(InvalidConfiguration, match="--session-id"):
        joining.speaking_profile(None, " padded ")


def test_a_childs_environment_makes_a_child(environment):
    environment.setenv(ROOT_VARIABLE, "root")
    with pytest.raises(InvalidLineage):
        joining.speaking_profile(None, None)
    environment.setenv(PARENT_VARIABLE, "root")
    profile = joining.speaking_profile(None, None)
    assert (profile.root_session_id, profile.parent_session_id) == ("root", "root")


def test_an_ordinary_directory_is_shown_as_it_is(environment, tmp_path):
    environment.chdir(tmp_path)
    assert joining.working_directory() == str(tmp_path)


def test_a_directory_that_no_label_can_hold_is_shown_as_one_that_can(environment, tmp_path):
    hostile = os.fsencode(tmp_path) + b"/a\x1b[31m\n\xff"
    os.mkdir(hostile)
    environment.chdir(os.fsdecode(hostile))
    assert joining.working_directory() == f"{tmp_path}/a\ufffd[31m\ufffd\ufffd"
    register_request(joining.speaking_profile(None, None))


def test_a_very_long_directory_is_cut(environment, tmp_path):
    environment.chdir(tmp_path)
    for _ in range(8):
        os.mkdir("ä" * 120)
        os.chdir("ä" * 120)
    shown = joining.working_directory()
    assert len(shown.encode()) <= MAX_LABEL_BYTES
    register_request(joining.speaking_profile(None, None))


def test_a_directory_that_is_gone_is_called_by_what_the_shell_says(environment, tmp_path):
    gone = tmp_path / "gone"
    gone.mkdir()
    environment.chdir(gone)
    gone.rmdir()
    environment.setenv("PWD", "/was/here")
    assert joining.working_directory() == "/was/here"
    environment.setenv("PWD", "")
    assert joining.working_directory() == "/"
