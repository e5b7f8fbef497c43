"""`intercomctl config` through the real daemon's program: every setting with its source, and what cannot be used."""

from __future__ import annotations

import json

import pytest


def test_show_prints_every_setting_and_where_it_comes_from(alone):
    shown = alone.having(PI_INTERCOM_LOG_LEVEL="debug").run("config", "show", "--json").json
    assert shown["settings"]["logLevel"] == {"value": "debug", "source": "the environment"}
    assert shown["settings"]["startPolicy"] == {"value": "spawn", "source": "default"}
    assert all(set(file) == {"path", "exists"} for file in shown["files"])
    text = alone.having(PI_INTERCOM_LOG_LEVEL="debug").run("config", "show").out
    assert "logLevel" in text
    assert '"debug"   from the environment' in text
    assert len(text.splitlines()) > len(shown["settings"])


def test_check_says_what_is_changed(alone):
    ended = alone.having(PI_INTERCOM_LOG_LEVEL="debug").run("config", "check")
    assert ended.status == 0
    assert "The configuration is valid. Changed from the defaults: " in ended.out
    assert "logLevel" in ended.out
    shown = alone.run("config", "check", "--json").json
    assert (shown["ok"], shown["problem"]) == (True, None)


@pytest.mark.parametrize(
    ("variable", "value", "words"),
    [
        ("PI_INTERCOM_LOG_LEVEL", "loud", "PI_INTERCOM_LOG_LEVEL"),
        ("PI_INTERCOM_MAX_SESSIONS", "-1", "PI_INTERCOM_MAX_SESSIONS"),
        ("PI_INTERCOM_START_POLICY", "later", "PI_INTERCOM_START_POLICY"),
        ("PI_INTERCOM_EXECUTABLE", "intercomd", "is not an absolute path"),
    ],
)
def test_a_setting_that_cannot_be_used_is_found_and_named(alone, variable, value, words):
    shown = alone.having(**{variable: value}).run("config", "check", "--json")
    assert shown.status == 1
    assert shown.json["ok"] is False
    assert words in shown.json["problem"]


def test_without_json_the_finding_is_on_stderr_and_show_fails(alone):
    broken = alone.having(PI_INTERCOM_LOG_LEVEL="loud")
    for command, status in (("check", 1), ("show", 2)):
        ended = broken.run("config", command)
        assert (ended.status, ended.out) == (status, "")
        assert "PI_INTERCOM_LOG_LEVEL" in ended.err


PROGRAMS = [
    ("exit 7", "it ended with status 7: it said nothing."),
    ("echo nonsense", "it says something else"),
    ('echo "[]"', "it says something else"),
    ("printf '\\377'", "it says something else"),
    ("echo '\033]52;c;x' >&2; exit 1", "it ended with status 1"),
]


@pytest.mark.parametrize(("line", "words"), PROGRAMS)
def test_a_daemon_that_does_not_tell_is_an_error_of_its_own(alone, tmp_path, line, words):
    program = tmp_path / "intercomd"
    program.write_text(f"#!/bin/sh\n{line}\n", encoding="utf-8")
    program.chmod(0o700)
    ended = alone.having(PI_INTERCOM_EXECUTABLE=str(program)).run("config", "check")
    assert (ended.status, ended.out) == (4, "")
    assert words in ended.err
    assert "\033" not in ended.err


def test_the_daemon_is_asked_in_the_environment_of_a_broker(alone, tmp_path):
    program = tmp_path / "intercomd"
    program.write_text(
        '#!/bin/sh\nprintf \'{"settings":{"a":{"value":"%s","source":"default"}},"files":[]}\' "$SHELL$PWD"\n',
        encoding="utf-8",
    )
    program.chmod(0o700)
    shown = alone.having(PI_INTERCOM_EXECUTABLE=str(program), SHELL="/bin/x").run("config", "show", "--json")
    assert json.loads(shown.out)["settings"]["a"]["value"] == "/"
