"""Crashes of a session's journal, its owners and its disk: real processes, real kills."""
