"""The agents' tool in the hands of the MCP inspector's command line, which comes from npm."""
