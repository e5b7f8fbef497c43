"""The JSON shapes that two devices exchange, as vectors: what a command prints, and what it means to the caller."""
