"""The measured goals: this broker and this library against floors on the same machine. Figures are never a test."""
