"""What a command line may say: each option and argument of a command, declared once.

Owns the declarations that the help, the completion and both parsers are made from, and the short parser for the
common case. Does not own the framework's side of it (``main``) nor what a command does (``commands``). Two commands
are started so often that importing the framework would be most of their time; ``parse`` reads their command lines
from the same declarations, and leaves everything unusual, every mistake included, to the framework.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any

    Kind = type[str | int | float | bool]

# What a program's command line may hold of one word before the framework reads it: an option starts like this.
_DASH = "-"
# The word after which everything is an argument, whatever it looks like.
_END_OF_OPTIONS = "--"


class Parameter:
    """One option (it has ``flags``) or one argument (it has none) of a command.

    ``kind`` is the type of its value, ``choices`` the words it is one of (empty: any), ``is_many`` whether it may be
    given several times (its value is a tuple then). ``name`` is the keyword by which ``Command.run`` gets the value.
    """

    def __init__(
        self,
        name: str,
        *flags: str,
        about: str,
        kind: Kind = str,
        default: object = None,
        metavar: str = "",
        choices: tuple[str, ...] = (),
        is_many: bool = False,
        is_required: bool = False,
    ) -> None:
        self.name, self.flags, self.about, self.kind = name, flags, about, kind
        self.default, self.metavar, self.choices = default, metavar, choices
        self.is_many, self.is_required = is_many, is_required

    @property
    def is_argument(self) -> bool:
        return not self.flags

    def read(self, word: str) -> object:
        """The value that one word of the command line stands for.

        Raises:
            ValueError: it stands for none.

        """
        if self.choices and word not in self.choices:
            raise ValueError(word)
        return self.kind(word)


class Command:
    """One command: how it is called, what it says about itself, and ``run(**values)``, which returns the exit status.

    ``path`` is its name, or group and name (``broker start``). ``about`` is its help: a first sentence, then details
    in paragraphs of their own.
    """

    def __init__(self, path: str, run: Callable[..., int], about: str, *parameters: Parameter) -> None:
        self.path, self.run, self.about, self.parameters = path, run, about, parameters

    @property
    def arguments(self) -> list[Parameter]:
        return [parameter for parameter in self.parameters if parameter.is_argument]


def argument(
    name: str, about: str, *, metavar: str, is_required: bool = True, choices: tuple[str, ...] = ()
) -> Parameter:
    """A word by its place."""
    return Parameter(name, about=about, metavar=metavar, is_required=is_required, choices=choices)


def flag(spelling: str, about: str, *, name: str = "") -> Parameter:
    """An option without a value: it is said or not."""
    return Parameter(name or _keyword(spelling), spelling, about=about, kind=bool, default=False)


def option(
    spelling: str,
    about: str,
    *,
    name: str = "",
    metavar: str = "",
    kind: Kind = str,
    default: object = None,
    choices: tuple[str, ...] = (),
) -> Parameter:
    """An option with one value; the last one said counts."""
    keyword = name or _keyword(spelling)
    return Parameter(keyword, spelling, about=about, kind=kind, default=default, metavar=metavar, choices=choices)


def options(spelling: str, about: str, *, name: str, metavar: str) -> Parameter:
    """An option that may be said several times; its value is a tuple of what was said, in order."""
    return Parameter(name, spelling, about=about, default=(), metavar=metavar, is_many=True)


def _keyword(spelling: str) -> str:
    return spelling.lstrip(_DASH).replace(_DASH, "_")


# Said by every command that prints something.
JSON = flag("--json", 'Print one JSON object with "version":1 instead of text.', name="as_json")
# Who a one-shot command is to others.
AS_NAME = option("--as", "The name under which this command joins.", name="as_name", metavar="NAME")
SESSION_ID = option("--session-id", "The native session ID this command speaks for.", metavar="ID")


def parse(command: Command, words: Sequence[str]) -> dict[str, Any] | None:
    """The values of a plain, correct command line, or None: then the framework reads it and says what is wrong.

    It never answers differently from the framework: it answers the same, or not at all.
    """
    values: dict[str, Any] = {parameter.name: parameter.default for parameter in command.parameters}
    loose: list[str] = []
    try:
        for parameter, value in _options(command, words, loose):
            values[parameter.name] = (*values[parameter.name], value) if parameter.is_many else value
        _place(command.arguments, loose, values)
    except ValueError:
        return None
    return values


def _options(command: Command, words: Sequence[str], loose: list[str]) -> Iterator[tuple[Parameter, object]]:
    """Each option said with its value; the other words go to ``loose``."""
    known = {spelling: parameter for parameter in command.parameters for spelling in parameter.flags}
    rest = iter(words)
    for word in rest:
        if word == _END_OF_OPTIONS:
            loose.extend(rest)
        elif len(word) > 1 and word.startswith(_DASH):
            yield _option(known, word, rest)
        else:
            loose.append(word)


def _option(known: dict[str, Parameter], word: str, rest: Iterator[str]) -> tuple[Parameter, object]:
    spelling, has_value, value = word.partition("=")
    parameter = known.get(spelling)
    if parameter is None or (has_value and parameter.kind is bool):
        raise ValueError(word)
    if parameter.kind is bool:
        return parameter, True
    if has_value:
        return parameter, parameter.read(value)
    following = next(rest, None)
    if following is None:
        raise ValueError(word)
    return parameter, parameter.read(following)


def _place(arguments: list[Parameter], words: list[str], values: dict[str, Any]) -> None:
    required = sum(parameter.is_required for parameter in arguments)
    if not required <= len(words) <= len(arguments):
        raise ValueError(words)
    for parameter, word in zip(arguments, words, strict=False):
        values[parameter.name] = parameter.read(word)
