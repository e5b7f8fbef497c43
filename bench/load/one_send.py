"""One use of the blocking library client: connect, register, send, acknowledged. Measured as a whole program.

Usage: ``python one_send.py <socket path> <target>``. Ends with status 1 unless the broker said "delivered".
"""

from __future__ import annotations

import sys

from libintercom.client import Client
from libintercom.profile import Profile

_client = Client(Profile(cwd="/", model="bench", name="once"), path=sys.argv[1])
_client.connect()
sys.exit(0 if _client.send(sys.argv[2], "one message").outcome == "delivered" else 1)
