"""What a migration remembers: the journal of its target, and lists too long for memory."""
