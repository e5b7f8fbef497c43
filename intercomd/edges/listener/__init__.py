"""The socket, its peers and the byte pump."""
