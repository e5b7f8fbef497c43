"""Other devices, over real ssh connections to servers in the test."""
