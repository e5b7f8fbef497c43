"""The walls of the house, each with a breach that shows the gate closing."""
