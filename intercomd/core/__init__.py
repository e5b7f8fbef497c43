"""Every decision the broker makes, pure: events in, effects out, ``now`` as an argument.

Owns who is connected, who may see and reach whom, what is accepted, queued or refused and when something is
due. Does not own input, output, time or randomness (``intercomd.edges``, ``intercomd.shell``).
"""
