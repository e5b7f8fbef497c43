"""A fresh process that opens a journal: ``reopening.py FOLDER NATIVE_ID`` prints milliseconds and bytes as JSON.

The time is from ``Journal.open`` to the first unfinished message in hand; the memory is the peak of the whole process
less that of the bare interpreter before the first import, so it holds all imports as well.
"""

from __future__ import annotations

import json
import os
import sys
import time


def peak_bytes() -> int:
    """proc(5), VmHWM in KiB; getrusage(2) would count what the starting program had before exec."""
    with open("/proc/self/status", encoding="ascii", errors="replace") as lines:
        return next(1024 * int(line.split()[1]) for line in lines if line.startswith("VmHWM"))


def main(folder: str, native_id: str) -> None:
    before = peak_bytes()
    from libintercom.session.journal import Journal

    began_s = time.perf_counter()
    journal = Journal.open(native_id, folder=folder)
    first = next(journal.unfinished(), None)
    spent_ms = 1000 * (time.perf_counter() - began_s)
    grown, whole = peak_bytes() - before, peak_bytes()
    print(json.dumps({"ms": spent_ms, "grown": grown, "whole": whole, "found": first is not None}), flush=True)
    # As if killed: the files stay as they were found.
    os._exit(0)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
