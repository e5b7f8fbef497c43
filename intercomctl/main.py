"""The commands, registered with the framework from their own declarations.

Owns nothing but that translation: help, completion and the reading of unusual or mistaken command lines are the
framework's. What a command is called, what it takes and what it says about itself stands in ``commands``.
"""

from __future__ import annotations

import enum
import inspect
import sys
from typing import TYPE_CHECKING, Any

import typer
from typer import completion as shells

from intercomctl import failures, output
from intercomctl.commands import (
    ask,
    broker,
    completion,
    config,
    device,
    join,
    journal,
    last,
    metrics,
    pending,
    receipt,
    reply,
    send,
    status,
    trace,
)
from intercomctl.commands import list as listing
from libintercom.version import __version__

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from intercomctl.options import Command, Parameter

COMMANDS: tuple[Command, ...] = (
    listing.COMMAND,
    status.COMMAND,
    send.COMMAND,
    ask.COMMAND,
    join.COMMAND,
    pending.COMMAND,
    reply.COMMAND,
    last.COMMAND,
    receipt.COMMAND,
    trace.COMMAND,
    journal.SHOW,
    journal.COLLECT,
    journal.EXPORT,
    metrics.COMMAND,
    device.LIST,
    device.CHECK,
    device.INSTALL,
    config.SHOW,
    config.CHECK,
    broker.START,
    broker.STOP,
    broker.RESTART,
    completion.COMMAND,
)

# What a group of commands is about; the rest of its help is its commands'.
GROUPS = {
    "config": "The broker's configuration, as it would start now.",
    "device": "Your other devices, reached over ssh.",
    "broker": "Start, stop or restart the broker.",
    "journal": "What sessions were sent, as they keep it on this machine.",
}

ABOUT = "Sessions on this machine find each other, send, ask and reply: the operator's side."

# The framework's own class for every mistake in a command line; only a subclass of it has a public name.
UsageError: Any = typer.BadParameter.__mro__[1]


def main(words: Sequence[str]) -> int:
    """Run the command line ``words`` (without the program's name); return the exit status."""
    # What its own options for installing completion would set up; those options are left out of the help.
    shells.completion_init()  # type: ignore[attr-defined]  # re-exported without saying so
    try:
        status = application()(list(words) or ["--help"], prog_name=output.PROGRAM, standalone_mode=False)
    except UsageError as wrong:
        return failures.refuse_usage(wrong)
    except OSError as failure:
        # Commands have their own end (``failures.run_command``): this is the help, which the framework prints itself.
        raise output.lose(sys.stdout, failure) from None
    except SystemExit as end:
        # The same when its reader has gone; it has what it wanted.
        if isinstance(end.__context__, BrokenPipeError):
            return 0
        raise
    return status if isinstance(status, int) else 0


def application() -> typer.Typer:
    """Every command under the framework."""
    # Plain help: coloured panels cost every --help 40 ms and read worse in a pager.
    plain: dict[str, Any] = {"add_completion": False, "rich_markup_mode": None, "pretty_exceptions_enable": False}
    settings = {**plain, "epilog": failures.EXIT_STATUS_HELP}
    root = typer.Typer(help=ABOUT, **settings)
    root.callback()(_take_options)
    groups = {name: typer.Typer(help=about, **settings) for name, about in GROUPS.items()}
    for command in COMMANDS:
        group, _, name = command.path.rpartition(" ")
        owner = groups[group] if group else root
        owner.command(name, help=command.about, epilog=failures.EXIT_STATUS_HELP)(_callback(command))
    for name, group_application in groups.items():
        root.add_typer(group_application, name=name)
    return root


def _show_version(is_asked: bool) -> None:
    if is_asked:
        output.say(f"{output.PROGRAM} {__version__}")
        raise typer.Exit


_VERSION = typer.Option(False, "--version", is_eager=True, callback=_show_version, help="Print the version and exit.")


def _take_options(*, version: bool = _VERSION) -> None:
    """What may stand before a command's name; the version is printed by its own callback."""


def _callback(command: Command) -> Callable[..., int]:
    def run(**values: object) -> int:
        return failures.run_command(command, {name: _plain(value) for name, value in values.items()})

    parameters = [_declare(parameter) for parameter in command.parameters]
    vars(run)["__signature__"] = inspect.Signature(parameters)
    return run


def _declare(parameter: Parameter) -> inspect.Parameter:
    kind: Any = _choice(parameter) if parameter.choices else parameter.kind
    kind = list[kind] if parameter.is_many else kind if parameter.kind is bool else kind | None
    default = ... if parameter.is_required else parameter.default
    shown: dict[str, Any] = {"help": parameter.about, "metavar": parameter.metavar or None, "show_default": False}
    if parameter.is_argument:
        declared = typer.Argument(default, **shown)
    else:
        declared = typer.Option(default, *parameter.flags, **shown)
    return inspect.Parameter(parameter.name, inspect.Parameter.KEYWORD_ONLY, default=declared, annotation=kind)


def _choice(parameter: Parameter) -> type[enum.Enum]:
    return enum.Enum(parameter.name, {word: word for word in parameter.choices})  # type: ignore[return-value]


def _plain(value: object) -> object:
    """A value of the framework as the short parser would have read it."""
    if isinstance(value, enum.Enum):
        return value.value
    return tuple(value) if isinstance(value, list) else value
