"""The documents tell the truth: every command that they name exists, and the two that matter are shown."""

from __future__ import annotations

import functools
import re
import subprocess
import sys

import pytest

from tests.architecture.sources import ROOT, tracked_files

# The documents a newcomer reads first; they must stand.
REQUIRED = ("README.md", "ARCHITECTURE.md", "CHANGELOG.md", "LICENSE")

# Where a program may stand in a code span: at its start or after a prompt, a pipe or a path to .venv.
CALL = re.compile(r"(?:^|[\s|;&$(/])(make|intercomctl|intercomd) ([a-z][a-z0-9-]*(?: [a-z][a-z0-9-]*)?)")
SPAN = re.compile(r"```[^\n]*\n(.*?)```|`([^`\n]+)`", re.DOTALL)

# Commands that take words, so that a second word belongs to the user.
GROUPS = {"config", "broker", "journal"}


def named_commands(text: str) -> set[tuple[str, ...]]:
    """The commands in code spans and fences: ("make", "test"), ("intercomctl", "broker", "start")."""
    found = set()
    for fenced, span in SPAN.findall(text):
        for program, said in CALL.findall(fenced or span):
            first, *rest = said.split()
            is_group = program == "intercomctl" and first in GROUPS
            found.add((program, first, *(rest if is_group else [])))
    return found


def documents() -> dict[str, str]:
    return {name: (ROOT / name).read_text(encoding="utf-8") for name in tracked_files() if name.endswith(".md")}


@functools.cache
def make_targets() -> frozenset[str]:
    text = (ROOT / "Makefile").read_text(encoding="utf-8")
    lines = re.findall(r"^([a-z][a-z -]*):(?!=)", text, re.MULTILINE)
    return frozenset(name for line in lines for name in line.split())


@functools.cache
def daemon_commands() -> frozenset[str]:
    """What ``intercomd --help`` lists; it answers ``--help`` after any word."""
    called = [sys.executable, "-m", "intercomd", "--help"]
    said = subprocess.run(called, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return frozenset(re.findall(r"^  ([a-z-]+)\b", said.partition("commands:")[2].partition("\n\n")[0], re.MULTILINE))


@functools.cache
def exists(command: tuple[str, ...]) -> bool:
    program, *arguments = command
    if program == "make":
        return arguments[0] in make_targets()
    if program == "intercomd":
        return arguments[0] in daemon_commands()
    called = [sys.executable, "-m", program, *arguments, "--help"]
    return subprocess.run(called, cwd=ROOT, capture_output=True, check=False).returncode == 0


@pytest.mark.parametrize("name", REQUIRED)
def test_a_document_stands(name: str) -> None:
    assert (ROOT / name).is_file()


def test_the_readme_shows_both_commands() -> None:
    assert {("make", "demo"), ("make", "test")} <= named_commands((ROOT / "README.md").read_text(encoding="utf-8"))


def test_every_named_command_exists() -> None:
    named = {name: named_commands(text) for name, text in documents().items()}
    wrong = {name: [command for command in commands if not exists(command)] for name, commands in named.items()}
    assert {name: commands for name, commands in wrong.items() if commands} == {}


@pytest.mark.parametrize(
    ("text", "commands"),
    [
        ("run `make test` now", {("make", "test")}),
        ("```sh\n$ make demo TOKEN=x\nmake test\n```", {("make", "demo"), ("make", "test")}),
        ("```\n.venv/bin/intercomctl broker start\n```", {("intercomctl", "broker", "start")}),
        ("`intercomctl send planner hello`", {("intercomctl", "send")}),
        ("`intercomd serve --idle-exit-s 5`", {("intercomd", "serve")}),
        ("they make sense, intercomctl is a program", set()),
        ("`cat x | intercomctl send a --stdin`", {("intercomctl", "send")}),
    ],
)
def test_commands_are_read_from_code(text: str, commands: set[tuple[str, ...]]) -> None:
    assert named_commands(text) == commands


@pytest.mark.parametrize("command", [("make", "nothing"), ("intercomctl", "nothing"), ("intercomd", "nothing")])
def test_a_command_that_does_not_exist_is_found(command: tuple[str, ...]) -> None:
    assert not exists(command)


def test_a_relative_link_leads_somewhere() -> None:
    wrong = [
        f"{name}: {target}"
        for name, text in documents().items()
        for target in re.findall(r"\]\((?!https?://|#|mailto:)([^)#\s]+)", text)
        if not (ROOT / name).parent.joinpath(target).exists()
    ]
    assert wrong == []
