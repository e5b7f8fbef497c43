"""Who owns a runtime directory: records, identities and the pure verdict over them."""
