"""One module per command; no command knows another."""
