"""The inbox and its reply tracker as a state machine, with a disk, a host and a broker that do anything."""
