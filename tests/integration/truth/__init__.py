"""Is the sender's word ever more than what the recipient's kernel had? ``python -m tests.integration.truth``."""
