"""Files that vanish under a living broker: removed, moved, replaced, cleaned away, or taken by somebody else."""
