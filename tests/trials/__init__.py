"""Reliability trials: each is a command that prints seed and counts and exits with 1 on a violation.

``python -m tests.trials.NAME`` runs one in full; the ``test_*.py`` beside it run a printed part of it, and show with a
planted fault that its judgement closes.
"""
