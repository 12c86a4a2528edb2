"""What is to be done: the source against the state, columns, splits and groups."""
