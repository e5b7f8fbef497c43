"""Load: programs that play sessions against a broker and report what they saw, each run as a process of its own."""
