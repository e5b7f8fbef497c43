"""The remote command: what runs on a device that another one reached over ssh, and what makes one file of it."""
