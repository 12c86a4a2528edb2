"""Output for people: the verdict, the report and its pages, progress, the list of what is safe to delete."""
