"""What surrounds a client never reaches the broker that it starts. ``python -m tests.trials.environment``."""
