"""Outside witnesses of one namespace: who holds life, who answers at the path, and what follows from both."""
