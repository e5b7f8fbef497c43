"""Run the rows of both failure tables and the cut matrix: prints counts, exits with 1 on a violation.

``--only rows|cuts`` runs one of them.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import time

from tests.integration.devices import matrix, rows
from tests.support.fleet import fleet

PARTS = ("rows", "cuts")


def run_rows() -> list[str]:
    with fleet(rows.DEVICE, "empty") as devices:
        rows.populate(devices)
        violations = [wrong for row in rows.ROWS for wrong in rows.try_row(devices, row)]
    print(f"rows of the failure tables: {len(rows.LISTS)} of lists, {len(rows.MESSAGES)} of messages")
    return violations


def run_cuts() -> list[str]:
    tally = matrix.Tally()
    with fleet(matrix.DEVICE) as devices:
        device = devices.devices[matrix.DEVICE]
        silent = device.recipient(matrix.SILENT, answers=False)
        recipients = {matrix.ANSWERING: device.recipient(matrix.ANSWERING), matrix.SILENT: silent}
        for cell in matrix.cells():
            matrix.try_cell(devices, recipients, cell, tally)
        for number in matrix.CALLER_ENDS:
            matrix.kill_caller(devices, silent, number, tally)
    print(f"cut matrix: {tally.trials} trials, words {tally.words}")
    print(f"slowest retirement of a question: {tally.slowest_retirement_s:.2f} s (at most {matrix.RETIRED_S:g})")
    return tally.violations


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.integration.devices", description=__doc__)
    parser.add_argument("--only", choices=PARTS, nargs="+", default=list(PARTS))
    options = parser.parse_args()
    if shutil.which("ssh") is None:
        print("ssh is not installed (Debian: apt-get install openssh-client)")
        return 1
    begun_s = time.monotonic()
    violations = [*(run_rows() if "rows" in options.only else ()), *(run_cuts() if "cuts" in options.only else ())]
    for violation in violations:
        print(f"VIOLATED {violation}")
    print(f"{len(violations)} violations, {time.monotonic() - begun_s:.0f} s")
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main())
