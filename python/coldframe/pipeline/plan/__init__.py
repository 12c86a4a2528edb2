"""Planning: compares the source with the state; chooses columns, splits and groups."""
