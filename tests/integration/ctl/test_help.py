"""What the program says about itself: help, mistakes, completion, version; nothing of it needs a broker."""

from __future__ import annotations

import subprocess

import pytest

from intercomctl import failures
from intercomctl.main import COMMANDS, GROUPS
from libintercom.version import __version__
from tests.support.ctl import PROGRAM, unsafe_characters


def test_without_words_it_prints_its_help(alone):
    bare, asked = alone.run(), alone.run("--help")
    assert bare == asked
    assert (bare.status, bare.err) == (0, "")
    assert all(name.split()[0] in bare.out for name in (command.path for command in COMMANDS))


@pytest.mark.parametrize(
    "words", [[], *([command.path] for command in COMMANDS), *([name] for name in GROUPS)], ids=str
)
def test_every_help_explains_the_exit_statuses_and_options(alone, words):
    ended = alone.run(*" ".join(words).split(), "--help")
    assert (ended.status, ended.err) == (0, "")
    for status, meaning in failures.EXIT_STATUSES:
        assert f"{status}  {meaning}" in ended.out
    for command in COMMANDS:
        if [command.path] == words:
            assert all(spelling in ended.out for one in command.parameters for spelling in one.flags)


@pytest.mark.parametrize("name", ["send", "ask"])
def test_the_help_warns_that_command_lines_are_visible(alone, name):
    text = " ".join(alone.run(name, "--help").out.split())
    assert "Every user of this machine can see the command lines of running programs" in text
    assert "--stdin" in text


@pytest.mark.parametrize("words", ["--help", "", "send --help", "--version", "completion bash"])
def test_the_help_on_a_full_disk_or_without_a_reader_is_no_bug(alone, words):
    full = alone.in_shell(f"{words} >/dev/full")
    assert full.status == 1
    assert full.err == (
        "intercomctl: cannot write the output: No space left on device. What the command did is done.\n"
    )
    unread = alone.in_shell(f"{words} | true")
    assert (unread.status, unread.err) == (0, "")


def test_the_version(alone):
    assert alone.run("--version").out == f"intercomctl {__version__}\n"


MISTAKES = [
    ["fly"],
    ["list", "--fly"],
    ["list", "extra"],
    ["list", "--scope", "world"],
    ["send"],
    ["send", "a", "b", "c"],
    ["send", "a", "b", "--delivery", "fast"],
    ["ask", "a", "b", "--timeout", "soon"],
    ["join"],
    ["broker"],
    ["broker", "fly"],
    ["completion", "tcsh"],
    ["list", "--\x1b]52;c;x\x07"],
    ["\x1b[31mfly\u202e"],
]


@pytest.mark.parametrize("words", MISTAKES, ids=repr)
def test_a_mistake_is_told_with_the_way_to_the_help(alone, words):
    ended = alone.run(*words)
    assert (ended.status, ended.out) == (2, "")
    assert ended.err.startswith("intercomctl: ")
    assert "--help'." in ended.err
    assert not unsafe_characters(ended.err)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_prints_the_script_of_a_shell(alone, shell):
    ended = alone.run("completion", shell)
    assert (ended.status, ended.err) == (0, "")
    assert "_INTERCOMCTL_COMPLETE" in ended.out


def complete(alone, line):
    """What bash would offer behind a command line."""
    words = {"_INTERCOMCTL_COMPLETE": "complete_bash", "COMP_WORDS": line, "COMP_CWORD": str(len(line.split(" ")) - 1)}
    return alone.having(**words).run().out.split()


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("intercomctl ", {"list", "send", "ask", "broker", "config"}),
        ("intercomctl br", {"broker"}),
        ("intercomctl broker ", {"start", "stop", "restart"}),
        ("intercomctl list --ch", {"--children"}),
        ("intercomctl send bob x --delivery ", {"steer", "queue", "passive"}),
        ("intercomctl completion ", {"bash", "zsh", "fish"}),
    ],
)
def test_a_shell_completes_commands_options_and_words(alone, line, offered):
    assert offered <= set(complete(alone, line))


def test_the_bash_script_is_a_script():
    script = subprocess.run([PROGRAM, "completion", "bash"], check=True, capture_output=True).stdout
    subprocess.run(["bash", "-n"], check=True, input=script)


def test_a_fast_command_does_without_the_framework(alone):
    """The two ways into a command differ only in what they load."""
    code = (
        "import sys; from intercomctl.__main__ import run; run(sys.argv[1:]); "
        "print(sorted({'typer', 'rich', 'asyncio', 'dataclasses', 'typing', 'subprocess'} & set(sys.modules)))"
    )
    python = PROGRAM.replace("intercomctl", "python")
    alone.run("broker", "start")
    for words in (["list"], ["list", "--json"], ["send", "bob", "x"]):
        ended = subprocess.run(
            [python, "-c", code, *words], check=True, capture_output=True, text=True, env=alone.environment
        )
        assert ended.stdout.splitlines()[-1] == "[]", words
