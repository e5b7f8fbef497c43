"""The `intercom` tool for agents, through the Model Context Protocol: one server on standard streams, one session.

Imports nothing: the protocol's package is an optional installation and takes half a second to load.
"""
