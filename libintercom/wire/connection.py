"""One connection's states as a table, for both ends (wire.md sections 3 and 4).

Owns which frame may come when. Does not own what a frame does.
"""

from __future__ import annotations

# The broker's view of a connection.
UNREGISTERED = "unregistered"
REGISTERED = "registered"
OBSERVING = "observing"
CLOSED = "closed"

# (state, what the client said) -> the next state. What is missing is a violation: the connection ends.
BROKER_TABLE: dict[tuple[str, str], str] = {
    (UNREGISTERED, "register"): REGISTERED,
    (UNREGISTERED, "health"): UNREGISTERED,
    (REGISTERED, "unregister"): UNREGISTERED,
    (REGISTERED, "list"): REGISTERED,
    (REGISTERED, "send"): REGISTERED,
    (REGISTERED, "presence"): REGISTERED,
    (REGISTERED, "health"): REGISTERED,
    (REGISTERED, "message_receipt"): REGISTERED,
    (REGISTERED, "cancel_message"): REGISTERED,
    (REGISTERED, "cancel_ask"): REGISTERED,
    (REGISTERED, "extension"): REGISTERED,
    (REGISTERED, "stats"): REGISTERED,
    (REGISTERED, "dead_letters"): REGISTERED,
    (REGISTERED, "park"): REGISTERED,
    (REGISTERED, "unpark"): REGISTERED,
    (REGISTERED, "wake_outcome"): REGISTERED,
    (REGISTERED, "fetch_reply"): REGISTERED,
    (REGISTERED, "ack_reply"): REGISTERED,
    (REGISTERED, "read"): REGISTERED,
    (REGISTERED, "read_response"): REGISTERED,
    (OBSERVING, "unregister"): UNREGISTERED,
    (OBSERVING, "list"): OBSERVING,
    (OBSERVING, "health"): OBSERVING,
    (OBSERVING, "stats"): OBSERVING,
    # A send of an observer is refused, never a drop: whoever sends learns the outcome.
    (OBSERVING, "send"): OBSERVING,
}

# The client's view: JOINING from its own ``register`` until ``registered`` arrives. After ``unregister`` it is LEFT,
# then REJOINING: what was on its way to the registration before may still come.
OPEN = "open"
JOINING = "joining"
JOINED = "joined"
LEFT = "left"
REJOINING = "rejoining"

# Frames a client may get only while joined.
_WHILE_JOINED = (
    "sessions",
    "message",
    "session_left",
    "delivered",
    "delivery_queued",
    "delivery_failed",
    "message_receipt",
    "ask_retired",
    "dead_letter",
    "dead_letters_result",
    "stats_result",
    "parked",
    "park_failed",
    "unparked",
    "wake_request",
    "wake_failed",
    "fetched_reply",
    "read_request",
    "read_result",
)

# (state, "<" + frame received or ">" + frame sent) -> the next state.
CLIENT_TABLE: dict[tuple[str, str], str] = {
    (OPEN, ">register"): JOINING,
    (OPEN, ">health"): OPEN,
    (OPEN, "<health_ok"): OPEN,
    (JOINING, "<registered"): JOINED,
    (JOINING, "<error"): CLOSED,
    (JOINING, "<health_ok"): JOINING,
    (JOINING, ">health"): JOINING,
    (JOINED, ">unregister"): LEFT,
    (LEFT, ">register"): REJOINING,
    (LEFT, ">health"): LEFT,
    (LEFT, "<health_ok"): LEFT,
    (REJOINING, "<registered"): JOINED,
    (REJOINING, "<error"): CLOSED,
    (REJOINING, "<health_ok"): REJOINING,
    (REJOINING, ">health"): REJOINING,
    (JOINED, "<health_ok"): JOINED,
    (JOINED, "<error"): JOINED,
    **{(JOINED, f"<{kind}"): JOINED for kind in _WHILE_JOINED},
    # What was on its way when the client left or rejoined is dropped, not a violation.
    **{(state, f"<{kind}"): state for state in (LEFT, REJOINING) for kind in _WHILE_JOINED},
    **{
        (JOINED, f">{kind}"): JOINED
        for kind in (
            "list",
            "send",
            "presence",
            "health",
            "message_receipt",
            "cancel_message",
            "cancel_ask",
            "stats",
            "dead_letters",
            "park",
            "unpark",
            "wake_outcome",
            "fetch_reply",
            "ack_reply",
            "read",
            "read_response",
        )
    },
}


def next_broker_state(state: str, kind: str, *, is_observer: bool = False) -> str:
    """The broker's next state of a connection, ``CLOSED`` on a violation."""
    if (state, kind) == (UNREGISTERED, "register") and is_observer:
        return OBSERVING
    return BROKER_TABLE.get((state, kind), CLOSED)


def next_client_state(state: str, step: str) -> str:
    """The client's next state, ``CLOSED`` on a violation. ``step`` is ``<frame`` received, ``>frame`` sent."""
    return CLIENT_TABLE.get((state, step), CLOSED)
