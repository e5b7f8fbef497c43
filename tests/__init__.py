"""The tests of intercom: unit, stateful, conformance, architecture, integration, and their support."""
