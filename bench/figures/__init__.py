"""The figures, one module for each kind, in the order of the table of goals."""
