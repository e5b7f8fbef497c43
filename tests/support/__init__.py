"""What tests share: fakes, waiting with a deadline, isolated daemons, the container lab."""
