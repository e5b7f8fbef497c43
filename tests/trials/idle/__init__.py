"""Idle exits under load: clients that connect while the broker leaves, none of whom may be lost."""
