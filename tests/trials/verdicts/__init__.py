"""The verdict table, line by line, for real. ``python -m tests.trials.verdicts``."""
