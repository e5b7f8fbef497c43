"""What survives a broker restart."""
