"""Bytes and meanings of the intercom protocol. Pure: no socket, clock, file or randomness.

Owns frames, value rules, one frozen type per wire message and the connection states. Does not own
transport (``libintercom.endpoint``), correlation of answers (``libintercom.calls``) or any decision.
"""
