"""The broker daemon: edges do the input and output, the shell applies, the core decides."""
