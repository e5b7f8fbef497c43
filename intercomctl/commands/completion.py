"""`intercomctl completion`: the script that makes a shell complete our commands and options.

Owns the command; the scripts are the framework's.
"""

from __future__ import annotations

from intercomctl import output
from intercomctl.options import Command, argument

SHELLS = ("bash", "zsh", "fish")
# How a completing shell asks this program, by the framework's convention.
VARIABLE = "_INTERCOMCTL_COMPLETE"


def run(shell: str) -> int:
    """Print the script for ``shell``."""
    # Imported here: every other command does without the framework's completion.
    from typer import completion

    script = completion.get_completion_script(  # type: ignore[attr-defined]  # re-exported without saying so
        prog_name=output.PROGRAM, complete_var=VARIABLE, shell=shell
    )
    output.say(script)
    return 0


COMMAND = Command(
    "completion",
    run,
    "Print the completion script of a shell.\n\n"
    'bash: add  eval "$(intercomctl completion bash)"  to ~/.bashrc. zsh: the same in ~/.zshrc, after compinit. '
    "fish: intercomctl completion fish > ~/.config/fish/completions/intercomctl.fish",
    argument("shell", "The shell.", metavar="bash|zsh|fish", choices=SHELLS),
)
