"""The doing: tasks that convert and verify, and the commit of what they give back."""
