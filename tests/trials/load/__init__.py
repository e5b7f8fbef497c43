"""What greedy, broken and hostile clients cost the others: ``python -m tests.trials.load``."""
