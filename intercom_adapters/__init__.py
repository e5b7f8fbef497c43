"""What agents touch: the tool and the per-turn shims. Speaks through libintercom only."""
