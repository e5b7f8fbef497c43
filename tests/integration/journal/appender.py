"""A program with a journal: ``appender.py FOLDER COUNT [PLANT]`` appends entries one by one and says which are settled.

It writes ``settled N`` from the callback itself, so that a tracer sees it in the order of the program's own calls.
"""

from __future__ import annotations

import os
import sys

from libintercom.session.entries import Entry
from libintercom.session.journal import Journal, schema, writer

NATIVE_ID = "the appender"


def entry(number: int) -> Entry:
    message_id = f"m{number}"
    # Every third has a text of more than a page.
    content = {"text": "x" * (0 if number % 3 else 9_000)}
    body = {"from": {"id": "ann"}, "message": {"id": message_id, "content": content}}
    return Entry(entry_id=f"e{number}", message_id=message_id, kind="admitted", at_ms=number, body=body)


def _leave_unsynchronised() -> None:
    """A fault that must be seen: nothing waits for the disk."""
    settings = schema._settings

    def without(*, is_reader: bool):
        return [(name, "OFF" if name == "synchronous" else value) for name, value in settings(is_reader=is_reader)]

    schema._settings = without


def main(folder: str, count: int, plant: str = "") -> None:
    if plant:
        _leave_unsynchronised()
    writer.FOLD_LIMIT, writer.CHECKPOINT_PAGES = 7, 20
    journal = Journal.open(NATIVE_ID, folder=folder)
    for number in range(count):
        pending = journal.append([entry(number)])
        pending.add_done(lambda failure, number=number: os.write(1, f"{failure or 'settled'} {number}\n".encode()))
        if number % 4:
            pending.wait(30)
    pending.wait(30)
    journal.close()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), *sys.argv[3:])
