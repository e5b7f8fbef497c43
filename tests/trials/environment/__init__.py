"""What surrounds a client and must never reach the broker that it starts."""
