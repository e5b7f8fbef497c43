"""One client program, run by any Python from 3.9 on: puts hostile variables around itself and wants a broker.

``python client.py ROOT RESULT VARIABLES FAULT``: ROOT is the checkout, RESULT a file for the outcome (standard output
may be closed), VARIABLES a JSON object that is set inside the program, as an agent's own shell tool or ``.env`` reader
does, and FAULT what to plant in the library: Python that is run with ``launching`` and ``os`` at hand, mostly nothing.
"""

from __future__ import annotations

import json
import os
import sys


def main() -> int:
    root, result, variables, fault = sys.argv[1:]
    sys.path.insert(0, root)
    from libintercom import launching
    from libintercom.errors import IntercomError
    from libintercom.paths import find_places
    from libintercom.starting import ensure_broker

    exec(fault, {"launching": launching, "os": os})  # noqa: S102 - planted by a test of this trial
    os.environ.update(json.loads(variables))
    try:
        ensure_broker(find_places())
        told = "started"
    except IntercomError as error:
        told = f"{type(error).__name__}: {error}"
    with open(result, "w", encoding="utf-8") as file:
        file.write(told)
    return 0


if __name__ == "__main__":
    sys.exit(main())
