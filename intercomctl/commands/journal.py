"""`intercomctl journal list|gc|export`: the journals that sessions keep on this machine.

Owns the commands. What a journal holds and what may be removed of it are ``libintercom.session.journal``'s.
"""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

from intercomctl import output
from intercomctl.failures import InvalidUsage
from intercomctl.options import JSON, Command, argument, flag, option
from libintercom.errors import EXIT_DONE, EXIT_REFUSED
from libintercom.list_texts import age_text
from libintercom.paths import find_places
from libintercom.printable import make_line
from libintercom.wire.record import dump_record

if TYPE_CHECKING:
    from libintercom.session.journal import Collected, Listed, Retention

_DAY_MS = 24 * 60 * 60 * 1000
_MIB = 1024 * 1024


def show(*, as_json: bool) -> int:
    """List the journals; the exit status says whether one of them cannot be read."""
    # Imported here: every other command does without SQLite.
    from libintercom.session.journal import list_journals

    folder = find_places().journals
    found = list_journals(folder)
    if as_json:
        output.emit({"folder": folder, "journals": [dump_record(one) for one in found]})
    elif not found:
        output.say(f"There is no journal in {folder}.")
    else:
        now_ms = int(time.time() * 1000)
        heading = f"Journals in {folder} ({len(found)}):"
        output.say("\n".join([heading, *(_line(one, now_ms) for one in found)]))
    return EXIT_REFUSED if any(one.note for one in found) else EXIT_DONE


def _line(one: Listed, now_ms: int) -> str:
    name = os.path.basename(one.path)
    if one.note:
        return f"• {name}: cannot be read: {make_line(one.note)}"
    holder = f"process {one.holder_pid}" if one.holder_pid else "another process"
    held = f", in use by {holder}" if one.is_held else ""
    newest = f", newest {age_text(one.newest_at_ms, now_ms)}" if one.newest_at_ms else ""
    # A live owner may be ahead of what is counted.
    least = "at least " if one.is_held else ""
    counts = f"{least}{one.messages} messages, {one.unfinished} unfinished, {one.size_bytes / _MIB:.1f} MiB"
    return f"• {make_line(one.native_id)}: {counts}{newest}{held} ({name})"


def collect(keep_days: float | None, max_mib: float | None, *, is_dry_run: bool, as_json: bool) -> int:
    """Remove what is older or larger than is kept; unfinished messages stay, and so does what is in use."""
    # Imported here: the same.
    from libintercom.session.journal import collect_garbage

    collected = collect_garbage(find_places().journals, _retention(keep_days, max_mib), is_dry_run=is_dry_run)
    if as_json:
        output.emit({"dryRun": is_dry_run, "journals": [dump_record(one) for one in collected]})
        return EXIT_DONE
    output.say("\n".join(_outcome(one) for one in collected) or "There is no journal to collect.")
    if is_dry_run:
        output.note("nothing was changed (--dry-run).")
    return EXIT_DONE


def _retention(keep_days: float | None, max_mib: float | None) -> Retention:
    from libintercom.session.journal import DEFAULT_RETENTION, Retention

    for spelling, value in (("--keep-days", keep_days), ("--max-mib", max_mib)):
        # Written so that "not a number" fails as well.
        if value is not None and not 0 < value < _DAY_MS:
            raise InvalidUsage(f"{spelling} is {value:g}; it takes a number above 0.")
    keep_ms = DEFAULT_RETENTION.keep_ms if keep_days is None else int(keep_days * _DAY_MS)
    return Retention(keep_ms, DEFAULT_RETENTION.max_bytes if max_mib is None else int(max_mib * _MIB))


def _outcome(one: Collected) -> str:
    name = os.path.basename(one.path)
    if one.is_removed:
        return f"• {name}: removed ({one.freed_bytes / _MIB:.1f} MiB){f', {make_line(one.note)}' if one.note else ''}"
    if one.note:
        return f"• {name}: left alone: {make_line(one.note)}"
    counts = f"{one.removed_messages} messages removed, {one.trimmed_messages} texts dropped"
    return f"• {name}: {counts}, {one.freed_bytes / _MIB:.1f} MiB freed"


def export(which: str) -> int:
    """Print a journal as lines of JSON."""
    # Imported here: the same.
    from libintercom.session.journal import export as read_entries

    for members in read_entries(_find(which)):
        output.emit(members)
        if not output.is_read():
            break
    return EXIT_DONE


def _find(which: str) -> str:
    """The path of a journal, given as such or as the native ID of its session."""
    from libintercom.session.journal import list_journals

    if os.sep in which:
        return which
    folder = find_places().journals
    for one in list_journals(folder):
        if which in (one.native_id, os.path.basename(one.path)):
            return one.path
    raise InvalidUsage(f"no journal of {which!r} is in {folder}. See which there are: {output.PROGRAM} journal list")


SHOW = Command(
    "journal list",
    show,
    "List the journals of this user's sessions.\n\n"
    "A journal holds what a session was sent, so that nothing is lost when its program ends. Exit status 1: one of "
    "them cannot be read.",
    JSON,
)
COLLECT = Command(
    "journal gc",
    collect,
    "Remove finished messages that are older than is kept, and texts beyond the size that is kept.\n\n"
    "Unfinished messages stay, whatever their age. A journal in use is left alone: its session does the same by "
    "itself.\n\nExample: intercomctl journal gc --keep-days 30 --dry-run",
    option("--keep-days", "Keep finished messages for so many days (default: 90).", kind=float, metavar="DAYS"),
    option("--max-mib", "Keep so much of one journal (default: 256).", kind=float, metavar="MIB"),
    flag("--dry-run", "Say what would be removed, and change nothing.", name="is_dry_run"),
    JSON,
)
EXPORT = Command(
    "journal export",
    export,
    "Print a journal: one JSON object for the journal itself, then one for each entry, oldest first.\n\n"
    "The texts of messages are in it. A journal in use can be exported.\n\n"
    "Example: intercomctl journal export my-native-id > journal.jsonl",
    argument("which", "A native session ID, or a file as `intercomctl journal list` names it.", metavar="JOURNAL"),
)
