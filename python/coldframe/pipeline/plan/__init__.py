"""What is to be done: the source compared with the state; columns, splits and groups."""
