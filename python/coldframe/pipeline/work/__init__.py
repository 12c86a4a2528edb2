"""Tasks that convert and verify, and the commit of their results."""
