"""The start lock, the claim and the life of one broker, on top of libintercom.ownership."""
