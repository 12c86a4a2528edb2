"""The state of a migration: the journal of its target, and lists that are too long for memory."""
