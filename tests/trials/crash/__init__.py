"""Ends that lose nothing: sessions and brokers that are killed again and again. ``python -m tests.trials.crash``."""
