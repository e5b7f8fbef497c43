"""All input and output of the broker. No edge knows another edge."""
