"""The program ``intercomd``: which command was meant. Owns nothing else; each command's own imports come after that."""

from __future__ import annotations

import sys

from intercomd.streams import complain, open_streams, show
from libintercom.errors import EXIT_BUG, EXIT_DONE, EXIT_UNREACHABLE, EXIT_USAGE, IntercomError

HELP = f"""usage: intercomd COMMAND

The broker through which the agent sessions of one user find each other, send, ask and reply. It is started on first
use; whoever wants to start, stop or examine it by hand uses intercomctl.

commands:
  serve           serve the namespace of this user until nobody has been connected for a while, or until SIGTERM
    --idle-exit-s SECONDS      leave after so long without a session (default 5; the setting idleExitS)
    --report-fd FD             write one line of JSON there: ready, already, claimed, uncertain or error
    --limits bench             raise every rate and queue limit, for measuring
    --as-broker-command PATH   accepted and ignored, for clients that start a broker of their own by a path
  config --json   print every setting with its value and where it came from
  --version       print the version
  --help          print this

signals of a serving broker:
  SIGTERM, SIGINT   leave in order
  SIGUSR1           look whether the path still leads here
  SIGHUP            read the settings again, and log what needs a restart

exit statuses: {EXIT_DONE} done, or a broker serves already; 1 another program holds the start, or nothing takes the \
output;
  {EXIT_USAGE} usage or settings; 3 another broker may be alive;
  {EXIT_UNREACHABLE} the runtime directory cannot be used, or descriptors are short; {EXIT_BUG} a bug
"""


def main() -> int:
    """Run the command line; the exit status."""
    open_streams()
    arguments = sys.argv[1:]
    if not arguments:
        complain(HELP)
        return EXIT_USAGE
    if {"-h", "--help"} & set(arguments):
        return show(HELP)
    command = _COMMANDS.get(arguments[0])
    if command is None:
        complain(f"intercomd: {arguments[0]!r} is not a command; see intercomd --help\n")
        return EXIT_USAGE
    return command(arguments)


def _serve(arguments: list[str]) -> int:
    from intercomd.candidate import run  # imported here: no other command needs it
    from intercomd.settling import hold_signals

    # From the moment its record can be read somebody may signal it: what comes before it serves waits until then.
    hold_signals()
    won = run(arguments)
    if isinstance(won, int):
        return won
    hold_signals()
    from intercomd.serving import serve  # imported here: only a winner loads the rest

    return serve(won)


def _print_config(arguments: list[str]) -> int:
    from intercomd.settings import describe
    from libintercom.paths import find_places

    if arguments[1:] != ["--json"]:
        complain("usage: intercomd config --json\n")
        return EXIT_USAGE
    try:
        return show(describe(find_places()) + "\n")
    except IntercomError as error:
        complain(f"intercomd: {error}\n")
        return error.exit_status


def _print_version(_arguments: list[str]) -> int:
    from libintercom.version import __version__

    return show(f"intercomd {__version__}\n")


_COMMANDS = {"serve": _serve, "config": _print_config, "--version": _print_version}

if __name__ == "__main__":
    sys.exit(main())
