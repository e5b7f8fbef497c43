"""Every line of the verdict table, met by a real candidate: what it reported, and that it left everything alone."""
