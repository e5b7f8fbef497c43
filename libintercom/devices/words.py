"""What commands on two devices say to each other word for word (seeds, "How a device is reached").

Owns the few literals that both ends of a request match on; the remote command loads nothing else of this package.
"""

from __future__ import annotations

# The version of requests and replies.
VERSION = 1
# A reply carries at most one frame (1 MiB), which JSON escapes may double; a list is cut by its sender to fit.
MAX_LINE_BYTES = 2 * 1024 * 1024

NO_BROKER_SENTENCE = "no Pi session is connected there"
UNSUPPORTED = 'Unsupported command "'
# The words of an error's ``outcome`` (ours; the Node command has none).
SAID_NOT_SENT, SAID_ACCEPTED, SAID_UNKNOWN = "not_sent", "accepted", "unknown"

# How the mains of these commands are called at their broker. A message's ID is a hash of origin and sender, so
# sequential commands of one sender are the same peer; a list's never meets one.
ID_PREFIX = "remote-"
LIST_ID_PREFIX = "remote-list-"
MODEL = "remote-cli"
