"""Every bound of the broker, with its default and its reason (wire.md 14.3, 14.5, 14.6, 5.4, 9.8).

Owns the numbers. Does not own their use (``quotas``, ``stage``, ``dedupe``) nor where an operator sets them
(``intercomd.settings``). Bytes are bytes, ``_s`` seconds, ``per_s`` per second.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

_KIB = 1024
_MIB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Limits:
    """One broker's bounds. Defaults are those of wire.md 14."""

    # Enough for any one person's machine; rows stay listable in milliseconds.
    max_sessions: int = 10_000
    # Beyond these accepting pauses; nobody is closed for queueing.
    max_unregistered: int = 64
    register_timeout_s: float = 5.0
    # A row is sent with every message, so it must stay small.
    max_row_bytes: int = 8 * _KIB
    # What may wait in our memory for one recipient's socket, and for all of them.
    recipient_bytes: int = 4 * _MIB
    recipient_messages: int = 1_000
    outbound_bytes: int = 256 * _MIB
    # Half-received frames: in all, and how long one may take.
    partial_bytes: int = 64 * _MIB
    frame_timeout_s: float = 30.0
    # Sends of one session, and bytes of all its frames.
    send_burst: int = 1_000
    sends_per_s: float = 500.0
    input_burst_bytes: int = 8 * _MIB
    input_bytes_per_s: float = 16.0 * _MIB
    # One ordered pair of sessions; the first reply to a live ask is exempt.
    pair_messages: int = 600
    pair_window_s: float = 60.0
    # Replace stage (wire.md 5.4): keys of one sender, of all, bytes, and the quiet time.
    stage_keys_per_sender: int = 100
    stage_keys: int = 1_000
    stage_bytes: int = 16 * _MIB
    stage_delay_s: float = 1.5
    # A recipient that takes no bytes while some wait.
    stalled_after_s: float = 20.0
    disconnect_after_s: float = 120.0
    # Dedupe (wire.md 14.3).
    dedupe_s: float = 3_600.0
    dedupe_per_sender: int = 4_096
    dedupe_total: int = 262_144
    # Dead letters (wire.md 9.8).
    letters: int = 10_000
    letters_s: float = 7 * 86_400.0
    # Parked children (wire.md 9.5): messages and bytes that wait for one, children of one main, and all of it together
    # (it is held in memory too); how long a message waits, and a child without any.
    parked_messages: int = 100
    parked_bytes: int = _MIB
    parked_children: int = 64
    parked_children_total: int = 4_096
    parked_bytes_total: int = 64 * _MIB
    parked_s: float = 7 * 86_400.0
    # Kept asks (wire.md 9.7): open ones of one asker, all of them, and bytes of replies that nobody has fetched.
    kept_asks: int = 1_000
    kept_asks_total: int = 10_000
    kept_bytes: int = 64 * _MIB
    # Asks that a recipient may owe, and that one asker may have open; the seeds' inbox holds 100.
    max_asks_per_recipient: int = 1_000
    max_asks_per_asker: int = 1_000
    # Reads (wire.md 9.4): how long an owner has to answer, and how many one session may have open.
    read_timeout_s: float = 5.0
    reads_per_session: int = 32
    # A list over the byte budget is answered late, at most so late.
    max_list_delay_s: float = 2.0
    # Idle exit; None: a supervised broker never leaves by itself.
    idle_exit_s: float | None = 5.0
    # Past this bound the exit leaves the files and goes.
    stop_timeout_s: float = 5.0


# What a benchmark may not be slowed by. Accounting stays on; only the numbers are out of reach.
_UNREACHABLE = 1 << 40


def raise_rates(limits: Limits) -> Limits:
    """The same limits with every rate and queue limit out of reach (``serve --limits bench``)."""
    return replace(
        limits,
        send_burst=_UNREACHABLE,
        sends_per_s=float(_UNREACHABLE),
        input_burst_bytes=_UNREACHABLE,
        input_bytes_per_s=float(_UNREACHABLE),
        pair_messages=_UNREACHABLE,
        recipient_bytes=_UNREACHABLE,
        recipient_messages=_UNREACHABLE,
        outbound_bytes=_UNREACHABLE,
        max_asks_per_recipient=_UNREACHABLE,
        max_asks_per_asker=_UNREACHABLE,
    )
