"""One declaration, two parsers: the short one answers what the framework answers, or leaves it to the framework."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

import hypothesis
import pytest
import typer
from hypothesis import strategies

from intercomctl import __main__ as program
from intercomctl import main, options
from intercomctl.commands import list as listing
from intercomctl.commands import send
from intercomctl.options import Command, argument, flag, option

if TYPE_CHECKING:
    from collections.abc import Sequence

HOT = {"list": listing.COMMAND, "send": send.COMMAND}
# Every kind of parameter, beside the real ones.
EVERYTHING = Command(
    "everything",
    lambda **_values: 0,
    "For this test.",
    argument("first", "One.", metavar="FIRST"),
    argument("second", "Two.", metavar="SECOND", is_required=False, choices=("a", "b")),
    flag("--flag", "A flag."),
    option("--text", "A text.", metavar="TEXT"),
    option("--number", "A number.", kind=float, default=1.5),
    option("--count", "A count.", kind=int),
    option("--choice", "A choice.", choices=("x", "y")),
    options.options("--many", "Several.", name="several", metavar="M"),
)
COMMANDS = {**HOT, "everything": EVERYTHING}


def framework(command: Command, words: Sequence[str]) -> dict[str, Any] | None:
    """The values that the framework reads, or None when it refuses."""
    seen: dict[str, Any] = {}
    fake = Command(command.path, lambda **values: bool(seen.update(values)), command.about, *command.parameters)
    application = typer.Typer(add_completion=False)
    application.command()(main._callback(fake))
    try:
        application(list(words), standalone_mode=False)
    except main.UsageError:
        return None
    return seen or None


def agree(command: Command, words: Sequence[str]) -> bool:
    """The short parser's answer, which must be the framework's; False when it left the line to the framework."""
    mine = options.parse(command, words)
    if mine is not None:
        assert mine == framework(command, words), words
    return mine is not None


UNDERSTOOD = [
    ("list", []),
    ("list", ["--json"]),
    ("list", ["--to", "bob", "--children"]),
    ("list", ["--scope=project", "--to="]),
    ("list", ["--to", "--json"]),
    ("list", ["--to", "a", "--to", "b"]),
    ("send", ["bob", "hello"]),
    ("send", ["--stdin", "bob"]),
    ("send", ["bob", "--", "--json"]),
    ("send", ["bob", "-"]),
    ("send", ["bob", ""]),
    ("send", ["bob", "--attach", "a", "--attach=b:c=d", "text"]),
    ("send", ["bob", "x", "--delivery", "queue", "--queue-mode", "replace", "--thread", "t"]),
    ("everything", ["1", "b", "--number", "-3", "--count=7", "--choice", "y", "--flag", "--many", "m"]),
]


@pytest.mark.parametrize(("name", "words"), UNDERSTOOD)
def test_a_plain_line_is_read_by_both_alike(name, words):
    assert agree(COMMANDS[name], words)


LEFT = [
    ("list", ["--help"]),
    ("list", ["--jso"]),
    ("list", ["-x"]),
    ("list", ["extra"]),
    ("list", ["--to"]),
    ("list", ["--json=1"]),
    ("list", ["--scope", "world"]),
    ("send", []),
    ("send", ["a", "b", "c"]),
    ("send", ["a", "--delivery", "fast"]),
    ("everything", ["1", "c"]),
    ("everything", ["1", "--number", "many"]),
    ("everything", ["1", "--count", "1.5"]),
]


@pytest.mark.parametrize(("name", "words"), LEFT)
def test_a_mistake_is_left_to_the_framework(name, words):
    assert options.parse(COMMANDS[name], words) is None
    assert framework(COMMANDS[name], words) is None


SPELLINGS = sorted({spelling for command in COMMANDS.values() for p in command.parameters for spelling in p.flags})
WORDS = strategies.one_of(
    strategies.sampled_from([*SPELLINGS, *(f"{spelling}=v" for spelling in SPELLINGS), "--", "-", "-s", "--nothing"]),
    strategies.sampled_from(["bob", "", "1", "-1", "1e3", "nan", "a", "x", "project", "queue", "=", "--=", "\ud800"]),
    strategies.text(max_size=4),
)


@hypothesis.settings(max_examples=300)
@hypothesis.given(name=strategies.sampled_from(sorted(COMMANDS)), words=strategies.lists(WORDS, max_size=6))
def test_any_line_is_read_by_both_alike_or_left_to_the_framework(name, words):
    hypothesis.assume("nan" not in words)
    agree(COMMANDS[name], words)


class Sloppy(options.Parameter):
    """The planted bug: a choice that is not one."""

    def read(self, word):
        return word


def test_the_comparison_finds_a_planted_bug():
    sloppy = Command("c", lambda **_values: 0, "", Sloppy("choice", "--choice", about="", choices=("x",)))
    with pytest.raises(AssertionError):
        agree(sloppy, ["--choice", "z"])


@pytest.mark.parametrize("command", main.COMMANDS, ids=lambda command: command.path)
def test_a_command_takes_exactly_what_it_declares(command):
    taken = inspect.signature(command.run).parameters
    assert sorted(taken) == sorted(parameter.name for parameter in command.parameters)
    assert all(parameter.default is inspect.Parameter.empty for parameter in taken.values())


@pytest.mark.parametrize("command", main.COMMANDS, ids=lambda command: command.path)
def test_every_option_says_what_it_is_for(command):
    prose, _, example = command.about.partition("\n\nExample: ")
    assert prose.endswith((".", "fish"))
    # What is shown as an example is a command line of this very command.
    assert not example or f"intercomctl {command.path}" in example
    assert all(parameter.about.endswith((".", ")")) for parameter in command.parameters), command.path


def test_the_hot_commands_are_commands():
    assert {command.path for command in main.COMMANDS} >= set(program.HOT)
    assert all(program._hot_command(name).path == name for name in program.HOT)
