"""Mutated frames against a live broker while others go on talking. ``python -m tests.trials.mutation``."""
