"""The core as a state machine: every short sequence of events, then long random ones, under one set of invariants."""
